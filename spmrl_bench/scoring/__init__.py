"""Bracket scores that equal those of the C programs, without torch and without the programs.

Gold and test become one row of counts per sentence (:mod:`.counts`), and every figure, report
and signature is a function of those rows. They come in as files (:func:`score_files`), as the
text of such files (:func:`score_texts`), or as sequences of sentences (:func:`score_trees`).
"""

from spmrl_bench.scoring.attachment import (
    AttachmentRules,
    score_dependencies,
    score_dependency_files,
)
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.evalb import count_brackets
from spmrl_bench.scoring.prm import (
    PUBLISHED,
    MissingParse,
    Parameters,
    Policy,
    Program,
    Punctuation,
    load_prm,
)
from spmrl_bench.scoring.texts import score_files, score_texts, score_trees

__all__ = [
    "PUBLISHED", "AttachmentRules", "BracketCounts", "Column", "MissingParse", "Parameters",
    "Policy", "Program", "Punctuation", "Status", "count_brackets", "load_prm",
    "score_dependencies", "score_dependency_files", "score_files", "score_texts", "score_trees",
]  # fmt: skip
