"""Whatever a kernel is given: it refuses, or does what it should; it misreads nothing."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from tests.reliability.tally import Tally
from tests.twins import needs_kernel, spoilt, with_numbers

Arguments = dict[str, Any]

# Good arguments of every class of the kernels of layers and of its methods, in the order in which
# they are called. ``x:f2,7`` is a float32 tensor of this shape, ``b`` one of bfloat16 if ``bf16``
# is true, ``z`` zeros, ``m`` a mask of words that leaves some in each row, ``i2,4`` these numbers.
# The same name is the same tensor.
BATCH = "lengths:i2,4,1 tokens=9 bf16 keep=True threads=2"
ATTENTION = (
    "bf16 layers=2 keys:f3,4,18 values:f3,4,6 summed=False score:f9 stacked:f9 pushed:f3,4 "
    "removed:m3,4 factors:f3,12 contexts:z3,13 start=1 each=1 threads=2"
)
CASES: dict[str, dict[str, str]] = {
    "encoder.Batch norms": {
        "Batch": BATCH,
        "norm": "x:f2,9,9 branch:b2,9,9 bias:f18 masks:f3,18 gain:f18 shift:f18 eps=1e-5",
        "norm_back": "dy:f2,9,9 more:b2,9,9 z:f2,9,9 stats:f9,2 masks:f3,18 gain:f18",
    },
    "encoder.Batch hidden layers": {
        "Batch": BATCH,
        "relu_drop": "hidden:b2,9,9 bias:f18 masks:f3,18",
        "relu_drop_back": "d_hidden:b2,9,9 hidden:b2,9,9 p=0.25",
    },
    "encoder.Batch attention": {
        "Batch": BATCH,
        "attend": "packed:b2,9,18 heads=2 scale=0.4 seed=3 p=0.25 d_context:b2,9,6",
    },
    "recurrent.Cells": {
        "Cells": "gru=False bf16 sequences=4 gates:b2,7,20 threads=2",
        "forward": "more:b2,5,20 at=0 count=4 going_on=3",
        "backward": "d_states:f2,4,5 d_cells:f2,4,5 at=0 count=4 going_on=3",
    },
    "decoder.Attention": {
        "Attention": ATTENTION,
        "attend": "asked:b3,20 at=0 count=3",
        "back": "gradient:f3,13 d_sums:b3,21",
        "attend_back": "d_dropped:b3,12 at=0 count=3",
        "spread": "counts:i3",
    },
    "decoder.Cell": {
        "Cell": "bf16 rows=3 bias:f15 base:f4,15 which:i3,0,2 before:f3,5 result:f3,6 "
        "factors:f3,5 lead=2 threads=2",
        "step": "kept:b3,17 read:b3,15 at=0 count=3 going_on=2",
        "back": "above:f3,6 sentences=3",
        "step_back": "later:b2,5 below:b3,5 at=0 count=3 going_on=2",
    },
}
#: Numbers that may be what they like: no size, place or count.
FREE = ("seed", "scale", "eps")
#: Ways that leave a tensor its type, its memory and how many numbers it has, or are no tensor.
HARMLESS = ("transposed", "turned", "flat", "one more dimension", "an array of numpy", "a list")

cases = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=needs_kernel(n.partition(".")[0])) for n in CASES]
)


def made(kind: str, numbers: list[int], bf16: bool) -> Tensor:
    if kind == "i":
        return torch.tensor(numbers)
    if kind == "z":
        return torch.zeros(numbers)
    if kind == "m":
        removed = torch.zeros(numbers, dtype=torch.bool)
        removed[1, 2] = removed[2, 0] = True
        return removed
    return torch.rand(numbers).to(torch.bfloat16 if kind == "b" and bf16 else torch.float32)


def arguments(name: str, bf16: bool, **changes: object) -> Arguments:
    """Good arguments, by name; a number also by the method, such as ``step.at``."""
    found: Arguments = {}
    for method, words in CASES[name].items():
        for word in words.split():
            key, _, value = word.partition(":")
            if value:
                found.setdefault(key, made(value[0], [int(n) for n in value[1:].split(",")], bf16))
            elif "=" in word:
                key, value = word.split("=")
                found[f"{method}.{key}"] = ast.literal_eval(value)
            else:
                found[f"{method}.{word}"] = bf16
    return found | changes


def run(name: str, given: Arguments) -> None:
    """Make an object and call its methods, whose results join what is given."""
    (made, own), *methods = CASES[name].items()
    kernel = getattr(kernels.load(name.partition(".")[0]), made)(**chosen(made, own, given))
    for method, words in methods:
        found = getattr(kernel, method)(**chosen(method, words, given))
        for number, result in enumerate(found if isinstance(found, tuple) else [found]):
            given[f"{method} gave {number}"] = result
    for name in ("states", "low", "inputs", "last", "dropped"):
        given[name] = getattr(kernel, name, None)


def chosen(method: str, words: str, given: Arguments) -> Arguments:
    keys = [word.partition(":")[0].partition("=")[0] for word in words.split()]
    return {key: given[key] if key in given else given[f"{method}.{key}"] for key in keys}


def copied(given: Arguments, **changes: object) -> Arguments:
    """The same, with tensors of their own, some of them changed."""
    own = {name: x.clone() if isinstance(x, Tensor) else x for name, x in given.items()}
    return own | changes


def same_or_not_a_number(found: Arguments, expected: Arguments, spoilt_name: str) -> bool:
    """Whether no finite number is another than it should be, in what both have."""
    return all(
        bool(((found[name] == value) | found[name].isnan()).all())
        for name, value in expected.items()
        if isinstance(value, Tensor) and name != spoilt_name
    )


@pytest.fixture
def nan_in_new_memory() -> Iterator[None]:
    """What a kernel leaves as it finds it is the same each time."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures(nan_in_new_memory.__name__)
