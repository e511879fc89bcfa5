"""Inputs side by side: each has a width of its own, and the encoder reads them all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from tests.builders import TREES, config, tiny
from tests.parsers.examples import batch_of, check_learnt_and_loaded

WORDS = [tree.words for tree in TREES]
TAGS = [tree.tags for tree in TREES]
INPUTS: dict[str, Any] = {
    "lexical": ("tag", "charlstm", "word", "charconcat"),
    "join": "concatenated",
    "d_word": 7,
    "d_tag": 3,
    "d_form": 16,
}


@pytest.mark.parametrize(
    "encoder",
    [{"encoder": "lstm"}, {"encoder": "gru", "recurrent_dropout": "token"}, {"d_model": 84}],
    ids=str,
)
def test_such_a_parser_learns_and_is_loaded_again(encoder: dict[str, Any], tmp_path: Path) -> None:
    """Attention too, where the inputs fill its content."""
    parser = tiny(**{**INPUTS, **encoder})
    assert parser.config.d_content == 16 + 7 + 3 + 16
    check_learnt_and_loaded(parser, tmp_path, 30, 0.6)


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
    content = parser.lexical(batch_of(parser, indexer, [indexer.sentence(["dog"])]).tokens)
    matrix = parser.lexical["vectors"].linear.weight
    assert content.shape == (3, 9)
    torch.testing.assert_close(content[1, 4:], matrix @ torch.tensor([1.0, 2.0, 3.0]))


JOINED: dict[str, Any] = {"join": "concatenated", "encoder": "lstm"}


def test_widths_and_inputs_must_fit() -> None:
    side = {"join": "concatenated", "d_word": 8, "d_form": 10}
    for changes, message in (
        ({"d_word": 8}, "word.width is set, but the inputs are added up"),
        ({**JOINED, "d_word": 8}, "needs charlstm.width, which is not set"),
        (side, "18 wide of .* d_model = 32 has a content of 16; make"),
        ({**JOINED, **side, "layers": 0}, "18 wide .* = 32 and without layers has a content of 32"),
        ({**JOINED, "lexical": ("charconcat",), "d_form": 24}, "charconcat.width"),
        ({**JOINED, "d_word": 8, "d_form": 7}, "charlstm.width"),
        ({"join": "beside"}, "join"),
        ({"encoder": "gru", "recurrent_dropout": "word"}, "gru.masks"),
    ):
        with pytest.raises(ValidationError, match=message):
            config(**changes)
