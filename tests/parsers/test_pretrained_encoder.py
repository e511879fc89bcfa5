"""Whole parsers over pre-trained encoders: trained, saved, resumed and loaded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from spmrl_bench.errors import PretrainedError, SentenceTooLongError
from spmrl_bench.parsers import load_parser
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.trees import Parse
from tests.builders import TREES, config
from tests.nn.tiny_transformers import KINDS, make
from tests.parsers.examples import accumulate, gold_of, trees_of
from tests.training.trainers import break_off, make_trainer, weights

pytest.importorskip("transformers", reason="the package transformers is not installed")

WORDS, TAGS = [tree.words for tree in TREES], [tree.tags for tree in TREES]


def parser_over(folder: Path, **changes: Any) -> ChartParser:
    torch.manual_seed(0)
    settings = config(
        lexical=("transformer",), transformer=str(folder), layers=1, d_model=64, **changes
    )
    return ChartParser(settings, Vocabulary.of(map(Parse.of, TREES)))


def learn(parser: ChartParser, steps: int) -> None:
    indexer = parser.indexer()
    gold = [gold_of(parser, indexer, tree) for tree in TREES]
    known = {id(weight) for weight in parser.pretrained_parameters()}
    groups: list[dict[str, Any]] = [
        {"params": [weight for weight in parser.parameters() if id(weight) not in known]},
        {"params": parser.pretrained_parameters(), "lr": 0.0005},
    ]
    optimiser = torch.optim.Adam(groups, lr=0.005, betas=(0.9, 0.98))
    random = np.random.default_rng(0)
    for _ in range(steps):
        optimiser.zero_grad()
        accumulate(parser.train(), gold, indexer, random, 50)
        optimiser.step()


@pytest.mark.parametrize(
    ("kind", "frozen"), [*((kind, False) for kind in KINDS), ("bert", True), ("xlnet", True)]
)
def test_a_small_treebank_is_learnt_by_heart(kind: str, frozen: bool, tmp_path: Path) -> None:
    folder = make(kind, tmp_path / kind, dropout=0.0)
    parser = parser_over(folder, transformer_frozen=frozen)
    assert trees_of(parser.parse(WORDS, TAGS)) != TREES
    learn(parser, 100)
    assert trees_of(parser.parse(WORDS, TAGS)) == TREES  # 100 F1

    saved = tmp_path / "saved"
    saved.mkdir()
    parser.save(saved)
    names = load_file(saved / "weights.safetensors")
    assert any(name.startswith("lexical.coded.transformer.encoder.") for name in names) != frozen
    if frozen:
        assert trees_of(load_parser(saved).parse(WORDS, TAGS)) == TREES
        weight_file = folder / "model.safetensors"
        content = bytearray(weight_file.read_bytes())
        content[-1] ^= 1
        weight_file.write_bytes(content)
        with pytest.raises(PretrainedError, match=r"model\.safetensors: has changed"):
            load_parser(saved)
        shutil.rmtree(folder)
        with pytest.raises(PretrainedError, match=r"model\.safetensors: missing"):
            load_parser(saved)
    else:
        shutil.rmtree(folder)
        assert trees_of(load_parser(saved).parse(WORDS, TAGS)) == TREES


def test_training_changes_the_encoder_or_not(tmp_path: Path) -> None:
    folder = make("bert", tmp_path / "bert")
    for frozen in (False, True):
        parser = parser_over(folder, transformer_frozen=frozen)
        module: Any = parser.lexical.coded["transformer"]
        encoder = module.encoder.held if frozen else module.encoder
        before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
        learn(parser, 2)
        changed = [
            name for name, weight in encoder.state_dict().items() if (weight != before[name]).any()
        ]
        assert bool(changed) != frozen


@pytest.mark.parametrize("kind", ["roberta", "xlnet"])
def test_a_resumed_run_ends_as_if_never_stopped(kind: str, tmp_path: Path) -> None:
    folder = make(kind, tmp_path / kind)
    model: dict[str, object] = {"lexical": ["transformer"], "transformer": str(folder)}
    make_trainer(tmp_path / "whole", model=model, max_epochs=3).fit()

    break_off(tmp_path / "parts", 3, model=model, max_epochs=3)  # in the second epoch
    make_trainer(tmp_path / "parts", model=model, max_epochs=3).fit()
    for name in ("best", "last"):
        assert weights(tmp_path / "parts" / name) == weights(tmp_path / "whole" / name)
        kept = sorted(path.name for path in (tmp_path / "parts" / name / "transformer").iterdir())
        assert kept == ["config.json", "tokenizer.json", "tokenizer_config.json"]


def test_a_sentence_with_too_many_sub_words_is_refused(tmp_path: Path) -> None:
    parser = parser_over(make("bert", tmp_path / "bert", positions=10))
    assert list(parser.parse([["cats"] * 4]))
    with pytest.raises(SentenceTooLongError, match=r"5 words, which are 12 sub-words .* most 10"):
        list(parser.parse([["cats"] * 5]))
