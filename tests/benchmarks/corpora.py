"""Corpora of any size, of the proportions of the Wall Street Journal treebank."""

from __future__ import annotations

import random

from spmrl_bench.trees import Tree

_LABELS = ["NP", "NP", "NP-SBJ", "VP", "VP", "PP", "PP-LOC", "S", "SBAR", "ADVP", "ADJP", "QP"]
_TAGS = ["NN", "NN", "NNS", "NNP", "DT", "IN", "JJ", "VBD", "VBZ", "RB", "CC", "CD", "PRP", "TO"]
_VOCABULARY = 40_000

_Row = tuple[int, int, str]


def random_corpus(sentences: int, seed: int = 0) -> tuple[list[Tree], list[Tree]]:
    """Gold trees and parses that get some 10 % of the brackets and 2 % of the tags wrong.

    A sentence has 24 words and 20 constituents on average.
    """
    rng = random.Random(seed)
    pairs = [_pair(rng) for _ in range(sentences)]
    return [gold for gold, _ in pairs], [test for _, test in pairs]


def _pair(rng: random.Random) -> tuple[Tree, Tree]:
    n = max(1, min(120, round(rng.lognormvariate(3.05, 0.5))))
    words = [f"word{int(_VOCABULARY * rng.random() ** 4)}" for _ in range(n)]
    tags = ["," if rng.random() < 0.05 else rng.choice(_TAGS) for _ in range(n)]
    words[-1] = tags[-1] = "."
    rows: list[_Row] = [(0, n, "TOP"), *_grow(0, n, rng)]
    gold = Tree.build(words, tags, rows)
    start, end, _ = rows[rng.randrange(1, len(rows))]
    if end - start < n / 2:  # parse one part anew
        first = next(k for k, row in enumerate(rows) if k and row[:2] == (start, end))
        last = max(k for k, row in enumerate(rows) if start <= row[0] and row[1] <= end)
        rows[first : last + 1] = _grow(start, end, rng)
    rows = [
        (start, end, rng.choice(_LABELS) if rng.random() < 0.05 else label)
        for start, end, label in rows
    ]
    tags = [rng.choice(_TAGS) if tag.isalpha() and rng.random() < 0.02 else tag for tag in tags]
    return gold, Tree.build(words, tags, rows)


def _grow(start: int, end: int, rng: random.Random) -> list[_Row]:
    """Constituents over a span, mostly branching to the right."""
    rows: list[_Row] = []
    waiting = [(start, end)]
    while waiting:
        start, end = waiting.pop()
        if end - start > 1 or rng.random() < 0.1:
            rows.append((start, end, rng.choice(_LABELS)))
        children = []
        while end - start > 1:
            width = min(end - start - 1, 1 + int(rng.expovariate(0.4)))
            children.append((start, start + width))
            start += width
            if rng.random() < 0.5:
                break
        if children:
            waiting += reversed([*children, (start, end)])
    return rows
