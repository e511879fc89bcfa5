"""Lexical inputs: the CharLSTM as a loop over characters, CharConcat by hand, sums of inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn.inputs import INPUTS, Boundary, Codes, LexicalModel, Tokens
from spmrl_bench.nn.inputs.characters import CharConcat, CharLSTM
from spmrl_bench.nn.vocabulary import CHAR_UNK, Vocabulary
from tests.nn import plain
from tests.nn.plain import char_lstm_of, codes_of, layout_of, randomise

FORMS = [[1, 7, 8, 9, 2], [1, 2], [1, 5, 5, 5, 5, 0, 6, 2], [1, 9, 2]]


def char_lstm(**changes: Any) -> CharLSTM:
    module = char_lstm_of(10, 3, 8, **changes)
    randomise(module, seed=6)
    return module


def test_states_of_a_width_of_their_own_are_mapped() -> None:
    module = char_lstm(d_states=6)
    for each in (module, module.double()):  # by the kernels if there are any, and by torch
        for row, form in zip(each.forms(codes_of(FORMS)), FORMS, strict=True):
            states = plain.char_lstm(each, form)
            assert states.shape == (6,)
            expected = plain.linear(each.map, states)
            torch.testing.assert_close(row.double(), expected, atol=1e-5, rtol=0)


def test_unknown_characters_start_without_direction() -> None:
    weights = char_lstm_of(10, 3, 8).embedding.weight.tolist()
    assert [any(row) for row in weights] == [k != CHAR_UNK for k in range(10)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # with kernels and without
def test_character_dropout_is_drawn_for_each_value(dtype: torch.dtype) -> None:
    """What was dropped has no gradient."""
    module, seen = char_lstm(char_dropout=0.5).to(dtype), []
    look_up = module.embedding.forward

    def watched(ids: Tensor) -> Tensor:
        result = look_up(ids)
        result.register_hook(seen.append)
        return result

    module.embedding.forward = watched
    codes = codes_of([[1, *[7] * 40, 2]] * 2)
    module.forms(codes).sum().backward()
    zero = seen[0].flatten(0, -2).eq(0)
    assert zero.float().mean().item() == pytest.approx(0.5, abs=0.1)
    assert len({tuple(row) for row in zero.tolist()}) == 8  # all that there can be
    assert torch.equal(module.eval().forms(codes), module.forms(codes))


def test_vectors_are_the_embeddings_side_by_side() -> None:
    """Of which characters see :mod:`tests.parsers.test_released_code`."""
    vocabulary = Vocabulary({}, tuple("abcdefghij"), ((),))
    module = CharConcat(CharConcat.Config(dropout=0.0), vocabulary, 32)
    forms = [Boundary.START, "abc", "dd", Boundary.STOP]
    values = torch.stack([torch.from_numpy(module.codes(form)) for form in forms])
    found = module.forms(Codes(values, torch.full((4,), 16), torch.arange(4)))
    table = module.embedding.weight
    for vector, codes in zip(found, values, strict=True):
        assert torch.equal(vector, torch.cat([table[code] for code in codes]))
    assert not table[CHAR_UNK].any()


LENGTHS = [3, 2, 4]
WORDS = torch.tensor([1, 3, 2, 1, 2, 1, 0, 3, 2])
TAGS = torch.tensor([0, 1, 2, 0, 1, 1, 2, 2, 0])
ROWS = torch.tensor([0, 1, 2, 0, 2, 0, 1, 3, 2])
VOCABULARY = Vocabulary({"a": 1}, ("a",), ((),))
RATES = {"charlstm": {"d_char": 3, "char_dropout": 0.0}}


def vectors(width: int = 8) -> Tensor:
    return torch.randn(4, width, generator=torch.Generator().manual_seed(8), dtype=torch.float64)


def lexical(*names: str, **widths: int) -> LexicalModel:
    configs = {
        name: INPUTS.get(name).Config.model_validate(
            {"dropout": 0.0, "width": widths.get(name), **RATES.get(name, {})}
        )
        for name in names
    }
    join = "concatenated" if widths else "sum"
    module = LexicalModel(configs, VOCABULARY, 8, join).double()
    randomise(module, seed=7)
    return module


def tokens(forms: Tensor | None = None) -> Tokens:
    given = {"charlstm": vectors() if forms is None else forms}
    return Tokens(layout_of(LENGTHS), WORDS, TAGS, ROWS, given)


def parts(module: LexicalModel, forms: Tensor) -> dict[str, Tensor]:
    """What each input is to give the tokens."""
    found = {"charlstm": forms[ROWS]}
    for name, ids in (("word", WORDS), ("tag", TAGS)):
        if name in module:
            found[name] = module[name].embedding.weight[ids]
    return found


def test_inputs_of_their_own_widths_stand_side_by_side() -> None:
    module = lexical("tag", "charlstm", "word", charlstm=6, word=5, tag=2)
    found = module(tokens(vectors(6)))
    assert found.shape == (9, 13)
    expected = torch.cat([parts(module, vectors(6))[name] for name in module.inputs], dim=1)
    assert torch.equal(found, expected)


def test_inputs_have_masks_and_rates_of_their_own() -> None:
    """Each mask is that of a sentence."""
    module, given = lexical("word", "charlstm"), tokens(torch.full((4, 8), 10.0).double())
    module["word"].dropout.p = 0.5
    with torch.no_grad():
        module["word"].embedding.weight.fill_(1.0)
    torch.manual_seed(0)
    # Characters are always there, words in about half of the features.
    assert module(given).unique().tolist() == [10.0, 12.0]
    module["charlstm"].dropout.p = 0.5
    found = module(given)
    assert found.unique().tolist() == [0, 2, 20, 22]
    assert all((sentence == sentence[0]).all() for sentence in found.split(LENGTHS))
    assert len({tuple(sentence[0].tolist()) for sentence in found.split(LENGTHS)}) > 1
