"""Inputs side by side: each has a width of its own, and the encoder reads them all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from spmrl_bench.parsers.arithmetic import forward_products
from spmrl_bench.parsers.batches import Indexer, Sentence
from spmrl_bench.parsers.chart_parser import ChartParser
from tests.builders import TREES, config, tiny
from tests.parsers.examples import batch_of, check_learnt_and_loaded, gold_of

WORDS = [tree.words for tree in TREES]
TAGS = [tree.tags for tree in TREES]
INPUTS: dict[str, Any] = {
    "lexical": ("tag", "charlstm", "word", "charconcat"),
    "join": "concatenated",
    "d_word": 7,
    "d_tag": 3,
    "d_form": 16,
}


def by_hand(parser: ChartParser, indexer: Indexer, sentence: Sentence, forms: Tensor) -> Tensor:
    """The inputs of the tokens of a sentence, one number after the other."""
    lexical, rows = parser.lexical, []
    (concat,) = lexical.coded.values()
    for token, vector in enumerate(forms):
        word, tag, form = sentence.words[token], sentence.tags[token], sentence.forms[token]
        parts = [vector, lexical.words.weight[word], lexical.tags.weight[tag]]
        codes = indexer.codes(np.array([form]), parser.device)["charconcat"].values[0]
        parts += [concat.embedding.weight[code] for code in codes]
        rows.append([value for part in parts for value in part.tolist()])
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_first_layer_reads_the_inputs_side_by_side(cell: str) -> None:
    parser = tiny(**INPUTS, encoder=cell, layers=1).double().eval()
    assert parser.config.d_content == 16 + 7 + 3 + 16
    indexer = parser.indexer()
    sentence = gold_of(parser, indexer, TREES[2])
    batch, forms = batch_of(parser, indexer, [sentence])
    vectors = parser.form_vectors(indexer, np.array(forms))
    assert vectors.shape[1] == 16
    content = by_hand(parser, indexer, sentence, vectors)
    assert torch.equal(parser.lexical(batch.tokens, vectors), content)
    found = parser.encode(batch, vectors)
    # The matrix of the layer in blocks of columns, one for each input.
    (layer,) = parser.encoder.layers
    blocks = layer.weight_ih_l0.split([16, 7, 3, 16], dim=1)
    parts = content.split([16, 7, 3, 16], dim=1)
    given = sum(part @ block.T for part, block in zip(parts, blocks, strict=True))
    torch.testing.assert_close(given, content @ layer.weight_ih_l0.T)
    forward, backward = layer(content[None])[0][0].chunk(2, dim=1)
    torch.testing.assert_close(found[:, 0::2], forward, atol=1e-12, rtol=0)
    torch.testing.assert_close(found[:, 1::2], backward, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    "encoder",
    [{"encoder": "lstm"}, {"encoder": "gru", "recurrent_dropout": "token"}, {"d_model": 84}],
    ids=str,
)
def test_such_a_parser_learns_and_is_loaded_again(encoder: dict[str, Any], tmp_path: Path) -> None:
    """Attention too, where the inputs fill its content."""
    check_learnt_and_loaded(tiny(**{**INPUTS, **encoder}), tmp_path, 30, 0.6)


def test_files_are_read_in_widths_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "some.vec"
    path.write_text("dog 1 2 3\ncat 4 5 6\n", encoding="utf-8")
    parser = tiny(
        lexical=("word", "vectors"),
        vectors=str(path),
        encoder="gru",
        join="concatenated",
        d_word=4,
        d_vectors=5,
    ).eval()
    indexer = parser.indexer()
    batch, _ = batch_of(parser, indexer, [indexer.sentence(["dog"])])
    content = parser.lexical(batch.tokens, torch.empty(0, 0))
    matrix = parser.lexical.coded["vectors"].linear.weight
    assert content.shape == (3, 9)
    torch.testing.assert_close(content[1, 4:], matrix @ torch.tensor([1.0, 2.0, 3.0]))


def test_arithmetic_counts_the_width_of_the_first_layer() -> None:
    """Each direction of a layer has gates of half the width, from the input and from the state."""

    def products(**changes: Any) -> int:
        return forward_products(config(lexical=("word", "tag"), **changes), 4, [5], 0)

    side_by_side = {"join": "concatenated", "d_word": 30, "d_tag": 10}
    for cell, gates in (("lstm", 4), ("gru", 3)):
        without = products(encoder=cell, layers=0)
        layers = [
            products(encoder=cell, layers=count, **side_by_side) - without for count in (1, 2)
        ]
        first, second = 7 * 2 * gates * 16 * (40 + 16), 7 * 2 * gates * 16 * (32 + 16)
        assert layers == [first, first + second]
        assert products(encoder=cell, layers=2) - without == 2 * second


JOINED: dict[str, Any] = {"join": "concatenated", "encoder": "lstm"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_word": 8}, "d_word is set, but the inputs are added up"),
        ({"d_form": 8}, "d_form is set, but the inputs are added up"),
        ({**JOINED, "d_word": 8}, r"needs model\.d_form, the width of the input 'charlstm'"),
        ({**JOINED, "d_form": 8}, r"needs model\.d_word, the width of the input 'word'"),
        (
            {**JOINED, "d_word": 8, "d_form": 8, "d_tag": 8},
            "d_tag is set, but the input 'tag' is not in lexical",
        ),
        (
            {"join": "concatenated", "d_word": 8, "d_form": 10},
            "18 wide of the inputs word, charlstm, but .* d_model = 32 has one of 16; make",
        ),
        (
            {**JOINED, "layers": 0, "d_word": 8, "d_form": 10},
            "18 wide, but there are no layers to make tokens of d_model = 32 of it",
        ),
        (
            {**JOINED, "lexical": ("charconcat",), "d_form": 24},
            "needs a width that 16 divides, and d_form is 24",
        ),
        ({**JOINED, "d_word": 8, "d_form": 7}, "d_form"),
        ({"join": "beside"}, "join"),
        ({"recurrent_dropout": "token"}, "does not read it; only 'lstm' and 'gru' can"),
        ({"encoder": "gru", "recurrent_dropout": "word"}, "recurrent_dropout"),
    ],
)
def test_widths_and_inputs_must_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**changes)
