"""What a grammar file may hold: its tables and keys, and the lines of its text blocks.

A grammar has hundreds of rules, cells and lexemes. Each is one line, in a notation as close as
possible to the linguist's. This module turns lines into symbols and feature terms; what they
mean for sentences it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from spmrl_bench.errors import TreebankError, unknown_name

_RELATION = r"[a-z]+(?::[a-z]+)*"
_PIECE = re.compile(
    rf"(?P<close>\))|(?:(?P<relation>{_RELATION}):)?"
    r"(?:(?P<open>\()|(?P<symbol>[^\W\d][\w$.'-]*)(?:\[(?P<bundle>[^\]]*)\])?"
    r"(?:\?(?P<chance>0?\.\d+))?)"
)


class GrammarError(TreebankError):
    """A grammar is wrong; the message has the key, its line, what was found and what is allowed."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")


def look_up(key: str, kind: str, name: str, known: Collection[str]) -> None:
    """Make sure that a name is known.

    Raises:
        GrammarError: it is not; the message has the nearest ones.
    """
    if name not in known:
        raise GrammarError(key, unknown_name(kind, name, known))


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Settings(_Table):
    """How sentences are sampled and written."""

    start: str
    max_words: int = Field(default=40, ge=1)
    damping: float = Field(default=0.5, gt=0, le=1)
    nesting: int = Field(default=3, ge=1)
    capitalise: bool = False
    zipf_exponent: float = Field(default=1.0, ge=0)
    zipf_offset: float = Field(default=3.0, gt=0)
    zipf_pools: list[str] = []


def _shorthand(key: str) -> BeforeValidator:
    """Lets the text of one key stand for a whole table."""
    return BeforeValidator(lambda value: {key: value} if isinstance(value, str) else value)


class FeatureTable(_Table):
    """The values of a feature, their prior weights, and the value of words that say nothing."""

    values: str = ""
    like: str | None = None
    weights: list[Annotated[float, Field(gt=0)]] | None = None
    default: str | None = None


class PhraseTable(_Table):
    """A nonterminal; ``label = ""`` makes it invisible in the trees."""

    features: str = ""
    label: str | None = None
    unary: bool = True


class WordTable(_Table):
    """A word glued from parts, or a category of the lexicon."""

    features: str = ""
    tag: str | None = None
    tail: Literal["keep", "lower"] = "keep"


class ParadigmTable(_Table):
    """Word forms of a class of lexemes."""

    cells: str
    lexemes: str
    features: str = ""
    stems: int = Field(default=1, ge=1)
    pool: str | None = None


class SpellingTable(_Table):
    """Rewrite inside a form; ``+`` marks the boundaries of its parts."""

    pattern: re.Pattern[str]
    replace: str


class AdjustTable(_Table):
    """Rewrite a word that stands before another one."""

    word: re.Pattern[str]
    next: re.Pattern[str]
    replace: str


class GrammarTable(_Table):
    """The whole file."""

    language: str
    settings: Settings
    features: dict[str, Annotated[FeatureTable, _shorthand("values")]] = {}
    phrases: dict[str, Annotated[PhraseTable, _shorthand("features")]]
    words: dict[str, Annotated[WordTable, _shorthand("features")]] = {}
    categories: dict[str, Annotated[WordTable, _shorthand("features")]]
    rules: dict[str, str]
    dependencies: dict[str, str] = {}
    lexicon: dict[str, str] = {}
    paradigms: dict[str, ParadigmTable] = {}
    spelling: list[SpellingTable] = []
    adjust: list[AdjustTable] = []


@dataclass(frozen=True)
class Term:
    """What a rule or cell says of one feature: the values allowed, perhaps shared by name."""

    allowed: tuple[str, ...]
    variable: str | None = None


@dataclass(frozen=True)
class Reference:
    """A symbol with its feature terms; ``chance`` < 1 marks an optional symbol.

    ``relation`` is what was written before it; ``groups`` are the parentheses around it from the
    outermost to the innermost, each with its number in the row and the relation before it.
    """

    symbol: str
    terms: Mapping[str, Term]
    chance: float = 1.0
    relation: str | None = None
    groups: tuple[tuple[int, str | None], ...] = ()


