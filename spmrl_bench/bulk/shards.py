"""Cutting a file into shards: consecutive sentences, a bounded number of them.

Where a shard ends depends on nothing but the text, so that every worker cuts alike, now and after
a restart. A cut is always at the end of a line: after any line of tokens, after the blank line
that ends a sentence of CoNLL-U, and where no bracket is open. It says all that a reader must know
of what stands in front of it, so that a shard is read alone and yet gives what reading the whole
file would give: the same sentences, and the same places in messages.

Nobody reads a file in advance. Whoever takes a shard reads its bytes, which shows where the next
one begins.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict

from spmrl_bench.bulk.compression import Source, readable
from spmrl_bench.errors import ReadError
from spmrl_bench.parsing import given_trees
from spmrl_bench.parsing.given_trees import Layout, read_trees
from spmrl_bench.parsing.streams import Form, InputSentence, sentences_of
from spmrl_bench.readers import text
from spmrl_bench.readers.conll import TagColumn

#: A shard ends with the sentence with which it has so many sentences, or so many bytes. Small
#: shards let all workers come to their ends together, and little is lost with one of them; to
#: claim a shard, and to write what it gives, takes some milliseconds.
SHARD_SENTENCES = 5000
SHARD_BYTES = 4 << 20

#: Bytes of a sentence of each form that no reader takes any more.
_ENDLESS: dict[Form, int] = {
    "tokens": text.LONGEST,
    "conllu": 4 * text.LONGEST,  # these count characters
    "brackets": 4 * text.LONGEST,
}


class Cut(BaseModel):
    """Where a shard begins, and what is known of the text in front of it."""

    model_config = ConfigDict(frozen=True)

    offset: int = 0
    """In bytes of the text, decompressed."""
    line: int = 1
    """Number of the line that begins here."""
    sentence: int = 1
    """Number of the sentence that begins here."""
    by_line: bool | None = None
    blank: int = 0
    """These two: see :class:`~spmrl_bench.parsing.given_trees.Layout`."""

    @property
    def layout(self) -> Layout:
        return Layout(self.by_line, self.blank)


#: Of every file.
BEGINNING = Cut()


@dataclass(frozen=True)
class Shard:
    """A part of a file.

    Attributes:
        name: of the file, for places.
        form: of the file.
        cut: where it begins.
        data: its bytes.
        sentences: how many it has; None where that is seen by reading it.
        is_last: whether nothing stands behind it.
        is_broken: whether it was cut where a sentence had no end for too long.
        consumed: bytes of the file, as it lies there, that it takes; of a compressed one, roughly.
    """

    name: str
    form: Form
    cut: Cut
    data: bytes
    sentences: int | None
    is_last: bool
    is_broken: bool
    consumed: int

    def given(
        self, tag_column: TagColumn = "xpos", transforms: Sequence[str] | None = None
    ) -> Iterator[InputSentence]:
        """Its sentences, see :func:`spmrl_bench.parsing.streams.sentences_of`.

        Raises:
            ReadError: one is malformed; those in front of it have been given.
        """
        yield from sentences_of(
            io.BytesIO(self.data),
            self.name,
            self.form,
            tag_column,
            transforms,
            line=self.cut.line,
            sentence=self.cut.sentence,
            layout=self.cut.layout,
        )
        self._check()

    def end(self) -> Cut:
        """Where the next one begins.

        Raises:
            ReadError: this one is malformed.
        """
        self._check()
        layout, sentences = self.cut.layout, self.sentences
        if sentences is None:
            stream, line, sentence = io.BytesIO(self.data), self.cut.line, self.cut.sentence
            sentences = sum(1 for _ in read_trees(stream, self.name, layout, line, sentence))
        return Cut(
            offset=self.cut.offset + len(self.data),
            line=self.cut.line + self.data.count(b"\n"),
            sentence=self.cut.sentence + sentences,
            **asdict(layout),
        )

    def _check(self) -> None:
        if self.is_broken:
            problem = (
                f"more than {_ENDLESS[self.form] >> 20} MiB without the end of a line that ends "
                "a sentence"
            )
            raise ReadError(problem, path=self.name, line=self.cut.line)


def shard_at(source: Source, form: Form, cut: Cut) -> Shard:
    """The shard of a file that begins at a cut.

    Raises:
        ReadError: the file cannot be read or decompressed.
    """
    with readable(source.name):
        stream = source.at(cut.offset)
        before = source.consumed()
        taken = _taken(stream, source.name, form, cut)
        source.has_read(len(taken.data))
        is_last = not stream.peek(1)  # type: ignore[attr-defined]
        return replace(taken, is_last=is_last, consumed=source.consumed() - before)


def _taken(stream: BinaryIO, name: str, form: Form, cut: Cut) -> Shard:
    """Whole sentences off a stream, until they are enough."""
    # The layout of trees shows in the first block of a file.
    least = given_trees.BLOCK if form == "brackets" and not cut.offset else 0
    lines: list[bytes] = []
    size = sentences = pending = depth = 0
    begun = False  # a sentence of CoNLL-U
    while line := stream.readline(text.LONGEST + 1):
        lines.append(line)
        size += len(line)
        pending += len(line)
        ended = line.endswith(b"\n")
        if form == "conllu":
            blank = line in (b"\n", b"\r\n")
            ended, begun = blank and begun, not blank
        elif form == "brackets":
            depth = max(0, depth + line.count(b"(") - line.count(b")"))
            ended = ended and not depth
        if ended:
            sentences += 1
            pending = 0
            if (sentences >= SHARD_SENTENCES and size >= least) or size >= SHARD_BYTES:
                break
        elif pending > _ENDLESS[form]:
            break
    is_broken = pending > _ENDLESS[form]
    # At the end of a file, the last sentence needs no end.
    counted = sentences + (begun if form == "conllu" else pending > 0)
    known = None if form == "brackets" else counted
    return Shard(name, form, cut, b"".join(lines), known, False, is_broken, 0)
