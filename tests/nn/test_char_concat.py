"""CharConcat: the first and the last eight characters of a word, by hand."""

from __future__ import annotations

from typing import Any

import torch

from spmrl_bench.nn.inputs import Boundary, Codes
from spmrl_bench.nn.inputs.characters import CharConcat
from spmrl_bench.nn.vocabulary import CHAR_UNK, Vocabulary

VOCABULARY = Vocabulary({}, tuple("abcdefghij"), ((),))
IDS = {**VOCABULARY.character_ids, "?": CHAR_UNK, "<": 1, ">": 2, "S": 3, "E": 4}


def concat(width: int = 32, **changes: Any) -> CharConcat:
    return CharConcat(CharConcat.Config(**{"dropout": 0.0, **changes}), VOCABULARY, width)


def test_first_characters_then_last_ones_backwards() -> None:
    """``<`` and ``>`` are the marks of a word, ``?`` is unknown."""
    cases: dict[str | Boundary, str] = {
        "abc": "abc>>>>>" + "cba<<<<<",
        "abcdefgh": "abcdefgh" + "hgfedcba",
        "abcdefghij": "abcdefgh" + "jihgfedc",
        "a": "a>>>>>>>" + "a<<<<<<<",
        "xbx": "?b?>>>>>" + "?b?<<<<<",
        Boundary.START: "SSSSSSSS" + "SSSSSSSS",
        Boundary.STOP: "EEEEEEEE" + "EEEEEEEE",
    }
    spelt = {**cases, Boundary.START: "SSS>>>>>SSS<<<<<", Boundary.STOP: "EEE>>>>>EEE<<<<<"}
    for boundaries, expected in (("copies", cases), ("spelt", spelt)):
        module = concat(boundaries=boundaries)
        found = {form: module.codes(form).tolist() for form in cases}
        assert found == {form: [IDS[one] for one in text] for form, text in expected.items()}


def test_vectors_are_the_embeddings_side_by_side() -> None:
    module = concat()
    forms = [Boundary.START, "abc", "dd", Boundary.STOP]
    values = torch.stack([torch.from_numpy(module.codes(form)) for form in forms])
    found = module.forms(Codes(values, torch.full((4,), 16), torch.arange(4)))
    table = module.embedding.weight
    for vector, codes in zip(found, values, strict=True):
        assert torch.equal(vector, torch.cat([table[code] for code in codes]))
    assert not table[CHAR_UNK].any()
