"""Saved parsers: what is written is what is read, and harm is named with its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from spmrl_bench.errors import CheckpointError
from spmrl_bench.parsers import load_parser
from tests.builders import LEXICAL, TREES, tiny

SENTENCES = [["the", "dog", "sees", "zebras", "."], ["dogs"], ["cats", "and", "the", "house"]]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    tiny().save(tmp_path)
    return tmp_path


@pytest.mark.parametrize("variant", LEXICAL)
def test_a_loaded_parser_is_the_saved_one(variant: str, tmp_path: Path) -> None:
    parser = tiny(lexical=LEXICAL[variant], seed=5)
    parser.save(tmp_path)
    again = load_parser(tmp_path, "cpu")
    assert again.config == parser.config
    assert again.vocabulary == parser.vocabulary
    weights, expected = again.state_dict(), parser.state_dict()
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        assert weights[name].dtype == tensor.dtype
        assert torch.equal(weights[name], tensor), name
    assert not again.training
    sentences = [*SENTENCES, *(list(tree.words) for tree in TREES)]
    assert list(again.parse(sentences)) == list(parser.parse(sentences))


def test_loading_draws_no_random_numbers(saved: Path) -> None:
    before = torch.get_rng_state()
    load_parser(saved, "cpu")
    assert torch.equal(torch.get_rng_state(), before)


def test_saving_again_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "again"
    other.mkdir()
    load_parser(str(saved), "cpu").save(other)
    for name in ("parser.json", "weights.safetensors"):
        assert (other / name).read_bytes() == (saved / name).read_bytes()


def test_a_run_folder_stands_for_its_best_parser(tmp_path: Path) -> None:
    for name, seed in (("best", 1), ("last", 2)):
        (tmp_path / name).mkdir()
        tiny(seed=seed).save(tmp_path / name)
    found = load_parser(tmp_path, "cpu").encoder.positions.weight
    assert torch.equal(found, tiny(seed=1).encoder.positions.weight)


def refused(folder: Path, *parts: str) -> None:
    """Loading fails with a message of one error class that holds all these parts."""
    with pytest.raises(CheckpointError) as caught:
        load_parser(folder, "cpu")
    for part in parts:
        assert part in str(caught.value)


def test_missing_folder(tmp_path: Path) -> None:
    refused(tmp_path / "none", str(tmp_path / "none"), "no trained parser here")
    refused(tmp_path, str(tmp_path), "no trained parser here")


def test_a_file_is_no_parser_folder(saved: Path) -> None:
    refused(saved / "weights.safetensors", "weights.safetensors: no trained parser here")
