"""Bracket scores of two files, without pairing the wrong sentences.

A parser that fails on a sentence leaves an empty line or ``(())``, treebanks indent a tree
over many lines, and a file that lost a line still looks fine. Layout is therefore decided once
per file, and both files must hold equally many sentences.
"""

from __future__ import annotations

import os
from typing import Literal

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import read_brackets, read_text
from spmrl_bench.scoring.corpus import score_trees
from spmrl_bench.scoring.counts import BracketCounts
from spmrl_bench.scoring.prm import Parameters
from spmrl_bench.trees.tree import Tree

FilePath = str | os.PathLike[str]


def score_files(
    gold_path: FilePath,
    test_path: FilePath,
    prm: Parameters,
    *,
    escapes: str = "brackets",
    encoding: str = "utf-8",
) -> BracketCounts:
    """Counts of a file of parses against a file of gold trees.

    The C programs compare words as they stand in the files; the default escape policy
    changes the fewest of them. A file in which every line closes the brackets it opens holds
    one sentence per line, blank ones being sentences without a parse. In any other file trees
    may span lines, and blank lines mean nothing.

    Raises:
        ReadError: a file cannot be read, or a tree is malformed (with line and column).
        ScoreError: a file holds no tree, or the files hold different numbers of sentences.
        SpmrlError: the escape policy is unknown.
    """
    gold, test = read_sides(gold_path, test_path, escapes=escapes, encoding=encoding)
    return score_trees(gold, test, prm)


def read_sides(
    gold_path: FilePath, test_path: FilePath, *, escapes: str = "brackets", encoding: str = "utf-8"
) -> tuple[list[Tree], list[Tree]]:
    """The trees of both files, equally many; a sentence without a parse is a tree without words.

    Raises:
        ReadError, ScoreError, SpmrlError: as :func:`score_files`.
    """
    gold = _read(gold_path, escapes, encoding)
    test = _read(test_path, escapes, encoding)
    if len(gold) != len(test):
        raise ScoreError(
            f"{gold_path} has {len(gold)} sentences, {test_path} has {len(test)}; they must be the"
            " same sentences in the same order (a failed parse keeps its place as a line '(())')"
        )
    return gold, test


def one_tree_per_line(text: str) -> bool:
    """Whether every line closes the brackets that it opens, so that blank lines are sentences."""
    return all(line.count("(") == line.count(")") for line in text.split("\n"))


def _read(path: FilePath, escapes: str, encoding: str) -> list[Tree]:
    text = read_text(path, encoding)
    blank: Literal["tree", "error"] = "tree" if one_tree_per_line(text) else "error"
    trees = list(read_brackets(text, path=path, escapes=escapes, blank=blank))
    if not any(map(len, trees)):
        raise ScoreError(f"{path}: holds no tree; expected brackets such as (S (NP (NN word)))")
    return trees
