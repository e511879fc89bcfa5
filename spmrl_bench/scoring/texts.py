"""Bracket scores of a corpus: trees in any form, bracketed texts, or files.

:func:`~spmrl_bench.scoring.evalb.count_brackets` defines every count, and takes some 30
microseconds a sentence. Of texts, the kernel ``_scanning`` counts the usual sentences many times
faster and leaves the others to that function, so that the rows are the same with it and without.
A policy by which gold's tags decide about the words of the parse is counted in plain Python.

A parser that fails on a sentence leaves an empty line or ``(())``, treebanks indent a tree over
many lines, and a file that lost a line still looks fine. Layout is therefore decided once per
file, and both files must hold equally many sentences.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

from spmrl_bench.errors import ReadError, ScoreError, TreeError
from spmrl_bench.readers.brackets import one_tree_per_line, parse_brackets, read_brackets
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.counts import BracketCounts
from spmrl_bench.scoring.evalb import count_brackets, label_rules
from spmrl_bench.scoring.prm import (
    PUBLISHED,
    MissingParse,
    Parameters,
    Policy,
    Punctuation,
    load_prm,
)
from spmrl_bench.trees.escapes import decode_label, escapes_named
from spmrl_bench.trees.transforms import ROOTS, strip_root
from spmrl_bench.trees.tree import Tree, is_nltk

_DECODE = escapes_named("ptb").decode_word
_WHITE = re.compile(r"\s")
_ROOT = re.compile(r"^\([ \t]*([^\s()]*)", re.MULTILINE)

FilePath = str | os.PathLike[str]
#: A tree, its brackets as text, an ``nltk.Tree`` (which is a list), or None for a missing parse.
TreeLike = Tree | str | list[Any] | None


def score_trees(
    gold: Sequence[TreeLike],
    test: Sequence[TreeLike],
    prm: Parameters | str = "spmrl",
    policy: Policy = PUBLISHED,
) -> BracketCounts:
    """Count a corpus; sentence ``k`` of one side is compared with ``k`` of the other.

    ``prm`` may be what :func:`~spmrl_bench.scoring.prm.load_prm` takes. A sentence without a parse
    is None or a tree without words. Text is read as ``score_files`` reads a line, so that it is a
    tree without words where it is blank or ``(())``. The leaves of NLTK's trees are the words;
    where they hold escapes and the other side does not, translate them first. Raise a ScoreError if
    the sides have different numbers of sentences, or one is malformed or of another type.
    """
    if isinstance(prm, str):
        prm = load_prm(prm)
    if len(gold) != len(test):
        raise ScoreError(
            f"gold has {len(gold)} sentences, test has {len(test)}; they must be the same"
            " sentences in the same order (a failed parse keeps its place as an empty tree)"
        )
    one, other = (
        [_as_tree(sentence, side, k) for k, sentence in enumerate(sentences, start=1)]
        for side, sentences in (("gold", gold), ("test", test))
    )
    pairs = zip(one, other, strict=True)
    return BracketCounts.from_rows(count_brackets(*pair, prm, policy) for pair in pairs)


def _as_tree(sentence: TreeLike, side: str, number: int) -> Tree | None:
    if sentence is None or isinstance(sentence, Tree):
        return sentence
    try:
        if isinstance(sentence, str):
            return parse_brackets(sentence, escapes="brackets", blank="tree")
        if is_nltk(sentence):
            return Tree.from_nltk(sentence)
    except (ReadError, TreeError) as error:
        raise ScoreError(f"{side} sentence {number}: {error}") from None
    raise ScoreError(
        f"{side} sentence {number}: expected a tree, an nltk tree or bracketed text, found "
        f"{type(sentence).__name__}"
    )


def score_files(
    gold_path: FilePath,
    test_path: FilePath,
    prm: Parameters,
    policy: Policy = PUBLISHED,
    *,
    escapes: str = "brackets",
    encoding: str = "utf-8",
) -> BracketCounts:
    """Count a file of parses against a file of gold trees, as :func:`score_texts` does. Raise a
    SpmrlError if a file cannot be read."""
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
    """Count the text of a file of parses against that of a file of gold trees.

    The C programs compare words as they stand in the files; the default escape policy
    changes the fewest of them. A text in which every line closes the brackets it opens holds
    one sentence per line, blank ones being sentences without a parse. In any other text trees
    may span lines, and blank lines mean nothing. ``names`` stand in messages. Raise a ReadError if
    a tree is malformed, a ScoreError if a text holds no tree, or the texts hold different numbers
    of sentences, a SpmrlError if the escape policy is unknown.
    """
    escapes_named(escapes)
    kernel = None if policy.punctuation is Punctuation.BY_GOLD else _load_kernel()
    count_missing = policy.missing_parse is MissingParse.COUNT
    found = kernel and kernel(gold, test, _classifier(prm), count_missing)
    if found is None:  # no kernel, or something is wrong: reading the trees tells where
        return score_trees(*_sides((gold, test), names, escapes), prm, policy)
    rows, asked = found
    for k, texts in asked.items():
        one, other = (
            parse_brackets(text.replace("\n", " "), escapes=escapes, blank="tree") for text in texts
        )
        rows[k] = count_brackets(one, other, prm, policy)
    return BracketCounts(rows)


def read_sides(
    gold_path: FilePath,
    test_path: FilePath,
    *,
    escapes: str = "brackets",
    encoding: str = "utf-8",
    outer: bool = True,
) -> tuple[list[Tree], list[Tree]]:
    """Return the trees of both files, equally many, without ``outer`` brackets if they are not
    wanted; a missing parse is a tree without words. Raise a SpmrlError as :func:`score_files`."""
    texts = read_text(gold_path, encoding), read_text(test_path, encoding)
    sides = _sides(texts, (gold_path, test_path), escapes)
    if outer:
        return sides
    gold, test = ([strip_root(tree) if len(tree) else tree for tree in side] for side in sides)
    return gold, test


def written_otherwise(gold: Tree, test: Tree) -> str:
    """Return what keeps the words of two trees apart that are the same words, and the option that
    treats them alike; empty if they are other words."""
    if gold.words == test.words:
        return "the tags tell other punctuation: --punctuation by-gold"
    one, other = (tuple(map(_DECODE, tree.words)) for tree in (gold, test))
    if one == other:
        return "words are escaped otherwise: --escapes ptb"
    if tuple(_WHITE.sub("_", word) for word in one) == other:
        return "'_' stands for white space: parse CoNLL-U, which keeps it, or use 'systems enter'"
    return ""


def other_root(gold: str, test: str, prm: Parameters) -> str:
    """Return in words how the outer brackets of two texts, which are perhaps cut, differ; empty if
    they are alike, or do not count."""
    one, other = (Counter(_ROOT.findall(text)) for text in (gold, test))
    counted = label_rules(prm).label
    for label in sorted(label for label in ROOTS if counted(label) is not None):
        shares = [2 * roots[label] > roots.total() > 0 for roots in (one, other)]
        if any(shares):
            who = ("only the parses have", "only gold has", "gold and parses have")
            called = f"{who[shares[0] + all(shares)]} an outer bracket {label or 'without label'}"
            return f"{called}, which EVALB compares as any other; --outer drop leaves it out"
    return ""


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
    ends = [text.count("\n") - text.rstrip().count("\n") - 1 for text in texts]
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


@cache
def _load_kernel() -> Any:
    """The compiled function where it exists, else None with one warning that says why."""
    try:
        from spmrl_bench.scoring._scanning import count_texts
    except ImportError as error:
        warnings.warn(
            "bracket scores run on the plain-Python code, which gives the same counts but is much "
            f"slower, because the compiled kernel cannot be loaded ({error}). Install the "
            "package again on a machine with a C compiler to build it.",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
    return count_texts


def _classifier(prm: Parameters) -> Callable[[str], tuple[int, int, bool, bool, bool]]:
    """What the kernel asks about the spelling of a label or tag. The answer is the class that it is
    compared as where it is a label (-1: it does not count), the class where it is a tag, and
    whether words with the tag are removed, count for the length, and can be quotation marks.
    Classes are numbered from 0."""
    rules = label_rules(prm)
    numbers: dict[str, int] = {}

    @cache
    def classify(spelling: str) -> tuple[int, int, bool, bool, bool]:
        label = decode_label(spelling)
        compared_as = rules.label(label)
        label_class = -1 if compared_as is None else numbers.setdefault(compared_as, len(numbers))
        tag_class = numbers.setdefault(rules.tag(label), len(numbers))
        removed, counted = label in rules.removed_tags, label not in rules.not_in_length
        return label_class, tag_class, removed, counted, label in prm.quote_labels

    return classify
