"""Layers whose weights are not what they should be: refused, or as without kernels.

Weights come from files, and a file may hold them in any type and shape. A compiled kernel that
took such memory for float32 numbers would give another result each time. Whatever else is given to
a kernel see :mod:`tests.reliability.test_kernel_gates`.
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
from spmrl_bench.nn.inputs import Codes
from spmrl_bench.nn.kernels import matmul_dtype
from spmrl_bench.nn.kernels.decoder import BeamDecoder
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.scorers.actions import ActionDecoder, Stacks
from spmrl_bench.nn.settings import Precision
from tests.nn import built
from tests.nn.plain import char_lstm_of
from tests.reliability.tally import Tally
from tests.twins import needs_kernel, spoilt, with_numbers

pytestmark = [needs_kernel(name) for name in kernels.KERNELS]

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
    module = built.attention_encoder(
        2 * HALF, precision, layers=1, heads=2, d_kv=6, max_positions=9
    )
    rows = {"content": torch.randn(sum(LENGTHS), HALF)}
    return Layer(randomised(module), rows, lambda content: module(content, layout()))


def recurrent(cell: Any) -> Callable[[Precision], Layer]:
    def made(precision: Precision) -> Layer:
        module = built.recurrent_encoder(cell, 2 * HALF, precision=precision)
        rows = {"content": torch.randn(sum(LENGTHS), 2 * HALF)}
        return Layer(randomised(module), rows, lambda content: module(content, layout()))

    return made


def char_lstm(precision: Precision) -> Layer:
    module = char_lstm_of(7, 5, 6, precision)
    inputs = {"characters": torch.randint(7, (3, 4)), "lengths": torch.tensor([2, 4, 1])}

    def vectors(characters: Tensor, lengths: Tensor) -> Tensor:
        return module.forms(Codes(characters, lengths, torch.arange(3)))

    return Layer(randomised(module), inputs, vectors)


def _decoder() -> ActionDecoder:
    config = ActionDecoder.Config(
        d_hidden=5, layers=2, d_action=3, d_attention=7, dropout=0.0, attention_layers=2
    )
    return ActionDecoder(config, 6, 4)


def removed_words(*shape: int) -> Tensor:
    removed = torch.zeros(shape, dtype=torch.bool)
    removed[0, 1, 2] = removed[1, :, 3] = True
    return removed


def known_steps(precision: Precision) -> Layer:
    module = _decoder()
    steps, dtype = torch.tensor([3, 2]), matmul_dtype(precision)

    def scored(words: Tensor, last: Tensor, pushed: Tensor, removed: Tensor) -> Tensor:
        sources = module.attention.sources(words)
        scores: Tensor = module(last, steps, sources, Stacks(pushed, removed), dtype)
        return scores

    inputs = {
        "words": torch.randn(2, 4, 6),
        "last": torch.tensor([[4, 0, 1], [4, 2, 0]]),
        "pushed": (torch.rand(2, 3, 4) < 0.5).float(),
        "removed": removed_words(2, 3, 4),
    }
    return Layer(randomised(module), inputs, scored)


def search(precision: Precision) -> Layer:
    module = _decoder()

    def scored(
        words: Tensor, last: Tensor, parents: Tensor, pushed: Tensor, removed: Tensor
    ) -> Any:
        steps = BeamDecoder(module, module.attention.sources(words), matmul_dtype(precision))
        first = steps.step(torch.full((4,), 4), torch.arange(4), Stacks(pushed, removed))
        return torch.cat((first, steps.step(last, parents, Stacks(pushed, removed))))

    inputs = {
        "words": torch.randn(2, 4, 6),
        "last": torch.tensor([0, 1, 3, 2]),
        "parents": torch.tensor([1, 0, 2, 2]),
        "pushed": (torch.rand(2, 2, 4) < 0.5).float(),
        "removed": removed_words(2, 2, 4),
    }
    return Layer(randomised(module), inputs, scored)


LAYERS = {
    "encoder": encoder,
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "characters": char_lstm,
    "known steps": known_steps,
    "search": search,
}


def wrong_tensors(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Other tensors in place of one; sizes apart, with the same numbers where it can have them."""
    for way, wrong in spoilt(tensor):
        plain = isinstance(wrong, Tensor) and not wrong.is_sparse and not wrong.is_meta
        if plain and way not in ("transposed", "turned"):
            yield way, wrong
    if tensor.is_floating_point():
        yield from with_numbers(tensor, [torch.nan], (0, tensor.numel() - 1))


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
    """Whether it is refused; else the result is ``good``, or near, or that without kernels."""
    found = outcome(layer, inputs)
    if isinstance(found, ArrayError):
        return True
    same = isinstance(found, Tensor) and found.shape == good.shape
    if same and torch.allclose(found.to(good.dtype), good, rtol=0, atol=closeness):
        return False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "usable", lambda rows, name: False)
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


@pytest.mark.parametrize("layer", LAYERS)
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


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_norms_of_another_type_are_refused(precision: Precision) -> None:
    for name in ("input_norm.weight", "layers.0.feed_forward_norm.bias"):
        owner, _, own = name.rpartition(".")
        for dtype in (torch.float16, torch.float64, torch.float8_e5m2):
            made = encoder(precision)
            norm = made.module.get_submodule(owner)
            wrong = norm.get_parameter(own).to(dtype)
            norm._parameters[own] = nn.Parameter(wrong, requires_grad=False)
            message = (
                rf"{name} of AttentionEncoder is {str(dtype)[6:]} \[16\] .*must be float32 \[16\]"
            )
            with torch.no_grad(), pytest.raises(ArrayError, match=message):
                made.apply(**made.inputs)


def test_layouts_that_do_not_fit(tally: Tally) -> None:
    held = tally("R9", "layouts of sentences that fit no batch")
    made, good = encoder("float32"), layout()
    value = good.lengths
    wrongs = [wrong for _, wrong in wrong_tensors(value) if wrong.numel() != value.numel()]
    for wrong in (*wrongs, value.int(), value.double(), value + 1, value - 1, 2 * value):
        held.add()
        with torch.no_grad(), pytest.raises(ArrayError):
            made.module(made.inputs["content"], replace(good, lengths=wrong))


def test_more_tokens_than_positions_are_refused() -> None:
    made = encoder("float32")
    lengths = np.array([10, 1])
    rows = torch.randn(11, HALF)
    with torch.no_grad(), pytest.raises(ArrayError, match="10 tokens; the encoder has 9 positions"):
        made.module(rows, Ragged.of(lengths, torch.device("cpu")))
