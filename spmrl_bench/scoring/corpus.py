"""Counts of whole corpora: compiled where possible, in plain Python where not.

:func:`~spmrl_bench.scoring.brackets.count_brackets` defines every count, and takes some 30
microseconds a sentence. The kernels ``_counting`` (trees in memory) and ``_scanning`` (texts)
count the usual sentences many times faster and leave the others, marked, to that function, so
that the rows are the same with them and without. A policy by which gold's tags decide about
the words of the parse is counted in plain Python altogether.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring.brackets import NO_PARSE, count_brackets, rules_of
from spmrl_bench.scoring.counts import BracketCounts, Column
from spmrl_bench.scoring.inputs import TreeLike, as_trees
from spmrl_bench.scoring.policy import PUBLISHED, MissingParse, Policy, Punctuation
from spmrl_bench.scoring.prm import Parameters
from spmrl_bench.trees.escapes import decode_label, escapes_named

#: In place of a status: the kernel leaves the sentence to ``count_brackets``.
_ASK = -1
#: Flags of a tag, as in ``_counting.pxd``.
_REMOVED, _NOT_IN_LENGTH, _QUOTE = 1, 2, 4


class _Kernels(NamedTuple):
    """The compiled functions; what they take and give is written beside them."""

    count_trees: Callable[..., NDArray[np.int64]]
    count_texts: Callable[..., tuple[NDArray[np.int64], dict[int, tuple[str, str]]] | None]


def score_trees(
    gold: Sequence[TreeLike],
    test: Sequence[TreeLike],
    prm: Parameters,
    policy: Policy = PUBLISHED,
) -> BracketCounts:
    """Counts of a corpus; sentence ``k`` of one side is compared with ``k`` of the other.

    A sentence is a tree, an ``nltk.Tree`` or a text of brackets (see :mod:`.inputs`), and
    without a parse None or a tree without words. ``policy`` says what becomes of it, and whose
    tags tell punctuation.

    Raises:
        ScoreError: the sides have different numbers of sentences, or one is malformed.
    """
    if len(gold) != len(test):
        raise ScoreError(
            f"gold has {len(gold)} sentences, test has {len(test)}; they must be the same"
            " sentences in the same order (a failed parse keeps its place as an empty tree)"
        )
    gold, test = as_trees(gold, "gold"), as_trees(test, "test")
    kernels = _kernels_for(policy)
    if kernels is None:
        return BracketCounts.from_rows(
            count_brackets(one, other, prm, policy) for one, other in zip(gold, test, strict=True)
        )
    rows = kernels.count_trees(
        [NO_PARSE if tree is None else tree for tree in gold],
        [NO_PARSE if tree is None else tree for tree in test],
        _classifier(prm),
        bool(prm.eq_words),
        policy.missing_parse is MissingParse.COUNT,
    )
    for k in np.flatnonzero(rows[:, Column.STATUS] == _ASK).tolist():
        rows[k] = count_brackets(gold[k], test[k], prm, policy)
    return _counts(rows)


def score_plain_texts(
    gold: str, test: str, prm: Parameters, policy: Policy = PUBLISHED, *, escapes: str = "brackets"
) -> BracketCounts | None:
    """Counts of two bracketed texts without building their trees; None where that cannot be.

    Not every text can be scored this way: the result is None if one is malformed or without
    trees, if they hold different numbers of sentences, and without the compiled kernel. Reading
    them with :mod:`spmrl_bench.readers.brackets` then gives the counts or tells the mistake.

    Raises:
        SpmrlError: the escape policy is unknown.
    """
    escapes_named(escapes)
    kernels = _kernels_for(policy)
    if kernels is None:
        return None
    found = kernels.count_texts(
        gold, test, _classifier(prm), decode_label, policy.missing_parse is MissingParse.COUNT
    )
    if found is None:
        return None
    rows, asked = found
    for k, texts in asked.items():
        one, other = (
            parse_brackets(text.replace("\n", " "), escapes=escapes, blank="tree") for text in texts
        )
        rows[k] = count_brackets(one, other, prm, policy)
    return _counts(rows)


def kernel_name() -> str:
    """Which implementation counts corpora: "cython" or "python"."""
    return "python" if _load_kernels() is None else "cython"


def _counts(rows: NDArray[np.int64]) -> BracketCounts:
    rows.flags.writeable = False
    return BracketCounts(rows)


def _kernels_for(policy: Policy) -> _Kernels | None:
    return None if policy.punctuation is Punctuation.BY_GOLD else _load_kernels()


@functools.cache
def _load_kernels() -> _Kernels | None:
    """The compiled kernels where they exist, else None with one warning that says why."""
    try:
        from spmrl_bench.scoring._counting import count_trees
        from spmrl_bench.scoring._scanning import count_texts
    except ImportError as error:
        warnings.warn(
            "bracket scores run on the plain-Python code, which gives the same counts but is much "
            f"slower, because the compiled kernels cannot be loaded ({error}). Install the "
            "package again on a machine with a C compiler to build them.",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
    return _Kernels(count_trees, count_texts)


def _classifier(prm: Parameters) -> Callable[[str], tuple[int, int, int]]:
    """What the kernels ask about a label or tag, once each.

    The answer is the class that it is compared as where it is a label (-1: it does not count),
    the class where it is a tag, and its flags as a tag. Classes are numbered from 0.
    """
    rules = rules_of(prm)
    numbers: dict[str, int] = {}

    def classify(label: str) -> tuple[int, int, int]:
        compared_as = rules.label[label]
        label_class = -1 if compared_as is None else numbers.setdefault(compared_as, len(numbers))
        tag_class = numbers.setdefault(rules.tag[label], len(numbers))
        flags = (
            _REMOVED * (label in rules.removed_tags)
            | _NOT_IN_LENGTH * (label in rules.not_in_length)
            | _QUOTE * (label in prm.quote_labels)
        )
        return label_class, tag_class, flags

    return classify
