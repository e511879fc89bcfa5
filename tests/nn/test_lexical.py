"""Lexical inputs: the CharLSTM as a loop over characters, and sums of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.nn.inputs import Tokens
from spmrl_bench.nn.lexical import CharLSTM, LexicalModel
from spmrl_bench.nn.ragged import Ragged
from tests.nn import plain
from tests.nn.plain import array, layout_of, randomise

FORMS = [[1, 7, 8, 9, 2], [1, 2], [1, 5, 5, 5, 5, 0, 6, 2], [1, 9, 2]]
UNKNOWN = 0


def char_lstm(dropout: float = 0.0) -> CharLSTM:
    module = CharLSTM(10, 3, 8, unknown=UNKNOWN, dropout=dropout).double()
    randomise(module, seed=6)
    return module


def table(forms: list[list[int]], fill: int = 0) -> tuple[Tensor, Tensor]:
    """Ids [longest, forms] and lengths [forms]; ``fill`` stands where no character is."""
    ids = torch.full((max(map(len, forms)), len(forms)), fill)
    for column, form in enumerate(forms):
        ids[: len(form), column] = torch.tensor(form)
    return ids, torch.tensor([len(form) for form in forms])


def test_form_vector_is_the_last_state_of_both_directions() -> None:
    module = char_lstm()
    found = module(*table(FORMS))
    for row, form in zip(array(found), FORMS, strict=True):
        np.testing.assert_allclose(row, plain.char_lstm(module, form), atol=1e-12)


@pytest.mark.parametrize("double", [True, False])  # by torch, and by the kernels if there are any
def test_states_of_a_width_of_their_own_are_mapped(double: bool) -> None:
    module = CharLSTM(10, 3, 8, unknown=UNKNOWN, dropout=0.0, d_states=6)
    randomise(module, seed=6)
    assert isinstance(module.map, nn.Linear)
    found = (module.double() if double else module)(*table(FORMS))
    for row, form in zip(array(found), FORMS, strict=True):
        states = plain.char_lstm(module, form)
        assert states.shape == (6,)
        np.testing.assert_allclose(row, array(module.map.weight) @ states, atol=1e-5)


def test_padding_is_not_read() -> None:
    module = char_lstm()
    assert torch.equal(module(*table(FORMS)), module(*table(FORMS, fill=9)))
    alone = module(*table(FORMS[1:2]))
    torch.testing.assert_close(alone[0], module(*table(FORMS))[1], atol=1e-14, rtol=0)


def test_unknown_characters_start_without_direction() -> None:
    weights = CharLSTM(10, 3, 8, unknown=4, dropout=0.0).embedding.weight.tolist()
    assert [any(row) for row in weights] == [k != 4 for k in range(10)]


def test_character_dropout_is_drawn_for_each_value() -> None:
    module = char_lstm(dropout=0.5)
    forms = [[1, 7, 7, 7, 2], [1, 7, 7, 7, 2]]
    seen: list[Tensor] = []

    def keep(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        padded, _ = nn.utils.rnn.pad_packed_sequence(inputs[0])
        seen.append(padded.detach())

    module.lstm.register_forward_pre_hook(keep)
    torch.manual_seed(0)
    module(*table(forms))
    embedded = module.embedding(table(forms)[0]).detach()
    mask = seen[0] / embedded
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    masks = {tuple(row) for row in mask[1:4].flatten(0, 1).tolist()}
    assert len(masks) > 2  # differs between characters and forms
    module.eval()(*table(forms))
    assert torch.equal(seen[1], embedded)


def test_gradient_reaches_every_part() -> None:
    module = char_lstm()
    module(*table(FORMS)).square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


# ---- sums of inputs --------------------------------------------------------------------

LENGTHS = [3, 2, 4]
WORD_IDS = torch.tensor([1, 3, 2, 1, 2, 1, 0, 3, 2])
FORM_ROWS = torch.tensor([0, 1, 2, 0, 2, 0, 1, 3, 2])


def tokens(layout: Ragged, words: Tensor = WORD_IDS) -> Tokens:
    return Tokens(layout, words, torch.zeros_like(words), FORM_ROWS)


def lexical(word: bool, char: bool, dropout: float = 0.0) -> LexicalModel:
    module = LexicalModel(
        8,
        words=4 if word else None,
        word_dropout=dropout,
        char_lstm=char_lstm() if char else None,
        form_dropout=dropout,
    ).double()
    randomise(module, seed=7)
    return module


def vectors() -> Tensor:
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(8), dtype=torch.float64)


@pytest.mark.parametrize(("word", "char"), [(True, False), (False, True), (True, True)])
def test_content_is_the_sum_of_the_chosen_inputs(word: bool, char: bool) -> None:
    module, forms = lexical(word, char), vectors()
    found = module(tokens(layout_of(LENGTHS)), forms)
    for row, word_id, form_row in zip(found, WORD_IDS.tolist(), FORM_ROWS.tolist(), strict=True):
        expected = np.zeros(8)
        if word:
            expected += array(module.words.weight)[word_id]
        if char:
            expected += array(forms)[form_row]
        np.testing.assert_allclose(array(row), expected, atol=1e-14)


def test_inputs_of_their_own_widths_stand_side_by_side() -> None:
    module = LexicalModel(
        15,
        words=4,
        word_dropout=0.0,
        char_lstm=char_lstm(),
        form_dropout=0.0,
        tags=3,
        join="concatenated",
        d_word=5,
        d_tag=2,
    ).double()
    randomise(module, seed=7)
    layout, forms = layout_of(LENGTHS), vectors()
    tags = torch.tensor([0, 1, 2, 0, 1, 1, 2, 2, 0])
    found = module(Tokens(layout, WORD_IDS, tags, FORM_ROWS), forms)
    assert (module.words.weight.shape, module.tags.weight.shape) == ((4, 5), (3, 2))
    rows = zip(found, WORD_IDS.tolist(), tags.tolist(), FORM_ROWS.tolist(), strict=True)
    for row, word, tag, form in rows:
        parts = [forms[form], module.words.weight[word], module.tags.weight[tag]]
        assert row.tolist() == [value for part in parts for value in part.tolist()]


def test_characters_alone_bring_no_word_table() -> None:
    module = lexical(word=False, char=True)
    assert all(name.startswith("char_lstm.") for name in module.state_dict())
    layout = layout_of(LENGTHS)
    forms = vectors()
    other_words = torch.zeros_like(WORD_IDS)
    assert torch.equal(module(tokens(layout), forms), module(tokens(layout, other_words), forms))


@pytest.mark.parametrize(("word", "char"), [(True, False), (False, True)])
def test_dropout_of_an_input_is_shared_by_a_sentence(word: bool, char: bool) -> None:
    module, layout, forms = lexical(word, char, dropout=0.5), layout_of(LENGTHS), vectors()
    torch.manual_seed(0)
    dropped = module(tokens(layout), forms)
    mask = dropped / module.eval()(tokens(layout), forms)
    np.testing.assert_allclose(sorted(set(array(mask).ravel().round(9))), [0, 2])
    for sentence in mask.split(LENGTHS):
        torch.testing.assert_close(sentence, sentence[:1].expand_as(sentence))
    firsts = [tuple(sentence[0].round().tolist()) for sentence in mask.split(LENGTHS)]
    assert len(set(firsts)) > 1


def test_inputs_have_masks_and_rates_of_their_own() -> None:
    module, layout = lexical(word=True, char=True), layout_of(LENGTHS)
    module.word_dropout.p = 0.5
    with torch.no_grad():
        module.words.weight.fill_(1.0)
    forms = torch.full((4, 8), 10.0, dtype=torch.float64)
    torch.manual_seed(0)
    # Characters are always there, words in about half of the features.
    found = module(tokens(layout), forms).unique()
    assert found.tolist() == [10.0, 12.0]
    module.word_dropout.p, module.form_dropout.p = 0.5, 0.5
    assert module(tokens(layout), forms).unique().tolist() == [0, 2, 20, 22]
