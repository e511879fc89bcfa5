"""Word embeddings that start from the vectors of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.vocabulary import START, STOP, UNK, Vocabulary
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.parse import Parse
from tests.builders import config
from tests.parsers.examples import loss_of

TREES = [
    parse_brackets("(S (NP (D The) (N dog)) (VP (V barks)))"),
    parse_brackets("(S (NP (D A) (N dog)) (VP (V sees) (NP (D a) (N House))))"),
]


def fresh(**changes: Any) -> ChartParser:
    torch.manual_seed(1)
    vocabulary = Vocabulary.of(map(Parse.of, TREES))
    return ChartParser.fresh(config(lexical=("word",), **changes), vocabulary)


def embeddings(parser: ChartParser) -> Tensor:
    return parser.lexical["word"].embedding.weight.detach()


def start(
    tmp_path: Path, vectors: dict[str, float], width: int | None = None, **changes: Any
) -> ChartParser:
    """A parser whose words start from vectors of one number, again and again."""
    if width is None:
        width = embeddings(fresh()).shape[1]
    path = tmp_path / "vectors.txt"
    lines = [" ".join([word, *[str(number)] * width]) for word, number in vectors.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return fresh(word_vectors=str(path), **changes)


def test_known_words_have_their_vectors_and_others_random_ones(tmp_path: Path) -> None:
    without = embeddings(fresh())
    parser = start(tmp_path, {"dog": 0.25, "house": 0.5, "never-seen": 1.0})
    rows = parser.vocabulary.word_ids
    given = {rows["dog"]: 0.25, rows["House"]: 0.5}
    found = embeddings(parser)
    for row in range(len(found)):
        expected = torch.full_like(found[row], given[row]) if row in given else without[row]
        assert torch.equal(found[row], expected), row
    assert not {UNK, START, STOP} & given.keys()


def test_of_a_limited_vocabulary_each_word_has_its_own_vector(tmp_path: Path) -> None:
    parser = start(tmp_path, {"dog": 0.25, "house": 0.5, "a": 1.0, "sees": 2.0}, max_words=3)
    rows = parser.vocabulary.word_ids
    assert list(rows) == ["The", "dog", "barks"]
    found = embeddings(parser)
    assert found[rows["dog"]].unique().tolist() == [0.25]
    same = [k for k in range(len(found)) if k != rows["dog"]]
    assert torch.equal(found[same], embeddings(fresh(max_words=3))[same])


def test_a_vector_of_its_own_goes_before_that_of_the_lower_case(tmp_path: Path) -> None:
    parser = start(tmp_path, {"a": 0.5, "A": 0.25})
    rows = parser.vocabulary.word_ids
    assert embeddings(parser)[[rows["A"], rows["a"]]].unique(dim=1).tolist() == [[0.25], [0.5]]


def test_they_are_trained_on_and_the_file_is_needed_no_more(tmp_path: Path) -> None:
    parser = start(tmp_path, dict.fromkeys((w for tree in TREES for w in tree.words), 0.25))
    loss_of(parser, TREES)
    gradient = parser.lexical["word"].embedding.weight.grad
    assert gradient.abs().sum() > 0
    torch.optim.SGD([parser.lexical["word"].embedding.weight], lr=0.1).step()
    (tmp_path / "saved").mkdir()
    parser.eval().save(tmp_path / "saved")
    words = [tree.words for tree in TREES]
    before = list(parser.parse(words))
    (tmp_path / "vectors.txt").unlink()
    loaded = load_parser(tmp_path / "saved")
    assert isinstance(loaded, ChartParser)
    assert torch.equal(embeddings(loaded), embeddings(parser))
    assert list(loaded.parse(words)) == before


def test_a_file_that_does_not_fit_is_named(tmp_path: Path) -> None:
    word = TREES[0].words[0]
    with pytest.raises(PretrainedError, match=r"vectors\.txt: the vectors have 3 numbers, but"):
        start(tmp_path, {word: 1.0}, width=3)
    with pytest.raises(PretrainedError, match=r"vectors\.txt: none of the \d+ words"):
        start(tmp_path, {"never-seen": 1.0})
    with pytest.raises(PretrainedError, match="absent"):
        fresh(word_vectors=str(tmp_path / "absent"))
