"""What users get wrong, through the command line: one message each, and nothing harmed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.builders import cli, works
from tests.damage import edited, raw
from tests.laboratory import Laboratory

RUN = "runs/tiny-open/small-charlstm-seed1"
PARSE = ("parse", "--model", RUN)


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
    result = cli(*arguments, stdin=stdin)
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


def test_before_training(laboratory: Laboratory) -> None:
    recipe = str(laboratory.recipe)
    train = ("train", recipe, "--variant", "charlstm", "--set")
    for options, message in {
        "--track spmrl": "treebank tiny-licensed is not present\n(.*\n)*.*Ask the elves",
        "--treebank tiny-opne": "tiny-opne.*tiny-open",
        "--set train.max_epoch=3": "train.max_epoch: unknown key. Did you mean max_epochs",
        "--set model.heads=2147483647": "model.heads: .* than or equal to 1000; found 21474836",
        "--set model.d_char=9223372036854775807": "model.d_char: .* equal to 65536; found 92233",
        "--device gpu": "unknown device 'gpu'. Allowed",
    }.items():
        assert_refused(message, "train", recipe, *options.split())
        assert_refused(message, "eval", recipe, *options.split())
    assert_refused("not trained yet; run 'spmrl-bench train'", "eval", recipe)
    # More than any machine has: found before any of it is made.
    vast = ("model.d_kv=65536", "--set", "model.heads=1000", "--set", "model.layers=1000")
    message = r"a parser of more than [\d,]+ weights; to train one, 32 bytes of memory are"
    assert_refused(message, *train, *vast, noted=True)
    message = r"a sentence of \d+ words, but .* allows 3 .*Split the sentence, or train with"
    assert_refused(message, *train, "model.max_positions=5", noted=True)
    result = cli(*train, "train.learning_rate=1e6", "--set", "train.max_epochs=9")
    assert isinstance(result.exception, SystemExit)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("spmrl-bench: tiny-open charlstm (learning_rate=1000000.0, max_epochs=9")
    assert "training diverged after " in last


def test_with_a_trained_parser(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    train = ("train", str(laboratory.recipe), "--variant", "charlstm")
    works(*train)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for command in ((*train, "--fresh"), ("eval", *train[1:]), PARSE):
        assert_refused("no CUDA", *command, "--device", "cuda", stdin="a b\n")
    # Settings of the command line have folders of their own, those of the recipe have not.
    laboratory.write_recipe(["tiny-licensed", "tiny-open"], train={"max_epochs": 7})
    assert_refused("other settings: train.max_epochs is 1 there, 7 now", *train)
    # What comes before the mistake is answered, and only that.
    for form, first, wrong, message in (
        ("tokens", b"", b"", "<standard input>: empty; expected one sentence per line"),
        ("brackets", b"", b"(S " + b"(NN a) " * 40 + b")", "a sentence of 40 words"),
        ("tokens", b"a b\n", b"c \xff\n", "<standard input>:2: not UTF-8"),
        ("tokens", b"a b\n\n", b"a " * 40, "<standard input>:3: a sentence of 40 words, but .*"),
        ("brackets", b"(S (NN a))\n", b"(S (NN b)\n", "<standard input>:2"),
    ):
        options = (*PARSE, "--input", form)
        answer = works(*options, stdin=first).stdout if first else ""
        assert bool(answer) == bool(first)
        assert_refused(message, *options, stdin=first + wrong, answered=answer)
    for harm, message in (
        (raw("weights.safetensors", lambda data: data[:-40]), "does not fit parser.json: .*T"),
        (lambda best: (best / "weights.safetensors").unlink(), "weights.safetensors: missing"),
        (edited("parser.json", lambda content: content.clear()), "parser.json: not a parser desc"),
    ):
        harm(Path(RUN, "best"))
        assert_refused(message, *PARSE, stdin="a b\n")
    assert_refused("no trained parser here", "parse", "--model", "gone", stdin="a b\n")