@pytest.mark.parametrize("bf16", [False, True], ids=["float32", "bf16"])
@cases
def test_no_tensor_is_misread(name: str, bf16: bool, tally: Tally) -> None:
    """What is no number is not turned into one either."""
    held = tally("R9", "arguments of kernels, each spoilt in many ways")
    numbers = tally("R9", "NaN in arguments of kernels")
    good = arguments(name, bf16)
    expected = copied(good)
    run(name, expected)
    for argument, value in good.items():
        if not isinstance(value, Tensor):
            continue
        ways = [each for each in spoilt(value) if each[0] not in HARMLESS]
        if value.dtype == torch.int64:
            ways += with_numbers(value, (-1, -(2**62), 1_000, 2**62))
        refused = 0
        for way, wrong in ways:
            held.add()
            given = copied(good, **{argument: wrong})
            try:
                run(name, given)
            except ArrayError:
                refused += 1
            else:  # other lengths are those of another batch
                same = same_or_not_a_number(given, expected, argument)
                assert same or argument == "lengths", (argument, way)
        assert refused >= 10, argument
        if value.is_floating_point():
            places = {0, value.numel() // 2, value.numel() - 1}
            for way, wrong in with_numbers(value, [math.nan], list(places)):
                numbers.add()
                given = copied(good, **{argument: wrong})
                run(name, given)
                assert same_or_not_a_number(given, expected, argument), (argument, way)


@cases
def test_no_number_leads_out_of_a_tensor(name: str, tally: Tally) -> None:
    held = tally("R9", "sizes, counts and places given to kernels, out of range")
    good = arguments(name, False)
    for argument, value in good.items():
        if isinstance(value, Tensor | bool) or argument.partition(".")[2] in FREE:
            continue
        wrong: tuple[float, ...] = (-1, -(2**31), 2**31 - 1)
        if argument.endswith(".p"):
            wrong = (-1.0, 1.0, math.nan)
        if argument.endswith(".each"):  # of a sentence; it may have room for more
            wrong = (-1, 0, -(2**31))
        for number in wrong:
            held.add()
            with pytest.raises(ArrayError):
                run(name, copied(good, **{argument: number}))


@needs_kernel("decoder")
def test_every_state_of_the_decoder_has_a_word_left() -> None:
    good = arguments("decoder.Attention", False)
    good["removed"][1] = True
    with pytest.raises(ArrayError, match="leaves no word to 1 of 3 states"):
        run("decoder.Attention", good)


@needs_kernel("encoder")
def test_the_message_names_argument_finding_and_rule() -> None:
    message = r"gain is float64 \[18\] .*it must be 18 numbers of torch.float32, contiguous"
    wrong = arguments("encoder.Batch norms", False, gain=torch.ones(18).double())
    with pytest.raises(ArrayError, match=message):
        run("encoder.Batch norms", wrong)


@needs_kernel("encoder")
def test_probabilities_of_masks() -> None:
    for p in (-0.1, 1.0, math.nan):
        with pytest.raises(ArrayError, match="probability of dropout"):
            kernels.load("encoder").masks(1, p, torch.empty(8))
