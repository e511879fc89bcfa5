"""The kernels of the decoder's known steps against their twin in torch."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import fused_steps as fused
from spmrl_bench.nn import kernels
from spmrl_bench.nn.fused_steps import fused_steps
from spmrl_bench.nn.known_actions import Known, known_steps

pytestmark = pytest.mark.skipif(
    kernels.load("_decoder") is None, reason="the kernels are not built here"
)


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
    """What both ways are given."""

    known: Known
    words: Tensor
    keys: Tensor
    read: Tensor
    score: Tensor
    pushed: Tensor | None
    queries: list[Tensor]
    context_weight: Tensor
    cells: list[list[Tensor]]

    @property
    def weights(self) -> list[Tensor]:
        """What has a gradient."""
        pushed = [] if self.pushed is None else [self.pushed]
        first = [self.words, self.keys, self.read, self.score, *pushed, *self.queries]
        return [*first, self.context_weight, *(weight for cell in self.cells for weight in cell)]


def given(case: Case) -> Given:
    generator = torch.Generator().manual_seed(1)

    def random(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(shape, generator=generator)).requires_grad_()

    def factors(*shape: int) -> Tensor:
        return 2.0 * (torch.rand(shape, generator=generator) < 0.5)

    rows, seen, size = sum(case.counts), case.attentions * case.d_words, case.size
    removed = torch.rand(rows, case.words, generator=generator) < 0.4
    removed &= ~removed.all(dim=1, keepdim=True)
    if case.one_left:
        removed[:] = True
        removed[torch.arange(rows), torch.arange(rows) % case.words] = False
    known = Known(
        list(case.counts),
        (torch.rand(rows, case.words, generator=generator) < 0.5).float(),
        removed,
        factors(rows, seen) if case.dropout else None,
        factors(case.layers - 1, rows, size) if case.dropout and case.layers > 1 else None,
    )
    of_state = [[random(3 * size, size, scale=0.2), random(3 * size)] for _ in range(case.layers)]
    of_input = [[random(3 * size, size, scale=0.2), random(3 * size)] for _ in range(case.layers)]
    asked = [size, *[size + case.d_words] * (case.attentions - 1)]
    return Given(
        known,
        random(case.counts[0], case.words, case.d_words),
        random(case.counts[0], case.words, case.width),
        random(rows, 3 * size),
        random(case.width),
        random(case.width) if case.pushed else None,
        [random(case.width, width, scale=0.2) for width in asked],
        random(3 * size, seen, scale=0.2),
        [of_state[0], *(of_input[k] + of_state[k] for k in range(1, case.layers))],
    )


def results(case: Case, dtype: torch.dtype, *, kernel: bool) -> list[Tensor]:
    """States, contexts, and the gradients of all that has one."""
    own = given(case)
    found = (fused_steps if kernel else known_steps)(own.known, dtype, *own[1:])
    generator = torch.Generator().manual_seed(2)
    joined = torch.cat(found, dim=1)
    loss = (joined * torch.randn(joined.shape, generator=generator)).sum()
    return [*(each.detach() for each in found), *torch.autograd.grad(loss, own.weights)]


def difference(one: Tensor, other: Tensor) -> float:
    """The largest, by the largest value."""
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-3))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_in_float32_it_is_the_twin(case: Case) -> None:
    pairs = zip(
        results(case, torch.float32, kernel=True),
        results(case, torch.float32, kernel=False),
        strict=True,
    )
    assert max(difference(one, other) for one, other in pairs) < 2e-5


@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_in_bf16_it_is_as_near_to_float32_as_the_twin(case: Case) -> None:
    exact = results(case, torch.float32, kernel=False)
    kernel = results(case, torch.bfloat16, kernel=True)
    twin = results(case, torch.bfloat16, kernel=False)
    for one, other, right in zip(kernel, twin, exact, strict=True):
        norm = right.norm()
        assert (one - right).norm() <= 1.5 * (other - right).norm() + 3e-3 * norm
        assert (one - right).norm() <= 3e-2 * norm


@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_threads_change_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "FEW", 1)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(results(case, torch.float32, kernel=True))
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


def test_removed_words_are_not_read() -> None:
    case = Case(dropout=False)
    own = given(case)
    own.known.removed[:, 2] = True
    own.known.removed[:, 3] = False
    states, _ = fused_steps(own.known, torch.float32, *own[1:])
    with torch.no_grad():
        own.words[:, 2] = torch.nan
        own.keys[:, 2] = torch.nan
    again, contexts = fused_steps(own.known, torch.float32, *own[1:])
    assert torch.equal(states, again)
    assert contexts.isfinite().all()


def test_what_is_not_finite_reaches_the_result() -> None:
    own = given(Case())
    with torch.no_grad():
        own.score[3] = torch.nan
    states, contexts = fused_steps(own.known, torch.float32, *own[1:])
    assert contexts.isnan().all()
    assert states.isnan().all()
