"""Which daughter of a phrase holds its head, and what relation the others bear to it.

A constituent and a dependency tree that come from one derivation agree: the head of a phrase
is the head of one of its daughters, and the heads of the others depend on it. So a rule need
only say which daughter that is and name the relations. Most symbols bear the same relation
wherever they stand (an article is ``det``); the table of defaults says so once, and in a rule the
daughter that bears none is the head.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from spmrl_bench.treebanks.mini.notation import Notation, Reference, Term
from spmrl_bench.treebanks.mini.problems import Problems

HEAD = "head"
"""What is written in place of a relation before a head that would bear one by default."""

HEADLESS = "headless"
"""The entry of ``[dependencies]`` that lists phrases whose daughters attach outside of them."""

PASSIVE = "passive"
"""The entry that lists words and categories of passive verbs without an auxiliary."""

#: Universal Dependencies, version 2; each may have a subtype.
_RELATIONS = """
acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse
dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis
punct reparandum vocative xcomp
"""
_UNIVERSAL = _RELATIONS.split()
#: The relations of words that are never heads beside a word of content.
_FUNCTIONAL = ("aux", "case", "cc", "clf", "cop", "det", "mark", "punct")
#: The place of what governs a phrase from outside of it.
OUTSIDE = -1


@dataclass(frozen=True)
class Defaults:
    """The table ``[dependencies]``.

    ``relations`` gives for each symbol its relations, each with the values that it needs, the
    first that fits counts; ``headless`` are the phrases without a head, ``passive`` the words that
    are passive by themselves.
    """

    relations: Mapping[str, Sequence[tuple[Mapping[str, Term], str]]]
    headless: frozenset[str]
    passive: Mapping[str, Sequence[Mapping[str, Term]]]

    def relation(self, symbol: str, values: Mapping[str, str | None]) -> str | None:
        """What a symbol with these values bears, if anything; None is a value not yet chosen."""
        known = self.relations.get(symbol, ())
        return next((relation for terms, relation in known if _fits(terms, values)), None)

    def is_passive(self, symbol: str, values: Mapping[str, str | None]) -> bool:
        """Whether a symbol with these values is a verb that is passive by itself."""
        return any(_fits(terms, values) for terms in self.passive.get(symbol, ()))


@dataclass(frozen=True)
class Links:
    """What the daughters of a phrase depend on.

    Attributes:
        head: the place of the daughter that holds the head, from 0; -1 in a headless phrase.
        to: for each daughter the place of the one on whose head it depends: its own place if it
            holds the head of the phrase, -1 for what the phrase itself depends on.
        relations: for each daughter its relation; unused for the head and headless phrases.
    """

    head: int
    to: tuple[int, ...]
    relations: tuple[str, ...]


def read_defaults(
    table: Mapping[str, str], invisible: Collection[str], notation: Notation
) -> Defaults:
    """The defaults of a grammar; ``invisible`` are the phrases without a label."""
    problems = notation.problems
    relations: dict[str, list[tuple[Mapping[str, Term], str]]] = {}
    passive: dict[str, list[Mapping[str, Term]]] = {}
    headless: set[str] = set()
    for relation, row in table.items():
        key = f"dependencies.{relation}"
        if relation not in (HEADLESS, PASSIVE):
            check_relation(key, relation, problems, head=False)
        for reference in notation.references(key, row) or ():
            symbol, terms = reference.symbol, reference.terms
            if relation == PASSIVE:
                passive.setdefault(symbol, []).append(terms)
            elif relation != HEADLESS:
                relations.setdefault(symbol, []).append((terms, relation))
            elif symbol in invisible:
                headless.add(symbol)
            else:
                problems.add(key, f"'{symbol}' is no phrase with label = \"\"")
    return Defaults(relations, frozenset(headless), passive)


def _fits(terms: Mapping[str, Term], values: Mapping[str, str | None]) -> bool:
    return all(values[feature] in term.allowed for feature, term in terms.items())


def check_relation(key: str, relation: str, problems: Problems, *, head: bool = True) -> None:
    """Note a relation that Universal Dependencies do not have; ``head`` allows that mark too."""
    known = [HEAD, *_UNIVERSAL] if head else _UNIVERSAL
    if relation not in known and relation.partition(":")[0] not in _UNIVERSAL:
        problems.unknown(key, "relation", relation, known)


@dataclass
class Linker:
    """Finds the links of a phrase.

    Attributes:
        key: names its rule in messages.
        children: its daughters, with what was written before them.
        defaults: what each bears where nothing was written.
        headless: the phrases of the grammar without a head.
        empty: the phrases of the grammar that may have no words.
        problems: receives what is wrong.
    """

    key: str
    children: Sequence[Reference]
    defaults: Sequence[str | None]
    headless: Collection[str]
    empty: Collection[str]
    problems: Problems

    def __post_init__(self) -> None:
        pairs = zip(self.children, self.defaults, strict=True)
        self.relations = [child.relation or default for child, default in pairs]
        self.to = list(range(len(self.children)))
        self.borne = [""] * len(self.children)

    def links(self, symbol: str) -> Links:
        """The links of the phrase, whose symbol this is."""
        head = self._unite(range(len(self.children)), 0, headed=symbol not in self.headless)
        return Links(head, tuple(self.to), tuple(self.borne))

    def _unite(self, places: Iterable[int], depth: int, *, headed: bool) -> int:
        """Link the daughters at ``places`` inside ``depth`` parentheses; the place of the head."""
        items: list[int] = []  # the daughters and, for each parenthesis, the one with its head
        for (number, relation), run in groupby(places, lambda place: self._group(place, depth)):
            if number < 0:
                items.extend(run)
                continue
            inner = self._unite(run, depth + 1, headed=True)
            if inner == OUTSIDE:
                return OUTSIDE
            if relation is not None or self.relations[inner] == HEAD:
                self.relations[inner] = relation or self.defaults[inner]
            items.append(inner)
        head = self._head(items) if headed else OUTSIDE
        if headed and head == OUTSIDE:
            return head
        for place in items:
            if place != head:
                self.to[place] = head
                self.borne[place] = self._checked(place)
        if headed and len(items) > 1 and self._name(head) in self.empty:
            self._note(f"'{self._name(head)}' is the head of others but may have no words")
        return head

    def _group(self, place: int, depth: int) -> tuple[int, str | None]:
        """The parenthesis around a daughter at this depth; number -1 if there is none."""
        groups = self.children[place].groups
        return groups[depth] if len(groups) > depth else (-1, None)

    def _head(self, items: Sequence[int]) -> int:
        """The only one able, or marked, or without a relation, or that is no function word."""
        able = [place for place in items if self._name(place) not in self.headless]
        kinds = [
            able if len(able) == 1 else [],
            [place for place in able if self.relations[place] == HEAD],
            [place for place in able if self.relations[place] is None],
            [place for place in able if not self._functional(place)],
        ]
        found = next((kind for kind in kinds if kind), items)
        if len(found) == 1 and able:
            return found[0]
        if items:
            names = " and ".join(f"'{self._name(place)}'" for place in found)
            self._note(f"{names}: which is the head? Write a relation before the others or 'head:'")
        return OUTSIDE

    def _checked(self, place: int) -> str:
        """The relation of a daughter that is not the head."""
        relation = self.relations[place]
        if self._name(place) in self.headless:
            if relation is not None:
                self._note(f"headless '{self._name(place)}' bears no relation: its daughters do")
        elif relation is None or relation == HEAD:
            self._note(f"'{self._name(place)}' bears no relation: write one before it")
        return relation or ""

    def _functional(self, place: int) -> bool:
        return (self.relations[place] or "").partition(":")[0] in _FUNCTIONAL

    def _name(self, place: int) -> str:
        return self.children[place].symbol

    def _note(self, problem: str) -> None:
        self.problems.add(self.key, problem)


def attach(
    parents: Sequence[int], links: Sequence[Links | None], passive: Iterable[int]
) -> tuple[list[int], list[str]]:
    """Heads (words from 1, 0 = root) and relations of the words of a derivation.

    Args:
        parents: of each phrase and word, in the order in which they begin and phrases first, the
            number of the phrase above it; of the whole, -1.
        links: of each phrase; None for a word.
        passive: the words that are passive verbs; where a verb has a passive auxiliary, it is
            one too.
    """
    size = len(parents)
    daughters: list[list[int]] = [[] for _ in parents]
    for unit in range(1, size):
        daughters[parents[unit]].append(unit)
    top = [0] * size  # the word that is the head of a phrase; 0 where there is none
    word = sum(link is None for link in links)
    for unit in range(size - 1, -1, -1):
        known = links[unit]
        if known is None:
            top[unit] = word
            word -= 1
        elif known.head >= 0:
            top[unit] = top[daughters[unit][known.head]]
    governors = [0] * size
    relations = ["root"] * size
    heads, borne = [], []
    for unit in range(size):
        known = links[unit]
        if known is None:
            heads.append(governors[unit])
            borne.append(relations[unit])
            continue
        for place, daughter in enumerate(daughters[unit]):
            target = known.to[place]
            inherits = target == place
            relations[daughter] = relations[unit] if inherits else known.relations[place]
            governors[daughter] = (
                governors[unit] if inherits or target < 0 else top[daughters[unit][target]]
            )
    verbs = {head for head, kind in zip(heads, borne, strict=True) if kind == "aux:pass"}
    verbs.update(passive)
    if verbs:
        for place, (head, kind) in enumerate(zip(heads, borne, strict=True)):
            if kind in ("nsubj", "csubj") and head in verbs:
                borne[place] = f"{kind}:pass"
    return heads, borne
