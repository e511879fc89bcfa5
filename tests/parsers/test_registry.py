"""Saved parsers: what is written is what is read, and harm is named with its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from spmrl_bench.errors import CheckpointError
from spmrl_bench.parsers import load_parser
from spmrl_bench.parsers.registry import KINDS, trained_kinds
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


TRAINED = ["chart", "biaffine", "joint", "transition"]


def test_kinds() -> None:
    assert [kind.name for kind in trained_kinds()] == TRAINED
    assert KINDS.names() == [*TRAINED, "right-branching", "attach-neighbour"]


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


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'"chart"', b"null", b"{}", b"\xff\xfe"])
def test_broken_description(saved: Path, text: bytes) -> None:
    (saved / "parser.json").write_bytes(text)
    refused(saved, str(saved / "parser.json"), "not a parser description")


@pytest.mark.parametrize("name", ["parser.json", "weights.safetensors"])
def test_a_folder_in_place_of_a_file(saved: Path, name: str) -> None:
    (saved / name).unlink()
    (saved / name).mkdir()
    refused(saved, str(saved / name))


@pytest.mark.parametrize("kind", ["shift-reduce", "Chart", "", None, 5, ["chart"], {}])
def test_unknown_kind(saved: Path, kind: Any) -> None:
    change(saved, lambda value: value.update(kind=kind))
    # The kind is looked at before the weights.
    (saved / "weights.safetensors").unlink()
    refused(saved, str(saved / "parser.json"), "unknown parser kind", str(kind), "Known: ", "chart")


def change(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Edit the description of a saved parser."""
    path = folder / "parser.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    edit(value)
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda value: value.pop("config"), "config"),
        (lambda value: value.pop("vocabulary"), "vocabulary"),
        (lambda value: value["vocabulary"].pop("labels"), "labels"),
        (lambda value: value["vocabulary"].update(labels=[]), ""),
        (lambda value: value["vocabulary"].update(words=None), ""),
        (lambda value: value["config"].pop("heads"), "heads"),
        (lambda value: value["config"].update(colour=3), "colour"),
        (lambda value: value["config"].update(d_model=33), "d_model"),
    ],
)
def test_incomplete_description(
    saved: Path, edit: Callable[[dict[str, Any]], Any], named: str
) -> None:
    change(saved, edit)
    refused(saved, str(saved / "parser.json"), "not a parser description", named)


def test_missing_weights(saved: Path) -> None:
    (saved / "weights.safetensors").unlink()
    refused(saved, f"{saved / 'weights.safetensors'}: missing")


@pytest.mark.parametrize("kept", [0, 4, 100, -1, -1000])
def test_truncated_weights(saved: Path, kept: int) -> None:
    path = saved / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    refused(saved, str(path), "does not fit parser.json", "cut short")


def rewrite(folder: Path, edit: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    """Edit the tensors of a saved parser."""
    path = folder / "weights.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    edit(tensors)
    save_file(tensors, path)


NAME = "scorer.second.weight"


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda tensors: tensors.pop(NAME), NAME),
        (lambda tensors: tensors.update({NAME: tensors[NAME][1:].clone()}), NAME),
        (lambda tensors: tensors.update({NAME: tensors[NAME].T.contiguous()}), NAME),
        (lambda tensors: tensors.update(stranger=torch.zeros(2)), "stranger"),
    ],
    ids=["missing", "too few rows", "transposed", "one too many"],
)
def test_tensors_must_be_the_declared_ones(
    saved: Path, edit: Callable[[dict[str, torch.Tensor]], Any], named: str
) -> None:
    rewrite(saved, edit)
    refused(saved, str(saved / "weights.safetensors"), "does not fit parser.json", named)


def test_weights_of_another_vocabulary_do_not_fit(saved: Path) -> None:
    change(saved, lambda value: value["vocabulary"]["words"].append(["zebra", 1]))
    refused(saved, str(saved / "weights.safetensors"), "lexical.words.weight")
