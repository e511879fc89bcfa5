"""The parser once more, written as the paper has it, and nothing else.

One sentence at a time, in float64, with the label scores of all spans: no batches, no packing,
no kernels, no cells left out. It takes a copy of a parser for its weights, and shares none of its
code; gradients are those of autograd, through every score.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import cache

import torch
from torch import Tensor

from spmrl_bench.nn.encoders.self_attention import AttentionEncoder
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.trees import Tree
from tests.nn import plain

Span = tuple[int, int]
Node = tuple[int, int, int]
"""Start, end and label index of a node of a binarised tree."""

WORD_START, WORD_STOP, START_CHARACTER, STOP_CHARACTER, UNKNOWN = 1, 2, 3, 4, 0


class PlainParser:
    """Scores, trees and losses of single sentences, with the weights of a parser."""

    def __init__(self, parser: ChartParser) -> None:
        self.parser = copy.deepcopy(parser).double()
        self.vocabulary = parser.vocabulary
        self.form = cache(self._form)

    def _form(self, characters: tuple[int, ...]) -> Tensor:
        return plain.char_lstm(self.parser.lexical["charlstm"], characters)

    def content(self, words: Sequence[str]) -> Tensor:
        """The content half of START, the words and STOP."""
        lexical, ids = self.parser.lexical, self.vocabulary.character_ids
        spelt = [[START_CHARACTER] * 3]
        spelt += [[ids.get(character, UNKNOWN) for character in word] for word in words]
        spelt += [[STOP_CHARACTER] * 3]
        word_ids = [1, *(self.vocabulary.word_ids.get(word, UNKNOWN) for word in words), 2]
        rows = torch.zeros(len(spelt), self.parser.config.d_content, dtype=torch.float64)
        if "charlstm" in lexical:
            forms = [self.form((WORD_START, *letters, WORD_STOP)) for letters in spelt]
            rows = rows + torch.stack(forms)
        if "word" in lexical:
            rows = rows + lexical["word"].embedding.weight[word_ids]
        return rows

    def scores(self, words: Sequence[str]) -> Tensor:
        """Scores ``[n, n + 1, labels]`` of every label of every span; -inf where none is."""
        n, scorer = len(words), self.parser.scorer
        encoder = self.parser.encoder
        attentive = isinstance(encoder, AttentionEncoder)
        stack = plain.encoder if attentive else plain.recurrent
        encoded = stack(encoder, self.content(words), [n + 2])
        posts = plain.fenceposts(encoded, [n + 2])
        table = torch.full((n, n + 1, len(self.vocabulary.labels)), -math.inf).double()
        start, end = torch.triu_indices(n, n + 1, offset=1)
        table[start, end, 0] = 0
        table[start, end, 1:] = plain.span_scores(scorer, posts[start], posts[end])
        return table

    def tree(self, scores: Tensor, gold: Mapping[Span, int] | None = None) -> list[Node]:
        """The best binarised tree in pre-order; with ``gold``, a wrong label is worth one more."""
        n = len(scores)
        table = scores.detach().tolist()
        best: dict[Span, tuple[float, int, int]] = {}
        for width in range(1, n + 1):
            for i in range(n - width + 1):
                j = i + width
                labels = [
                    score + (gold is not None and label != gold.get((i, j), 0))
                    for label, score in enumerate(table[i][j])
                ]
                first = 1 if width == n else 0  # the whole sentence has a label
                label = max(range(first, len(labels)), key=lambda k: (labels[k], -k))
                inner, split = max(
                    ((best[i, k][0] + best[k, j][0], -k) for k in range(i + 1, j)), default=(0.0, 0)
                )
                best[i, j] = (labels[label] + inner, label, -split)

        def nodes(i: int, j: int) -> list[Node]:
            _, label, split = best[i, j]
            below = nodes(i, split) + nodes(split, j) if j > i + 1 else []
            return [(i, j, label), *below]

        return nodes(0, n)

    def constituents(self, words: Sequence[str]) -> list[tuple[int, int, str]]:
        """What the parser finds in a sentence, unary chains written out, in pre-order."""
        return [
            (i, j, name)
            for i, j, label in self.tree(self.scores(words))
            for name in self.vocabulary.labels[label]
        ]

    def loss(self, tree: Tree) -> Tensor:
        """The lead of the best tree, wrong labels counted for it, over the gold tree."""
        chains: dict[Span, tuple[str, ...]] = {}
        for i, j, name in tree.constituents():
            chains[i, j] = (*chains.get((i, j), ()), name)
        gold = {span: self.vocabulary.labels.index(chain) for span, chain in chains.items()}
        scores = self.scores(tree.words)
        lead = -sum((scores[i, j, label] for (i, j), label in gold.items()), torch.zeros(()))
        for i, j, label in self.tree(scores, gold):
            lead = lead + scores[i, j, label] + (label != gold.get((i, j), 0))
        return lead
