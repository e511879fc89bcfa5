"""Whatever a kernel is given: it refuses, or does what its plain twin does; it misreads nothing."""

from __future__ import annotations

import ast
import inspect
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from tests.reliability.tally import Tally
from tests.twins import OTHER_SIZES, functions, spoilt, with_numbers

pytestmark = pytest.mark.skipif(not kernels.load("_tensors"), reason="the kernels are not built")

Arguments = dict[str, Any]

# Good arguments of every function of the kernels of layers. ``x:f2,7`` is a float32 tensor of this
# shape, ``b`` one of bfloat16 where ``low`` is true, ``z`` zeros, ``m`` a mask of words that leaves
# some in each row, ``i2,4`` these integers; ``low`` alone is whether the numbers are of bfloat16.
ROWS = "low masks:f3,18 sentence:i0,0,1,1,1,1,2 tokens=7 width=9 threads=2"
ATTENTION = (
    "packed:b2,7,18 starts:i0,2,6 lengths:i2,4,1 tokens=7 heads=2 half=3 longest=16 low scale=0.4 "
    "seed=3 p=0.25 threads=2"
)
STEP = (
    "gru=False gates:b2,8,20 low cells:f2,8,5 last_cells:f2,4,5 rows=8 sequences=4 size=5 at=1 "
    "count=4 going_on=3 threads=2"
)
ATTEND = (
    "low keys:f3,4,18 values:f3,4,6 pushed:f5,4 removed:m5,4 score:f9 stacked:f9 factors:f5,12 "
    "asks:f5,18 alphas:f5,2,4 at=2 count=3 words=4 layers=2 width=9 value_width=6 threads=2"
)
CASES = {
    "_attention.forward": f"{ATTENTION} context:b2,7,6",
    "_attention.backward": f"{ATTENTION} d_context:b2,7,6 d_packed:b2,7,18",
    "_decoder.attend": f"{ATTEND} asked:b3,20 asked_step=20 summed=False contexts:f5,13 "
    "context_step=13 context_start=1 dropped:b5,12 each=1",
    "_decoder.attend_back": f"{ATTEND} d_dropped:b3,12 gradient:f5,13 gradient_step=13 "
    "gradient_start=1 d_contexts:f5,12 d_asks:f5,18 d_sums:b5,21 d_sums_step=21 d_keys:f3,4,18 "
    "d_score:f3,9 d_stacked:f3,9",
    "_decoder.spread": "removed:m5,4 alphas:f5,2,4 words=4 layers=2 width=9 value_width=6 "
    "threads=2 d_contexts:f5,12 d_asks:f5,18 starts:i0,3,5 steps:i2,2,1 d_values:f3,4,6 "
    "d_keys:f3,4,18 sentences=3",
    "_decoder.cell": "kept:b3,17 kept_step=17 kept_start=2 kept_bias:f15 read:b3,15 read_step=15 "
    "read_low base:f4,15 base_step=15 which:i3,0,2 low gates:f8,20 before:f8,5 after:f8,5 "
    "after_low:b8,5 result:f8,6 result_step=6 factors:f8,5 inputs:b8,5 size=5 at=2 following=5 "
    "count=3 going_on=2 threads=2",
    "_decoder.cell_back": "later:b2,5 above:f8,6 above_step=6 below:b3,5 factors:f8,5 low "
    "gates:f8,20 before:f8,5 carried:f3,5 d_sums:b8,22 d_sums_step=22 d_sums_start=2 size=5 at=2 "
    "count=3 going_on=2 threads=2",
    "_factored.masks": "seed=5 p=0.3 out:f11",
    "_factored.residual_norm": f"{ROWS} x:f2,7,9 branch:b2,7,9 bias:f18 gain:f18 shift:f18 "
    "eps=1e-5 z:f2,7,9 stats:f7,2 y:f2,7,9 y_low:b2,7,9",
    "_factored.residual_norm_back": f"{ROWS} dy:f2,7,9 more:b2,7,9 z:f2,7,9 stats:f7,2 gain:f18 "
    "dz:f2,7,9 d_branch:b2,7,9 sums:z2,3,18",
    "_factored.relu_drop": f"{ROWS} hidden:b2,7,9 bias:f18",
    "_factored.relu_drop_back": "d_hidden:b2,7,9 hidden:b2,7,9 low scale=1.5 tokens=7 width=9 "
    "sums:z2,18 threads=2",
    "_recurrent.step_forward": f"{STEP} more:b2,4,20 more_rows=4 states:b2,8,5 last:f2,4,5",
    "_recurrent.step_backward": f"{STEP} d_states:f2,4,5 d_cells:f2,4,5",
    "_span_scorer.hidden": "projected:f6,9 start:i0,1,2,0,5 end:i1,3,5,5,0 spans=5 width=9 "
    "bias:f9 gain:f9 shift:f9 eps=1e-5 out:f5,9 threads=2",
}
#: Numbers that may be what they like: no size, place or count, or checked by what they are beside.
FREE = ("seed", "scale", "eps")


