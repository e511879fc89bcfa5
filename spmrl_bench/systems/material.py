"""The files that a parser of somebody else learns from and parses, and what is asked of answers.

Words are those that our own parsers read, after the treebank's transforms. Many programs split
lines at any white space, so that a word with some in it has :data:`FOR_SPACE` in its place. Trees
stand in one constituent :data:`ROOT` more than they have, because programs expect one that is the
only one of its kind; it is taken away from the answers again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from spmrl_bench.errors import ScoreError
from spmrl_bench.readers.conll import UNSPECIFIED, conll_lines
from spmrl_bench.storage.files import write_text
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import Tree, readonly_int32

Form = Literal["brackets", "conllu", "words"]

ROOT = "ROOT"
#: The tag of words in brackets that have none.
NO_TAG = "X"
#: What stands for white space inside a word.
FOR_SPACE = "_"

_SPACE = re.compile(r"\s")


def spelt(word: str) -> str:
    """A word as a system gets it."""
    return _SPACE.sub(FOR_SPACE, word)


def write_task(bank: Treebank, split: str, folder: Path, *, tags: bool = False) -> list[Path]:
    """Write the words of a split for an outside system, and return the files.

    ``TREEBANK.SPLIT.txt`` has a sentence a line, its words separated by spaces; it is left out
    where a word has white space in it. ``TREEBANK.SPLIT.conllu`` has the same words one a line, no
    head, and of tags (column XPOS) those that the treebank lets parsers read, if any are asked for.

    Raises:
        ScoreError: the treebank has no tags.
        SpmrlError: the split cannot be read, or a file cannot be written.
    """
    if tags and bank.manifest.tags == "none":
        raise ScoreError(f"treebank {bank.name} has no tags to give")
    sentences = bank.examples(split, bank.layers[:1])
    texts = {"conllu": words_text(sentences, "conllu", tags=tags)}
    if all(len(word.split()) == 1 for parse in sentences for word in parse.words):
        texts["txt"] = words_text(sentences, "words", tags=False)
    written = {folder / f"{bank.name}.{split}.{ending}": text for ending, text in texts.items()}
    for path, text in written.items():
        write_text(path, text)
    return list(written)


def words_text(parses: Sequence[Parse], form: Form, *, tags: bool) -> str:
    """The words of sentences without any structure, and their tags if so asked.

    ``brackets`` are trees whose words are all children of the root; ``words`` is a sentence a
    line, which has no tags.
    """
    rows = ([spelt(word) for word in parse.words] for parse in parses)
    if form == "words":
        return "".join(f"{' '.join(row)}\n" for row in rows)
    if form == "brackets":
        flat = (
            Tree.build(row, parse.tags if tags else [NO_TAG] * len(row), [(0, len(row), ROOT)])
            for row, parse in zip(rows, parses, strict=True)
        )
        return "".join(f"{write_brackets(tree)}\n" for tree in flat)
    return "".join(
        conll_lines(row, parse.tags if tags else blank, blank, blank)
        for row, parse in zip(rows, parses, strict=True)
        for blank in ([UNSPECIFIED] * len(row),)
    )


def trees_text(parses: Sequence[Parse], layer: Layer, *, tags: bool) -> str:
    """Sentences with their trees of a layer: brackets one a line, or CoNLL-U."""
    if layer == "constituents":
        trees = [parse.tree for parse in parses if parse.tree is not None]
        return "".join(f"{write_brackets(_rooted(tree, tags))}\n" for tree in trees)
    return "".join(
        conll_lines(
            map(spelt, one.words),
            one.tags if tags else [UNSPECIFIED] * len(one),
            map(str, one.heads.tolist()),
            one.relations,
        )
        for parse in parses
        if (one := parse.dependencies) is not None
    )


def _rooted(tree: Tree, tags: bool) -> Tree:
    spans = readonly_int32([(0, len(tree)), *tree.spans.tolist()], len(tree.spans) + 1, 2)
    return replace(
        tree,
        words=tuple(map(spelt, tree.words)),
        tags=tree.tags if tags else (NO_TAG,) * len(tree),
        labels=(ROOT, *tree.labels),
        spans=spans,
    )


def without_root(tree: Tree, gold: Tree) -> Tree:
    """The tree without a constituent :data:`ROOT` around it that gold has not."""
    around, expected = (_outermost(one).count(ROOT) for one in (tree, gold))
    if around <= expected or tree.labels[0] != ROOT:
        return tree
    rest = tree.spans[1:].tolist()
    return replace(tree, labels=tree.labels[1:], spans=readonly_int32(rest, len(rest), 2))


def _outermost(tree: Tree) -> list[str]:
    """The labels of the constituents over the whole sentence."""
    whole = [0, len(tree)]
    pairs = zip(tree.labels, tree.spans.tolist(), strict=True)
    return [label for label, span in pairs if span == whole]
