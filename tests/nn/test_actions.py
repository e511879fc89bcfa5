"""Attention that knows the stack, and the decoder around it, against plain sums and plain steps."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import kernels
from spmrl_bench.nn.scorers.actions import ActionDecoder, StackAttention, Stacks
from tests.twins import needs_kernel

D_WORDS, D_STATE, D_ATTENTION, ACTIONS = 6, 5, 4, 7
STEPS = torch.tensor([8, 6, 2])


def decoder(layers: int = 1, attentions: int = 3, **changes: Any) -> ActionDecoder:
    torch.manual_seed(layers)
    settings = {"d_hidden": D_STATE, "layers": layers, "d_action": 3, "d_attention": D_ATTENTION}
    config = ActionDecoder.Config.model_validate(
        {**settings, "dropout": 0.0, "attention_layers": attentions, **changes}
    )
    return ActionDecoder(config, D_WORDS, ACTIONS).double()


def random_stacks(*shape: int) -> Stacks:
    """Of which at least one word is left in each."""
    generator = torch.Generator().manual_seed(1)
    pushed = (torch.rand(shape, generator=generator) < 0.5).double()
    removed = torch.rand(shape, generator=generator) < 0.4
    return Stacks(pushed, removed & ~removed.all(dim=-1, keepdim=True))


@torch.no_grad()
def plain(layer: StackAttention, z: Tensor, h: Tensor, s: Tensor, r: Tensor) -> list[list[float]]:
    """Equations 5 to 7 of the paper for one state, word by word: the weights of each layer."""
    found: list[list[float]] = []
    context: Tensor | None = None
    for query in layer.queries:
        reads = z if context is None else torch.cat((z, context))
        energies = []
        for t in range(len(h)):
            total = 0.0
            for k in range(D_ATTENTION):
                inner = float(query.weight[k] @ reads) + float(layer.key.weight[k] @ h[t])
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
    layer = decoder(1, layers, pushed_words=pushed).attention
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


def test_a_step_is_torchs_gru_over_action_and_context(monkeypatch: pytest.MonkeyPatch) -> None:
    own = decoder(2, dropout=0.5).eval()
    words, stacks = torch.randn(1, 4, D_WORDS).double(), random_stacks(1, 1, 4)
    sources = own.attention.sources(words)
    state = torch.randn(2, 1, 1, D_STATE).double()
    last = torch.tensor([[3]])
    scores, after, seen = own.step(last, state, sources, stacks)
    context, weights = own.attention(state[-1], sources, stacks)
    first = own.cells[0](torch.cat((own.embedding.weight[3], context[0, 0]))[None], state[0, 0])
    second = own.cells[1](first, state[1, 0])
    assert torch.allclose(after[:, 0], torch.stack((first, second)))
    assert torch.equal(seen, weights)
    read = torch.cat((own.embedding.weight[3], second[0], context[0, 0]))
    assert torch.allclose(scores[0, 0], own.scores(own.hidden(read).tanh()))
    # Zaremba et al. 2014: never on what a layer passes on to its own next step.
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda rows, p, training: 0 * rows)
    scores, after, _ = own.train().step(last, state, sources, stacks)
    reads = torch.zeros(1, 3 + own.attention.d_out).double(), torch.zeros(1, D_STATE).double()
    expected = [own.cells[k](reads[k], state[k, 0]) for k in range(2)]
    assert torch.allclose(after[:, 0], torch.stack(expected))
    assert torch.allclose(scores[0, 0], own.scores(own.hidden.bias.tanh()))


@pytest.mark.parametrize("layers", [1, 3])
def test_known_sequences_are_step_after_step(layers: int) -> None:
    own = decoder(layers)
    sources = own.attention.sources(torch.randn(3, 4, D_WORDS).double())
    last, stacks = torch.randint(0, ACTIONS + 1, (3, 8)), random_stacks(3, 8, 4)
    number, sentence = (torch.arange(8)[:, None] < STEPS).nonzero(as_tuple=True)
    scores = own(last, STEPS, sources, stacks, torch.float64)
    state, one_by_one = own.start(3, 1), []
    for t in range(8):
        now = Stacks(*(part[:, t : t + 1] for part in stacks))
        found, state, _ = own.step(last[:, t : t + 1], state, sources, now)
        one_by_one.append(found[:, 0])
    assert torch.allclose(scores, torch.stack(one_by_one)[number, sentence], atol=1e-12)


@needs_kernel("decoder")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("layers", "attentions", "pushed"), [(1, 1, False), (2, 3, True)])
def test_with_kernels_it_learns_the_same(
    layers: int, attentions: int, pushed: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = decoder(layers, attentions, pushed_words=pushed).float()
    words = torch.randn(3, 4, D_WORDS, requires_grad=True)
    last, stacks = torch.randint(0, ACTIONS + 1, (3, 8)), random_stacks(3, 8, 4)
    stacks = Stacks(stacks.pushed.float(), stacks.removed)

    def gradients() -> list[Tensor]:
        scores = own(last, STEPS, own.attention.sources(words), stacks, dtype)
        assert scores.dtype == torch.float32
        loss = (scores * torch.linspace(-1, 1, scores.numel()).view_as(scores)).sum()
        return [scores, *torch.autograd.grad(loss, [words, *own.parameters()])]

    with_kernels = gradients()
    monkeypatch.setattr(kernels, "usable", lambda rows, name: False)
    near = 1e-4 if dtype == torch.float32 else 4e-2
    for one, other in zip(with_kernels, gradients(), strict=True):
        assert (one - other).norm() <= near * other.norm() + 1e-6


def test_dropout_is_fresh_for_each_step_and_absent_outside_training() -> None:
    for own in (decoder(dropout=0.5), decoder(dropout=0.5).float()):  # without kernels and with
        dtype = own.scores.weight.dtype
        sources = own.attention.sources(torch.randn(1, 3, D_WORDS, dtype=dtype))
        last, steps = torch.full((1, 6), 2), torch.tensor([6])
        still = Stacks(torch.zeros(1, 6, 3, dtype=dtype), torch.zeros(1, 6, 3, dtype=torch.bool))
        one, other = (own(last, steps, sources, still, dtype) for _ in range(2))
        assert not torch.equal(one, other)
        own.eval()
        one, other = (own(last, steps, sources, still, dtype) for _ in range(2))
        assert torch.equal(one, other)
