"""From blocks of label scores, on the CPU or on a GPU, to the best trees.

Of a GPU's scores only the best label of each cell and its score travel to the CPU, once for a
batch; the chart algorithm, which has little to do then, runs there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.chart import BlockDecoder, Decoded
from spmrl_bench.chart.packing import cell_spans


def decode_blocks(
    blocks: Iterable[Tensor],
    lengths: NDArray[np.int32],
    gold: NDArray[np.int32] | None = None,
) -> Decoded:
    """The best trees, as :func:`spmrl_bench.chart.decode` finds them.

    Args:
        blocks: label scores ``[some cells, labels - 1]`` in the packed order of cells, as of
            :meth:`SpanScorer.blocks`.
        lengths: words of each sentence.
        gold: gold label of each cell for the loss augmentation, None for none.

    Raises:
        NotFiniteError: a score is NaN or infinite.
    """
    return taken(blocks, lengths, gold).decode()


def taken(
    blocks: Iterable[Tensor],
    lengths: NDArray[np.int32],
    gold: NDArray[np.int32] | None = None,
) -> BlockDecoder:
    """A decoder that has all label scores; arguments and errors are those of ``decode_blocks``."""
    decoder = BlockDecoder(lengths, gold)
    values, labels = [], []
    done, targets = 0, None
    for block in blocks:
        if block.device.type == "cpu":
            decoder.add(block.float().numpy())
            continue
        if gold is not None:
            targets = torch.from_numpy(gold[done : done + len(block)]).to(block.device)
            done += len(block)
        found = label_maxima(block, targets)
        values.append(found[0])
        labels.append(found[1])
    if values:
        decoder.add_maxima(torch.cat(values).cpu().numpy(), torch.cat(labels).cpu().numpy())
    return decoder


def barred(
    blocks: Iterable[Tensor],
    lengths: NDArray[np.int32],
    of_words: Sequence[int],
    of_sentences: Sequence[int],
) -> Iterator[Tensor]:
    """The blocks, in which some labels are below all others where they may not be.

    Args:
        blocks: as of :func:`decode_blocks`, with columns of other labels too; they are changed.
        lengths: words of each sentence.
        of_words: labels, each 1 or more, that no single word has.
        of_sentences: likewise no whole sentence.
    """
    sentence, start, end = cell_spans(lengths)
    width = end - start
    places = np.flatnonzero(width == 1), np.flatnonzero(width == lengths[sentence])
    done = 0
    for block in blocks:
        for where, labels in zip(places, (of_words, of_sentences), strict=True):
            low, high = np.searchsorted(where, (done, done + len(block)))
            rows = torch.from_numpy(where[low:high] - done).to(block.device)
            lowest = block[rows].amin(dim=1) - 1
            for label in labels:
                block[rows, label - 1] = lowest
        done += len(block)
        yield block


def label_maxima(scores: Tensor, gold: Tensor | None) -> tuple[Tensor, Tensor]:
    """What :meth:`BlockDecoder.add_maxima` takes, computed where the scores are.

    Args:
        scores: ``[cells, labels - 1]``.
        gold: integers ``[cells]``, 0 where gold has no constituent; None without augmentation.
    """
    finite = scores.isfinite().all(dim=1)
    table = scores.double()  # as in the kernel: the same sums are equal then
    if gold is not None:
        own = (gold.long() - 1).clamp(min=0)[:, None]
        bonus = torch.ones_like(table)
        bonus.scatter_(1, own, (gold == 0)[:, None].double())
        table = table + bonus
    values, column = table.max(dim=1)
    return values.where(finite, torch.nan), (column + 1).int()
