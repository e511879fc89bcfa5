"""Trees with crossing arcs for parsers that find none: encodings of what lifting took away.

A projective parser learns from trees whose arcs were lifted (:mod:`spmrl_bench.trees.projective`).
What it answers is projective, too, so the arcs that cross are lost, unless relations say which
arcs were lifted, and from where: a parser that learns such relations also answers them, and the
arcs are put back. This is pseudo-projective parsing, Nivre & Nilsson (2005), Pseudo-Projective
Dependency Parsing, and these are its encodings. A word with the relation ``d`` was lifted from a
head with the relation ``h``. On its path are this head and all words above it that are below the
head it has now; ``p`` is the relation of any of them:

================  =====================  ================  ==========================
encoding          relation of the word   on the path       relations, of ``n`` at most
================  =====================  ================  ==========================
``projectivise``  ``d``                  ``p``             ``n``
``head``          ``d↑h``                ``p``             ``n (n + 1)``
``path``          ``d↑``                 ``p↓``            ``4 n``
``head+path``     ``d↑h``                ``p↓``            ``2 n (n + 1)``
================  =====================  ================  ==========================

A word may be both: ``d↑h↓``. An arrow or a backslash in the relation of a treebank is written with
a backslash before it in the three encodings with marks, so that it is never taken for one.

**Back.** From the root down, and from left to right among the dependents of a head, each lifted
word is moved further down below that head, to a word

- with the relation ``h`` (``head``);
- reached by words on the path alone, none of which depends on it (``path``);
- reached by words on the path alone, with the relation ``h``; if there is none, one with the
  relation ``h`` (``head+path``).

Of several, those from which the arc crosses others go before those from which it does not (it
would not have been lifted), and among these the first of a breadth-first search: one that is
higher, then one that is nearer to the word, then the left one. In ``head+path``, words that no
other on the path depends on go before all others. If there is none, the word stays where it is.

A word is only moved below words that are not below itself. From any projective or other tree with
any marks there comes a tree, therefore, with plain relations. A root is moved only where it was
lifted to the root beside another, so the number of roots never grows, and one root stays one.

The tree that was encoded comes back where all its relations differ (``head``, ``head+path``), where
one word only was lifted (``path``, ``head+path``), and in most other cases.

The relations are those of the paper. So is the search, which the paper calls approximate, but for
the preferences: there the first word that fits is taken, level by level and from left to right.
MaltParser, the program of its authors, also goes by the distance to the word within a level and
also prefers the end of a path; neither asks whether the arc would cross others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from spmrl_bench.errors import SpmrlError, TreeError, unknown_name
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.projective import between, dominated_words, lifted_shortest_first
from spmrl_bench.trees.tree import frozen

#: What a parser's configuration may name.
EncodingName = Literal["projectivise", "head", "path", "head+path"]

#: Marks of a word that was lifted (the relation of its head may follow) and of one on a path.
LIFTED, ON_PATH = "↑", "↓"
#: Before a character of a relation that could be taken for a mark, and before itself.
ESCAPE = "\\"

_SPECIAL = re.compile(r"[↑↓\\]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ENCODED = re.compile(r"((?:[^↑↓\\]|\\.)*)(?:↑((?:[^↑↓\\]|\\.)*))?(↓)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A way to make dependency trees projective and to undo it.

    Attributes:
        name: by which a configuration chooses it.
        head: whether the relation of a lifted word names that of the head it was lifted from.
        path: whether words on the path are marked.
    """

    name: EncodingName
    head: bool
    path: bool

    def encode(self, tree: DependencyTree) -> DependencyTree:
        """The projective tree with encoded relations; the same one if nothing changes.

        Arcs are lifted by :func:`~spmrl_bench.trees.projective.lifted_shortest_first`. A word below
        one of several roots may become a root.
        """
        given = tree.heads.tolist()
        heads = lifted_shortest_first(given)
        relations = tree.relations
        if self.marks:
            relations = tuple(self._relations(relations, given, heads))
        if heads == given and relations == tree.relations:
            return tree
        return replace(tree, heads=frozen(heads), relations=relations)

    def decode(self, tree: DependencyTree) -> DependencyTree:
        """The tree with plain relations that an encoded one stands for, by the rules above.

        The tree may be the answer of a parser, in which marks need not fit each other.

        Raises:
            TreeError: a relation is not one that this encoding makes.
        """
        if not self.marks:
            return tree
        read = [self._read(number, text) for number, text in enumerate(tree.relations, start=1)]
        heads = tree.heads
        if any(mark.lifted for mark in read):
            heads = frozen(_Lowering(heads.tolist(), read).heads_by(self))
        relations = tuple(mark.relation for mark in read)
        if heads is tree.heads and relations == tree.relations:
            return tree
        return replace(tree, heads=heads, relations=relations)

    @property
    def marks(self) -> bool:
        """Whether relations tell anything of lifting."""
        return self.head or self.path

    def _relations(
        self, relations: Sequence[str], given: Sequence[int], heads: Sequence[int]
    ) -> Iterator[str]:
        """The relation of each word with its marks."""
        on_path = set()
        for before, now in zip(given, heads, strict=True):
            while self.path and before != now:
                on_path.add(before)
                before = given[before - 1]
        rows = zip(relations, given, heads, strict=True)
        for word, (relation, before, now) in enumerate(rows, start=1):
            text = _escaped(relation)
            if before != now:
                text += LIFTED + (_escaped(relations[before - 1]) if self.head else "")
            yield text + ON_PATH if word in on_path else text

    def _read(self, word: int, relation: str) -> _Mark:
        mark = _read(relation)
        foreign = mark and (mark.on_path > self.path or bool(mark.head_relation) > self.head)
        if mark is None or foreign:
            lifted = f"d{LIFTED}h" if self.head else f"d{LIFTED}"
            forms = ["d", lifted, f"d{ON_PATH}", lifted + ON_PATH][: 4 if self.path else 2]
            raise TreeError(
                f"word {word}: '{relation}' is no relation of the encoding '{self.name}'; expected"
                f" {', '.join(forms)}, with {ESCAPE} before {LIFTED}, {ON_PATH} and {ESCAPE} that"
                " belong to a name. Decode trees by the encoding that they were encoded by"
            )
        return mark


