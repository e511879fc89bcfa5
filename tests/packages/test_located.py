"""Every way to name a model leads to the same parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench import load_parser
from spmrl_bench.errors import CheckpointError
from spmrl_bench.parsing.packages import located
from tests.builders import cli
from tests.packages.conftest import NAME

WORDS = ["the", "dog", "sees", "a", "ring"]


def test_the_command_and_nltk_take_a_package(packages: Path) -> None:
    from spmrl_bench.integrations.nltk_parser import NltkParser

    model = str(packages / NAME)
    expected = str(next(load_parser(model, "cpu").parse([WORDS])))
    options = ["parse", "--device", "cpu", "--model", model]
    result = cli(*options, stdin=" ".join(WORDS))
    assert (result.exit_code, result.stdout.strip()) == (0, expected), result.stderr
    assert NltkParser(model, device="cpu").parse_one(WORDS).leaves() == WORDS
    result = cli(*options, "--input", "brackets", stdin="(S (DT the) (NN dog))")
    assert result.exit_code == 0, result.stderr
    assert "(DT the)" in result.stdout


def test_what_is_not_there(tmp_path: Path) -> None:
    for name in ("nothing", "nothing/here", "spmrl_bench_nothing"):
        assert located(name) == Path(name)
        with pytest.raises(CheckpointError, match=f"{name}: no trained parser here.*@COMMIT"):
            load_parser(name, "cpu")
    (tmp_path / "model.zip").write_text("text")
    with pytest.raises(CheckpointError, match=r"model\.zip: no trained parser here \(a file"):
        load_parser(tmp_path / "model.zip", "cpu")
