"""Parses as lines of JSON: written for programs, read again to be scored or parsed around.

Line ``k`` is sentence ``k``. Who corrects parses adds to a line what its parse is to hold, and
parses the file again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NotRequired

from pydantic import ConfigDict, NonNegativeInt, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.parsers.base import Prediction
from spmrl_bench.readers.text import stream_lines
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.parse import Parse


@with_config(ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True))
class GivenLine(TypedDict, total=False):
    """Parts of a parse that a person has set."""

    constituents: list[tuple[NonNegativeInt, NonNegativeInt, str | None]]
    """`[start, end, label]`, with null for any label."""
    not_constituents: list[tuple[NonNegativeInt, NonNegativeInt, str | None]]
    """`[start, end, label]` of what is none; with null nothing is there."""
    arcs: list[tuple[NonNegativeInt, NonNegativeInt | None, str | None]]
    """`[word, head, relation]`, of which head and relation may be null."""


@with_config(ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True))
class RankedLine(TypedDict):
    """One of the best parses of a sentence."""

    score: float
    """That the parser gives to it: a sum over constituents, arcs or actions."""
    tree: NotRequired[str]
    """As of the best, and so the others."""
    constituents: NotRequired[list[tuple[NonNegativeInt, NonNegativeInt, str]]]
    heads: NotRequired[list[NonNegativeInt]]
    relations: NotRequired[list[str]]
    probability: NotRequired[float | None]
    """With `--scores`."""


@with_config(ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True))
class ParseLine(TypedDict):
    """A sentence and its parse."""

    status: Literal["parsed", "too long", "empty"]
    """`parsed`; `too long`, and what else is there is a flat parse at most; `empty`: no words."""
    words: list[str]
    """The words as they came in, never escaped."""
    tags: list[str] | None
    """As they came in, or as predicted, or `XX`; null if the sentence was given up without any."""
    tree: NotRequired[str]
    """The tree in brackets, in whose words brackets are escaped (`-LRB-`)."""
    constituents: NotRequired[list[tuple[NonNegativeInt, NonNegativeInt, str]]]
    """`[start, end, label]` of each, top-down: words `start` (from 0) to `end`, without it."""
    heads: NotRequired[list[NonNegativeInt]]
    """The head of each word, counted from 1; 0 for the root."""
    relations: NotRequired[list[str]]
    """The relation of each word to its head."""
    given: NotRequired[GivenLine]
    """What the parse is to hold, when the line is parsed again."""
    best: NotRequired[list[RankedLine]]
    """With `--best`: so many of the best parses, or all that there are, this one first."""
    probability: NotRequired[float | None]
    """With `--scores`: of the whole parse, without relations and tags; null if it has none."""
    constituent_probabilities: NotRequired[list[float]]
    """Likewise of each of `constituents`; 0 below 0.001."""
    head_probabilities: NotRequired[list[float]]
    """Likewise of each of `heads`."""
    relation_probabilities: NotRequired[list[float]]
    """Likewise of each of `relations`, given the head."""
    tag_probabilities: NotRequired[list[float]]
    """Likewise of each of `tags`, if the parser has predicted these."""


#: Reads lines, and has their JSON Schema.
PARSE_LINE: TypeAdapter[ParseLine] = TypeAdapter(ParseLine)


def parse_lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, ParseLine]]:
    """Yield the objects of a stream that ``--output json`` wrote, with the numbers of their lines;
    raise a ReadError if it cannot be read, or a line is not as declared."""
    for number, line in stream_lines(stream, name):
        try:
            yield number, PARSE_LINE.validate_json(line)
        except ValidationError as error:
            mistake = error.errors()[0]
            key = ".".join(map(str, mistake["loc"]))
            problem = f"{key}: {mistake['msg']}" if key else mistake["msg"]
            raise ReadError(f"no parse as JSON ({problem})", path=name, line=number) from None


def read_parse_lines(path: str | Path) -> Iterator[ParseLine]:
    """Yield the objects of a file as :func:`parse_lines`."""
    try:
        with open(path, "rb") as stream:
            for _, line in parse_lines(stream, str(path)):
                yield line
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from None


def given_of(line: ParseLine) -> Given | None:
    """Return what the parse of a line is to hold, None if nothing; raise a TreeError if no parse
    can."""
    found = Given(**line.get("given", {}))
    if problem := found.problem(len(line["words"])):
        raise TreeError(problem)
    return found if found != Given() else None


def to_parse(line: ParseLine) -> Parse | None:
    """Return the parse of a line, None where it has none; raise a TreeError if its parts do not
    fit each other."""
    if "heads" in line and "relations" not in line:
        raise TreeError("a parse has heads, but no relations")
    found = Prediction(line.get("constituents"), line.get("heads"), line.get("relations"))
    nothing = found.constituents is None and found.heads is None
    return None if nothing else found.parse(line["words"], line["tags"])
