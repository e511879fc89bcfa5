"""Layers whose weights or inputs are not what they should be: refused, or as without kernels.

Weights come from files, and a file may hold them in any type and shape. A compiled kernel that
took such memory for float32 numbers would give another result each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.action_decoder import ActionDecoder
from spmrl_bench.nn.encoder import Encoder
from spmrl_bench.nn.lexical import CharLSTM
from spmrl_bench.nn.precision import Precision
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.recurrent_encoder import RecurrentEncoder
from spmrl_bench.nn.span_scorer import SpanScorer
from spmrl_bench.nn.stack_attention import StackAttention, Stacks
from tests.reliability.tally import Tally
from tests.twins import spoilt, with_numbers

pytestmark = pytest.mark.skipif(not kernels.load("_tensors"), reason="the kernels are not built")

LENGTHS = (4, 1, 6)
HALF = 8


class Layer(NamedTuple):
    """A layer, inputs for it, and what it makes of both."""

    module: nn.Module
    inputs: dict[str, Tensor]
    apply: Callable[..., Tensor]


def layout() -> Ragged:
    return Ragged.of(np.array(LENGTHS), torch.device("cpu"))


def randomised(module: nn.Module) -> nn.Module:
    with torch.no_grad():
        for weight in module.parameters():
            weight.normal_(std=0.5)
    return module.eval()


def encoder(precision: Precision) -> Layer:
    module = Encoder(
        2 * HALF, 1, 2, 6, 10, 9,
        attention_dropout=0, residual_dropout=0, relu_dropout=0, precision=precision,
    )  # fmt: skip
    rows = {"content": torch.randn(sum(LENGTHS), HALF)}
    return Layer(randomised(module), rows, lambda content: module(content, layout()))


def recurrent(cell: Any) -> Callable[[Precision], Layer]:
    def made(precision: Precision) -> Layer:
        module = RecurrentEncoder(cell, 2 * HALF, 1, dropout=0, precision=precision)
        rows = {"content": torch.randn(sum(LENGTHS), 2 * HALF)}
        return Layer(randomised(module), rows, lambda content: module(content, layout()))

    return made


def char_lstm(precision: Precision) -> Layer:
    module = CharLSTM(7, 5, 6, unknown=0, dropout=0, precision=precision)
    inputs = {"characters": torch.randint(7, (4, 3)), "lengths": torch.tensor([2, 4, 1])}
    return Layer(randomised(module), inputs, module)


def span_scorer(precision: Precision) -> Layer:
    module = SpanScorer(6, 5, 4)

    def scored(posts: Tensor, start: Tensor, end: Tensor) -> Tensor:
        projected = module.project(posts)
        return torch.cat([block.clone() for block in module.blocks(projected, start, end)])

    inputs = {
        "posts": torch.randn(5, 6),
        "start": torch.tensor([0, 1, 0]),
        "end": torch.tensor([1, 4, 3]),
    }
    return Layer(randomised(module), inputs, scored)


def _decoder() -> ActionDecoder:
    return ActionDecoder(StackAttention(6, 5, 7, 2, pushed=True), 4, 3, 5, 2, 0.0)


def _dtype(precision: Precision) -> torch.dtype:
    return torch.bfloat16 if precision == "bf16" else torch.float32


def known_steps(precision: Precision) -> Layer:
    module = _decoder()
    steps = torch.tensor([3, 2])
    removed = torch.zeros(2, 3, 4, dtype=torch.bool)
    removed[0, 1, 2] = removed[1, :, 3] = True

    def scored(words: Tensor, last: Tensor, pushed: Tensor, removed: Tensor) -> Tensor:
        sources = module.attention.sources(words)
        scores: Tensor = module(last, steps, sources, Stacks(pushed, removed), _dtype(precision))
        return scores

    inputs = {
        "words": torch.randn(2, 4, 6),
        "last": torch.tensor([[4, 0, 1], [4, 2, 0]]),
        "pushed": (torch.rand(2, 3, 4) < 0.5).float(),
        "removed": removed,
    }
    return Layer(randomised(module), inputs, scored)


def search(precision: Precision) -> Layer:
    module = _decoder()
    removed = torch.zeros(2, 2, 4, dtype=torch.bool)
    removed[0, 1, 2] = removed[1, :, 3] = True

    def scored(
        words: Tensor, last: Tensor, parents: Tensor, pushed: Tensor, removed: Tensor
    ) -> Any:
        steps = module.search(module.attention.sources(words), _dtype(precision))
        first = steps.step(torch.full((4,), 4), torch.arange(4), Stacks(pushed, removed))
        return torch.cat((first, steps.step(last, parents, Stacks(pushed, removed))))

    inputs = {
        "words": torch.randn(2, 4, 6),
        "last": torch.tensor([0, 1, 3, 2]),
        "parents": torch.tensor([1, 0, 2, 2]),
        "pushed": (torch.rand(2, 2, 4) < 0.5).float(),
        "removed": removed,
    }
    return Layer(randomised(module), inputs, scored)


LAYERS = {
    "encoder": encoder,
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "characters": char_lstm,
    "spans": span_scorer,
    "known steps": known_steps,
    "search": search,
}
layers = pytest.mark.parametrize("layer", LAYERS)


def wrong_tensors(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Other tensors in place of one; sizes apart, with the same numbers where it can have them."""
    for way, wrong in spoilt(tensor):
        plain = isinstance(wrong, Tensor) and not wrong.is_sparse and not wrong.is_meta
        if plain and way not in ("transposed", "turned"):
            yield way, wrong
    if tensor.is_floating_point():
        yield from with_numbers(tensor, [torch.nan], (0, tensor.numel() - 1))
    if tensor.dtype == torch.int64:
        yield from with_numbers(tensor, (-1, 9, 2**40), [tensor.numel() - 1])


