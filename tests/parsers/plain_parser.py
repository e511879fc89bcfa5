"""The parser once more, written as the paper has it, and nothing else.

One sentence at a time, in float64, with the label scores of all spans: no batches, no packing,
no kernels, no cells left out. It takes the weights of a parser by their names, so it shares
none of its code; gradients are those of autograd, through every score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.trees import Tree
from tests.builders import flat

Span = tuple[int, int]
Node = tuple[int, int, int]
"""Start, end and label index of a node of a binarised tree."""

WORD_START, WORD_STOP, START_CHARACTER, STOP_CHARACTER = 1, 2, 3, 4
UNKNOWN, FIRST_WORD, FIRST_CHARACTER = 0, 3, 5


def weights_of(parser: ChartParser) -> dict[str, Tensor]:
    """The parser's weights in float64, each a leaf of its own."""
    return {
        name: weight.detach().double().requires_grad_()
        for name, weight in parser.named_parameters()
    }


class PlainParser:
    """Scores, trees and losses of single sentences."""

    def __init__(self, config: Any, vocabulary: Vocabulary, weights: Mapping[str, Tensor]) -> None:
        self.config = SimpleNamespace(**flat(config))
        self.vocabulary = vocabulary
        self.weights = weights
        self._forms: dict[tuple[int, ...], Tensor] = {}

    # ---- layers --------------------------------------------------------------------------

    def _norm(self, name: str, row: Tensor) -> Tensor:
        centred = row - row.mean(-1, keepdim=True)
        deviation = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return centred / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _form(self, characters: Sequence[int]) -> Tensor:
        """Last states of an LSTM read forwards and of one read backwards."""
        key = tuple(characters)
        if key not in self._forms:
            ends = []
            for suffix, letters in (("", key), ("_reverse", key[::-1])):
                w_in, w_state, b_in, b_state = (
                    self.weights[f"lexical.charlstm.lstm.{part}_l0{suffix}"]
                    for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                )
                state = memory = torch.zeros(w_state.shape[1], dtype=torch.float64)
                for letter in letters:
                    vector = self.weights["lexical.charlstm.embedding.weight"][letter]
                    enter, keep, new, leave = (
                        w_in @ vector + b_in + w_state @ state + b_state
                    ).chunk(4)
                    memory = keep.sigmoid() * memory + enter.sigmoid() * new.tanh()
                    state = leave.sigmoid() * memory.tanh()
                ends.append(state)
            self._forms[key] = torch.cat(ends)
        return self._forms[key]

    def _content(self, words: Sequence[str], unknown: Sequence[bool]) -> Tensor:
        """The content half of START, the words and STOP."""
        ids = self.vocabulary.character_ids
        spelt = [[START_CHARACTER] * 3]
        spelt += [[ids.get(character, UNKNOWN) for character in word] for word in words]
        spelt += [[STOP_CHARACTER] * 3]
        word_ids = [
            UNKNOWN if hidden else self.vocabulary.word_ids.get(word, UNKNOWN)
            for word, hidden in zip(words, unknown, strict=True)
        ]
        rows = []
        for letters, word in zip(spelt, [1, *word_ids, 2], strict=True):
            row = torch.zeros(self.config.d_model // 2, dtype=torch.float64)
            if "charlstm" in self.config.lexical:
                row = row + self._form([WORD_START, *letters, WORD_STOP])
            if "word" in self.config.lexical:
                row = row + self.weights["lexical.word.embedding.weight"][word]
            rows.append(row)
        return torch.stack(rows)

    def _linear(self, name: str, rows: Tensor) -> Tensor:
        """Content and position each through its own matrix."""
        halves = []
        for part, half in zip(("content", "position"), rows.chunk(2, dim=1), strict=True):
            half = half @ self.weights[f"{name}.{part}.weight"].T
            if f"{name}.{part}.bias" in self.weights:
                half = half + self.weights[f"{name}.{part}.bias"]
            halves.append(half)
        return torch.cat(halves, dim=1)

    def _attention(self, name: str, rows: Tensor) -> Tensor:
        heads, half = self.config.heads, self.config.d_kv // 2
        content, position = self._linear(f"{name}.project", rows).chunk(2, dim=1)
        mixed: list[list[Tensor]] = [[], []]
        for head in range(heads):
            (q_c, k_c, v_c), (q_p, k_p, v_p) = (
                [
                    side[:, (part * heads + head) * half : (part * heads + head + 1) * half]
                    for part in range(3)
                ]
                for side in (content, position)
            )
            logits = (q_c @ k_c.T + q_p @ k_p.T) / math.sqrt(self.config.d_kv)
            weights = logits.exp() / logits.exp().sum(dim=1, keepdim=True)
            mixed[0].append(weights @ v_c)
            mixed[1].append(weights @ v_p)
        return self._linear(f"{name}.output", torch.cat([*mixed[0], *mixed[1]], dim=1))

    def _encoded(self, words: Sequence[str], unknown: Sequence[bool]) -> Tensor:
        content = self._content(words, unknown)
        position = self.weights["encoder.positions.weight"][: len(content)]
        rows = self._norm("encoder.input_norm", torch.cat((content, position), dim=1))
        for number in range(self.config.layers):
            layer = f"encoder.layers.{number}"
            attended = self._attention(f"{layer}.attention", rows)
            rows = self._norm(f"{layer}.attention_norm", rows + attended)
            hidden = self._linear(f"{layer}.expand", rows).clamp(min=0)
            contracted = self._linear(f"{layer}.contract", hidden)
            rows = self._norm(f"{layer}.feed_forward_norm", rows + contracted)
        return rows

    # ---- scores, trees, loss -------------------------------------------------------------

    def scores(self, words: Sequence[str], unknown: Sequence[bool] | None = None) -> Tensor:
        """Scores ``[n, n + 1, labels]`` of every label of every span; -inf where none is.

        Args:
            unknown: which words count as unknown; none by default.
        """
        n = len(words)
        encoded = self._encoded(words, unknown or [False] * n)
        posts = [torch.cat((encoded[k, 0::2], encoded[k + 1, 1::2])) for k in range(n + 1)]
        rows = []
        for i in range(n):
            for j in range(n + 1):
                if j <= i:
                    rows.append(torch.full((len(self.vocabulary.labels),), -math.inf).double())
                    continue
                hidden = self.weights["scorer.first.weight"] @ (posts[j] - posts[i])
                hidden = self._norm("scorer.norm", hidden + self.weights["scorer.first.bias"])
                scores = self.weights["scorer.second.weight"] @ hidden.clamp(min=0)
                scores = scores + self.weights["scorer.second.bias"]
                rows.append(torch.cat((torch.zeros(1, dtype=torch.float64), scores)))
        return torch.stack(rows).view(n, n + 1, -1)

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
