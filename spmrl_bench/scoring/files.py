"""Bracket scores of two files or texts, without pairing the wrong sentences.

A parser that fails on a sentence leaves an empty line or ``(())``, treebanks indent a tree
over many lines, and a file that lost a line still looks fine. Layout is therefore decided once
per file, and both files must hold equally many sentences.
"""

from __future__ import annotations

import os
from typing import Literal

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.brackets import one_tree_per_line, read_brackets
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.corpus import score_plain_texts, score_trees
from spmrl_bench.scoring.counts import BracketCounts
from spmrl_bench.scoring.policy import PUBLISHED, Policy
from spmrl_bench.scoring.prm import Parameters
from spmrl_bench.trees.tree import Tree

FilePath = str | os.PathLike[str]


def score_files(
    gold_path: FilePath,
    test_path: FilePath,
    prm: Parameters,
    policy: Policy = PUBLISHED,
    *,
    escapes: str = "brackets",
    encoding: str = "utf-8",
) -> BracketCounts:
    """Counts of a file of parses against a file of gold trees; see :func:`score_texts`.

    Raises:
        ReadError: a file cannot be read, or a tree is malformed (with line and column).
        ScoreError: a file holds no tree, or the files hold different numbers of sentences.
        SpmrlError: the escape policy is unknown.
    """
    gold, test = read_text(gold_path, encoding), read_text(test_path, encoding)
    return score_texts(gold, test, prm, policy, escapes=escapes, names=(gold_path, test_path))


def score_texts(
    gold: str,
    test: str,
    prm: Parameters,
    policy: Policy = PUBLISHED,
    *,
    escapes: str = "brackets",
    names: tuple[FilePath, FilePath] = ("<gold>", "<test>"),
) -> BracketCounts:
    """Counts of the text of a file of parses against that of a file of gold trees.

    The C programs compare words as they stand in the files; the default escape policy
    changes the fewest of them. A text in which every line closes the brackets it opens holds
    one sentence per line, blank ones being sentences without a parse. In any other text trees
    may span lines, and blank lines mean nothing. ``names`` stand in messages.

    Raises:
        ReadError: a tree is malformed (with line and column).
        ScoreError: a text holds no tree, or the texts hold different numbers of sentences.
        SpmrlError: the escape policy is unknown.
    """
    counts = score_plain_texts(gold, test, prm, policy, escapes=escapes)
    if counts is not None:
        return counts
    return score_trees(*_sides((gold, test), names, escapes), prm, policy)


def read_sides(
    gold_path: FilePath, test_path: FilePath, *, escapes: str = "brackets", encoding: str = "utf-8"
) -> tuple[list[Tree], list[Tree]]:
    """The trees of both files, equally many; a sentence without a parse is a tree without words.

    Raises:
        ReadError, ScoreError, SpmrlError: as :func:`score_files`.
    """
    texts = read_text(gold_path, encoding), read_text(test_path, encoding)
    return _sides(texts, (gold_path, test_path), escapes)


def _sides(
    texts: tuple[str, str], names: tuple[FilePath, FilePath], escapes: str
) -> tuple[list[Tree], list[Tree]]:
    gold, test = (_read(text, name, escapes) for text, name in zip(texts, names, strict=True))
    if len(gold) != len(test):
        raise ScoreError(
            f"{names[0]} has {len(gold)} sentences, {names[1]} has {len(test)}; they must be the"
            f" same sentences in the same order. {_advice(texts, names)}"
        )
    return gold, test


def _advice(texts: tuple[str, str], names: tuple[FilePath, FilePath]) -> str:
    """What may have gone wrong where one of two files has more sentences."""
    for text, name in zip(texts, names, strict=True):
        if not one_tree_per_line(text):
            return (
                f"{name} has trees over several lines, where a failed parse has no place: write"
                " each tree on one line, and a failed one as '(())'"
            )
    ends = [len(text.split("\n")) - len(text.rstrip().split("\n")) - 1 for text in texts]
    if ends[0] != ends[1]:
        more = int(ends[1] > ends[0])
        return (
            f"{names[more]} ends with {ends[more]} blank line{'' if ends[more] == 1 else 's'}, each"
            " of which is a sentence without a parse: remove what is not meant to be one"
        )
    return "A failed parse keeps its place as a line '(())'"


def _read(text: str, name: FilePath, escapes: str) -> list[Tree]:
    blank: Literal["tree", "error"] = "tree" if one_tree_per_line(text) else "error"
    # As the scanner of plain texts: an unclosed tree shows in the number of sentences.
    trees = list(read_brackets(text, path=name, escapes=escapes, blank=blank, margin=False))
    if not trees:
        raise ScoreError(f"{name}: holds no tree; expected brackets such as (S (NP (NN word)))")
    return trees
