"""The commands that look at parsers and treebanks: what they print and write, what they refuse."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.test_heads import two_headed_parser
from tests.builders import refused, tiny, works
from tests.laboratory import Laboratory
from tests.parsers.test_transition_parser import crossing

RUN = "runs/tiny-open/small-charlstm-seed1"
GOLD = "(S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat))) (P .))"
SENTENCE = ("--sentence", "the dog sees a cat .")

PARSERS: dict[str, Callable[[], Any]] = {
    "heads": lambda: two_headed_parser(np_head=3, vp_head=1),
    "chart": tiny,
    "actions": lambda: tiny("transition", crossing(), encoder="gru", attention_layers=2),
}

pytestmark = pytest.mark.usefixtures("laboratory")


def save(*names: str) -> None:
    """Save parsers into folders of their names."""
    for name in names:
        Path(name).mkdir()
        PARSERS[name]().save(Path(name))


def refuses(cases: dict[tuple[object, ...], str]) -> None:
    """Each of the commands fails with one line that has this beginning."""
    wrong = {arguments: found for arguments, message in cases.items()
             if not (found := refused(*arguments)).startswith(message)}  # fmt: skip
    assert not wrong


def rows_of(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_suspects_by_a_run(laboratory: Laboratory, opened: list[str]) -> None:
    works("train", laboratory.recipe, "--variant", "charlstm")
    opened.clear()
    by_run = ("treebanks", "suspects", "tiny-open", "--model", RUN)
    text = works(*by_run, "--worst", "3").stdout
    assert text.startswith("Where tiny-open, dev, and a parser disagree\nParser: runs/tiny-open/")
    assert re.search(
        r"\n1\. tiny-open dev, sentence (\d) \(dev\.mrg, sentence \1\): gold 0\.", text
    )
    assert len(re.findall(r"^\d+\. tiny-open dev", text, re.MULTILINE)) == 3
    result = works(*by_run, "--output", "list.csv")
    assert result.stdout == ""
    assert "spmrl-bench: list.csv written, " in result.stderr
    assert {row["layer"] for row in rows_of("list.csv")} == {"constituents"}
    assert set(opened) == {"dev"}
    seen = works("treebanks", "suspects", "tiny-mini", "--model", RUN, "--split", "train")
    assert "a parser has learnt the errors that it was trained on" in seen.stderr
    Path("empty").mkdir()
    refuses({
        (*by_run[:4], "german"): "german: no trained parser here (no such folder)",
        (*by_run[:4], "empty"): "empty: no trained parser here",
        (*by_run, "--output", "x.pdf"): "x.pdf",
        (*by_run, "--of", "dependencies"): "--of dependencies: the parser finds constituents only",
    })  # fmt: skip


def test_suspects_by_variation(laboratory: Laboratory, opened: list[str]) -> None:
    path = laboratory.treebanks / "tiny-open" / "train.mrg"
    lines = path.read_text(encoding="utf-8").splitlines()
    right = "(S (NP (P so)) (VP (V runs) (NP (D the) (N dog)) (A home)))"
    lines[3] = lines[9] = right
    lines[20] = right.replace("(NP (D the) (N dog))", "(D the) (N dog)")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    own = ("treebanks", "suspects", "tiny-open")
    text = works(*own, "--worst", "1").stdout
    assert "1. tiny-open train, sentence 21 (train.mrg, sentence 21)" in text
    assert "2:4 is not annotated; with 5 words around it the same, 2 other places are NP" in text
    assert set(opened) == {"train"}
    works(*own, "--output", "list.html", "--context", "only-tags")
    assert Path("list.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    works(*own, "--of", "tags", "--split", "test")
    assert set(opened) == {"train", "test"}
    refuses({
        (*own, "--of", "tags", "--context", "only-tags"): "--of tags --context only-tags",
        (*own, "--of", "dependencies"): "--of dependencies: the treebank has constituents only",
    })  # fmt: skip


HEADS = ("model", "heads", "--model", "heads", "--treebank", "tiny-mini")
TRACE = ("model", "heads", "--model", "heads")


def test_heads_of_a_treebank() -> None:
    save("heads")
    result = works(*HEADS, "--measure", "lead", "--output", "out/map.svg")
    head, _, *rows = result.stdout.splitlines()
    assert head.split()[:2] == ["category", "spans"]
    found = {row.split()[0]: row.split() for row in rows}
    assert (found["NP"][2], found["VP"][2]) == ("3:", "1:")
    assert "S" in found  # missed
    assert ">NP (" in Path("out/map.svg").read_text(encoding="utf-8")
    assert result.stderr == "spmrl-bench: out/map.svg written\n"
    works(*HEADS, "--measure", "lead", "--output", "out/t.csv")
    assert len(rows_of("out/t.csv")) == 5 * len(rows)
    chosen = ("--category", "VP", "--category", "NP", "--split", "test", "--output", "chosen.svg")
    result = works(*HEADS, *chosen)
    assert [row.split()[0] for row in result.stdout.splitlines()[2:]] == ["VP", "NP"]


def test_heads_of_files_and_of_standard_input() -> None:
    save("heads")
    text = "the dog sees a cat .\n\nan elf sleeps .\n"
    Path("some.txt").write_text(text, encoding="utf-8")
    Path("some.mrg").write_text(GOLD + "\n(S (X (D an) (N elf)) (V sleeps) (P .))\n")
    found = {
        works(*HEADS[:4], "some.txt").stdout,
        works(*HEADS[:4], "-", stdin=text).stdout,
        works(*HEADS[:4], "--input", "brackets", "some.mrg").stdout,
    }
    assert len(found) == 1
    assert "NP" in found.pop()


def test_spans_are_traced(laboratory: Laboratory) -> None:
    save("heads")
    tree, blank, heading, *_ = works(*TRACE, *SENTENCE, "--top", "1").stdout.splitlines()
    assert (tree[0], blank, heading[:2]) == ("(", "", "0:")
    lines = works(*TRACE, "--gold", f"( {GOLD} )", "--errors").stdout.splitlines()
    assert " spans differ from gold" in lines[1]
    headings = [line for line in lines if line[:1].isdigit() and ":" in line.split()[0]]
    assert headings[0].startswith("0:6 ")
    assert all(", in gold " in line for line in headings)
    # The unlabelled bracket is no constituent.
    assert works(*TRACE, "--gold", GOLD, *SENTENCE, "--errors").stdout.splitlines() == lines
    where = ("--treebank", "tiny-mini", "--split", "test", "--number", "2")
    path = laboratory.treebanks / "tiny-mini" / "test.mrg"
    gold = path.read_text(encoding="utf-8").splitlines()[1]
    assert works(*TRACE, *where).stdout == works(*TRACE, "--gold", gold).stdout


def test_what_heads_refuses() -> None:
    save("heads")
    Path("a.txt").write_text("a dog\n", encoding="utf-8")
    bank = (*TRACE, "--treebank", "tiny-mini")
    refuses({
        (*HEADS, "--category", "VPP"): "unknown category 'VPP'. Did you mean VP",
        (*HEADS, "--output", "map.gif"): "map.gif",
        (*HEADS, "some.txt"): "FILE: give files, a --treebank or one sentence",
        (*HEADS, "--input", "conllu"): "--input: of files only",
        TRACE: "name a treebank",
        (*TRACE, "no.txt"): "no.txt: cannot be read",
        (*TRACE, "a.txt", "--split", "dev"): "--split: of which treebank?",
        (*HEADS, "--category", "S", "--output", "s.png"): "no span was predicted",
        (*TRACE, *SENTENCE, "--errors"): "--errors: known only with --gold",
        (*TRACE, "--gold", "(S (N dog)"): "--gold:1:1: sentence 1:",
        (*TRACE, "--gold", GOLD + GOLD): "--gold: found 2 trees",
        (*TRACE, "--gold", GOLD, "--sentence", "a dog"): "--gold: its words are not those",
        (*TRACE, "--number", "3"): "--number: of which treebank?",
        (*bank, "--number", "99"): "--number 99: the split has 8 sentences",
        (*bank, *SENTENCE): "--sentence: not beside --treebank",
    })  # fmt: skip
    assert not Path("s.png").exists()


def drawn(model: str, *options: str) -> str:
    """The picture that the command writes."""
    rest = ("--sentence", "d a c b", *options, "--output", "maps/some.svg")
    result = works("model", "attention", "--model", model, *rest)
    assert (result.stdout, result.stderr) == ("", "spmrl-bench: maps/some.svg written\n")
    return Path("maps/some.svg").read_text(encoding="utf-8")


def test_attention_of_an_encoder_and_before_actions() -> None:
    save("chart", "actions")
    chosen = drawn("chart", "--layer", "0", "--head", "1")
    assert (chosen.count("layer 0, head 0"), chosen.count("layer 0, head 1")) == (0, 3)
    picture = drawn("actions")
    assert [picture.count(f">layer {layer}<") for layer in range(3)] == [1, 1, 0]
    one = drawn("actions", "--layer", "1")
    assert [one.count(f">layer {layer}<") for layer in range(2)] == [0, 1]


def test_what_attention_refuses() -> None:
    save("actions", "chart")
    rest = ("--sentence", "d a c b", "--output", "some.svg")
    attention = ("model", "attention", *rest, "--model")
    refuses({
        (*attention, "actions", "--head", "0"): "--head 0: the attention before actions has layers",
        (*attention, "chart", "--head", "7"): "--head 7: the parser's heads are 0 to 1",
        (*attention, "chart", "--output", "some.gif"): "some.gif",
    })  # fmt: skip


STUDY = """\
title = "Two parsers"
source = "A paper, table 7"
measured = "another treebank"
metric = "brackets.f1"
reference = "all"

