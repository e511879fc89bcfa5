"""CharConcat: the first and the last eight characters of a word, by hand."""

from __future__ import annotations

import pytest
import torch

from spmrl_bench.nn.char_concat import Alphabet, CharConcat
from spmrl_bench.nn.inputs import Boundary, Codes
from tests.nn.plain import layout_of

UNKNOWN, WORD_START, WORD_STOP, START, STOP = range(5)
ALPHABET = Alphabet(
    ids={character: number for number, character in enumerate("abcdefghij", start=5)},
    size=15,
    unknown=UNKNOWN,
    word_start=WORD_START,
    word_stop=WORD_STOP,
    start=(START,) * 3,
    stop=(STOP,) * 3,
)


def spelt(text: str) -> list[int]:
    """Numbers of letters; ``<`` and ``>`` are the marks of a word, ``?`` is unknown."""
    marks = {"<": WORD_START, ">": WORD_STOP, "?": UNKNOWN, "S": START, "E": STOP}
    return [marks.get(character) or ALPHABET.ids.get(character, UNKNOWN) for character in text]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("abc", "abc>>>>>" + "cba<<<<<"),
        ("abcdefgh", "abcdefgh" + "hgfedcba"),
        ("abcdefghij", "abcdefgh" + "jihgfedc"),
        ("a", "a>>>>>>>" + "a<<<<<<<"),
        ("xbx", "?b?>>>>>" + "?b?<<<<<"),
        (Boundary.START, "SSSSSSSS" + "SSSSSSSS"),
        (Boundary.STOP, "EEEEEEEE" + "EEEEEEEE"),
    ],
)
def test_first_characters_then_last_ones_backwards(form: str | Boundary, expected: str) -> None:
    module = CharConcat(ALPHABET, 32, dropout=0.0)
    assert module.codes(form).tolist() == spelt(expected)


def test_start_and_stop_may_be_spelt_as_for_the_charlstm() -> None:
    module = CharConcat(ALPHABET, 32, dropout=0.0, boundaries="spelt")
    assert module.codes(Boundary.START).tolist() == spelt("SSS>>>>>SSS<<<<<")
    assert module.codes(Boundary.STOP).tolist() == spelt("EEE>>>>>EEE<<<<<")


def test_vectors_are_the_embeddings_side_by_side() -> None:
    module = CharConcat(ALPHABET, 32, dropout=0.0)
    forms = [Boundary.START, "abc", "dd", Boundary.STOP]
    values = torch.stack([torch.from_numpy(module.codes(form)) for form in forms])
    rows = torch.tensor([0, 2, 1, 2, 3])
    found = module(Codes(values, torch.full((4,), 16), rows), layout_of([5]))
    table = module.embedding.weight
    for vector, row in zip(found, rows.tolist(), strict=True):
        expected = torch.cat([table[code] for code in module.codes(forms[row]).tolist()])
        assert torch.equal(vector, expected)
    assert not table[UNKNOWN].any()


def test_dropout_is_shared_by_a_sentence() -> None:
    torch.manual_seed(1)
    module = CharConcat(ALPHABET, 160, dropout=0.5).train()
    values = torch.from_numpy(module.codes("abcdefghij"))[None]
    rows = torch.zeros(6, dtype=torch.int64)
    found = module(Codes(values, torch.tensor([16]), rows), layout_of([3, 3]))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[2], found[3])


def test_width_must_be_divisible() -> None:
    with pytest.raises(ValueError, match="a width of 40 cannot be divided by 16"):
        CharConcat(ALPHABET, 40, dropout=0.0)
