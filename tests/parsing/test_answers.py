"""What is written of a parse, and of a sentence without one; lines of JSON can be read again."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest

from spmrl_bench.errors import ReadError, SpmrlError, TreeError
from spmrl_bench.parsing.answers import Output, chosen_output, write_answer
from spmrl_bench.parsing.json_lines import PARSE_LINE, given_of, read_parse_lines, to_parse
from spmrl_bench.parsing.streams import InputSentence
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.readers.conll import read_conllu_stream
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.parse import Layer, Parse, Probabilities
from spmrl_bench.trees.tree import Tree
from tests.builders import ROOT, TREES, chained, of_layers

TREE = parse_brackets("(S (NP (D the) (N d-LRB-g)) (VP (V barks)))")
HEADS = DependencyTree.build(TREE.words, TREE.tags, [2, 3, 0], ["det", "nsubj", "root"])
BOTH = Parse.of(TREE, HEADS)
SCORED = Probabilities(
    math.log(0.25),
    constituents={(0, 3, "S"): 1.0 + 1e-9, (0, 2, "NP"): 0.87654, (1, 3, "X"): 0.5},
    arcs={(1, 2): 0.9, (2, 3): 0.8, (2, 1): 0.1},
    relations={(1, 2, "det"): 0.63, (2, 3, "nsubj"): 0.48, (2, 3, "obj"): 0.3},
    tags=[0.5, 0.99999, 1.0],
)
GIVEN = InputSentence(["the", "d(g", "barks"], None, "x:1")
NO_WORDS = InputSentence([], None, "x:1")
EMPTY = Parse.of(Tree.build([], [], []))
BRACKETS = "(S (NP (D the) (N d-LRB-g)) (VP (V barks)))\n"


def write(
    output: Output,
    parse: Parse | None = BOTH,
    sentence: InputSentence = GIVEN,
    *,
    too_long: bool = False,
) -> str:
    return write_answer(sentence, parse, output, "xpos", too_long=too_long)


def test_brackets() -> None:
    assert write("brackets") == write("brackets", Parse.of(TREE)) == BRACKETS
    assert write("brackets", None, too_long=True) == "(())\n"
    assert write("brackets", EMPTY, NO_WORDS) == "\n"


def test_rows_of_conllu() -> None:
    rows = (
        "1\tthe\t_\t{}\t_\t2\tdet\t_\t_\n"
        "2\td(g\t_\t{}\t_\t3\tnsubj\t_\t_\n"
        "3\tbarks\t_\t{}\t_\t0\troot\t_\t_\n\n"
    )
    assert write("conllu") == rows.format("_\tD", "_\tN", "_\tV")
    universal = write_answer(GIVEN, BOTH, "conllu", "upos", too_long=False)
    assert universal == rows.format("D\t_", "N\t_", "V\t_")
    assert write("conllu", BOTH.with_tags(["XX"] * 3)) == rows.format(*["_\t_"] * 3)
    assert write("conllu", EMPTY, NO_WORDS) == "# text =\n\n"
    given_up = write("conllu", None, GIVEN._replace(tags=["A", "B", "C"]), too_long=True)
    assert [line.split("\t")[4:8] for line in given_up.splitlines()[:3]] == [
        [tag, "_", "_", "_"] for tag in "ABC"
    ]
    with pytest.raises(TreeError, match="word 1: CoNLL cannot hold ' a'"):
        write("conllu", None, InputSentence([" a"], None, "x:1"))


def test_probabilities_stand_beside_what_they_are_of() -> None:
    parse = replace(BOTH, probabilities=SCORED)
    line = json.loads(write("json", parse))
    assert {key: value for key, value in line.items() if "probabilit" in key} == {
        "probability": 0.25,
        "constituent_probabilities": [1.0, 0.8765, 0.0],
        "head_probabilities": [0.9, 0.8, 0.0],
        "relation_probabilities": [0.7, 0.6, 0.0],
        "tag_probabilities": [0.5, 1.0, 1.0],
    }
    PARSE_LINE.validate_json(write("json", parse))
    tagged = GIVEN._replace(tags=["D", "N", "V"])
    assert "tag_probabilities" not in json.loads(write("json", parse, tagged))
    unknown = replace(parse, probabilities=Probabilities(math.nan))
    assert json.loads(write("json", unknown))["probability"] is None
    rows = [row.split("\t") for row in write("conllu", parse).splitlines()[:3]]
    assert [row[9] for row in rows] == [
        "HeadProbability=0.9|RelationProbability=0.7|TagProbability=0.5",
        "HeadProbability=0.8|RelationProbability=0.6|TagProbability=1.0",
        "HeadProbability=0.0|RelationProbability=0.0|TagProbability=1.0",
    ]
    assert write("brackets", parse) == BRACKETS
    lines = write("conllu").replace("\t_\n2", "\ta=b\n2")
    (source,) = read_conllu_stream(
        io.BytesIO(("1-2\tab" + "\t_" * 8 + "\n" + lines).encode()), path="x"
    )
    noted = write("conllu", parse, tagged._replace(source=source)).splitlines()
    assert [row.split("\t")[9] for row in noted[:4]] == [
        "_",
        "a=b|HeadProbability=0.9|RelationProbability=0.7",
        "HeadProbability=0.8|RelationProbability=0.6",
        "HeadProbability=0.0|RelationProbability=0.0",
    ]


def test_json_has_what_the_parse_has() -> None:
    constituents = {
        "tree": BRACKETS.strip(),
        "constituents": [[0, 3, "S"], [0, 2, "NP"], [2, 3, "VP"]],
    }
    dependencies = {"heads": [2, 3, 0], "relations": ["det", "nsubj", "root"]}
    words = {"words": ["the", "d(g", "barks"], "tags": ["D", "N", "V"]}
    parsed, too_long = {"status": "parsed"} | words, {"status": "too long"} | words
    assert json.loads(write("json")) == parsed | constituents | dependencies
    assert json.loads(write("json", Parse.of(TREE))) == parsed | constituents
    assert json.loads(write("json", Parse.of(None, HEADS))) == parsed | dependencies
    assert json.loads(write("json", Parse.of(TREE), too_long=True)) == too_long | constituents
    assert json.loads(write("json", None, too_long=True)) == too_long | {"tags": None}
    empty = {"status": "empty", "words": [], "tags": []}
    assert json.loads(write("json", EMPTY, NO_WORDS)) == empty
    odd = InputSentence(["a\u2028é"], None, "x:1")
    assert write("json", None, odd).count("\n") == 1


def test_what_is_not_there_cannot_be_asked_for() -> None:
    cases: list[tuple[tuple[Layer, ...], Output, Output | None]] = [
        (("constituents",), "brackets", "conllu"),
        (("dependencies",), "conllu", "brackets"),
        (("constituents", "dependencies"), "brackets", None),
    ]
    for layers, natural, refused in cases:
        assert chosen_output(None, layers) == natural
        for output in get_args(Output):
            if output == refused:
                place = rf"^--output {refused} shows .*only {layers[0]}: use '--output {natural}'"
                with pytest.raises(SpmrlError, match=place):
                    chosen_output(output, layers)
            else:
                assert chosen_output(output, layers) == output


SCHEMA = PARSE_LINE.json_schema()
ODD = Tree.build(["(", "a b", 'é"'], ["X"] * 3, [(0, 3, ""), (0, 3, "S"), (1, 3, "A-B")])


PARSES: list[Parse | None] = [
    *map(Parse.of, TREES),
    *chained([*TREES, ODD]),
    *of_layers(chained(), ["dependencies"]),
    replace(BOTH, probabilities=SCORED, best=((1.5, BOTH),)),
    EMPTY,
    None,
]


def text_of(parse: Parse | None) -> str:
    words = ["too", "long"] if parse is None else parse.words
    given = Given(arcs=[(1, None, "x")]) if parse is None else None
    sentence = InputSentence(words, None, "x:1", given=given)
    return write("json", parse, sentence, too_long=parse is None)


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


def test_lines_are_as_declared_and_give_the_parses_back(tmp_path: Path) -> None:
    path = tmp_path / "parses.jsonl"
    path.write_text("".join(map(text_of, PARSES)), encoding="utf-8")
    lines = list(read_parse_lines(path))
    plain = [replace(one, probabilities=None, best=()) if one else None for one in PARSES]
    assert [to_parse(line) for line in lines] == plain
    statuses = [line["status"] for line in lines]
    assert statuses == ["parsed"] * (len(PARSES) - 2) + ["empty", "too long"]
    assert given_of(lines[-1]) == Given(arcs=[(1, None, "x")])
    assert set(chain.from_iterable(lines)) == set(SCHEMA["properties"]), "every key is written"


def test_the_page_shows_a_line_and_its_keys() -> None:
    page = (ROOT / "docs" / "parses.md").read_text("utf-8")
    (shown,) = re.findall(r"^```json\n(.*?)^```$", page, re.M | re.S)
    assert to_parse(PARSE_LINE.validate_json(shown))
    assert re.findall(r"^\| `([a-z_]+)` \|", page, re.M)[:14] == list(SCHEMA["properties"])


def test_other_validators_agree() -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(SCHEMA)
    assert all(validator.is_valid(json.loads(text_of(parse))) for parse in PARSES)
    assert not any(validator.is_valid(wrong) for _, wrong in WRONG)


def test_what_is_no_parse_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "parses.jsonl"
    cases = [(re.escape(place), json.dumps(line)) for place, line in WRONG]
    for place, line in [*cases, ("Invalid JSON", "")]:
        path.write_text(f"{json.dumps(GOOD)}\n{line}\n", encoding="utf-8")
        with pytest.raises(ReadError, match=rf"parses.jsonl:2: no parse as JSON \({place}"):
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
def test_parts_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    line = PARSE_LINE.validate_json(json.dumps(GOOD | change))
    with pytest.raises(TreeError):
        to_parse(line)
