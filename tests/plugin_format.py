"""A format of a package of somebody else: a line a sentence, words with their tags, one phrase."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.readers.formats import Format
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees import Tree


def read(path: Path, *, encoding: str = "utf-8", on_error: OnError = fail) -> Iterator[Tree]:
    """Yield ``S(the/D dog/N)`` as a tree; a line of another form is an error with its place."""
    for number, line in enumerate(read_text(path, encoding).splitlines(), start=1):
        label, bracket, rest = line.partition("(")
        pairs = [pair.rpartition("/") for pair in rest.removesuffix(")").split()]
        try:
            if not bracket or not all(slash for _, slash, _ in pairs):
                raise TreeError("no LABEL(word/TAG word/TAG ...)")
            words, tags = [word for word, _, _ in pairs], [tag for _, _, tag in pairs]
            yield Tree.build(words, tags, [(0, len(words), label)])
        except TreeError as error:
            on_error(ReadError(str(error), path=path, line=number))


FORMAT = Format(
    "tagged-phrases", "a phrase a line, words with their tags", "trees", read,
    lambda text: text.split("\n")[0].endswith(")") and not text.startswith("("),
    {"encoding": "utf-8"},
)  # fmt: skip
