"""The kernels of the decoder's steps in a search against single steps in float64."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn.kernels.decoder import BeamDecoder
from spmrl_bench.nn.scorers.actions import ActionDecoder, Stacks, StepwiseDecoder
from tests.twins import assert_same_with_threads, needs_kernel

pytestmark = needs_kernel("decoder")

ACTIONS, D_WORDS, D_STATE, D_ATTENTION = 7, 21, 19, 37
#: Sentences that each step asks about.
SENTENCES = (3, 3, 2, 2, 1)


def decoder(layers: int, attentions: int, *, pushed: bool = True) -> ActionDecoder:
    torch.manual_seed(layers)
    config = ActionDecoder.Config(
        d_hidden=D_STATE, layers=layers, d_action=5, d_attention=D_ATTENTION, dropout=0.3,
        attention_layers=attentions, pushed_words=pushed,
    )  # fmt: skip
    return ActionDecoder(config, D_WORDS, ACTIONS).eval()


def given(words: int, width: int) -> tuple[Tensor, list[tuple[Tensor, Tensor, Stacks]]]:
    """Words, and for each step the actions before, the parents and the stacks."""
    generator = torch.Generator().manual_seed(words)
    steps = []
    for number, count in enumerate(SENTENCES):
        shape = count, width, words
        removed = torch.rand(shape, generator=generator) < 0.5
        removed &= ~removed.all(dim=2, keepdim=True)
        pushed = (torch.rand(shape, generator=generator) < 0.5).float()
        last = torch.randint(ACTIONS, (count * width,), generator=generator)
        of_beam = torch.randint(width, (count, width), generator=generator)
        parents = (of_beam + width * torch.arange(count)[:, None]).flatten()
        last = last if number else torch.full_like(last, ACTIONS)
        steps.append((last, parents, Stacks(pushed, removed)))
    return torch.randn(3, words, D_WORDS, generator=generator), steps


@torch.no_grad()
def scores(own: ActionDecoder, words: int, width: int, dtype: torch.dtype | None) -> list[Tensor]:
    """Of all steps, in float64 where no type of products is given."""
    rows, steps = given(words, width)
    if dtype is None:
        own = copy.deepcopy(own).double()
        exact = StepwiseDecoder(own, own.attention.sources(rows.double()))
        return [
            exact.step(last, parents, Stacks(stacks.pushed.double(), stacks.removed))
            for last, parents, stacks in steps
        ]
    search = BeamDecoder(own, own.attention.sources(rows), dtype)
    return [search.step(*step) for step in steps]


SHAPES = [(1, 1, True), (2, 1, True), (1, 3, True), (3, 3, False)]


def test_scores_are_those_of_single_steps() -> None:
    for layers, attentions, pushed in SHAPES:
        own = decoder(layers, attentions, pushed=pushed)
        for words, width in ((7, 1), (7, 4), (1, 3), (19, 2)):
            exact = scores(own, words, width, None)
            for dtype, closeness in ((torch.float32, 1e-6), (torch.bfloat16, 2e-2)):
                for found, expected in zip(scores(own, words, width, dtype), exact, strict=True):
                    assert found.dtype == torch.float32
                    error = (found - expected).norm() / expected.norm()
                    assert 0 < error < closeness, (words, width, dtype)


@pytest.mark.parametrize(("layers", "attentions", "pushed"), SHAPES)
def test_threads_change_nothing(layers: int, attentions: int, pushed: bool) -> None:
    own = decoder(layers, attentions, pushed=pushed)
    assert_same_with_threads(lambda: scores(own, 7, 8, torch.float32))
