"""Models are found wherever they are; what is saved is what is loaded, and harm is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from spmrl_bench.errors import CheckpointError, PackageError, RecipeError
from spmrl_bench.parsing.models import identity, load_parser
from tests.builders import LEXICAL, TREES, tiny

SENTENCES = [["the", "dog", "sees", "zebras", "."], ["dogs"], ["cats", "and", "the", "house"]]
FILES = ("parser.json", "weights.safetensors")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    tiny().save(tmp_path)
    return tmp_path


@pytest.mark.parametrize("variant", LEXICAL)
def test_a_loaded_parser_is_the_saved_one(variant: str, tmp_path: Path) -> None:
    parser = tiny(lexical=LEXICAL[variant], seed=5)
    parser.save(tmp_path)
    before = torch.get_rng_state()
    again = load_parser(tmp_path, "cpu")
    assert torch.equal(torch.get_rng_state(), before), "loading draws no random numbers"
    assert (again.config, again.vocabulary) == (parser.config, parser.vocabulary)
    weights, expected = again.state_dict(), parser.state_dict()
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        assert weights[name].dtype == tensor.dtype
        assert torch.equal(weights[name], tensor), name
    assert not again.training
    sentences = [*SENTENCES, *(list(tree.words) for tree in TREES)]
    assert list(again.parse(sentences)) == list(parser.parse(sentences))


def test_saving_again_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "again"
    other.mkdir()
    load_parser(str(saved), "cpu").save(other)
    assert all((other / name).read_bytes() == (saved / name).read_bytes() for name in FILES)
    assert identity(other) == identity(saved)
    another = tmp_path / "another"
    another.mkdir()
    tiny(seed=2).save(another)
    assert identity(another) != identity(saved)


def test_a_run_folder_stands_for_its_best_parser(tmp_path: Path) -> None:
    for name, seed in (("best", 1), ("last", 2)):
        (tmp_path / name).mkdir()
        tiny(seed=seed).save(tmp_path / name)
    found = load_parser(tmp_path, "cpu").encoder.positions.weight
    assert torch.equal(found, tiny(seed=1).encoder.positions.weight)
    assert identity(tmp_path) == identity(tmp_path / "best")


def test_what_is_no_parser_is_named(saved: Path) -> None:
    empty = saved / "empty"
    empty.mkdir()
    for place in (saved / "none", empty, saved / "weights.safetensors"):
        for read in (load_parser, identity):
            with pytest.raises(CheckpointError, match=f"{place}: no trained parser here"):
                read(place)
    with pytest.raises(RecipeError, match="unknown device 'gpu'"):
        load_parser(saved, "gpu")
    (saved / "parser.json").write_text(json.dumps({"kind": "chrat"}))
    with pytest.raises(CheckpointError, match=r"parser\.json: unknown parser kind 'chrat'"):
        load_parser(saved)
    (saved / "parser.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"parser\.json: .*it names no kind"):
        load_parser(saved)
    (saved / "package.json").write_text("{}")
    with pytest.raises(PackageError, match=r"package\.json"):
        load_parser(saved)


def test_the_package_is_quick_to_import() -> None:
    code = "import sys, spmrl_bench; assert not {'torch', 'pydantic', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
