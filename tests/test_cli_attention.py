"""The command attention for a parser that writes actions; for others see test_cli_study."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app
from tests.parsers import examples
from tests.parsers.test_transition_parser import crossing, parser_of

SENTENCE = ("--sentence", "d a c b")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fails(*arguments: str | Path) -> str:
    """The one line of what is wrong."""
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line.removeprefix("spmrl-bench: ")


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of parsers that write actions, over two encoders, and of one that does not."""
    monkeypatch.chdir(tmp_path)
    for name, parser in (
        ("actions", parser_of(crossing())),
        ("attending", parser_of(crossing(), encoder="attention", max_positions=20)),
        ("chart", examples.parser_of()),
    ):
        Path(name).mkdir()
        parser.save(Path(name))


def whole(model: str, output: str = "some.svg") -> tuple[str, ...]:
    return ("attention", "--model", model, *SENTENCE, "--output", output)


def test_a_parser_that_writes_actions_is_asked_for_them() -> None:
    result = run(*whole("actions"))
    assert result.exit_code == 0, result.stderr
    assert (result.stdout, result.stderr) == ("", "spmrl-bench: some.svg written\n")
    picture = Path("some.svg").read_text(encoding="utf-8")
    assert "Attention before each action" in picture
    assert picture.count(">SHIFT<") == 4
    assert all(picture.count(f">{word}<") == 2 for word in "abcd")
    assert [picture.count(f">layer {layer}<") for layer in range(3)] == [1, 1, 0]
    one = run(*whole("actions"), "--layer", "1", "--of", "actions")
    assert one.exit_code == 0
    picture = Path("some.svg").read_text(encoding="utf-8")
    assert [picture.count(f">layer {layer}<") for layer in range(2)] == [0, 1]


def test_its_encoder_is_shown_if_asked_for() -> None:
    assert run(*whole("attending", "actions.svg")).exit_code == 0
    result = run(*whole("attending"), "--of", "encoder", "--head", "1")
    assert result.exit_code == 0, result.stderr
    picture = Path("some.svg").read_text(encoding="utf-8")
    assert "START" in picture
    assert "layer 0, head 1" in picture
    assert "SHIFT" not in picture
    assert "SHIFT" in Path("actions.svg").read_text(encoding="utf-8")
    assert run(*whole("chart"), "--of", "encoder").exit_code == 0


def test_mistakes_are_one_line() -> None:
    given = whole("actions")
    for name, value in (("head", "0"), ("part", "content")):
        assert fails(*given, f"--{name}", value) == (
            f"--{name} {value}: the attention before actions has layers, but no {name}s. Leave "
            f"--{name} out, or ask for the attention of the encoder (--of encoder)"
        )
    assert fails(*given, "--layer", "2") == "--layer 2: the parser's layers are 0 to 1"
    assert fails(*given, "--of", "acts").startswith("--of: unknown of 'acts'. Did you mean action")
    assert fails(*given, "--of", "encoder").startswith("the parser has no attention that could be")
    assert fails(*whole("chart"), "--of", "actions").startswith("a parser of kind chart writes no ")
    assert fails(*whole("actions", "a.gif")).startswith("a.gif: a figure's name ends with one of .")
    assert fails(*given[:4], "", *given[5:]) == "a sentence without words has no attention to show"
    assert fails(*given[:4], "a b " * 150, *given[5:]).startswith("the figure would be ")
    assert fails(*given, "--tags", "T T").startswith("4 words but 2 tags")
    assert not Path("some.svg").exists()
