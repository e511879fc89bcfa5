"""``spmrl-bench score --official``: scores that a C program confirms on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app
from tests.scoring.official_examples import (
    GOLD,
    LOSING,
    OUTPUT,
    TEST,
    TWO_LEFT_OUT,
    fake_program,
    prints,
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    for name, text in (("gold.mrg", GOLD), ("test.mrg", TEST), ("losing.mrg", LOSING)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return str(tmp_path / "gold.mrg"), str(tmp_path / "test.mrg")


@pytest.fixture
def sound(tmp_path: Path) -> str:
    return str(fake_program(tmp_path / "evalb", prints(OUTPUT)))


@pytest.fixture
def losing(tmp_path: Path) -> str:
    return str(fake_program(tmp_path / "evalb", prints(TWO_LEFT_OUT)))


def score(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["score", *arguments, "--prm", "COLLINS"])


def test_the_program_confirms(files: tuple[str, str], sound: str) -> None:
    result = score(*files, "--official", sound, "--format", "json")
    report = json.loads(result.stdout)
    assert report["all"]["f1"] == 62.5
    assert report["signature"]["scorer"].startswith("evalb(")
    assert report["signature"]["skipped"] == "0"
    assert "and our own scorer agree in every count of 3 sentences" in result.stderr
    assert score(*files, "--official", sound, "--format", "evalb").stdout == OUTPUT


def test_the_first_difference_is_reported(files: tuple[str, str], losing: str) -> None:
    result = score(*files, "--official", losing)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "first in line 5 of its output (sentence 2)" in result.stderr


def test_left_out_sentences_need_leave(files: tuple[str, str], losing: str) -> None:
    both = files[0], str(Path(files[0]).with_name("losing.mrg"))
    result = score(*both, "--official", losing)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "2 of 3 sentences cannot be scored" in result.stderr
    result = score(*both, "--official", losing, "--allow-skipped")
    assert result.exit_code == 0
    assert "LEFT OUT of every figure: 2 of 3 sentences" in result.stdout
    signature = result.stdout.splitlines()[-1].split("|")
    assert signature[0].startswith("scorer:evalb(")
    assert "skipped:2" in signature


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--official", "{}", "--missing-parse", "count"), "are for our own scorer"),
        (("--official", "{}", "--punctuation", "by-gold"), "are for our own scorer"),
        (("--official", "gone"), "gone: cannot be read: No such file"),
    ],
)
def test_options_that_mean_nothing_together(
    files: tuple[str, str], sound: str, options: tuple[str, ...], message: str
) -> None:
    result = score(*files, *(option.format(sound) for option in options))
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
