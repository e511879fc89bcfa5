"""Best trees under scores of their parts, for a whole batch of sentences at once.

:func:`decode` finds binarised trees under label scores, :func:`decode_dependencies` dependency
trees under arc scores, :func:`decode_joint` both trees of a sentence as one structure. This
package knows no model and no tree class: it takes an array of scores, one row per chart cell or
one number per arc (see :mod:`spmrl_bench.chart.packing`), and returns cells and labels, or heads.
The work is done by the compiled kernels ``_cky``, ``_dependency`` and ``_joint`` or, where these
could not be built, by their plain-Python twins :mod:`~spmrl_bench.chart.reference`,
:mod:`~spmrl_bench.chart.dependency_reference` and :mod:`~spmrl_bench.chart.joint_reference`; both
give the same result bit for bit.

The kernels trust their input, so what is public here checks all of it first.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from spmrl_bench.chart.blocks import BlockDecoder
from spmrl_bench.chart.checks import NotFiniteError
from spmrl_bench.chart.decoded import Decoded, DecodedDependencies, JointDecoded
from spmrl_bench.chart.dependencies import decode_dependencies
from spmrl_bench.chart.joint import decode_joint
from spmrl_bench.chart.kernels import kernel_name

__all__ = [
    "BlockDecoder",
    "Decoded",
    "DecodedDependencies",
    "JointDecoded",
    "NotFiniteError",
    "decode",
    "decode_dependencies",
    "decode_joint",
    "kernel_name",
]


def decode(
    scores: ArrayLike,
    lengths: ArrayLike,
    gold: ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> Decoded:
    """Find the tree of highest score of every sentence of a batch.

    ``scores``: float32 [cells, labels - 1], packed as in :mod:`spmrl_bench.chart.packing`;
    column c scores label c + 1. Label 0, the empty label, scores 0 everywhere and cannot be
    the label of a full sentence. ``lengths``: integers [B], words per sentence. ``gold``:
    integers [cells], the gold label of each cell, 0 where gold has no constituent; when given,
    every label but the gold one gains 1 in its cell (the loss augmentation of Kitaev & Klein
    2018). Ties go to the lowest label, then to the leftmost split. Sums are double.

    ``threads`` is the number of threads that share the sentences; the result does not depend
    on it. Without it OpenMP is asked, which follows OMP_NUM_THREADS and, where torch uses the
    same library, ``torch.set_num_threads``; a batch that is too small to share gets one.

    Raises ValueError when an array has the wrong type, shape or range or there would be no
    thread, and its subclass NotFiniteError when a score is not finite. An empty batch gives an
    empty result.
    """
    return BlockDecoder(lengths, gold).decode_whole(scores, threads=threads)
