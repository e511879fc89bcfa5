"""Parses as lines of JSON, for programs: what a line has, and such lines read again.

``spmrl-bench parse --output json`` writes one object on each line, line ``k`` for sentence ``k``.
Its keys are declared here and nowhere else; ``docs/parses.md`` shows them, and as JSON Schema for
validators. A key is left out where the parser does not find the layer, or found none for the
sentence, so what is there is never null but for the tags of a sentence that was given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.parsers.streams import check_readable
from spmrl_bench.readers.text import stream_lines
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import NO_TAG, Tree

Place = Annotated[int, Field(ge=0)]
Status = Literal["parsed", "too long", "empty"]


@with_config(ConfigDict(extra="forbid", strict=True))
class ParseLine(TypedDict):
    """A sentence and its parse."""

    status: Annotated[
        Status,
        Field(
            description="`parsed`; `too long` for the parser, so that what else is there is no "
            "more than a flat parse; or `empty`, for a sentence without words."
        ),
    ]
    words: Annotated[list[str], Field(description="The words as they came in, never escaped.")]
    tags: Annotated[
        list[str] | None,
        Field(
            description="A tag for each word: as it came in, or as the parser predicts it, or "
            "`XX`. Null where the sentence was given up and came without tags."
        ),
    ]
    tree: NotRequired[
        Annotated[
            str,
            Field(
                description="The tree in brackets, in whose words brackets are escaped (`-LRB-`)."
            ),
        ]
    ]
    constituents: NotRequired[
        Annotated[
            list[tuple[Place, Place, str]],
            Field(
                description="The same tree as `[start, end, label]` of each constituent, top-down "
                "and left to right: the words from number `start`, counted from 0, up to but "
                "without number `end`. A bracket without a label has the label ''."
            ),
        ]
    ]
    heads: NotRequired[
        Annotated[
            list[Place],
            Field(description="The head of each word, counted from 1; 0 for the root."),
        ]
    ]
    relations: NotRequired[
        Annotated[list[str], Field(description="The relation of each word to its head.")]
    ]


_LINE: TypeAdapter[ParseLine] = TypeAdapter(ParseLine)


def line_schema() -> dict[str, Any]:
    """The JSON Schema of a line."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_LINE.json_schema()}


def to_line(words: list[str], tags: list[str] | None, parse: Parse | None, status: Status) -> Any:
    """The object of a sentence.

    Args:
        words, tags: as they came in.
        parse: of it; its tags count. None if it was given up.
        status: what became of the sentence.
    """
    line: ParseLine = {
        "status": status,
        "words": words,
        "tags": tags if parse is None else list(parse.tags),
    }
    if parse and parse.tree is not None:
        line["tree"] = write_brackets(parse.tree)
        line["constituents"] = list(parse.tree.constituents())
    if parse and parse.dependencies is not None:
        line["heads"] = parse.dependencies.heads.tolist()
        line["relations"] = list(parse.dependencies.relations)
    return line


def read_parse_lines(path: str | Path) -> Iterator[ParseLine]:
    """The objects of a file that ``--output json`` wrote, lazily.

    Raises:
        ReadError: the file cannot be read, or a line is not as declared, with its number.
    """
    check_readable([str(path)])
    with open(path, "rb") as stream:
        for number, line in stream_lines(stream, str(path)):
            try:
                yield _LINE.validate_json(line)
            except ValidationError as error:
                mistake = error.errors()[0]
                key = ".".join(map(str, mistake["loc"]))
                problem = f"{key}: {mistake['msg']}" if key else mistake["msg"]
                raise ReadError(f"no parse as JSON ({problem})", path=path, line=number) from None


def to_parse(line: ParseLine) -> Parse | None:
    """The parse of a line; None where it has none.

    Raises:
        TreeError: its parts do not fit each other.
    """
    words, tags = line["words"], line["tags"] or [NO_TAG] * len(line["words"])
    tree = dependencies = None
    if "constituents" in line:
        tree = Tree.build(words, tags, line["constituents"])
    if "heads" in line:
        if "relations" not in line:
            raise TreeError("a parse has heads, but no relations")
        dependencies = DependencyTree.build(words, tags, line["heads"], line["relations"])
    return None if tree is None and dependencies is None else Parse.of(tree, dependencies)