def lines_of(key: str, block: str) -> Iterator[tuple[str, str]]:
    """The lines of a block without comments, each after the key that names it in messages."""
    for number, raw in enumerate(block.split("\n"), start=1):
        text = re.sub(r"(^|\s)#.*", "", raw).strip()
        if text:
            yield f"{key} line {number} '{text}'", text


@dataclass(frozen=True)
class Notation:
    """Reads the symbols and features of lines.

    ``signatures`` gives the features of each symbol, ``domains`` the values of each feature.
    Where ``variables`` are allowed (in rules), a bare feature is the variable of its name, and
    only features of the symbol may be named; elsewhere all may, as guards. Each method raises
    :class:`GrammarError` with ``key`` for what it cannot read.
    """

    signatures: Mapping[str, Sequence[str]]
    domains: Mapping[str, tuple[str, ...]]

    def references(self, key: str, text: str, *, variables: bool = True) -> list[Reference]:
        """A row of symbols such as ``Art[case,num] Noun[case,num,gen=m] obl:(P[case] NX)``."""
        references: list[Reference] = []
        groups: list[tuple[int, str | None]] = []
        opened = 0
        rest = text.strip()
        while rest:
            piece = _PIECE.match(rest)
            if piece is None or (piece["close"] and not groups):
                raise GrammarError(key, f"cannot read '{rest}'; expected Symbol[feature=value]")
            rest = rest[piece.end() :].lstrip()
            relation, symbol = piece["relation"], piece["symbol"]
            if piece["close"]:
                groups.pop()
            elif piece["open"]:
                groups.append((opened, relation))
                opened += 1
            else:
                look_up(key, "symbol", symbol, self.signatures)
                items = [item for item in re.split(r"[,\s]+", piece["bundle"] or "") if item]
                terms = self.bundle(key, items, self.signatures[symbol], variables=variables)
                chance = float(piece["chance"] or 1)
                references.append(Reference(symbol, terms, chance, relation, tuple(groups)))
        if groups:
            raise GrammarError(key, "a '(' has no ')'")
        return references

    def bundle(
        self, key: str, items: Sequence[str], scope: Sequence[str], *, variables: bool = False
    ) -> dict[str, Term]:
        """Feature terms; bare values belong to the only feature of ``scope`` that has them."""
        terms: dict[str, Term] = {}
        for item in items:
            feature, term = self._item(key, item, scope, variables)
            if feature in terms:
                raise GrammarError(key, f"feature '{feature}' given twice")
            terms[feature] = term
        return terms

    def _item(self, key: str, item: str, scope: Sequence[str], variables: bool) -> tuple[str, Term]:
        """One item of a feature bundle: ``f=v``, ``f=?x``, ``f=?x:v|w``, ``f`` or a bare value."""
        name, equals, value = item.partition("=")
        if equals:
            look_up(key, "feature", name, scope if variables else self.domains)
        elif variables and item in scope:
            return item, Term(self.domains[item], item)
        else:
            name, value = self._owner(key, item, scope), item
        variable = None
        if variables and value.startswith("?"):
            variable, colon, value = value[1:].partition(":")
            if not colon:
                return name, Term(self.domains[name], variable)
        allowed = self._values(key, value, self.domains[name])
        if variables and variable is None and len(allowed) > 1:
            variable = name  # several values leave a choice, that of the variable ?feature
        return name, Term(allowed, variable)

    def _owner(self, key: str, item: str, scope: Sequence[str]) -> str:
        names = item.removeprefix("!").split("|")
        owners = [name for name in scope if all(value in self.domains[name] for value in names)]
        if len(owners) > 1:
            several = " and ".join(owners)
            raise GrammarError(key, f"'{item}' is a value of {several}; write feature=value")
        if not owners:
            known = [*scope, *(value for name in scope for value in self.domains[name])]
            raise GrammarError(key, unknown_name("feature or value", item, known))
        return owners[0]

    def _values(self, key: str, text: str, domain: tuple[str, ...]) -> tuple[str, ...]:
        """Those of a domain that ``a|b`` or ``!a|b`` (all but these) allows."""
        names = text.removeprefix("!").split("|")
        for name in names:
            look_up(key, "value", name, domain)
        return tuple(value for value in domain if (value in names) != text.startswith("!"))
