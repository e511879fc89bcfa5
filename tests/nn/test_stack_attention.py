"""Attention that knows the stack, and the decoder around it, against plain sums and plain steps."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn.action_decoder import ActionDecoder, step_rows
from spmrl_bench.nn.known_actions import Known, known_steps
from spmrl_bench.nn.stack_attention import StackAttention, Stacks

D_WORDS, D_STATE, D_ATTENTION, ACTIONS = 6, 5, 4, 7


def attention(layers: int = 3, *, pushed: bool = True) -> StackAttention:
    torch.manual_seed(layers)
    return StackAttention(D_WORDS, D_STATE, D_ATTENTION, layers, pushed=pushed).double()


def random_stacks(*shape: int, seed: int = 1) -> Stacks:
    """Of which at least one word is left in each."""
    generator = torch.Generator().manual_seed(seed)
    pushed = (torch.rand(shape, generator=generator) < 0.5).double()
    removed = torch.rand(shape, generator=generator) < 0.4
    return Stacks(pushed, removed & ~removed.all(dim=-1, keepdim=True))


@torch.no_grad()
def plain(layer: StackAttention, z: Tensor, h: Tensor, s: Tensor, r: Tensor) -> list[list[float]]:
    """Equations 5 to 7 of the paper for one state, word by word: the weights of each layer."""
    found: list[list[float]] = []
    context: Tensor | None = None
    for query in layer.queries:
        asks = z if context is None else torch.cat((z, context))
        energies = []
        for t in range(len(h)):
            total = 0.0
            for k in range(D_ATTENTION):
                inner = float(query.weight[k] @ asks) + float(layer.key.weight[k] @ h[t])
                if layer.pushed is not None:
                    inner += float(s[t]) * float(layer.pushed[0, k])
                total += float(layer.score[0, k]) * math.tanh(inner)
            energies.append(math.exp(total) * (0.0 if r[t] else 1.0))
        weights = [energy / sum(energies) for energy in energies]
        context = sum((w * word for w, word in zip(weights, h, strict=True)), torch.zeros(D_WORDS))
        found.append(weights)
    return found


@pytest.mark.parametrize(("layers", "pushed"), [(1, False), (1, True), (3, True), (3, False)])
def test_weights_and_contexts_are_those_of_the_equations(layers: int, pushed: bool) -> None:
    layer = attention(layers, pushed=pushed)
    words, states = torch.randn(2, 4, D_WORDS).double(), torch.randn(2, 3, D_STATE).double()
    stacks = random_stacks(2, 3, 4)
    contexts, weights = layer(states, layer.sources(words), stacks)
    for b, k in product(range(2), range(3)):
        rows = plain(layer, states[b, k], words[b], stacks.pushed[b, k], stacks.removed[b, k])
        assert weights[b, k].tolist() == [pytest.approx(row) for row in rows]
        expected = torch.cat([torch.tensor(row).double() @ words[b] for row in rows])
        assert torch.allclose(contexts[b, k], expected)
    assert (weights[stacks.removed.unsqueeze(2).expand_as(weights)] == 0).all()
    # Words on the stack are told from others only where s is there.
    other = Stacks(1 - stacks.pushed, stacks.removed)
    assert torch.equal(layer(states, layer.sources(words), other)[0], contexts) != pushed


def test_a_layer_reads_the_context_of_the_one_below() -> None:
    layer = attention(2)
    words, states = torch.randn(1, 4, D_WORDS).double(), torch.randn(1, 1, D_STATE).double()
    stacks = random_stacks(1, 1, 4)
    before = layer(states, layer.sources(words), stacks)[1][0, 0]
    with torch.no_grad():
        layer.queries[0].weight.mul_(-2)
    after = layer(states, layer.sources(words), stacks)[1][0, 0]
    assert not torch.allclose(before[0], after[0])
    assert not torch.allclose(before[1], after[1])
    with torch.no_grad():
        layer.queries[1].weight[:, D_STATE:].zero_()
        layer.queries[0].weight.mul_(5)
    cut = layer(states, layer.sources(words), stacks)[1][0, 0, 1]
    with torch.no_grad():
        layer.queries[0].weight.mul_(5)
    assert torch.equal(layer(states, layer.sources(words), stacks)[1][0, 0, 1], cut)


# The decoder -------------------------------------------------------------------------------


def decoder(
    layers: int, attentions: int = 2, *, pushed: bool = True, dropout: float = 0.0
) -> ActionDecoder:
    own = attention(attentions, pushed=pushed)
    return ActionDecoder(own, ACTIONS, 3, D_STATE, layers, dropout).double()


def test_a_step_is_torchs_gru_over_action_and_context() -> None:
    own = decoder(2)
    words, stacks = torch.randn(1, 4, D_WORDS).double(), random_stacks(1, 1, 4)
    sources = own.attention.sources(words)
    state = torch.randn(2, 1, 1, D_STATE).double()
    step = own.step(torch.tensor([[3]]), state, sources, stacks)
    context, weights = own.attention(state[-1], sources, stacks)
    read = torch.cat((own.embedding.weight[3], context[0, 0]))
    first = own.cells[0](read[None], state[0, 0])
    second = own.cells[1](first, state[1, 0])
    assert torch.allclose(step.state[:, 0], torch.stack((first, second)))
    assert torch.equal(step.weights, weights)
    known = torch.cat((own.embedding.weight[3], second[0], context[0, 0]))
    expected = own.scores(own.hidden(known).tanh())
    assert torch.allclose(step.scores[0, 0], expected)


STEPS = torch.tensor([8, 6, 2])


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("attentions", "pushed"), [(1, False), (2, True), (3, True)])
def test_known_steps_are_the_steps_with_their_gradient(
    layers: int, attentions: int, pushed: bool
) -> None:
    own = decoder(layers, attentions, pushed=pushed)
    words = torch.randn(3, 4, D_WORDS).double().requires_grad_()
    last = torch.randint(0, ACTIONS + 1, (3, 8))
    stacks = random_stacks(3, 8, 4)
    weights = [words, *own.parameters()]
    rows, counts = step_rows(STEPS)
    assert counts == [3, 3, 2, 2, 2, 2, 1, 1]
    scores = own(last, STEPS, own.attention.sources(words), stacks, torch.float64)
    factors = torch.randn_like(scores)
    found = torch.autograd.grad((scores * factors).sum(), weights)
    state, one_by_one = own.start(3, 1), []
    for t in range(8):
        now = Stacks(stacks.pushed[:, t : t + 1], stacks.removed[:, t : t + 1])
        step = own.step(last[:, t : t + 1], state, own.attention.sources(words), now)
        state = step.state
        one_by_one.append(step.scores[:, 0])
    expected = torch.stack(one_by_one, dim=1).flatten(0, 1)[rows]
    assert torch.allclose(scores, expected, atol=1e-12)
    for one, other in zip(
        found, torch.autograd.grad((expected * factors).sum(), weights), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-12)


def test_dropout_of_known_steps_is_on_what_layers_read() -> None:
    """Zaremba et al. 2014: never on what a layer passes on to its own next step."""
    own = decoder(2, 1)
    words = torch.randn(2, 3, D_WORDS).double().requires_grad_()
    stacks = random_stacks(4, 3)
    sources = own.attention.sources(words)
    read = torch.randn(4, 3 * D_STATE).double()
    contexts, states = torch.rand(4, D_WORDS).double(), torch.rand(1, 4, D_STATE).double()
    known = Known([2, 2], *stacks, contexts, states)
    first, second = own.cells
    found = known_steps(
        known,
        torch.float64,
        *sources,
        read,
        own.attention.score[0],
        own.attention.pushed[0],
        [query.weight for query in own.attention.queries],
        first.weight_ih[:, 3:],
        [
            [first.weight_hh, first.bias_hh],
            [second.weight_ih, second.bias_ih, second.weight_hh, second.bias_hh],
        ],
    )
    state = [torch.zeros(2, D_STATE).double() for _ in range(2)]
    expected = []
    for t in range(2):
        place = slice(2 * t, 2 * t + 2)
        now = Stacks(stacks.pushed[place].unsqueeze(1), stacks.removed[place].unsqueeze(1))
        again = own.attention.sources(words)
        context = own.attention(state[1].unsqueeze(1), again, now)[0][:, 0]
        kept = state[0] @ first.weight_hh.t() + first.bias_hh
        sums = read[place] + (context * contexts[place]) @ first.weight_ih[:, 3:].t()
        r, u = (sums + kept)[:, : 2 * D_STATE].sigmoid().chunk(2, dim=1)
        n = (sums[:, 2 * D_STATE :] + r * kept[:, 2 * D_STATE :]).tanh()
        state[0] = (1 - u) * n + u * state[0]
        state[1] = second(state[0] * states[0, place], state[1])
        expected.append(torch.cat((state[1], context), dim=1))
    joined = torch.cat(expected)
    assert torch.allclose(torch.cat(found, dim=1), joined)
    weights = [words, *own.cells.parameters(), *own.attention.parameters()]
    factors = torch.randn_like(joined)
    pairs = zip(
        torch.autograd.grad((torch.cat(found, dim=1) * factors).sum(), weights, allow_unused=True),
        torch.autograd.grad((joined * factors).sum(), weights, allow_unused=True),
        strict=True,
    )
    for one, other in pairs:
        if other is not None and one is not None:
            assert torch.allclose(one, other, atol=1e-12)


def test_dropout_is_fresh_for_each_step_and_absent_outside_training() -> None:
    own = decoder(1, 1, dropout=0.5)
    words = torch.randn(1, 3, D_WORDS).double()
    last = torch.full((1, 6), 2)
    still = Stacks(torch.zeros(1, 6, 3).double(), torch.zeros(1, 6, 3, dtype=torch.bool))

    def scores() -> Tensor:
        sources = own.attention.sources(words)
        found: Tensor = own(last, torch.tensor([6]), sources, still, torch.float64)
        return found

    assert not torch.equal(scores(), scores())
    own.eval()
    assert torch.equal(scores(), scores())
