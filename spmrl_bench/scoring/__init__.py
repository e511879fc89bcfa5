"""Bracket scores that equal those of the C programs, without torch and without the programs.

Trees or files become one row of counts per sentence (:mod:`.counts`), and every figure,
report and signature is a function of those rows.
"""

from spmrl_bench.scoring.attachment import AttachmentRules, score_dependencies
from spmrl_bench.scoring.attachment_counts import AttachmentColumn, AttachmentCounts
from spmrl_bench.scoring.brackets import count_brackets
from spmrl_bench.scoring.corpus import score_trees
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.dependency_files import score_dependency_files
from spmrl_bench.scoring.files import score_files, score_texts
from spmrl_bench.scoring.policy import PUBLISHED, MissingParse, Policy, Punctuation
from spmrl_bench.scoring.prm import Parameters, Program, load_prm

__all__ = [
    "PUBLISHED",
    "AttachmentColumn",
    "AttachmentCounts",
    "AttachmentRules",
    "BracketCounts",
    "Column",
    "MissingParse",
    "Parameters",
    "Policy",
    "Program",
    "Punctuation",
    "Status",
    "count_brackets",
    "load_prm",
    "score_dependencies",
    "score_dependency_files",
    "score_files",
    "score_texts",
    "score_trees",
]