def made(kind: str, numbers: list[int], low: bool) -> Tensor:
    if kind == "i":
        return torch.tensor(numbers)
    if kind == "z":
        return torch.zeros(numbers)
    if kind == "m":
        removed = torch.zeros(numbers, dtype=torch.bool)
        removed[1, 2] = removed[3, 0] = True
        return removed
    return torch.rand(numbers).to(torch.bfloat16 if kind == "b" and low else torch.float32)


def arguments(name: str, low: bool, **changes: object) -> Arguments:
    """Good arguments of a function, some of them changed."""
    found: Arguments = {}
    for word in CASES[name].split():
        key, _, value = word.partition(":")
        if value:
            found[key] = made(value[0], [int(n) for n in value[1:].split(",")], low)
        elif "=" in word:
            key, value = word.split("=")
            found[key] = ast.literal_eval(value)
        else:
            found[word] = low
    return found | changes


def test_every_function_of_the_kernels_of_layers_has_a_case() -> None:
    taking = {
        name: set(inspect.signature(function).parameters)
        for name, function in functions("nn").items()
        if not name.startswith("_tensors.") and name != "_attention.lanes"
    }
    assert taking == {name: set(arguments(name, False)) for name in CASES}


def copied(given: Arguments, **changes: object) -> Arguments:
    """The same, with tensors of their own, some of them changed."""
    own = {name: x.clone() if isinstance(x, Tensor) else x for name, x in given.items()}
    return own | changes


def same_or_not_a_number(found: Arguments, expected: Arguments, spoilt_name: str) -> bool:
    """Whether no finite number is another than it should be, in what both have."""
    for name, value in expected.items():
        own = found[name]
        if not isinstance(value, Tensor) or (name == spoilt_name and value.dtype == torch.int64):
            continue
        if name == spoilt_name and own.shape != value.shape:
            if own.dim() != value.dim() or own.shape[1:] != value.shape[1:]:
                return False
            rows = min(len(own), len(value))
            own, value = own[:rows], value[:rows]
        if not ((own == value) | own.isnan()).all():
            return False
    return True


@pytest.mark.parametrize("low", [False, True], ids=["float32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_no_tensor_is_misread(name: str, low: bool, tally: Tally) -> None:
    """What is no number is not turned into one either."""
    held, numbers = (
        tally("R9", what)
        for what in (
            "arguments of kernels, each spoilt in many ways",
            "NaN in arguments of kernels",
        )
    )
    function = functions("nn")[name]
    good = arguments(name, low)
    expected = copied(good)
    function(**expected)
    for argument, value in good.items():
        if not isinstance(value, Tensor):
            continue
        ways = list(spoilt(value))
        if value.dtype == torch.int64:
            ways += with_numbers(value, (-1, -(2**62), 1_000, 2**62))
        refused = 0
        for way, wrong in ways:
            held.add()
            given = copied(good, **{argument: wrong})
            try:
                function(**given)
            except ArrayError as error:
                message, refused = str(error), refused + 1
                named = good if way in OTHER_SIZES else [argument]
                fair = any(each in message for each in named)
            else:
                message = "another result"
                fair = same_or_not_a_number(given, expected, argument)
            assert fair, (argument, way, message)
        assert refused >= 6, argument
        if value.is_floating_point():
            places = {0, value.numel() // 2, value.numel() - 1}
            for way, wrong in with_numbers(value, [math.nan], list(places)):
                numbers.add()
                given = copied(good, **{argument: wrong})
                function(**given)
                assert same_or_not_a_number(given, expected, argument), (argument, way)
    with pytest.raises(TypeError):
        function(**copied(good), more_arguments=None)


@pytest.mark.parametrize("name", CASES)
def test_no_number_leads_out_of_a_tensor(name: str, tally: Tally) -> None:
    held = tally("R9", "sizes, counts and places given to kernels, out of range")
    function = functions("nn")[name]
    good = arguments(name, False)
    for argument, value in good.items():
        if isinstance(value, Tensor | bool) or argument in FREE:
            continue
        wrong: tuple[float, ...] = (-1, -(2**31), 2**31 - 1)
        if argument == "p":
            wrong = (-1.0, 1.0, math.nan)
        if argument == "each":  # of a sentence; it may have room for more
            wrong = (-1, 0, -(2**31))
        for number in wrong:
            held.add()
            with pytest.raises(ArrayError):
                function(**copied(good, **{argument: number}))


def test_states_of_the_decoder() -> None:
    """Each has a word left, and those that are still to be read are not replaced."""
    good = arguments("_decoder.attend", False)
    good["removed"][3] = True
    with pytest.raises(ArrayError, match="leaves no word to 1 of 3 states"):
        functions("nn")["_decoder.attend"](**good)
    cell = functions("nn")["_decoder.cell"]
    given = arguments("_decoder.cell", False, following=4)
    cell(**given)
    with pytest.raises(ArrayError, match="following of cell is 4"):
        cell(**given | {"after": given["before"]})


def test_the_message_names_argument_finding_and_rule() -> None:
    gain = torch.ones(18).double()
    message = (
        r"gain of residual_norm is float64 \[18\]; it must be float32 \[18\], contiguous and on "
        "the CPU"
    )
    with pytest.raises(ArrayError, match=message):
        functions("nn")["_factored.residual_norm"](
            **arguments("_factored.residual_norm", False, gain=gain)
        )
