"""The kernels of the decoder's steps in a search against single steps in float64."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import fused_search, kernels
from spmrl_bench.nn.action_decoder import ActionDecoder, Search
from spmrl_bench.nn.fused_search import FusedSearch
from spmrl_bench.nn.stack_attention import Sources, StackAttention, Stacks

pytestmark = pytest.mark.skipif(kernels.load("_decoder") is None, reason="kernels not built")

ACTIONS, D_WORDS, D_STATE, D_ATTENTION = 7, 21, 19, 37
#: Sentences that each step asks about.
SENTENCES = (3, 3, 2, 2, 1)


def decoder(layers: int, attentions: int, *, pushed: bool = True) -> ActionDecoder:
    torch.manual_seed(layers)
    attention = StackAttention(D_WORDS, D_STATE, D_ATTENTION, attentions, pushed=pushed)
    return ActionDecoder(attention, ACTIONS, 5, D_STATE, layers, 0.3).eval()


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
        exact = Search(own, own.attention.sources(rows.double()))
        return [
            exact.step(last, parents, Stacks(stacks.pushed.double(), stacks.removed))
            for last, parents, stacks in steps
        ]
    search = own.search(own.attention.sources(rows), dtype)
    assert isinstance(search, FusedSearch)
    return [search.step(*step) for step in steps]


SHAPES = [(1, 1, True), (2, 1, True), (1, 3, True), (3, 3, False)]


@pytest.mark.parametrize(("layers", "attentions", "pushed"), SHAPES)
@pytest.mark.parametrize(("words", "width"), [(7, 1), (7, 4), (1, 3), (19, 2)])
def test_scores_are_those_of_single_steps(
    layers: int, attentions: int, pushed: bool, words: int, width: int
) -> None:
    own = decoder(layers, attentions, pushed=pushed)
    pairs = zip(
        scores(own, words, width, torch.float32), scores(own, words, width, None), strict=True
    )
    for found, expected in pairs:
        assert torch.allclose(found, expected.float(), atol=2e-6)


@pytest.mark.parametrize(("layers", "attentions", "pushed"), SHAPES)
def test_products_may_be_of_bfloat16(layers: int, attentions: int, pushed: bool) -> None:
    own = decoder(layers, attentions, pushed=pushed)
    for found, expected in zip(
        scores(own, 7, 4, torch.bfloat16), scores(own, 7, 4, None), strict=True
    ):
        assert found.dtype == torch.float32
        error = (found - expected).norm() / expected.norm()
        assert 0 < error < 2e-2


@pytest.mark.parametrize(("layers", "attentions", "pushed"), SHAPES)
def test_threads_change_nothing(
    layers: int, attentions: int, pushed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = decoder(layers, attentions, pushed=pushed)
    monkeypatch.setattr(fused_search, "FEW", 1)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(torch.cat(scores(own, 7, 8, torch.float32)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_elsewhere_it_goes_step_by_step() -> None:
    own = decoder(1, 1)
    sources = Sources(torch.zeros(1, 2, D_WORDS), torch.zeros(1, 2, D_ATTENTION))
    assert isinstance(own.train().search(sources, torch.float32), Search)
    double = Sources(*(part.double() for part in sources))
    assert isinstance(own.double().eval().search(double, torch.float32), Search)
