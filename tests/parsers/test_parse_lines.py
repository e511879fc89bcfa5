"""Lines of JSON are as they are declared, for whatever parser, and can be read again."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.parsers.output import write_parse
from spmrl_bench.parsers.parse_lines import line_schema, read_parse_lines, to_parse
from spmrl_bench.parsers.streams import Given
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.builders import TREES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "parses.md"
ODD = Tree.build(["(", "a b", 'é"'], ["X"] * 3, [(0, 3, ""), (0, 3, "S"), (1, 3, "A-B")])


def both(tree: Tree) -> Parse:
    relations = ["root", *["dep"] * (len(tree) - 1)]
    return Parse.of(tree, DependencyTree.build(tree.words, tree.tags, range(len(tree)), relations))


PARSES: list[Parse | None] = [
    *map(Parse.of, TREES),
    *map(both, [*TREES, ODD]),
    *(Parse.of(None, both(tree).dependencies) for tree in TREES),
    Parse.of(Tree.build([], [], [])),
    None,
]


def text_of(parse: Parse | None) -> str:
    words = ["too", "long"] if parse is None else parse.words
    return write_parse(Given(words, None, "x:1"), parse, "json", "xpos", too_long=parse is None)


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def test_lines_are_as_declared_and_give_the_parses_back(tmp_path: Path) -> None:
    path = tmp_path / "parses.jsonl"
    path.write_text("".join(map(text_of, PARSES)), encoding="utf-8")
    lines = list(read_parse_lines(path))
    assert [to_parse(line) for line in lines] == [parse or None for parse in PARSES]
    statuses = [line["status"] for line in lines]
    assert statuses == ["parsed"] * (len(PARSES) - 2) + ["empty", "too long"]


def test_the_page_shows_the_schema() -> None:
    (shown,) = re.findall(r"^```json\n(\{\n.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert json.loads(shown) == line_schema()
    keys = re.findall(r"^\| `([a-z]+)` \|", PAGE.read_text("utf-8"), re.M)
    assert keys[:7] == list(line_schema()["properties"])


def test_other_validators_agree() -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(line_schema())
    for text in map(text_of, PARSES):
        assert validator.is_valid(json.loads(text))
    for wrong in (name for _, name in WRONG):
        assert not validator.is_valid(wrong)


GOOD = json.loads(text_of(PARSES[0]))
WRONG = [
    ("status", {**GOOD, "status": "done"}),
    ("words: Field required", {key: GOOD[key] for key in GOOD if key != "words"}),
    ("words.0", {**GOOD, "words": [1]}),
    ("tree", {**GOOD, "tree": None}),
    ("constituents.0.0", {**GOOD, "constituents": [[-1, 1, "S"]]}),
    ("constituents.0.2", {**GOOD, "constituents": [[0, 1]]}),
    ("heads.1", {**GOOD, "heads": [0, "1"], "relations": ["a", "b"]}),
    ("head: Extra inputs", {**GOOD, "head": []}),
]


@pytest.mark.parametrize(("place", "line"), WRONG)
def test_what_is_no_parse_is_named_with_its_line(tmp_path: Path, place: str, line: Any) -> None:
    path = write(tmp_path / "parses.jsonl", GOOD, line)
    with pytest.raises(ReadError, match=rf"parses.jsonl:2: no parse as JSON \({place}"):
        list(read_parse_lines(path))


def test_what_is_no_json_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "parses.jsonl"
    path.write_text(f"{json.dumps(GOOD)}\n\n", encoding="utf-8")
    with pytest.raises(ReadError, match=r"parses.jsonl:2: no parse as JSON \(Invalid JSON"):
        list(read_parse_lines(path))
    with pytest.raises(ReadError, match="gone: cannot be read"):
        list(read_parse_lines(tmp_path / "gone"))


@pytest.mark.parametrize(
    "change",
    [
        {"tags": ["X"]},
        {"constituents": [[0, 1, "S"], [0, 2, "S"]]},
        {"heads": [1, 2, 3], "relations": ["a", "b", "c"]},
        {"heads": [2, 3, 0]},
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    (line,) = read_parse_lines(write(tmp_path / "parses.jsonl", GOOD | change))
    with pytest.raises(TreeError):
        to_parse(line)


def test_every_key_is_written_by_some_parse() -> None:
    written = set(chain.from_iterable(json.loads(text_of(parse)) for parse in PARSES))
    assert written == set(line_schema()["properties"])
