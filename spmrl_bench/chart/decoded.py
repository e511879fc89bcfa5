"""What decoding returns: the best trees of a batch as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart import packing


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The best binarised tree of each sentence of a batch.

    Sentence b owns the nodes ``offsets[b]:offsets[b + 1]``, 2n - 1 of them, in pre-order
    (a node, its left part, its right part).
    """

    cells: NDArray[np.int64]
    """[nodes] packed cell of each node, counted from the first cell of the batch."""
    labels: NDArray[np.int32]
    """[nodes] label of each node; 0 is the empty label."""
    offsets: NDArray[np.int64]
    """[B + 1] first node of each sentence."""
    scores: NDArray[np.float64]
    """[B] score of each tree, with the augmentation when gold labels were given."""

    @classmethod
    def empty(cls, lengths: NDArray[np.int32]) -> Self:
        """Arrays for sentences of these lengths [B], to be filled by a kernel."""
        offsets = packing.node_offsets(lengths)
        nodes = int(offsets[-1])
        return cls(
            cells=np.empty(nodes, dtype=np.int64),
            labels=np.empty(nodes, dtype=np.int32),
            offsets=offsets,
            scores=np.empty(len(lengths), dtype=np.float64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class DecodedDependencies:
    """The best dependency tree of each sentence of a batch.

    Sentence b owns the words ``offsets[b]:offsets[b + 1]``.
    """

    heads: NDArray[np.int32]
    """[words] head of each word: 0 is the root, 1..n are the words of its sentence."""
    offsets: NDArray[np.int64]
    """[B + 1] first word of each sentence."""
    scores: NDArray[np.float64]
    """[B] score of each tree, the sum of its arcs from the first word to the last."""

    @classmethod
    def empty(cls, lengths: NDArray[np.int32]) -> Self:
        """Arrays for sentences of these lengths [B], to be filled by a kernel."""
        offsets = packing.word_offsets(lengths)
        return cls(
            heads=np.empty(int(offsets[-1]), dtype=np.int32),
            offsets=offsets,
            scores=np.empty(len(lengths), dtype=np.float64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class JointDecoded:
    """The best tree and the best heads of each sentence of a batch.

    Sentence b owns the nodes ``offsets[b]:offsets[b + 1]``, 2n - 1 of them, in pre-order
    (a node, its left part, its right part), and the words ``word_offsets[b]:word_offsets[b + 1]``.
    """

    cells: NDArray[np.int64]
    """[nodes] packed cell of each node, counted from the first cell of the batch."""
    labelled: NDArray[np.bool_]
    """[nodes] whether the node carries the best label of its cell; if not, the empty one."""
    node_heads: NDArray[np.int32]
    """[nodes] head word of each node, from 1 in each sentence."""
    heads: NDArray[np.int32]
    """[words] governor of each word, from 1; 0 is the root."""
    offsets: NDArray[np.int64]
    """[B + 1] first node of each sentence."""
    word_offsets: NDArray[np.int64]
    """[B + 1] first word of each sentence."""
    scores: NDArray[np.float64]
    """[B] score of each structure."""

    @classmethod
    def empty(cls, lengths: NDArray[np.int32]) -> Self:
        """Arrays for sentences of these lengths [B], to be filled by a kernel."""
        offsets = packing.node_offsets(lengths)
        word_offsets = packing.word_offsets(lengths)
        nodes, words = int(offsets[-1]), int(word_offsets[-1])
        return cls(
            cells=np.empty(nodes, dtype=np.int64),
            labelled=np.empty(nodes, dtype=np.bool_),
            node_heads=np.empty(nodes, dtype=np.int32),
            heads=np.empty(words, dtype=np.int32),
            offsets=offsets,
            word_offsets=word_offsets,
            scores=np.empty(len(lengths), dtype=np.float64),
        )
