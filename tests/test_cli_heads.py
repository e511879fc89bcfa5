"""The commands heads and trace: what they print and write, and one line for each mistake."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app
from tests.analysis.constructed import random_parser, two_headed_parser
from tests.laboratory import Laboratory
from tests.parsers.examples import parser_of

SENTENCE = ("--sentence", "the dog sees a cat .")
GOLD = "(S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat))) (P .))"


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def fails(*arguments: str | Path) -> str:
    """The one line of what is wrong."""
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line.removeprefix("spmrl-bench: ")


@pytest.fixture
def models(laboratory: Laboratory) -> None:
    """Folders of parsers: one with heads, one without, one that adds them up."""
    for name, parser in (
        ("model", two_headed_parser(np_head=3, vp_head=1)),
        ("plain", parser_of()),
        ("added", random_parser(label_outputs="projected")),
    ):
        Path(name).mkdir()
        parser.save(Path(name))


pytestmark = pytest.mark.usefixtures("models")
HEADS = ("heads", "--model", "model", "--treebank", "tiny-mini")
TRACE = ("trace", "--model", "model")


# heads -----------------------------------------------------------------------------------


def test_heads_prints_a_table_and_leaves_files() -> None:
    result = run(*HEADS, "--measure", "lead", "--csv", "out/t.csv", "--output", "out/map.svg")
    assert result.exit_code == 0, result.stderr
    head, _, *rows = result.stdout.splitlines()
    assert head.split()[:2] == ["category", "spans"]
    found = {row.split()[0]: row.split() for row in rows}
    assert found["NP"][2] == "3:"
    assert found["VP"][2] == "1:"
    assert "S" in found  # missed
    picture = Path("out/map.svg").read_text(encoding="utf-8")
    assert ">NP (" in picture
    with open("out/t.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    best = max((row for row in lines if row["category"] == "NP"), key=_contribution)
    assert best["head"] == "3"
    assert len(lines) == 5 * len(rows)
    assert result.stderr.splitlines() == [
        "spmrl-bench: out/t.csv written",
        "spmrl-bench: out/map.svg written",
    ]


def _contribution(row: dict[str, str]) -> float:
    return float(row["contribution"])


def test_heads_of_some_categories_are_bars() -> None:
    chosen = ("--category", "VP", "--category", "NP", "--category", "VP")
    result = run(*HEADS, "--split", "test", *chosen, "--top", "2", "--output", "bars.svg")
    assert result.exit_code == 0, result.stderr
    assert [row.split()[0] for row in result.stdout.splitlines()[2:]] == ["VP", "NP"]
    assert "categories VP, NP" in Path("bars.svg").read_text(encoding="utf-8")


def test_heads_of_files_and_of_standard_input() -> None:
    text = "the dog sees a cat .\n\nan elf sleeps .\n"
    Path("some.txt").write_text(text, encoding="utf-8")
    Path("some.mrg").write_text(
        GOLD + "\n(S (X (D an) (N elf)) (V sleeps) (P .))\n", encoding="utf-8"
    )
    outputs = [
        run("heads", "--model", "model", "some.txt"),
        run("heads", "--model", "model", "-", stdin=text),
        run("heads", "--model", "model", "--input", "brackets", "some.mrg"),
    ]
    assert all(one.exit_code == 0 for one in outputs)
    assert len({one.stdout for one in outputs}) == 1
    assert "NP" in outputs[0].stdout


def test_mistakes_of_heads_are_one_line() -> None:
    assert fails(*HEADS, "--measure", "norms").startswith("--measure: unknown measure 'norms'. Did")
    assert fails(*HEADS, "--category", "VPP").startswith("unknown category 'VPP'. Did you mean VP")
    assert fails(*HEADS, "--output", "map.gif").startswith("map.gif: a figure's name ends with one")
    assert fails(*HEADS, "--split", "tset").startswith("unknown split 'tset'. Did you mean test?")
    assert fails(*HEADS, "some.txt").startswith("--treebank tiny-mini and the file some.txt: give")
    assert fails("heads", "--model", "model").startswith("name a treebank (--treebank german-mini)")
    assert fails("heads", "--model", "model", "no.txt").startswith("no.txt: cannot be read: No suc")
    assert fails(*HEADS[:3], "--treebank", "tiny-mno").startswith("unknown treebank 'tiny-mno'. Di")
    assert fails("heads", "--model", "none", *HEADS[3:]).startswith("none: no trained parser here")
    assert fails("heads", "--model", "plain", *HEADS[3:]).startswith("the parser has no label atte")
    assert fails("heads", "--model", "added", *HEADS[3:]).startswith("the parser adds the outputs ")
    Path("a.txt").write_text("a dog\n", encoding="utf-8")
    split = fails("heads", "--model", "model", "a.txt", "--split", "dev")
    assert split.startswith("--split dev: splits are those of a treebank")
    assert fails(*HEADS, "--category", "S", "--output", "s.png").startswith("no span was predicted")
    assert not Path("s.png").exists()


# trace -----------------------------------------------------------------------------------


def test_a_span_is_traced_as_text_and_as_a_picture() -> None:
    result = run(*TRACE, *SENTENCE, "--span", "0:2", "--top", "1", "--output", "trace.png")
    assert result.exit_code == 0, result.stderr
    tree, blank, heading, lead, names, row = result.stdout.splitlines()
    assert tree.startswith("(")
    assert blank == ""
    assert heading.startswith("0:2 ")
    assert heading.endswith(": the dog")
    assert " lead " in lead
    assert "looks at" in names
    assert row.split()[0] in ("1", "3")
    assert Path("trace.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == "spmrl-bench: trace.png written\n"


def test_gold_brings_the_words_and_what_is_wrong() -> None:
    result = run(*TRACE, "--gold", f"( {GOLD} )", "--errors")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert " spans differ from gold" in lines[1]
    headings = [line for line in lines if line[:1].isdigit() and ":" in line.split()[0]]
    assert headings[0].startswith("0:6 ")
    assert all(", in gold " in line for line in headings)
    both = run(*TRACE, "--gold", GOLD, *SENTENCE, "--errors", "--by", "norm")
    assert both.exit_code == 0
    # The unlabelled bracket is no constituent.
    assert both.stdout.splitlines()[:2] == lines[:2]


def test_a_sentence_of_a_treebank() -> None:
    where = ("--treebank", "tiny-mini", "--split", "test", "--number", "2")
    result = run(*TRACE, *where)
    assert result.exit_code == 0, result.stderr
    folder = Path(os.environ["TREEBANKS"]) / "tiny-mini"
    gold = (folder / "test.mrg").read_text(encoding="utf-8").splitlines()[1]
    assert result.stdout == run(*TRACE, "--gold", gold).stdout


def test_nothing_wrong_draws_nothing(tmp_path: Path) -> None:
    tree = run(*TRACE, *SENTENCE).stdout.splitlines()[0]
    output = tmp_path / "some.png"
    result = run(*TRACE, "--gold", tree, "--errors", "--output", output)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].startswith("0 of ")
    assert "no span to draw" in result.stderr
    assert not output.exists()


def test_mistakes_of_trace_are_one_line() -> None:
    whole = (*TRACE, *SENTENCE)
    assert fails(*whole, "--by", "led").startswith("--by: unknown by 'led'. Did you mean lead?")
    assert fails(*whole, "--span", "2-5").startswith("--span 2-5: expected START:END, such as 2:5")
    assert fails(*whole, "--span", "2:9").startswith("there is no span 2:9: the fenceposts of thes")
    assert fails(*whole, "--errors").startswith("--errors: what is wrong is known only with --gold")
    assert fails(*whole, "--output", "a.gif").startswith("a.gif: a figure's name ends with one of ")
    assert fails(*whole, "--gold", "(S (N dog))").startswith("sentence 1: the words of the gold tr")
    assert fails(*whole, "--tags", "D N").startswith("sentence 1: 6 words but 2 tags")
    assert fails(*TRACE, "--gold", "(S (N dog)").startswith("--gold:1:1: sentence 1:")
    assert fails(*TRACE, "--gold", GOLD + GOLD).startswith("--gold: found 2 trees, expected one")
    assert fails(*TRACE, "--sentence", "") == "a sentence without words has no spans to trace"
    assert fails(*TRACE).startswith("give a --sentence, a --gold tree, or a --treebank and a --num")
    assert fails(*TRACE, "--number", "3").startswith("--number 3: of which treebank?")
    bank = (*TRACE, "--treebank", "tiny-mini")
    assert fails(*bank).startswith("--treebank tiny-mini: say which sentence, such as --number 17")
    assert fails(*bank, "--number", "99") == "--number 99: the split has 8 sentences"
    assert fails(*bank, *SENTENCE).startswith("--treebank and --sentence: give one of the two")
    assert fails("trace", "--model", "plain", *SENTENCE).startswith(
        "the parser has no label attent"
    )
    assert fails("trace", "--model", "added", *SENTENCE).startswith(
        "the parser adds the outputs of"
    )
    assert fails(*TRACE, "--sentence", "dog " * 40).startswith("sentence 1: a sentence of 40 words")
