"""The commands study and attention: what they print and write, and one line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app
from tests.laboratory import Laboratory

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
RUN = "runs/tiny-open/small-charlstm-seed1"
SENTENCE = ("--sentence", "the elf sees a dog")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fails(*arguments: str | Path) -> str:
    """The one line of what is wrong."""
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line.removeprefix("spmrl-bench: ")


@pytest.fixture
def own(laboratory: Laboratory) -> tuple[str, ...]:
    """The arguments of a study of two rows."""
    Path("own.toml").write_text(STUDY, encoding="utf-8")
    return ("study", "own.toml", "--lang", str(laboratory.recipe))


# study ----------------------------------------------------------------------------------


def test_scores_that_cannot_be_read_are_named_and_parsed_anew(own: tuple[str, ...]) -> None:
    sound = run(*own)
    assert sound.exit_code == 0, sound.output
    scores = Path("results/studies/scores")
    broken = sorted(scores.glob("*.json"))[0]
    broken.write_text("{", encoding="utf-8")
    strict = run(*own, "--strict")
    assert (strict.exit_code, strict.stdout) == (1, "")
    assert f"{broken}: not a score of a study: " in strict.stderr
    found = run(*own)
    assert (found.exit_code, found.stdout) == (0, sound.stdout)
    assert f"{broken}: not a score of a study: " in found.stderr
    assert "LEFT OUT: 1 file or line that cannot be read\n" in found.stderr


def test_without_a_name_the_studies_are_listed() -> None:
    lines = run("study").stdout.splitlines()
    assert lines[0].split() == ["study", "rows", "title", "source"]
    names = [line.split()[0] for line in lines[2:]]
    assert names == sorted(names)
    assert "test-time-ablation" in names


def test_a_study_prints_its_table_and_leaves_files(own: tuple[str, ...]) -> None:
    result = run(*own, "--seeds", "2", "--jobs", "2")
    assert result.exit_code == 0, result.stderr
    assert "| no content" in result.stdout
    assert "mean and standard deviation over 2 seeds" in result.stdout
    folder = Path("results/studies")
    names = {path.name.removeprefix("own-tiny-open.") for path in folder.iterdir()}
    assert names == {"csv", "md", "tex", "png", "svg", "scores"}
    assert len(list((folder / "scores").iterdir())) == 4
    assert (folder / "own-tiny-open.md").read_text(encoding="utf-8") == result.stdout
    again = run(*own, "--seeds", "2")
    assert again.stdout == result.stdout


def test_mistakes_of_a_study_are_one_line(own: tuple[str, ...]) -> None:
    assert fails("study", "encodrs").startswith("unknown study 'encodrs'. Did you mean encoders")
    assert fails("study", "encoders").startswith("name a treebank (--treebank german-mini) or a l")
    assert fails("study", "encoders", "--treebank", "tiny-mni").startswith("unknown treebank 'tiny")
    assert fails(*own, "--set", "model.layers").startswith("--set model.layers: expected KEY=VALUE")
    assert fails(*own, "--set", "model.encoder=lstm").startswith("study own, row 'no content': att")
    assert "limit: layer 5: the layers are 0 to 0" in fails(*_with_layer_five(own))
    assert not Path("runs").exists()


def _with_layer_five(own: tuple[str, ...]) -> tuple[str, ...]:
    text = STUDY.replace('content = "none"', "content = [0, 5]")
    Path("own.toml").write_text(text, encoding="utf-8")
    return own


# attention ------------------------------------------------------------------------------


@pytest.fixture
def trained(laboratory: Laboratory) -> None:
    result = run("train", laboratory.recipe, "--variant", "charlstm")
    assert result.exit_code == 0


@pytest.mark.usefixtures("trained")
def test_attention_is_drawn_in_the_format_of_the_name() -> None:
    beginnings = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for ending, beginning in beginnings.items():
        output = f"maps/some.{ending}"
        result = run("attention", "--model", RUN, *SENTENCE, "--output", output)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == ""
        assert Path(output).read_bytes().startswith(beginning)
    picture = Path("maps/some.svg").read_text(encoding="utf-8")
    assert all(f">{token}<" in picture for token in ("START", "elf", "dog", "STOP"))
    assert picture.count("layer 0, head 0") == 3


@pytest.mark.usefixtures("trained")
def test_one_part_of_one_head(tmp_path: Path) -> None:
    output = tmp_path / "some.svg"
    chosen = ("--layer", "0", "--head", "0", "--part", "position")
    result = run("attention", "--model", RUN, *SENTENCE, *chosen, "--output", output)
    assert result.exit_code == 0
    assert output.read_text(encoding="utf-8").count("layer 0, head 0") == 1


@pytest.mark.usefixtures("trained")
def test_mistakes_of_attention_are_one_line() -> None:
    whole = ("attention", "--model", RUN, *SENTENCE, "--output", "some.png")
    assert fails(*whole, "--layer", "1") == "--layer 1: the parser's layers are 0 to 0"
    assert fails(*whole, "--head", "7") == "--head 7: the parser's heads are 0 to 0"
    assert fails(*whole, "--part", "contnt").startswith("--part: unknown part 'contnt'. Did you me")
    assert fails(*whole[:-1], "some.gif").startswith("some.gif: a figure's name ends with one of .")
    assert fails(*whole[:4], "", *whole[5:]) == "a sentence without words has no attention to show"
    assert fails("attention", "--model", "none", *whole[3:]).startswith("none: no trained parser h")
    too_long = fails(*whole[:4], "elf " * 40, *whole[5:])
    assert too_long.startswith("sentence 1: a sentence of 40 words, but the parser's position ta")
    assert not Path("some.png").exists()
