"""What is written of a parse, and of a sentence without one."""

from __future__ import annotations

import json

import pytest

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.parsers.output import Output, chosen_output, write_parse
from spmrl_bench.parsers.streams import Given
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Layer, Parse

TREE = parse_brackets("(S (NP (D the) (N d(g)) (VP (V barks)))".replace("d(g", "d-LRB-g"))
HEADS = DependencyTree.build(TREE.words, TREE.tags, [2, 3, 0], ["det", "nsubj", "root"])
BOTH = Parse.of(TREE, HEADS)
GIVEN = Given(["the", "d(g", "barks"], None, "x:1")
EMPTY = Parse.of(parse_brackets("(T w)").build([], [], []))
BRACKETS = "(S (NP (D the) (N d-LRB-g)) (VP (V barks)))\n"


def write(
    output: Output, parse: Parse | None = BOTH, given: Given = GIVEN, *, too_long: bool = False
) -> str:
    return write_parse(given, parse, output, "xpos", too_long=too_long)


def test_brackets() -> None:
    assert write("brackets") == write("brackets", Parse.of(TREE)) == BRACKETS
    assert write("brackets", None, too_long=True) == "(())\n"
    assert write("brackets", EMPTY, Given([], None, "x:1")) == "\n"


def test_rows_of_conllu() -> None:
    rows = (
        "1\tthe\t_\t{}\t_\t2\tdet\t_\t_\n"
        "2\td(g\t_\t{}\t_\t3\tnsubj\t_\t_\n"
        "3\tbarks\t_\t{}\t_\t0\troot\t_\t_\n\n"
    )
    assert write("conllu") == rows.format("_\tD", "_\tN", "_\tV")
    universal = write_parse(GIVEN, BOTH, "conllu", "upos", too_long=False)
    assert universal == rows.format("D\t_", "N\t_", "V\t_")
    nothing_known = BOTH.with_tags(["XX"] * 3)
    assert write("conllu", nothing_known) == rows.format(*["_\t_"] * 3)
    assert write("conllu", EMPTY, Given([], None, "x:1")) == ""
    given_up = write("conllu", None, GIVEN._replace(tags=["A", "B", "C"]), too_long=True)
    assert [line.split("\t")[4:8] for line in given_up.splitlines()[:3]] == [
        [tag, "_", "_", "_"] for tag in "ABC"
    ]
    with pytest.raises(TreeError, match="word 1: CoNLL cannot hold ' a'"):
        write("conllu", None, Given([" a"], None, "x:1"))


def test_json_has_what_the_parse_has() -> None:
    constituents = {
        "tree": BRACKETS.strip(),
        "constituents": [[0, 3, "S"], [0, 2, "NP"], [2, 3, "VP"]],
    }
    dependencies = {"heads": [2, 3, 0], "relations": ["det", "nsubj", "root"]}
    words = {"words": ["the", "d(g", "barks"], "tags": ["D", "N", "V"]}
    parsed = {"status": "parsed"} | words
    assert json.loads(write("json")) == parsed | constituents | dependencies
    assert json.loads(write("json", Parse.of(TREE))) == parsed | constituents
    assert json.loads(write("json", Parse.of(None, HEADS))) == parsed | dependencies
    too_long = {"status": "too long"} | words
    assert json.loads(write("json", Parse.of(TREE), too_long=True)) == too_long | constituents
    assert json.loads(write("json", None, too_long=True)) == too_long | {"tags": None}
    empty = {"status": "empty", "words": [], "tags": []}
    assert json.loads(write("json", EMPTY, Given([], None, "x:1"))) == empty
    assert write("json", None, Given(["a\u2028é"], None, "x:1")).count("\n") == 1


@pytest.mark.parametrize(
    ("layers", "natural", "refused"),
    [
        (("constituents",), "brackets", "conllu"),
        (("dependencies",), "conllu", "brackets"),
        (("constituents", "dependencies"), "brackets", None),
    ],
)
def test_what_is_not_there_cannot_be_asked_for(
    layers: tuple[Layer, ...], natural: Output, refused: Output | None
) -> None:
    assert chosen_output(None, layers) == natural
    for output in ("brackets", "conllu", "json"):
        if output == refused:
            place = rf"^--output {refused} shows .*finds only {layers[0]}: use '--output {natural}'"
            with pytest.raises(SpmrlError, match=place):
                chosen_output(output, layers)
        else:
            assert chosen_output(output, layers) == output