#: Every encoding by its name.
ENCODINGS: Mapping[str, Encoding] = {
    encoding.name: encoding
    for encoding in (
        Encoding("projectivise", head=False, path=False),
        Encoding("head", head=True, path=False),
        Encoding("path", head=False, path=True),
        Encoding("head+path", head=True, path=True),
    )
}


def encoding_named(name: str) -> Encoding:
    """The encoding of a name.

    Raises:
        SpmrlError: there is none of that name.
    """
    try:
        return ENCODINGS[name]
    except KeyError:
        raise SpmrlError(unknown_name("encoding of crossing arcs", name, ENCODINGS)) from None


class _Mark(NamedTuple):
    """What a relation says: itself, that its word was lifted from a head, is on a path."""

    relation: str
    lifted: bool
    head_relation: str
    on_path: bool


class _Lowering:
    """A tree while its lifted words are moved down again; words from 1, and the root is 0."""

    def __init__(self, heads: Sequence[int], marks: Sequence[_Mark]) -> None:
        self.heads = [0, *heads]
        self.marks = [_Mark("", False, "", False), *marks]
        self.dominated = dominated_words(heads)
        self.dependents: list[list[int]] = [[] for _ in self.heads]
        for word, head in enumerate(heads, start=1):
            self.dependents[head].append(word)

    def heads_by(self, encoding: Encoding) -> list[int]:
        """The heads after all words have been moved that can be."""
        # From the root down: words that a lifted one has to go through are back before it.
        settled = [False] * len(self.heads)
        reached = [0]
        for head in reached:
            for word in sorted(self.dependents[head]):
                if self.marks[word].lifted and not settled[word]:
                    settled[word] = True
                    self._lower(word, encoding)
            reached += self.dependents[head]
        return self.heads[1:]

    def _lower(self, word: int, encoding: Encoding) -> None:
        """Move a word to the best of the words that fit, if there is any."""
        wanted = self.marks[word].head_relation
        found: list[tuple[int, ...]] = []
        if encoding.path:
            for rank in self._ranked(word, path=True):
                inner, target = rank[0], rank[-1]
                if self.marks[target].relation == wanted if encoding.head else not inner:
                    found.append(rank)
        if encoding.head and not found:
            ranks = self._ranked(word, path=False)
            found = [rank for rank in ranks if self.marks[rank[-1]].relation == wanted]
        if found:
            self._move(word, min(found)[-1])

    def _ranked(self, word: int, *, path: bool) -> Iterator[tuple[int, ...]]:
        """The words below the head of a word and not below itself, as what they are preferred by.

        The least goes first: whether others on the path depend on it (if only words on the path
        are asked for), whether the arc would be projective, the depth, the distance, the number.
        """
        level, depth = [self.heads[word]], 0
        while level:
            depth += 1
            below = []
            for head in level:
                dependents = [
                    other
                    for other in self.dependents[head]
                    if other != word and (not path or self.marks[other].on_path)
                ]
                below += dependents
                if depth > 1:
                    seen = self.dominated[head] | self.dominated[word]
                    crosses = between(word, head) & ~seen
                    yield path and bool(dependents), not crosses, depth, abs(word - head), head
            level = below

    def _move(self, word: int, target: int) -> None:
        self.dependents[self.heads[word]].remove(word)
        self.dependents[target].append(word)
        old, self.heads[word] = self.heads[word], target
        while target != old:
            self.dominated[target] |= self.dominated[word]
            target = self.heads[target]


@lru_cache(maxsize=10_000)
def _escaped(relation: str) -> str:
    return _SPECIAL.sub(lambda found: ESCAPE + found[0], relation)


@lru_cache(maxsize=10_000)
def _read(relation: str) -> _Mark | None:
    """What an encoded relation says; None where it breaks the notation."""
    found = _ENCODED.fullmatch(relation)
    if found is None:
        return None
    plain, head, on_path = found.groups()
    return _Mark(
        _ESCAPED.sub(r"\1", plain),
        head is not None,
        _ESCAPED.sub(r"\1", head or ""),
        on_path is not None,
    )
