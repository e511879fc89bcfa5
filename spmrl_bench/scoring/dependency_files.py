"""Attachment scores of two CoNLL files that hold the same sentences, or a place where not.

Both files are read to their ends and compared word for word before anything is counted, so
that there is no score of the part before a mistake.
"""

from __future__ import annotations

from itertools import chain

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.conll import DependencySentence, read_conll_file
from spmrl_bench.scoring.attachment import (
    AttachmentRules,
    rule_faults,
    score_dependencies,
    word_faults,
)
from spmrl_bench.scoring.attachment_counts import AttachmentCounts
from spmrl_bench.scoring.files import FilePath


def score_dependency_files(
    gold_path: FilePath,
    test_path: FilePath,
    rules: AttachmentRules,
    *,
    encoding: str = "utf-8",
) -> AttachmentCounts:
    """Counts of a CoNLL-U or CoNLL-X file of parses against a file of gold trees.

    Tags are those of the gold file; the test file needs none.

    Raises:
        ReadError: a file cannot be read, or is malformed.
        ScoreError: a file holds no sentence, the files hold different sentences, or a gold tag
            or relation that the rules need is missing; with file, line and sentence.
    """
    gold, test = (
        list(read_conll_file(path, encoding=encoding, tag_column=rules.tags, roots=rules.roots))
        for path in (gold_path, test_path)
    )
    for path, sentences in ((gold_path, gold), (test_path, test)):
        if not sentences:
            raise ScoreError(f"{path}: holds no sentence")
    gold_trees, test_trees = ([sentence.tree for sentence in side] for side in (gold, test))
    if len(gold) != len(test):
        raise ScoreError(
            f"{gold_path} has {len(gold)} sentences, {test_path} has {len(test)}; they must be the"
            f" same sentences in the same order, and {_parting(gold, test)}"
        )
    for fault in chain(word_faults(gold_trees, test_trees), rule_faults(gold_trees, rules)):
        path, side = (test_path, test) if fault.in_test else (gold_path, gold)
        sentence = side[fault.sentence]
        place = f"{path}:{sentence.lines[fault.word]}: sentence {sentence.name}"
        twin = gold[fault.sentence]
        where = f"; gold is {gold_path}:{twin.lines[0]}" if fault.in_test else ""
        raise ScoreError(f"{place}: {fault.problem}{where}")
    return score_dependencies(gold_trees, test_trees, rules)


def _parting(gold: list[DependencySentence], test: list[DependencySentence]) -> str:
    """Where two files of different length cease to be the same."""
    for one, other in zip(gold, test, strict=False):
        if one.tree.words != other.tree.words:
            return (
                f"the first that differ are {one.name} at line {one.lines[0]} and {other.name} at"
                f" line {other.lines[0]}"
            )
    return f"the first {min(len(gold), len(test))} are"