def outcome(layer: Layer, inputs: dict[str, Tensor]) -> Tensor | Exception:
    """The result, or the error in place of it."""
    try:
        with torch.no_grad():
            return layer.apply(**inputs).clone()
    except Exception as error:
        return error


def check(
    layer: Layer, inputs: dict[str, Tensor], good: Tensor, what: str, closeness: float = 0
) -> bool:
    """Refused, or the result without kernels, or that of what is right where the rest is not read.

    Args:
        good: the result of what is right.
        closeness: how near to it is the same.

    Returns:
        Whether it was refused.
    """
    found = outcome(layer, inputs)
    if isinstance(found, ArrayError):
        return True
    same = isinstance(found, Tensor) and found.shape == good.shape
    if same and torch.allclose(found.to(good.dtype), good, rtol=0, atol=closeness):
        return False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "usable", lambda rows: False)
        expected = outcome(layer, inputs)
    if isinstance(found, Exception):  # of torch, to which it comes before it comes to a kernel
        assert isinstance(expected, Exception), (what, found)
        assert isinstance(found, RuntimeError | IndexError | TypeError | ValueError), (what, found)
        return True
    assert isinstance(expected, Tensor), (what, expected)
    # Kernels leave out products with zero, which are no numbers where the other factor is none.
    read = ~expected.isnan() if "nan" in what else torch.ones_like(expected, dtype=torch.bool)
    torch.testing.assert_close(
        found[read].double(), expected[read].double(), atol=1e-4, rtol=1e-4, msg=what
    )
    return False


@layers
@pytest.mark.parametrize(
    ("precision", "every"),
    [
        ("float32", 5),
        ("bf16", 12),
        pytest.param("float32", 1, marks=pytest.mark.campaign),
        pytest.param("bf16", 1, marks=pytest.mark.campaign),
    ],
)
def test_weights(layer: str, precision: Precision, every: int, tally: Tally) -> None:
    """Of all weights, or of some: products in bfloat16 are compiled for each shape they have."""
    held = tally("R9", "weights of layers, each spoilt in many ways")
    made = LAYERS[layer](precision)
    good = outcome(made, made.inputs)
    assert isinstance(good, Tensor), good
    assert good.isfinite().all()
    for name, weight in list(made.module.named_parameters())[::every]:
        owner, _, own = name.rpartition(".")
        place = made.module.get_submodule(owner)
        refused, closeness = 0, 0.1 if precision == "bf16" else 0  # another order of rounding
        for way, wrong in wrong_tensors(weight.detach()):
            if precision == "bf16" and way.startswith("nan"):
                continue  # the results of two ways of rounding are not compared here
            held.add()
            place._parameters[own] = nn.Parameter(wrong, requires_grad=False)
            refused += check(made, made.inputs, good, f"{name}: {way}", closeness)
            place._parameters[own] = weight
        assert refused >= 6, name
    assert torch.equal(good, made.apply(**made.inputs))


@layers
def test_inputs(layer: str, tally: Tally) -> None:
    held = tally("R9", "inputs of layers, each spoilt in many ways")
    made = LAYERS[layer]("float32")
    good = outcome(made, made.inputs)
    assert isinstance(good, Tensor), good
    for name, value in made.inputs.items():
        for way, wrong in wrong_tensors(value):
            held.add()
            check(made, made.inputs | {name: wrong}, good, f"{name}: {way}")


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.float8_e5m2])
@pytest.mark.parametrize("name", ["input_norm.weight", "layers.0.feed_forward_norm.bias"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_norms_of_another_type_are_refused_by_name(
    name: str, dtype: torch.dtype, precision: Precision
) -> None:
    made = encoder(precision)
    owner, _, own = name.rpartition(".")
    place = made.module.get_submodule(owner)
    place._parameters[own] = nn.Parameter(place._parameters[own].to(dtype), requires_grad=False)
    found = str(dtype).removeprefix("torch.")
    message = rf"{name} of Encoder is {found} \[16\]; it must be float32 \[16\]"
    with torch.no_grad(), pytest.raises(ArrayError, match=message):
        made.apply(**made.inputs)


@pytest.mark.parametrize("part", ["lengths", "sentence", "position", "longest"])
def test_layouts_that_do_not_fit(part: str, tally: Tally) -> None:
    held = tally("R9", "layouts of sentences that fit no batch")
    made, good = encoder("float32"), layout()
    value = getattr(good, part)
    wrongs: list[Any] = [0, 5, 7, 2**40, -1]
    if part != "longest":
        wrongs = [wrong for _, wrong in wrong_tensors(value) if wrong.shape != value.shape]
        wrongs += [value.int(), value.double(), value + 1, value - 1, value.flip(0)]
    for wrong in wrongs:
        held.add()
        with torch.no_grad(), pytest.raises(ArrayError):
            made.module(made.inputs["content"], replace(good, **{part: wrong}))


def test_more_tokens_than_positions_are_refused() -> None:
    made = encoder("float32")
    lengths = np.array([10, 1])
    rows = torch.randn(11, HALF)
    with torch.no_grad(), pytest.raises(ArrayError, match="10 tokens; the encoder has 9 positions"):
        made.module(rows, Ragged.of(lengths, torch.device("cpu")))
