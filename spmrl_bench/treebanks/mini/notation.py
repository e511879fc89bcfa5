"""The line notation inside the text blocks of a grammar file.

A grammar has hundreds of rules, cells and lexemes; one line each, in a notation as close as
possible to the linguist's, keeps them readable. This module turns lines into terms and knows
nothing of what the names mean beyond the declared features.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spmrl_bench.treebanks.mini.problems import Problems

Domains = Mapping[str, tuple[str, ...]]

_REFERENCE = re.compile(
    r"(?:([a-z]+(?::[a-z]+)*):)?([^\W\d][\w$.'-]*)(?:\[([^\]]*)\])?(?:\?([0-9.]+))?"
)
_GROUP = re.compile(r"(?:([a-z]+(?::[a-z]+)*):)?\(")
_WEIGHT = re.compile(r"[0-9]+(?:\.[0-9]+)?")


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


@dataclass(frozen=True)
class Line:
    """One non-empty line of a text block and the key that names it in messages."""

    key: str
    text: str


def lines_of(key: str, block: str) -> Iterator[Line]:
    """The lines of a block without comments (``#`` at the start or after a space)."""
    for number, raw in enumerate(block.split("\n"), start=1):
        text = re.sub(r"(^|\s)#.*", "", raw).strip()
        if text:
            yield Line(f"{key} line {number} '{text}'", text)


@dataclass(frozen=True)
class Notation:
    """Reads the terms and references of lines; mistakes go to ``problems``.

    ``signatures`` gives the features of each symbol, ``domains`` the values of each feature. The
    ``key`` of a method names the line in messages.
    """

    signatures: Mapping[str, Sequence[str]]
    domains: Domains
    problems: Problems

    def references(
        self, key: str, text: str, *, variables: bool = True, relations: bool = False
    ) -> list[Reference] | None:
        """A row of symbol references such as ``Art[case,num] Noun[case,num,gen=m] PP?0.2``.

        Without ``variables`` the row is a cell: values only, and any feature may be a guard. With
        ``relations``, symbols and parentheses around them may bear one: ``obl:(P[case] NX[case])``.
        """
        references: list[Reference] = []
        groups: list[tuple[int, str | None]] = []
        opened = position = 0
        text = text.strip()
        while position < len(text):
            if text[position].isspace():
                position += 1
                continue
            if groups and text[position] == ")":
                groups.pop()
                position += 1
                continue
            opening = _GROUP.match(text, position) if relations else None
            if opening is not None:
                groups.append((opened, opening.group(1)))
                opened += 1
                position = opening.end()
                continue
            match = _REFERENCE.match(text, position)
            if match is None:
                rest = text[position:]
                self.problems.add(key, f"cannot read '{rest}'; expected Symbol[feature=value]")
                return None
            relation, symbol, bundle, chance = match.groups()
            if symbol not in self.signatures:
                self.problems.unknown(key, "symbol", symbol, self.signatures)
                return None
            if relation and not relations:
                self.problems.add(key, f"'{relation}:' found where no symbol bears a relation")
            items = [item for item in re.split(r"[,\s]+", bundle or "") if item]
            scope = self.signatures[symbol]
            terms = self.bundle(key, items, scope, variables=variables, guards=not variables)
            share = self._chance(key, chance)
            references.append(Reference(symbol, terms, share, relation, tuple(groups)))
            position = match.end()
        if groups:
            self.problems.add(key, "a '(' has no ')'")
        return references

    def bundle(
        self,
        key: str,
        items: Sequence[str],
        scope: Sequence[str],
        *,
        variables: bool = False,
        guards: bool = False,
    ) -> dict[str, Term]:
        """Feature terms of a bundle; a feature named twice is a mistake.

        ``guards`` lets ``f=v`` name any feature, not only those in ``scope``.
        """
        nameable = self.domains if guards else scope
        terms: dict[str, Term] = {}
        for item in items:
            parsed = self._item(key, item, scope, nameable, variables)
            if parsed is None:
                continue
            feature, term = parsed
            if feature in terms:
                self.problems.add(key, f"feature '{feature}' given twice")
            terms[feature] = term
        return terms

    def _item(
        self, key: str, item: str, scope: Sequence[str], nameable: Collection[str], variables: bool
    ) -> tuple[str, Term] | None:
        """One item of a feature bundle: ``f=v``, ``f=?x``, ``f=?x:v|w``, ``f`` or a bare value."""
        name, equals, value = item.partition("=")
        if equals:
            if name not in nameable:
                self.problems.unknown(key, "feature", name, nameable)
                return None
        elif variables and item in scope:
            return item, Term(self.domains[item], item)
        else:
            owner = self._owner(key, item, scope)
            if owner is None:
                return None
            name, value = owner, item
        variable = None
        if equals and value.startswith("?"):
            if not variables:
                self.problems.add(key, f"variable '{value}' found where only values are allowed")
                return None
            variable, colon, value = value[1:].partition(":")
            if not colon:
                return name, Term(self.domains[name], variable)
        allowed = self._values(key, value, self.domains[name])
        if allowed is None:
            return None
        if variables and variable is None and len(allowed) > 1:
            variable = (
                name  # several values in a rule leave a choice, that of the variable ?feature
            )
        return name, Term(allowed, variable)

    def _owner(self, key: str, item: str, scope: Sequence[str]) -> str | None:
        """The feature that bare values belong to, if there is one and no more."""
        names = item.removeprefix("!").split("|")
        owners = [name for name in scope if all(value in self.domains[name] for value in names)]
        if len(owners) == 1:
            return owners[0]
        if owners:
            several = " and ".join(owners)
            self.problems.add(key, f"'{item}' is a value of {several}; write feature=value")
        else:
            known = [*scope, *(value for name in scope for value in self.domains[name])]
            self.problems.unknown(key, "feature or value", item, known)
        return None

    def _values(self, key: str, text: str, domain: tuple[str, ...]) -> tuple[str, ...] | None:
        """Those of a domain that ``a|b`` or ``!a|b`` (all but these) allows."""
        negated = text.startswith("!")
        names = text.removeprefix("!").split("|")
        for name in names:
            if name not in domain:
                self.problems.unknown(key, "value", name, domain)
                return None
        allowed = tuple(value for value in domain if (value in names) != negated)
        if not allowed:
            self.problems.add(key, f"'{text}' leaves no value; allowed: {', '.join(domain)}")
            return None
        return allowed

    def _chance(self, key: str, text: str | None) -> float:
        if text is None:
            return 1.0
        try:
            chance = float(text)
        except ValueError:
            chance = -1.0
        if not 0 < chance < 1:
            self.problems.add(key, f"chance '?{text}' found; allowed: a number between 0 and 1")
            return 1.0
        return chance


def split_weight(text: str) -> tuple[float, str]:
    """A leading rule weight (1 when absent) and the rest of the line."""
    match = _WEIGHT.match(text)
    if match is None:
        return 1.0, text
    return float(match.group()), text[match.end() :].strip()
