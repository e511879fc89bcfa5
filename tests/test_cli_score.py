"""What ``score`` says of sentences that it cannot compare."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app

GOLD = [f"(S (NP (NN dog{n}) (, ,) (NN cat)) (VP (V barks)) (. .))" for n in range(30)]


@pytest.fixture
def score(tmp_path: Path) -> object:
    def score(gold: list[str], test: list[str], *options: str) -> Result:
        for name, lines in (("gold", gold), ("test", test)):
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        files = (str(tmp_path / "gold"), str(tmp_path / "test"))
        return CliRunner().invoke(app, ["score", *files, *options])

    return score


def untagged(line: str) -> str:
    for tag in ("NN", ",", "V", "."):
        line = line.replace(f"({tag} ", "(XX ")
    return line


def test_parses_without_tags_lose_no_sentence(score: object) -> None:
    found = score(GOLD, list(map(untagged, GOLD)), "--prm", "COLLINS")  # type: ignore[operator]
    assert found.exit_code == 0, found.output
    assert "the file of parses has no tags (XX): punctuation is removed where gold" in found.stderr
    assert "LEFT OUT" not in found.stdout
    assert "|punctuation:by-gold|" in found.stdout
    assert ["F1", "100.00", "100.00"] in [line.split() for line in found.stdout.splitlines()]
    other = score(list(map(untagged, GOLD)), GOLD, "--prm", "COLLINS")  # type: ignore[operator]
    assert "gold has no tags (XX)" in other.stderr


def test_whose_tags_decide_can_still_be_said(score: object) -> None:
    found = score(GOLD, list(map(untagged, GOLD)), "--prm", "COLLINS", "--punctuation", "by-tag")  # type: ignore[operator]
    assert found.exit_code == 1
    assert "LEFT OUT of every figure: 30 of 30 sentences" in found.stdout
    assert "30 of 30 sentences are in no figure, more than a twentieth" in found.stderr


@pytest.mark.parametrize(("broken", "status"), [(1, 0), (2, 1)])
def test_a_score_without_a_twentieth_is_none(score: object, broken: int, status: int) -> None:
    test = [line.replace("cat", "c\\/t") if n < broken else line for n, line in enumerate(GOLD)]
    found = score(GOLD, test)  # type: ignore[operator]
    assert found.exit_code == status
    assert "sentence 1: word 3 is 'cat' in gold, 'c\\/t' in the parse" in found.stderr
    allowed = score(GOLD, test, "--allow-skipped")  # type: ignore[operator]
    assert allowed.exit_code == 0
    assert f"LEFT OUT of every figure: {broken} of 30 sentences" in allowed.stdout


def test_words_that_are_too_many_are_shown(score: object) -> None:
    test = [GOLD[0].replace("(V barks)", "(V barks) (V loud)"), *GOLD[1:]]
    found = score(GOLD, test)  # type: ignore[operator]
    assert (
        "sentence 1: 5 words to compare in gold, 6 in the parse; word 5 is '.' in gold, 'loud' in "
        "the parse"
    ) in found.stderr
