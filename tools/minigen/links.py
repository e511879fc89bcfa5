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
from typing import NamedTuple

from tools.minigen.notation import GrammarError, Notation, Reference, Term, look_up

#: Universal Dependencies, version 2; each may have a subtype.
_RELATIONS = """
acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse
dislocated expl fixed flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis
punct reparandum vocative xcomp
"""
#: They, and what is written before a head that would bear one by default.
_WRITABLE = ["head", *_RELATIONS.split()]
#: The relations of words that are never heads beside a word of content.
_FUNCTIONAL = ("aux", "case", "cc", "clf", "cop", "det", "mark", "punct")
#: The place of what governs a phrase from outside of it.
OUTSIDE = -1


@dataclass(frozen=True)
class Defaults:
    """The table ``[dependencies]``.

    ``relations`` gives for each symbol its relations, each with the values that it needs, the
    first that fits counts; ``headless`` are the phrases whose daughters attach outside of them,
    ``passive`` the words that are passive verbs without an auxiliary.
    """

    relations: Mapping[str, Sequence[tuple[Mapping[str, Term], str]]]
    headless: Collection[str]
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
    relations: dict[str, list[tuple[Mapping[str, Term], str]]] = {}
    passive: dict[str, list[Mapping[str, Term]]] = {}
    headless: set[str] = set()
    for relation, row in table.items():
        key = f"dependencies.{relation}"
        for reference in notation.references(key, row):
            symbol, terms = reference.symbol, reference.terms
            if relation == "passive":
                passive.setdefault(symbol, []).append(terms)
            elif relation == "headless":
                look_up(key, "phrase without a label", symbol, invisible)
                headless.add(symbol)
            else:
                check_relation(key, relation)
                relations.setdefault(symbol, []).append((terms, relation))
    return Defaults(relations, headless, passive)


def _fits(terms: Mapping[str, Term], values: Mapping[str, str | None]) -> bool:
    return all(values[feature] in term.allowed for feature, term in terms.items())


def check_relation(key: str, relation: str) -> None:
    """Make sure that Universal Dependencies have a relation, or that it is ``head``."""
    if relation.partition(":")[0] not in _WRITABLE:
        look_up(key, "relation", relation, _WRITABLE)


class Linker:
    """Finds the links of a phrase.

    ``key`` names its rule in messages; ``defaults`` are what its daughters bear where nothing was
    written before them; ``headless`` are the phrases of the grammar without a head.
    """

    def __init__(
        self,
        key: str,
        children: Sequence[Reference],
        defaults: Sequence[str | None],
        headless: Collection[str],
    ) -> None:
        self._key, self._children, self._headless = key, children, headless
        self._defaults = defaults
        pairs = zip(children, defaults, strict=True)
        self._relations = [child.relation or default for child, default in pairs]
        self._to = list(range(len(children)))
        self._borne = [""] * len(children)

    def links(self, symbol: str) -> Links:
        """The links of the phrase, whose symbol this is.

        Raises:
            GrammarError: its head cannot be told, or a daughter bears no relation to it.
        """
        places = range(len(self._children))
        head = self._unite(places, 0, headed=symbol not in self._headless and len(places) > 0)
        return Links(head, tuple(self._to), tuple(self._borne))

    def _unite(self, places: Iterable[int], depth: int, *, headed: bool) -> int:
        """Link the daughters at ``places`` inside ``depth`` parentheses; the place of the head."""
        items: list[int] = []  # the daughters and, for each parenthesis, the one with its head
        for (number, relation), run in groupby(places, lambda place: self._group(place, depth)):
            if number < 0:
                items.extend(run)
                continue
            inner = self._unite(run, depth + 1, headed=True)
            if relation is not None or self._relations[inner] == "head":
                self._relations[inner] = relation or self._defaults[inner]
            items.append(inner)
        head = self._head(items) if headed else OUTSIDE
        for place in items:
            if place != head:
                self._to[place] = head
                self._borne[place] = self._relation(place)
        return head

    def _group(self, place: int, depth: int) -> tuple[int, str | None]:
        """The parenthesis around a daughter at this depth; number -1 if there is none."""
        groups = self._children[place].groups
        return groups[depth] if len(groups) > depth else (-1, None)

    def _head(self, items: Sequence[int]) -> int:
        """The only one able, or marked, or without a relation, or that is no function word."""
        able = [place for place in items if self._children[place].symbol not in self._headless]
        if len(able) == 1:
            return able[0]
        for found in (
            [place for place in able if self._relations[place] == "head"],
            [place for place in able if self._relations[place] is None],
            [place for place in able if not self._functional(place)],
        ):
            if len(found) == 1:
                return found[0]
            if found:
                break
        names = " and ".join(f"'{self._children[place].symbol}'" for place in found or items)
        raise GrammarError(
            self._key,
            f"{names}: which is the head? Write a relation before the others or 'head:'",
        )

    def _relation(self, place: int) -> str:
        """The relation of a daughter that is not the head; headless ones bear none."""
        relation, name = self._relations[place], self._children[place].symbol
        if (name in self._headless) != (relation is None) or relation == "head":
            raise GrammarError(
                self._key,
                f"'{name}' bears {relation or 'no relation'}: write one before each daughter that"
                " is neither the head nor headless, and only there",
            )
        return relation or ""

    def _functional(self, place: int) -> bool:
        return (self._relations[place] or "").partition(":")[0] in _FUNCTIONAL


class Part(NamedTuple):
    """What of a phrase or word still depends on something outside of it.

    ``top`` is the word that holds its head, from 1, or 0 where there is none; ``loose`` are the
    words of a headless phrase, each with its relation to what the phrase depends on.
    """

    top: int
    loose: Sequence[tuple[int, str]] = ()


def join(links: Links, parts: Sequence[Part], heads: list[int], relations: list[str]) -> Part:
    """Attach the daughters of a phrase to each other: what is left of it.

    ``heads`` (0 = root) and ``relations`` of all words get what is thereby known.
    """
    loose: list[tuple[int, str]] = []
    for place, part in enumerate(parts):
        target = links.to[place]
        words = list(part.loose)
        if part.top and target != place:
            words.append((part.top, links.relations[place]))
        if target == OUTSIDE:
            loose += words
            continue
        for word, relation in words:
            heads[word - 1], relations[word - 1] = parts[target].top, relation
    return Part(parts[links.head].top if links.head != OUTSIDE else 0, loose)


def mark_passive(heads: Sequence[int], relations: list[str], passive: Iterable[int]) -> None:
    """Name the subjects of passive verbs: the given words, and those with a passive auxiliary."""
    verbs = {head for head, kind in zip(heads, relations, strict=True) if kind == "aux:pass"}
    verbs.update(passive)
    for place, (head, kind) in enumerate(zip(heads, relations, strict=True)):
        if kind in ("nsubj", "csubj") and head in verbs:
            relations[place] = f"{kind}:pass"
