"""The kernels of the decoder's steps, along known actions and in a search, against plain steps in
float64."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn.kernels.decoder import BeamDecoder, GoldStates, teacher_forced
from spmrl_bench.nn.scorers.actions import ActionDecoder, Stacks, StepwiseDecoder
from tests.twins import assert_same_with_threads, needs_kernel

pytestmark = needs_kernel("decoder")


class Case(NamedTuple):
    """Widths, some of which are no multiple of what a processor works on at once."""

    layers: int = 1
    attentions: int = 2
    words: int = 7
    d_words: int = 21
    size: int = 19
    width: int = 37
    pushed: bool = True
    dropout: bool = True
    one_left: bool = False
    counts: tuple[int, ...] = (11, 11, 9, 3, 1)


CASES = [
    Case(),
    Case(layers=3, attentions=3),
    Case(layers=2, attentions=1, pushed=False, dropout=False),
    Case(layers=1, attentions=3, dropout=False),
    Case(words=1, attentions=3),
    Case(one_left=True, layers=2),
    Case(d_words=32, size=16, width=64, words=16),
    Case(counts=(1,)),
]


class Given(NamedTuple):
    gold: GoldStates
    words: Tensor
    keys: Tensor
    score: Tensor
    pushed: Tensor | None
    queries: list[Tensor]
    cells: list[list[Tensor]]

    @property
    def weights(self) -> list[Tensor]:
        """What has a gradient."""
        pushed = [] if self.pushed is None else [self.pushed]
        first = [self.words, self.keys, self.score, *pushed, *self.queries]
        return [*first, *(weight for cell in self.cells for weight in cell)]


def given(case: Case, dtype: torch.dtype = torch.float32) -> Given:
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(shape, generator=generator)).to(dtype).requires_grad_()

    def factors(*shape: int) -> Tensor:
        return (2.0 * (torch.rand(shape, generator=generator) < 0.5)).to(dtype)

    rows, seen, size = sum(case.counts), case.attentions * case.d_words, case.size
    removed = torch.rand(rows, case.words, generator=generator) < 0.4
    removed &= ~removed.all(dim=1, keepdim=True)
    if case.one_left:
        removed[:] = True
        removed[torch.arange(rows), torch.arange(rows) % case.words] = False
    gold = GoldStates(
        list(case.counts),
        (torch.rand(rows, case.words, generator=generator) < 0.5).to(dtype),
        removed,
        factors(rows, seen) if case.dropout else None,
        factors(case.layers - 1, rows, size) if case.dropout and case.layers > 1 else None,
    )
    of_state = [[random(3 * size, size, scale=0.2), random(3 * size)] for _ in range(case.layers)]
    of_input = [[random(3 * size, size, scale=0.2), random(3 * size)] for _ in range(case.layers)]
    words = random(case.counts[0], case.words, case.d_words)
    keys, read = random(case.counts[0], case.words, case.width), random(rows, 3 * size)
    score, pushed = random(case.width), random(case.width) if case.pushed else None
    asked = [size, *[size + case.d_words] * (case.attentions - 1)]
    queries = [random(case.width, width, scale=0.2) for width in asked]
    of_input[0] = [random(3 * size, seen, scale=0.2), read]
    cells = [one + other for one, other in zip(of_input, of_state, strict=True)]
    return Given(gold, words, keys, score, pushed, queries, cells)


def gru(read: Tensor, kept: Tensor, state: Tensor) -> Tensor:
    (reset, update, new), (of_reset, of_update, of_new) = read.chunk(3, 1), kept.chunk(3, 1)
    candidate = (new + (reset + of_reset).sigmoid() * of_new).tanh()
    return candidate + (update + of_update).sigmoid() * (state - candidate)


def plain(own: Given) -> tuple[Tensor, Tensor]:
    """Step after step, recorded by torch."""
    gold, at, states, contexts = own.gold, 0, [], []
    state = [own.words.new_zeros(gold.counts[0], len(own.cells[0][3]) // 3) for _ in own.cells]
    for count in gold.counts:
        rows, at = slice(at, at + count), at + count
        state = [each[:count] for each in state]
        seen: list[Tensor] = []
        for query in own.queries:
            asked = torch.cat((state[-1], *seen[-1:]), dim=1) @ query.T
            sums = own.keys[:count] + asked[:, None]
            if own.pushed is not None:
                sums = sums + gold.pushed[rows][:, :, None] * own.pushed
            energies = (sums.tanh() @ own.score).masked_fill(gold.removed[rows], -torch.inf)
            seen.append(torch.einsum("bn,bnd->bd", energies.softmax(dim=1), own.words[:count]))
        contexts.append(below := torch.cat(seen, dim=1))
        if gold.context_factors is not None:
            below = below * gold.context_factors[rows]
        for layer, (of_input, base, of_state, bias) in enumerate(own.cells):
            if layer and gold.state_factors is not None:
                below = below * gold.state_factors[layer - 1, rows]
            read = below @ of_input.T + (base if layer else base[rows])
            kept = state[layer] @ of_state.T + bias
            state[layer] = below = gru(read, kept, state[layer])
        states.append(state[-1])
    return torch.cat(states), torch.cat(contexts)


def results(case: Case, dtype: torch.dtype) -> list[Tensor]:
    """States, contexts, and the gradients of all that has one; in float64 by plain steps."""
    own = given(case, torch.float64 if dtype == torch.float64 else torch.float32)
    found = plain(own) if dtype == torch.float64 else teacher_forced(own.gold, dtype, *own[1:])
    joined = torch.cat(found, dim=1)
    factors = torch.randn(joined.shape, generator=torch.Generator().manual_seed(2))
    gradients = torch.autograd.grad((joined * factors.to(joined.dtype)).sum(), own.weights)
    return [*(each.detach() for each in found), *gradients]


def test_states_contexts_and_gradients_are_those_of_plain_steps() -> None:
    for case in CASES:
        pairs = zip(results(case, torch.float32), results(case, torch.float64), strict=True)
        for found, expected in pairs:
            error = (found - expected).abs().max() / expected.abs().max().clamp(min=1e-3)
            assert error < 2e-5


def test_in_bf16_they_are_near() -> None:
    for case in CASES[:4]:
        pairs = zip(results(case, torch.bfloat16), results(case, torch.float64), strict=True)
        for number, (found, expected) in enumerate(pairs):
            assert found.dtype == torch.float32
            assert 0 < (found - expected).norm() <= 3e-2 * expected.norm(), number


@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_threads_change_nothing(case: Case) -> None:
    assert_same_with_threads(lambda: results(case, torch.float32))


def test_removed_words_are_not_read() -> None:
    own = given(Case(dropout=False))
    own.gold.removed[:, 2] = True
    own.gold.removed[:, 3] = False
    states, _ = teacher_forced(own.gold, torch.float32, *own[1:])
    with torch.no_grad():
        own.words[:, 2] = torch.nan
        own.keys[:, 2] = torch.nan
    again, contexts = teacher_forced(own.gold, torch.float32, *own[1:])
    assert torch.equal(states, again)
    assert contexts.isfinite().all()


def test_what_is_not_finite_reaches_the_result() -> None:
    own = given(Case())
    with torch.no_grad():
        own.score[3] = torch.nan
    states, contexts = teacher_forced(own.gold, torch.float32, *own[1:])
    assert contexts.isnan().all()
    assert states.isnan().all()


def test_steps_that_grow_or_are_empty_are_refused() -> None:
    own = given(Case())
    for counts in ([], [3, 4], [3, 0]):
        with pytest.raises(ArrayError, match="counts is"):
            teacher_forced(own.gold._replace(counts=counts), torch.float32, *own[1:])


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


def steps_of(words: int, width: int) -> tuple[Tensor, list[tuple[Tensor, Tensor, Stacks]]]:
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
    rows, steps = steps_of(words, width)
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


def test_scores_of_a_search_are_those_of_single_steps() -> None:
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
def test_threads_change_no_search(layers: int, attentions: int, pushed: bool) -> None:
    own = decoder(layers, attentions, pushed=pushed)
    assert_same_with_threads(lambda: scores(own, 7, 8, torch.float32))
