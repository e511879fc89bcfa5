"""Whatever a kernel is given: it refuses, or does what its plain twin does; it misreads nothing."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spmrl_bench
from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from tests.reliability.kernel_cases import (
    CASES,
    OTHER_SIZES,
    Arguments,
    misleading,
    not_numbers,
    spoilt,
)
from tests.reliability.tally import Tally

pytestmark = pytest.mark.skipif(not kernels.load("_tensors"), reason="the kernels are not built")

#: Numbers that may be what they like: no size, place or count, or checked by what they are beside.
FREE = ("seed", "scale", "eps")


def functions(package: str) -> dict[str, Any]:
    """The functions of every compiled kernel of a package, by module and name."""
    found = {}
    for source in sorted((Path(spmrl_bench.__file__).parent / package).glob("_*.pyx")):
        module = importlib.import_module(f"spmrl_bench.{package}.{source.stem}")
        for name, value in vars(module).items():
            if type(value).__name__ == "cython_function_or_method" and not name.startswith("_"):
                found[f"{source.stem}.{name}"] = value
    return found


def test_every_function_of_the_kernels_of_layers_has_a_case() -> None:
    taking = {
        name: set(inspect.signature(function).parameters)
        for name, function in functions("nn").items()
        if not name.startswith("_tensors.") and name != "_attention.lanes"
    }
    assert taking == {name: set(case(False)) for name, case in CASES.items()}


def copied(arguments: Arguments) -> Arguments:
    """The same, with tensors of their own."""
    return {
        name: value.clone() if isinstance(value, Tensor) else value
        for name, value in arguments.items()
    }


def with_spoilt(good: Arguments, name: str, wrong: object) -> Arguments:
    """Copies of good arguments, with another in one place."""
    return copied(good) | {name: wrong}


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
    held = tally("R9", "arguments of kernels, each spoilt in many ways")
    function = functions("nn")[name]
    good = CASES[name](low)
    expected = copied(good)
    function(**expected)
    for argument, value in good.items():
        if not isinstance(value, Tensor):
            continue
        ways = list(spoilt(value))
        if value.dtype == torch.int64:
            ways += misleading(value)
        assert len(ways) >= 6
        refused = 0
        for way, wrong in ways:
            held.add()
            given = with_spoilt(good, argument, wrong)
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
    with pytest.raises(TypeError):
        function(**with_spoilt(good, "more_arguments", None))


@pytest.mark.parametrize("low", [False, True], ids=["float32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_no_number_is_not_turned_into_one(name: str, low: bool, tally: Tally) -> None:
    held = tally("R9", "NaN in arguments of kernels")
    function = functions("nn")[name]
    good = CASES[name](low)
    expected = copied(good)
    function(**expected)
    for argument, value in good.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            for way, wrong in not_numbers(value):
                held.add()
                given = with_spoilt(good, argument, wrong)
                function(**given)
                assert same_or_not_a_number(given, expected, argument), (argument, way)


@pytest.mark.parametrize("name", CASES)
def test_no_number_leads_out_of_a_tensor(name: str, tally: Tally) -> None:
    held = tally("R9", "sizes, counts and places given to kernels, out of range")
    function = functions("nn")[name]
    good = CASES[name](False)
    for argument, value in good.items():
        if isinstance(value, Tensor | bool) or argument in FREE:
            continue
        wrong: tuple[float, ...] = (-1, -(2**31), 2**31 - 1)
        if argument == "p":
            wrong = (-1.0, 1.0, float("nan"))
        if argument == "each":  # of a sentence; it may have room for more
            wrong = (-1, 0, -(2**31))
        for number in wrong:
            held.add()
            with pytest.raises(ArrayError):
                function(**with_spoilt(good, argument, number))


def test_a_state_without_words_is_refused() -> None:
    attend = functions("nn")["_decoder.attend"]
    good = CASES["_decoder.attend"](False)
    good["removed"][3] = True
    with pytest.raises(ArrayError, match="leaves no word to 1 of 3 states"):
        attend(**good)


def test_states_that_are_still_to_be_read_are_not_replaced() -> None:
    cell = functions("nn")["_decoder.cell"]
    given = _changed("_decoder.cell", following=4)
    cell(**given)
    with pytest.raises(ArrayError, match="following of cell is 4"):
        cell(**given | {"after": given["before"]})


def test_the_message_names_argument_finding_and_rule() -> None:
    function = functions("nn")["_factored.residual_norm"]
    gain = torch.ones(18).double()
    message = (
        r"gain of residual_norm is float64 \[18\]; it must be float32 \[18\], contiguous and on "
        "the CPU"
    )
    with pytest.raises(ArrayError, match=message):
        function(**_changed("_factored.residual_norm", gain=gain))


def _changed(name: str, **changes: object) -> Arguments:
    return CASES[name](False) | changes
