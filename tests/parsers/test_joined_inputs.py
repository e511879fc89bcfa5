"""Inputs side by side: each has a width of its own, and the encoder reads them all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from tests.builders import config, tiny
from tests.parsers.examples import SIDE_BY_SIDE, batch_of, check_learnt_and_loaded


def test_attention_reads_inputs_that_fill_its_content(tmp_path: Path) -> None:
    parser = tiny(**SIDE_BY_SIDE, d_model=84)
    assert parser.config.d_content == 16 + 7 + 3 + 16
    check_learnt_and_loaded(parser, tmp_path, 30, 0.6)


def test_files_are_read_in_widths_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "some.vec"
    path.write_text("dog 1 2 3\ncat 4 5 6\n", encoding="utf-8")
    widths: dict[str, Any] = {"d_word": 4, "d_vectors": 5, "join": "concatenated", "encoder": "gru"}
    parser = tiny(lexical=("word", "vectors"), vectors=str(path), **widths).eval()
    indexer = parser.indexer()
    content = parser.lexical(batch_of(parser, indexer, [indexer.sentence(["dog"])]).tokens)
    matrix = parser.lexical["vectors"].linear.weight
    assert content.shape == (3, 9)
    torch.testing.assert_close(content[1, 4:], matrix @ torch.tensor([1.0, 2.0, 3.0]))


def test_widths_and_inputs_must_fit() -> None:
    joined: dict[str, Any] = {"join": "concatenated", "encoder": "lstm"}
    side = {"join": "concatenated", "d_word": 8, "d_form": 10}
    for changes, message in (
        ({"d_word": 8}, "word.width is set, but the inputs are added up"),
        ({**joined, "d_word": 8}, "needs charlstm.width, which is not set"),
        (side, "18 wide of .* d_model = 32 has a content of 16; make"),
        ({**joined, **side, "layers": 0}, "18 wide .* = 32 and without layers has a content of 32"),
        ({**joined, "lexical": ("charconcat",), "d_form": 24}, "charconcat.width"),
        ({**joined, "d_word": 8, "d_form": 7}, "charlstm.width"),
        ({"join": "beside"}, "join"),
        ({"encoder": "gru", "recurrent_dropout": "word"}, "gru.masks"),
    ):
        with pytest.raises(ValidationError, match=message):
            config(**changes)
