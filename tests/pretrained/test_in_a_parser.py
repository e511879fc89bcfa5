"""Parsers that read published files: trained, saved, and loaded beside the same files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from spmrl_bench.errors import PretrainedError
from spmrl_bench.parsers import load_parser
from spmrl_bench.parsers.chart_parser import ChartParser
from tests.builders import TREES, tiny
from tests.nn import plain_elmo
from tests.parsers.examples import accumulate, gold_of

WORDS = [tree.words for tree in TREES]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The settings that name files of vectors and of a language model."""
    options, weights = plain_elmo.write_model(tmp_path)
    known = sorted({word for words in WORDS[::2] for word in words})
    lines = [f"{word} {number}.5 0.25 -1\n" for number, word in enumerate(known)]
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(lines), encoding="utf-8")
    return {"vectors": str(vectors), "elmo_options": str(options), "elmo_weights": str(weights)}


def trained(
    files: dict[str, str], *lexical: str, steps: int = 100
) -> tuple[ChartParser, list[float]]:
    """A parser after a few steps on the trees, and its loss before each."""
    used = {key: value for key, value in files.items() if key.split("_")[0] in lexical}
    parser = tiny(lexical=lexical, elmo_dropout=0.0, **used).train()
    optimiser = torch.optim.Adam(parser.parameters(), lr=0.01)
    indexer = parser.indexer()
    gold = [gold_of(parser, indexer, tree) for tree in TREES]
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        random = np.random.default_rng(0)
        losses.append(accumulate(parser, gold, indexer, random, 10_000))
        optimiser.step()
    return parser.eval(), losses


@pytest.mark.parametrize("lexical", [("elmo",), ("vectors", "charlstm"), ("vectors", "elmo")])
def test_a_parser_learns_from_the_files_and_is_loaded_with_them(
    tmp_path: Path, files: dict[str, str], lexical: tuple[str, ...]
) -> None:
    parser, losses = trained(files, *lexical)
    assert losses[-1] < losses[0] / 2
    folder = tmp_path / "parser"
    folder.mkdir()
    parser.save(folder)
    expected = [str(tree) for tree in parser.parse(WORDS)]
    assert [str(tree) for tree in load_parser(folder).parse(WORDS)] == expected


@pytest.mark.parametrize("key", ["vectors", "elmo_options", "elmo_weights"])
def test_other_files_are_refused(tmp_path: Path, files: dict[str, str], key: str) -> None:
    parser, _ = trained(files, "vectors", "elmo", steps=1)
    folder = tmp_path / "parser"
    folder.mkdir()
    parser.save(folder)
    path = Path(files[key])
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(PretrainedError, match="has changed since the parser"):
        load_parser(folder)
    path.unlink()
    with pytest.raises(PretrainedError, match="missing; the parser"):
        load_parser(folder)
