"""What users get wrong, through the command line: one message each, and nothing harmed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app
from tests.laboratory import Laboratory

RUN = "runs/tiny-open/small-charlstm-seed1"


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def files() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def assert_refused(
    message: str,
    *arguments: str,
    stdin: str | bytes | None = None,
    answered: str = "",
    noted: bool = False,
) -> None:
    """The command fails with this message (a pattern) alone and changes no file.

    ``answered``: what it has printed by then, for the part of its input before the mistake.
    ``noted``: whether the run's folder says that it failed, and its log.
    """
    before = files()
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)  # anything else is a traceback
    assert result.stdout == answered
    # What is read may be said before it is refused; a message may go on over several lines.
    said = re.sub(r"\Ausing .* dev sentences\n", "", result.stderr)
    assert said.startswith("spmrl-bench: ")
    assert said.count("spmrl-bench: ") == 1
    assert re.search(message, said), said
    after, log = files(), Path(RUN, "log.txt")
    if noted:
        failed = next(path for path in after if path.name == "failed.json")
        assert re.search(message, json.loads(after.pop(failed))["message"])
        assert after.pop(failed.with_name("log.txt")).startswith(before.pop(log, b""))
    assert after == before


def train(laboratory: Laboratory, *arguments: str) -> tuple[str, ...]:
    return ("train", str(laboratory.recipe), "--variant", "charlstm", *arguments)


@pytest.fixture
def trained(laboratory: Laboratory) -> Laboratory:
    assert run(*train(laboratory)).exit_code == 0
    return laboratory


@pytest.mark.parametrize("command", ["train", "eval"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--variant", "charlst"), "unknown variant 'charlst'. Did you mean charlstm"),
        (("--size", "smal"), r"unknown size 'smal'. Did you mean small\?"),
        (("--track", "opne"), r"recipe elvish: unknown track 'opne'. Did you mean open\?"),
        (("--track", "spmrl"), "treebank tiny-licensed is not present\n(.*\n)*.*Ask the elves"),
        (("--treebank", "tiny-licensed"), "treebank tiny-licensed is not present"),
        (("--treebank", "tiny-opne"), "tiny-opne.*tiny-open"),
        (
            ("--treebank", "tiny-mini", "--track", "open"),
            "treebank tiny-mini is of track mini, not 'open'",
        ),
        (("--set", "train.max_epoch=3"), r"train.max_epoch: unknown key. Did you mean max_epochs"),
        (("--set", "max_epochs=3"), "setting 'max_epochs': expected model.KEY=VALUE or train.K"),
        (("--set", "train.max_epochs=-3"), "train.max_epochs: .* greater than or equal to 1; fo"),
        (("--set", "model.lexical=[]"), "the variant decides it"),
    ],
)
def test_wrong_options(
    laboratory: Laboratory, command: str, options: tuple[str, ...], message: str
) -> None:
    assert_refused(message, command, str(laboratory.recipe), *options)


@pytest.mark.parametrize(
    ("device", "message"),
    [("gpu", "unknown device 'gpu'. Allowed: auto, cpu, cuda, cuda:N"), ("cuda", "no CUDA device")],
)
def test_wrong_devices(
    trained: Laboratory, monkeypatch: pytest.MonkeyPatch, device: str, message: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert_refused(message, *train(trained, "--device", device, "--fresh"))
    assert_refused(
        message, "eval", str(trained.recipe), "--variant", "charlstm", "--device", device
    )
    assert_refused(message, "parse", "--model", RUN, "--device", device, stdin="a b\n")


def test_wrong_recipe_files(laboratory: Laboratory) -> None:
    assert_refused(r"unknown language 'elvish'", "train", "elvish")
    assert_refused("gone.toml: no such recipe file", "train", "gone.toml")
    laboratory.recipe.write_text('base = "base"\ntrian = 1\n[model\n', encoding="utf-8")
    assert_refused("elvish.toml: not valid TOML: .*line 3", *train(laboratory))
    laboratory.recipe.write_text('base = "base"\ntrian.x = 1\n', encoding="utf-8")
    assert_refused("trian: unknown key. Did you mean train", *train(laboratory))
    assert_refused("elvish.toml: treebanks: missing", *train(laboratory))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "train.mrg: found no sentence in the file"),
        ("(S (NP (DT the", r"train.mrg:1"),
        ("(S (NN a)))\n", r"train.mrg:1"),
        ("(S (NN dog))\n", "split train .*expected 40 sentences, found 1"),
        ("(S (NN \xff))\n".encode("latin-1"), "train.mrg"),
    ],
    ids=["empty", "cut", "one bracket too many", "too few", "not UTF-8"],
)
def test_wrong_treebank_files(trained: Laboratory, text: str | bytes, message: str) -> None:
    path = trained.treebanks / "tiny-open" / "train.mrg"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_refused(message, *train(trained, "--fresh"), noted=True)


def test_training_sentence_beyond_the_position_table(laboratory: Laboratory) -> None:
    message = r"a sentence of \d+ words, but .* allows 3 .*Split the sentence, or train with"
    assert_refused(message, *train(laboratory, "--set", "model.max_positions=5"), noted=True)


def test_diverging_training_is_no_traceback(laboratory: Laboratory) -> None:
    result = run(*train(laboratory, "--set", "train.learning_rate=1e6"), "--set=train.max_epochs=9")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("spmrl-bench: tiny-open charlstm (learning_rate=1000000.0, max_epochs=9")
    assert "training diverged after " in last


def test_other_settings_than_those_of_the_folder(trained: Laboratory) -> None:
    """The recipe has changed since; settings of the command line have folders of their own."""
    trained.write_recipe(["tiny-licensed", "tiny-open"], train={"max_epochs": 7})
    assert_refused("other settings: train.max_epochs is 1 there, 7 now", *train(trained))


def test_eval_before_train(laboratory: Laboratory) -> None:
    assert_refused("not trained yet; run 'spmrl-bench train'", "eval", str(laboratory.recipe))


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("tokens", "", "<standard input>: empty; expected one sentence per line"),
        (
            "tokens",
            "a " * 40 + "\n",
            "<standard input>:1: a sentence of 40 words, but .* allows 30",
        ),
        ("tokens", b"c \xff\n", "<standard input>:1: not UTF-8"),
        ("brackets", "", "<standard input>: empty; expected bracketed trees"),
        ("brackets", "(S (NN b)\n", "<standard input>:1"),
        ("brackets", f"(S {'(NN a) ' * 40})", "a sentence of 40 words"),
    ],
)
def test_wrong_sentences_to_parse(
    trained: Laboratory, form: str, text: str | bytes, message: str
) -> None:
    assert_refused(message, "parse", "--model", RUN, "--input", form, stdin=text)


def test_what_comes_before_a_sentence_too_long_is_answered(trained: Laboratory) -> None:
    result = run("parse", "--model", RUN, stdin="a b\n\n" + "a " * 40 + "\nc\n")
    assert result.exit_code == 1
    assert [len(line.split("(XX")) - 1 for line in result.stdout.splitlines()] == [2, 0]
    assert result.stderr.startswith("spmrl-bench: <standard input>:3: a sentence of 40 words")


@pytest.mark.parametrize(
    ("form", "text", "place"),
    [
        ("tokens", b"a b\nc \xff\n", "<standard input>:2: not UTF-8"),
        ("brackets", b"(S (NN a))\n(S (NN b)\n", "<standard input>:2"),
    ],
)
def test_what_comes_before_a_malformed_sentence_is_answered(
    trained: Laboratory, form: str, text: bytes, place: str
) -> None:
    first = text.split(b"\n")[0] + b"\n"
    answer = run("parse", "--model", RUN, "--input", form, stdin=first).stdout
    assert answer
    assert_refused(place, "parse", "--model", RUN, "--input", form, stdin=text, answered=answer)


def test_harmed_parsers(trained: Laboratory) -> None:
    weights = Path(RUN, "best", "weights.safetensors")
    weights.write_bytes(weights.read_bytes()[:-40])
    message = "weights.safetensors: does not fit parser.json: .*Train again"
    assert_refused(message, "parse", "--model", RUN, stdin="a b\n")
    weights.unlink()
    assert_refused("weights.safetensors: missing", "parse", "--model", RUN, stdin="a b\n")
    weights.with_name("parser.json").write_text("{}", encoding="utf-8")
    assert_refused("parser.json: not a parser desc", "parse", "--model", RUN, stdin="a b\n")
    assert_refused("no trained parser here", "parse", "--model", "gone", stdin="a b\n")


GOLD = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n"


@pytest.mark.parametrize(
    ("gold", "test", "message"),
    [
        (GOLD * 2, GOLD, "gold.mrg.*2.*1|2 .*test.mrg|1 .*2"),
        ("", GOLD, "gold.mrg"),
        (GOLD, "", "test.mrg"),
        (GOLD, "(S (NP (DT the)", r"test.mrg:1"),
        (GOLD + "(S (NN a)))\n", GOLD * 2, r"gold.mrg:2"),
    ],
    ids=["other numbers", "empty gold", "empty test", "cut test", "bracket too many"],
)
def test_wrong_files_to_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gold: str, test: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gold.mrg").write_text(gold, encoding="utf-8")
    Path("test.mrg").write_text(test, encoding="utf-8")
    assert_refused(message, "score", "gold.mrg", "test.mrg")
