"""Sentences to score in whatever form they are at hand: our trees, NLTK's, or bracketed text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spmrl_bench.errors import ReadError, ScoreError, TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.tree import Tree, is_nltk

#: A tree, its brackets as text, an ``nltk.Tree`` (which is a list), or None for a missing parse.
TreeLike = Tree | str | list[Any] | None


def as_trees(sentences: Sequence[TreeLike], side: str) -> Sequence[Tree | None]:
    """The trees of a corpus; trees are taken as they are.

    Text is read as ``score_files`` reads a line: with the escape policy ``brackets``, and as a
    tree without words where it is blank or ``(())``. The leaves of NLTK's trees are the words;
    where they hold escapes and the other side does not, translate them first
    (:meth:`spmrl_bench.trees.tree.Tree.from_nltk`).

    Args:
        sentences: in order.
        side: ``gold`` or ``test``, for messages.

    Raises:
        ScoreError: a sentence is none of these, or its text or tree is malformed.
    """
    if set(map(type, sentences)) <= {Tree, type(None)}:
        return sentences  # type: ignore[return-value]
    return [_as_tree(sentence, side, k) for k, sentence in enumerate(sentences, start=1)]


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
