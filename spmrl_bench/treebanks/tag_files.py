"""Tags from files of their own, in place of those of the trees.

Who tags a treebank with a tagger gets a line of tags for each sentence. An edition of the
treebank names these files, and all that reads tags (the lexical input, the scorer, which deletes
punctuation by tag) then sees the predicted ones, in gold trees and in parses alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import read_text
from spmrl_bench.trees.parse import Parse


def with_tags(sentences: Sequence[Parse], paths: Sequence[Path]) -> list[Parse]:
    """The sentences with the tags of some files.

    Args:
        sentences: of a split, after the transforms.
        paths: UTF-8 files of one line for each of these sentences, tags separated by white space.

    Raises:
        ReadError: a line has not as many tags as its sentence words, or there are more or fewer
            lines than sentences.
    """
    lines = [
        (path, number, line.split())
        for path in paths
        for number, line in enumerate(read_text(path).splitlines(), start=1)
    ]
    if len(lines) != len(sentences):
        last = paths[-1]
        number = lines[-1][1] if lines else 1
        raise ReadError(
            f"found {len(lines)} lines of tags in {len(paths)} file(s), expected "
            f"{len(sentences)}: one for each sentence of the split",
            path=last,
            line=number,
        )
    found = []
    for (path, number, tags), sentence in zip(lines, sentences, strict=True):
        if len(tags) != len(sentence.words):
            beginning = " ".join(sentence.words[:8])
            raise ReadError(
                f"found {len(tags)} tags, expected {len(sentence.words)}: one for each word of "
                f"the sentence that begins: {beginning}",
                path=path,
                line=number,
            )
        found.append(sentence.with_tags(tags))
    return found
