"""Ragged layouts and the dropout that is shared by all tokens of a sentence."""

from __future__ import annotations

import torch

from spmrl_bench.nn.ragged import SentenceDropout
from tests.nn.plain import layout_of

LENGTHS = [3, 1, 5, 2]


def test_rows_know_their_sentence_and_place() -> None:
    layout = layout_of([2, 1, 3])
    assert layout.sentence.tolist() == [0, 0, 1, 2, 2, 2]
    assert layout.position.tolist() == [0, 1, 0, 0, 1, 2]
    assert (layout.lengths.tolist(), layout.longest) == ([2, 1, 3], 3)


def test_each_token_is_padded_into_the_row_of_its_sentence() -> None:
    layout = layout_of([2, 1, 3])
    rows = torch.arange(1.0, 7.0)[:, None]
    padded = layout.pad(rows)
    assert padded.squeeze(2).tolist() == [[1, 2, 0], [3, 0, 0], [4, 5, 6]]
    assert torch.equal(padded.squeeze(2) > 0, layout.mask)
    larger = layout.pad(rows, 4, 5)
    assert larger.shape == (4, 5, 1)
    assert torch.equal(larger[:3, :3], padded)
    for rectangle in (padded, larger):
        assert torch.equal(layout.unpad(rectangle), rows)


def test_words_lie_between_start_and_stop() -> None:
    assert layout_of([3, 5, 2, 4]).words.tolist() == [1, 4, 5, 6, 11, 12]


def test_all_tokens_of_a_sentence_share_one_mask_there_and_back() -> None:
    layout, rows = layout_of(LENGTHS), torch.ones(sum(LENGTHS), 200, requires_grad=True)
    dropped = SentenceDropout(0.5)(rows, layout)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    masks = [sentence[0] for sentence in dropped.split(LENGTHS)]
    assert torch.equal(dropped, torch.stack(masks)[layout.sentence])
    assert len({tuple(mask.tolist()) for mask in masks}) == len(LENGTHS)
    assert torch.equal(torch.autograd.grad(dropped.sum(), rows)[0], dropped)
    assert not torch.equal(SentenceDropout(0.5)(rows, layout), dropped)  # a new one
    # It is the identity outside training and without a rate.
    assert torch.equal(SentenceDropout(0.9).eval()(rows, layout), rows)
    assert torch.equal(SentenceDropout(0.0)(rows, layout), rows)
