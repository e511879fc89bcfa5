"""Bracket scores that equal those of the C programs, without torch and without the programs.

Gold and test become one row of counts per sentence (:mod:`.counts`), and every figure, report
and signature is a function of those rows. They come in as

- files: :func:`score_files`;
- the text of such files: :func:`score_texts`;
- sequences with one sentence per element, each a :class:`~spmrl_bench.trees.Tree`, an
  ``nltk.Tree``, a string of brackets or None: :func:`score_trees`.

What is compared is up to the parameter file (:func:`load_prm`), and what becomes of sentences
that the programs leave out is up to a :class:`Policy`.
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
