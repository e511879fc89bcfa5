"""What make passes on, and that it ignores nothing that is given to it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.builders import ROOT, process
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
        assert [{*call} - {"--"} for call in calls] == [set(each.split()) for each in commands]
    _, calls, _ = make("lang=german", "set=model.precision=bf16 train.max_epochs=3", "train")
    assert [" ".join(call) for call in calls] == [
        "train --set model.precision=bf16 --set train.max_epochs=3 -- german"
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the Makefile and an environment, whose programs write down what they are given,
    one after the other."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "setup.py", "constraints.txt", "it's/same"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "spmrl_bench").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("spmrl-bench", "python"):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text('#!/bin/sh\nmkdir busy || exit 9\nprintf "%s\\0" "$@" >>said\n'
                           "sleep 0.2\nrmdir busy\n")  # fmt: skip
        program.chmod(0o755)
    (tmp_path / "it's/same").chmod(0o755)
    return tmp_path


def started(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["make", "-C", str(folder), *arguments],
        env=os.environ | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


HARM = ["german;touch x", "$(shell touch x)", "`touch x`", "it's", "a  b", "$HOME", "a#b\\", "-x",
        '"$(touch x)"', "$$(touch x)", "\t|touch x&", "$(", "%", "a\ntouch x", "*", "é", ">x",
        "--fresh"]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(([f"lang={value}", "train"], ["train", "--", value.lstrip().replace("\n", " ")])
          for value in HARM),
        (["gold=a b", "test=it's", "score"], ["score", "--", "a b", "it's"]),
        (["set=a=$b;touch c=#'", "lang=x", "search"],
         ["study", "search", "--set", "a=$b;touch", "--set", "c=#'", "--", "x"]),
        (["study=a;touch x", "lang=b c", "study"],
         ["study", "run", "--lang", "b c", "--", "a;touch x"]),
        (["treebank=a'b", "check"], ["treebanks", "check", "--", "a'b"]),
        (["dir=a b", "lang=it's", "yes=;touch x", "add"],
         ["treebanks", "add", "--language", "it's", "--yes", "--", "a b"]),
        (["ensemble=$(shell touch x)", "eval"], ["eval", "--ensemble", "--"]),
        (["PYTHON=$(shell touch x)", "site"], ["results", "site"]),
        (["MEASURED=$(shell touch x)", "table"], ["results", "table"]),
    ],
)  # fmt: skip
def test_a_value_is_a_value(checkout: Path, arguments: list[str], said: list[str]) -> None:
    for stamp in (".core", ".extra-report", ".extra-search", ".extra-dev"):
        (checkout / ".venv" / stamp).touch()
    own = {"seed": "7", "set": "a=1", "treebank": "x", "yes": "1"}  # a user's own, for others
    output, _ = (process := started(checkout, *arguments, **own)).communicate()
    assert process.returncode == 0, output
    assert (checkout / "said").read_text().split("\0")[:-1] == said
    assert not (checkout / "x").exists()
    (process := started(checkout, f"BASE={arguments[0]}", "COMPAT=it's", "same")).communicate()
    assert process.returncode == 2  # there is no such commit
    assert not (checkout / "x").exists()


def test_one_make_installs_at_a_time(checkout: Path) -> None:
    """Several that begin together; and with an environment of another checkout, none."""
    for begun in [started(checkout, "install") for _ in range(3)]:
        output, _ = begun.communicate()
        assert begun.returncode == 0, output
    said = (checkout / "said").read_text()
    assert said.count("--no-build-isolation") == said.count(".extra-dev.txt") == 1
    (checkout / ".venv").rename(checkout / "other")
    (checkout / ".venv").symlink_to("other")
    os.utime(checkout / "pyproject.toml")
    output, _ = (process := started(checkout, "install")).communicate()
    assert process.returncode == 0, output
    assert (checkout / "said").read_text()[len(said) :].split("\0")[:-1] == [
        "setup.py", "--quiet", "build_ext", "--inplace",
    ]  # fmt: skip


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
    result = process("make", "-C", ROOT, "VENV=unmade", "PYTHON=no-such-python", "install")
    assert result.returncode != 0
    assert "no program 'no-such-python': install Python 3.11 or newer" in result.stderr
