"""What make passes on, and that it ignores nothing that is given to it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.builders import ROOT
from tests.documents.command_line import make

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").exists(),
    reason="no make, or no checkout",
)


def test_options_are_passed_on() -> None:
    for arguments, commands in {
        "lang=german train eval": ["train german", "eval german"],
        "track=mini languages=german,french system=all minutes=5 train":
            ["train --track mini --languages german,french --system all --minutes 5"],
        "lang=german seeds=5 jobs=2 ensemble=1 eval":
            ["eval german --seeds 5 --jobs 2 --ensemble"],
        "lang=german variant=charlstm size=small seed=2 device=cpu treebank=x train":
            ["train german --treebank x --variant charlstm --size small --seed 2 --device cpu"],
        "track=open table": ["results table --track open"],
        "site": ["results site"],
        "model=M input=conllu parse": ["parse --model M --input conllu"],
        "gold=a test=b prm=COLLINS score": ["score a b --prm COLLINS"],
        "study=encoders treebank=x lang=german study":
            ["study run encoders --treebank x --lang german"],
        "lang=german trials=3 set=model.layers=int:1:4 search":
            ["study search german --trials 3 --set model.layers=int:1:4"],
        "recipes treebanks check":
            ["recipes list", "treebanks list", "treebanks check all"],
        "treebank=x check": ["treebanks check x"],
        "dir=D lang=german yes=1 add": ["treebanks add D --language german --yes"],
    }.items():  # fmt: skip
        status, calls, said = make(*arguments.split())
        assert (status, said) == (0, ""), arguments
        assert list(map(set, calls)) == [set(each.split()) for each in commands]
    _, calls, _ = make("lang=german", "set=model.precision=bf16 train.max_epochs=3", "train")
    assert [" ".join(call) for call in calls] == [
        "train german --set model.precision=bf16 --set train.max_epochs=3"
    ]


@pytest.mark.parametrize(
    "value", ["a;touch x", "it's", "$(touch x)", "`touch x`", "$HOME", "$$", "a b", '"', "#", "a\\",
              "a\ntouch x", "\\\\", "*", "&& touch x", "é", "$(shell touch x)", "(", "|x", ">x"],
)  # fmt: skip
def test_values_are_no_shell_text(value: str) -> None:
    command = ["make", "-s", "-C", str(ROOT), "CORE=", "BENCH=printf [%s]"]
    given = [f"lang={value}", f"variant={value}", "train"]
    environment = os.environ | {"seed": "7", "size": "small"}
    result = subprocess.run([*command, *given], capture_output=True, text=True, env=environment)
    value = value.replace("\n", " ")
    assert result.stdout == f"[train][{value}][--variant][{value}]", result.stderr
    assert not (ROOT / "x").exists()


def test_every_target_can_be_shown() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith(".PHONY:"))
    targets = line.split()[1:]
    assert {"help", "install", "test", "lint", "campaign", "docs"} <= set(targets)
    for target in {*targets} - {"same"}:  # which runs make again
        status, _, said = make(target)
        assert (status, said) == (0, ""), target


def test_what_a_target_does_not_take_is_refused() -> None:
    for arguments, said in {
        "lang=german sed=2 train": "unknown: sed. Known to train: device jobs lang languages ",
        "ensemble=1 train": "unknown: ensemble. Known to train: ",
        "lang=german table": "unknown: lang. Known to table: track treebank.",
        "lang=german recipes": "unknown: lang. Known to recipes: no variable.",
    }.items():
        status, calls, errors = make(*arguments.split())
        assert (status, calls) == (2, [])
        assert said in errors


def test_the_python_that_is_missing_is_named() -> None:
    command = ["make", "-C", str(ROOT), "VENV=unmade", "PYTHON=no-such-python", "install"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "no program 'no-such-python': install Python 3.11 or newer" in result.stderr
