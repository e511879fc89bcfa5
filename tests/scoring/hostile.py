"""Pairs of trees that make scorers disagree, as the lines of two bracket files.

A pair is a gold tree and a damaged copy of it, full of what the C programs treat in their own
way: unary chains, labels that occur twice over a span, punctuation at the edges and
mistagged, traces, brackets without words, several roots, single words, failed parses,
quotation marks, and labels with ``-``, ``=``, ``|``, ``##`` and quotes in them. All of it
stays below the limits of the C programs (words, brackets, bytes of a line), so that the same
lines can go to them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree

_LABELS = [
    *("S", "NP", "VP", "PP", "ADVP", "PRT", "X", "", "TOP", "ROOT", "VROOT", "S1", "SYN_NN"),
    *("NP-SBJ", "NP=2", "PP-LOC=1-X", "=Y", "-Z", "-NONE-", "NP|PP", "S|<VP-NP>", "ADVP-TMP"),
    *("NP##num=pl|case=n##", "VP##-##", "PRT##a##", "#", "##", "SYN_VB-MOD", "''", "``", ",", "ÑÑ"),
]
_TAGS = [
    *("NN", "VB", "DT", "CD", "PRT", "ADVP", "NN-X", "VB=2", "NN##case=nom|num=sg##", "N|V"),
    *(".-X", "-LRB-", "-RRB-", "-NONE-X", "S1", "TOP", "$LRB", "ADJ##-##"),
]
_WORDS = [*"abcdef", "-LRB-", "-RRB-", r"1\/2", "x##y", "=", "-", "10", "ß", "中文", "cœur", "n't"]
_PUNCTUATION = [
    *((",", ","), (".", "."), (":", ":"), (":", "--"), ("``", "``"), ("''", "''"), (".", "?")),
    *(("?", "?"), ("!", "!"), ("$,", ","), ("PU", "。")),
]
_QUOTES = [(tag, word) for tag in ("``", "''", "POS", "NN", ":", "VBZ", "CD") for word in "'\"/"]
_TRACES = [("-NONE-", "*"), ("-NONE-", "*T*-1"), ("-NONE-", "0")]
_BLANKS = ["", "(())", "()", " "]

_MAX_WORDS = 30
_MAX_CHAIN = 12
_MAX_LABEL = 20


@dataclass(slots=True)
class _Node:
    """A constituent, or a word where ``word`` is set."""

    label: str
    children: list[_Node] = field(default_factory=list)
    word: str | None = None

    def write(self) -> str:
        if self.word is not None:
            return f"({self.label} {self.word})"
        inside = " ".join(child.write() for child in self.children)
        return f"({self.label} {inside})" if inside else f"({self.label})"

    def copy(self) -> _Node:
        return _Node(self.label, [child.copy() for child in self.children], self.word)

    def words(self) -> list[_Node]:
        if self.word is not None:
            return [self]
        return [word for child in self.children for word in child.words()]

    def constituents(self) -> list[_Node]:
        """All but the words, itself first."""
        if self.word is not None:
            return []
        return [self, *(node for child in self.children for node in child.constituents())]


def hostile_pairs(count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Gold and test lines of ``count`` sentences; the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        yield hostile_pair(rng)


def hostile_pair(rng: random.Random) -> tuple[str, str]:
    """One gold line and one test line, without line ends."""
    gold = _sentence(rng)
    test = gold.copy()
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 8))):
        _damage(test, rng)
    return _line(gold, rng, blank=0.01), _line(test, rng, blank=0.03)


def hostile_trees(count: int, seed: int = 0) -> tuple[list[Tree], list[Tree]]:
    """The same pairs as trees: all gold trees, all test trees."""
    pairs = list(hostile_pairs(count, seed))
    return as_trees([gold for gold, _ in pairs]), as_trees([test for _, test in pairs])


def as_trees(lines: Sequence[str]) -> list[Tree]:
    """Each line as the scorer reads it from a file."""
    return [parse_brackets(line, escapes="brackets", blank="tree") for line in lines]


def _line(root: _Node, rng: random.Random, blank: float) -> str:
    """The children of an imagined root: one tree, or several."""
    if rng.random() < blank:
        return rng.choice(_BLANKS)
    return " ".join(child.write() for child in root.children)


def _sentence(rng: random.Random) -> _Node:
    count = rng.choice((1, 2, 3, 4, 5, 6, 9, 14, rng.randint(1, _MAX_WORDS)))
    words = [_word(rng) for _ in range(count)]
    for edge in (0, len(words)):
        if rng.random() < 0.4:
            words[edge:edge] = [_leaf(rng.choice(_PUNCTUATION)) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.1:
        return _Node("", _group(words, rng))  # several roots, or a bare word
    children = _group(words, rng)
    if rng.random() < 0.5:
        children = [_Node(rng.choice(("S", "NP", "X")), children)]
    return _Node("", [_Node(rng.choice(("TOP", "TOP", "ROOT", "VROOT", "S1", "", "S")), children)])


def _group(nodes: list[_Node], rng: random.Random) -> list[_Node]:
    """Brackets over parts of the nodes, again and again."""
    for _ in range(rng.randint(0, len(nodes))):
        start = rng.randrange(len(nodes))
        end = rng.randint(start + 1, min(len(nodes), start + 5))
        node = _Node(rng.choice(_LABELS), nodes[start:end])
        while rng.random() < 0.15:
            node = _Node(node.label if rng.random() < 0.5 else rng.choice(_LABELS), [node])
        nodes[start:end] = [node]
    return nodes


def _word(rng: random.Random) -> _Node:
    chance = rng.random()
    if chance < 0.70:
        return _Node(rng.choice(_TAGS), word=rng.choice(_WORDS))
    if chance < 0.80:
        return _leaf(rng.choice(_PUNCTUATION))
    return _leaf(rng.choice(_QUOTES if chance < 0.92 else _TRACES))


def _leaf(tagged: tuple[str, str]) -> _Node:
    return _Node(tagged[0], word=tagged[1])


def _damage(root: _Node, rng: random.Random) -> None:
    """Change one thing; a root without children has nothing to change."""
    nodes = root.constituents()
    words = root.words()
    if not words:
        return
    node, word = rng.choice(nodes), rng.choice(words)
    kind = rng.choice((*range(12), 5, 5))
    if kind == 0:
        node.label = rng.choice(_LABELS)
    elif kind == 1:  # cut a label, or add to it
        short = node.label.split("-")[0]
        node.label = rng.choice((short, f"{short}-X", f"{short[:_MAX_LABEL]}##a##"))
    elif kind == 2:  # a new bracket over some children
        start = rng.randrange(len(node.children) + 1)
        end = rng.randint(start, len(node.children))
        node.children[start:end] = [_Node(rng.choice(_LABELS), node.children[start:end])]
    elif kind == 3:  # a bracket less
        place = rng.randrange(len(node.children)) if node.children else None
        if place is not None and node.children[place].word is None:
            node.children[place : place + 1] = node.children[place].children
    elif kind == 4:  # a unary chain, mostly of one label
        for _ in range(rng.randint(1, _MAX_CHAIN)):
            label = node.label if rng.random() < 0.7 else rng.choice(_LABELS)
            node.children = [_Node(label, node.children)]
    elif kind == 5:  # a bracket that crosses: part of one child and a part of the next
        _straddle(nodes, rng)
    elif kind == 6:
        word.label = rng.choice(_TAGS)
    elif kind in (7, 8):  # mistag punctuation, or take a word for punctuation
        marks = [word for word in words if (word.label, word.word) in _PUNCTUATION + _QUOTES]
        word = rng.choice(marks or words)
        word.label = rng.choice(("NN", "POS", ":", ",", ".", "''", "``", "VBZ"))
    elif kind == 9 and rng.random() < 0.3:
        word.word = rng.choice(_WORDS)
    elif kind == 10 and rng.random() < 0.3:  # a word less
        parent = next(node for node in nodes if any(child is word for child in node.children))
        parent.children = [child for child in parent.children if child is not word]
    elif kind == 11:  # a trace, or a bracket without words
        node.children.insert(
            rng.randint(0, len(node.children)),
            rng.choice((_Node("NP", [_leaf(rng.choice(_TRACES))]), _Node("NP", [_Node("")]))),
        )


def _straddle(nodes: list[_Node], rng: random.Random) -> None:
    """Open two neighbours, and bracket the last child of one with the first of the other."""
    places = [
        (node, place)
        for node in nodes
        for place in range(len(node.children) - 1)
        if any(len(child.children) > 1 for child in node.children[place : place + 2])
    ]
    if not places:
        return
    node, place = rng.choice(places)
    left, right = (child.children or [child] for child in node.children[place : place + 2])
    between = _Node(rng.choice(_LABELS), [left[-1], right[0]])
    node.children[place : place + 2] = [*left[:-1], between, *right[1:]]