[[rows]]
name = "all"
published = 90.0

[[rows]]
name = "no content"
limit = { content = "none" }
published = 80.0
"""


@pytest.fixture
def own(laboratory: Laboratory) -> tuple[str, ...]:
    """The arguments of a study of two rows."""
    Path("own.toml").write_text(STUDY, encoding="utf-8")
    return ("study", "run", "own.toml", "--lang", str(laboratory.recipe))


def test_a_study_prints_its_table_and_leaves_files(own: tuple[str, ...]) -> None:
    result = works(*own, "--seeds", "2", "--jobs", "2")
    assert "| no content" in result.stdout
    assert "mean and standard deviation over 2 seeds" in result.stdout
    folder = Path("results/studies")
    names = {path.name.removeprefix("own-tiny-open.") for path in folder.iterdir()}
    assert names == {"csv", "md", "tex", "png", "svg", "scores"}
    assert len(list((folder / "scores").iterdir())) == 4
    assert (folder / "own-tiny-open.md").read_text(encoding="utf-8") == result.stdout
    assert works(*own, "--seeds", "2").stdout == result.stdout


def test_studies_are_listed_and_mistakes_told_before_training(own: tuple[str, ...]) -> None:
    lines = works("study", "run").stdout.splitlines()
    assert lines[0].split() == ["study", "rows", "title", "source"]
    assert "test-time-ablation" in [line.split()[0] for line in lines[2:]]
    refuses({
        (*own, "--set", "model.layers"): "--set model.layers: expected KEY=VALUE",
        (*own, "--set", "model.encoder=lstm"): "study own, row 'no content'",
    })  # fmt: skip
    assert not Path("runs").exists()
