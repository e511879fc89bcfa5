"""The commands disagreements and variation: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app
from spmrl_bench.treebanks.treebank import Treebank
from tests.laboratory import Laboratory

RUN = "runs/tiny-open/small-charlstm-seed1"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def works(*arguments: str | Path) -> Result:
    result = run(*arguments)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result


def fails(*arguments: str | Path) -> str:
    """The one line of what is wrong."""
    result = run(*arguments)
    assert result.exit_code == 1, result.exception
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line.removeprefix("spmrl-bench: ")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The splits whose sentences were read."""
    splits: set[str] = set()
    real = Treebank.data

    def noted(bank: Treebank, split: str, *rest: object) -> object:
        splits.add(split)
        return real(bank, split, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Treebank, "data", noted)
    return splits


def test_disagreements_of_a_run_in_all_forms(laboratory: Laboratory, opened: set[str]) -> None:
    works("train", laboratory.recipe, "--variant", "charlstm")
    opened.clear()
    text = works("disagreements", RUN, "--worst", "3").stdout
    assert text.startswith("Where tiny-open, dev, and a parser disagree\nParser: runs/tiny-open/")
    assert re.search(r"\n1\. tiny-open dev, sentence (\d) \(dev\.mrg, sentence \1\): margin", text)
    assert len(re.findall(r"^\d+\. tiny-open dev", text, re.MULTILINE)) == 3
    assert opened == {"dev"}
    for name in ("list.csv", "list.html", "list.txt"):
        result = works("disagreements", RUN, "--by", "margin", "--output", name)
        assert result.stdout == ""
        assert f"spmrl-bench: {name} written, " in result.stderr
    with open("list.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    margins: dict[str, float] = {}
    for row in rows:
        margins[row["rank"]] = max(margins.get(row["rank"], 0.0), float(row["margin"]))
    assert list(margins.values()) == sorted(margins.values(), reverse=True)
    assert Path("list.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert opened == {"dev"}
    works("disagreements", RUN, "--split", "test")
    assert opened == {"dev", "test"}
    seen = works("disagreements", RUN, "--split", "train", "--treebank", "tiny-mini")
    assert "a parser has learnt the errors in its own training sentences" in seen.stderr


def test_mistakes_of_disagreements_are_one_line(laboratory: Laboratory) -> None:
    assert fails("disagreements", "german").startswith("german: no such run folder. 'spmrl-bench")
    Path("empty").mkdir()
    assert fails("disagreements", "empty").startswith("empty: not trained yet")
    assert fails("disagreements", RUN, "--by", "size").startswith("--by: unknown by 'size'")
    assert fails("disagreements", RUN, "--output", "x.pdf").startswith("x.pdf: what is written")
    works("train", laboratory.recipe, "--variant", "charlstm")
    assert fails("disagreements", RUN, "--layer", "dependencies").startswith("--layer dependencies")
    assert fails("disagreements", RUN, "--split", "tset").startswith("unknown split 'tset'. Did")


def test_variation_in_all_forms(laboratory: Laboratory, opened: set[str]) -> None:
    path = laboratory.treebanks / "tiny-open" / "train.mrg"
    lines = path.read_text(encoding="utf-8").splitlines()
    right = "(S (NP (P so)) (VP (V runs) (NP (D the) (N dog)) (A home)))"
    lines[3] = lines[9] = right
    lines[20] = right.replace("(NP (D the) (N dog))", "(D the) (N dog)")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = works("variation", "tiny-open", "--worst", "1").stdout
    assert "1. tiny-open train, sentence 21 (train.mrg, sentence 21)" in text
    assert "2:4 is not annotated; with 5 words around it the same, 2 other places are NP" in text
    assert opened == {"train"}
    for name in ("list.csv", "list.html", "list.txt"):
        works("variation", "tiny-open", "--output", name, "--nucleus", "tags", "--context", "tags")
    assert Path("list.csv").read_text(encoding="utf-8").startswith("rank,treebank,split,sentence")
    works("variation", "tiny-open", "--of", "tags", "--fringe", "--split", "dev")
    assert opened == {"train", "dev"}


def test_mistakes_of_variation_are_one_line(laboratory: Laboratory) -> None:
    assert fails("variation", "tiny-opne").startswith("unknown treebank 'tiny-opne'. Did you mean")
    wrong = fails("variation", "tiny-open", "--of", "dependencies")
    assert wrong == "the treebank has constituents only, no dependencies"
    assert fails("variation", "tiny-open", "--context", "x").startswith(
        "--context: unknown context"
    )
    equal = fails("variation", "tiny-open", "--of", "tags", "--nucleus", "tags")
    assert equal.startswith("--of tags --nucleus tags: equal tags are equal")
