"""Whole parsers over what others have trained: trained, saved, resumed and loaded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from spmrl_bench.errors import PretrainedError, SentenceTooLongError
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.trees import Parse
from tests.builders import TREES, learn, tiny
from tests.nn import plain_elmo
from tests.nn.tiny_transformers import make
from tests.parsers.examples import trees_of
from tests.training.trainers import break_off, make_trainer, weights

pytest.importorskip("transformers", reason="the package transformers is not installed")

EXAMPLES = [Parse.of(tree) for tree in TREES]
WORDS, TAGS = [tree.words for tree in TREES], [tree.tags for tree in TREES]


def parser_over(folder: Path, **changes: Any) -> ChartParser:
    torch.manual_seed(0)
    own = {"lexical": ("transformer",), "transformer": str(folder), "layers": 1, "d_model": 64}
    return tiny(**own, **changes)


def saved(parser: ChartParser, folder: Path) -> Path:
    folder.mkdir()
    parser.save(folder)
    return folder


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The settings that name files of vectors and of a language model."""
    options, weights = plain_elmo.write_model(tmp_path)
    known = sorted({word for words in WORDS[::2] for word in words})
    lines = [f"{word} {number}.5 0.25 -1\n" for number, word in enumerate(known)]
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(lines), encoding="utf-8")
    return {"vectors": str(vectors), "elmo_options": str(options), "elmo_weights": str(weights)}


def test_a_parser_learns_from_files_and_is_loaded_with_the_same(
    tmp_path: Path, files: dict[str, str]
) -> None:
    parser = tiny(lexical=("vectors", "elmo"), elmo_dropout=0.0, layers=1, **files)
    losses = learn(parser, EXAMPLES, 30)
    assert losses[-1] < 0.8 * losses[0]
    folder = saved(parser, tmp_path / "parser")
    assert trees_of(load_parser(folder).parse(WORDS)) == trees_of(parser.parse(WORDS))
    for place in map(Path, files.values()):
        content = place.read_bytes()
        place.write_bytes(content + b"\n")
        with pytest.raises(PretrainedError, match=f"{place}: has changed since the parser"):
            load_parser(folder)
        place.unlink()
        with pytest.raises(PretrainedError, match=f"{place}: missing; the parser"):
            load_parser(folder)
        place.write_bytes(content)


@pytest.mark.parametrize(("kind", "frozen"), [("xlnet", False), ("bert", True)])
def test_a_parser_over_an_encoder_learns_and_is_loaded_with_the_same(
    kind: str, frozen: bool, tmp_path: Path
) -> None:
    folder = make(kind, tmp_path / kind, dropout=0.0)
    parser = parser_over(folder, transformer_frozen=frozen)
    module: Any = parser.lexical["transformer"]
    encoder = module.encoder.held if frozen else module.encoder
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    losses = learn(parser, EXAMPLES, 15, 0.003)
    assert losses[-1] < 0.8 * losses[0]
    found = trees_of(parser.parse(WORDS, TAGS))
    assert len(set(map(repr, found))) > 5
    changed = [name for name, each in encoder.state_dict().items() if (each != before[name]).any()]
    assert bool(changed) != frozen

    place = saved(parser, tmp_path / "saved")
    names = load_file(place / "weights.safetensors")
    assert any(".transformer.encoder." in name for name in names) != frozen
    if not frozen:
        shutil.rmtree(folder)
    assert trees_of(load_parser(place).parse(WORDS, TAGS)) == found
    if frozen:
        weight_file = folder / "model.safetensors"
        content = bytearray(weight_file.read_bytes())
        content[-1] ^= 1
        weight_file.write_bytes(content)
        with pytest.raises(PretrainedError, match=r"model\.safetensors: has changed"):
            load_parser(place)
        shutil.rmtree(folder)
        with pytest.raises(PretrainedError, match=r"model\.safetensors: missing"):
            load_parser(place)


def test_a_resumed_run_ends_as_if_never_stopped(tmp_path: Path) -> None:
    folder = make("roberta", tmp_path / "roberta")
    model: dict[str, object] = {"lexical": ["transformer"], "transformer": str(folder)}
    make_trainer(tmp_path / "whole", model=model, max_epochs=2).fit()

    break_off(tmp_path / "parts", 3, model=model, max_epochs=2)  # in the second epoch
    make_trainer(tmp_path / "parts", model=model, max_epochs=2).fit()
    for name in ("best", "last"):
        assert weights(tmp_path / "parts" / name) == weights(tmp_path / "whole" / name)
        kept = sorted(path.name for path in (tmp_path / "parts" / name / "transformer").iterdir())
        assert kept == ["config.json", "tokenizer.json", "tokenizer_config.json"]


def test_a_sentence_with_too_many_sub_words_is_refused(tmp_path: Path) -> None:
    parser = parser_over(make("bert", tmp_path / "bert", positions=10))
    assert list(parser.parse([["cats"] * 4]))
    with pytest.raises(SentenceTooLongError, match=r"5 words, which are 12 sub-words .* most 10"):
        list(parser.parse([["cats"] * 5]))
