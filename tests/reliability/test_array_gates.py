"""Charts and scores: what their kernels would misread never reaches them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.chart.joint_trees import decode_joint, joint_marginals
from spmrl_bench.chart.span_trees import decode_spans, span_marginals
from spmrl_bench.errors import ArrayError, SpmrlError
from tests.reliability.tally import Tally
from tests.twins import TWINS, built, functions, running_on

compiled = all(map(built, TWINS)) and find_spec("spmrl_bench.scoring._scanning")
pytestmark = pytest.mark.skipif(not compiled, reason="the kernels are not built")

Arguments = dict[str, Any]
LENGTHS = [3, 1, 2]


def _values() -> Arguments:
    return {"values": np.arange(10.0) - 5, "lengths": np.array(LENGTHS, dtype=np.int32)}


def _labels() -> Arguments:
    return {name: np.array([1, 1, 4, 2, 2, 3, 1, 2, 3, 4], np.int32) for name in ("labels", "gold")}


def _arcs() -> Arguments:
    arcs = np.random.default_rng(2).standard_normal(20)
    return {"arcs": arcs, "lengths": np.array(LENGTHS, dtype=np.int32)}


#: The way to each kernel, with good arrays, and the functions of kernels that it leads to.
GATES: list[tuple[str, Callable[..., object], Arguments, str]] = [
    ("decode_spans", decode_spans, _values() | _labels(), "_spans: decode"),
    # The twin adds logarithms, and has other last digits.
    (
        "span_marginals",
        lambda values, lengths: span_marginals(values, lengths).probabilities.round(9),
        _values(),
        "_spans: sum_up",
    ),
    (
        "decode_dependencies",
        lambda **given: decode_dependencies(**given, projective=False),
        _arcs(),
        "_dependencies: decode",
    ),
    (
        "decode_dependencies, projective",
        lambda **given: decode_dependencies(**given, projective=True),
        _arcs(),
        "_dependencies: decode",
    ),
    ("decode_joint", decode_joint, _values() | _arcs(), "_joint: decode"),
    (
        "joint_marginals",
        lambda values, arcs, lengths: joint_marginals(values, arcs, lengths).arcs.round(9),
        _values() | _arcs(),
        "_joint: sum_up",
    ),
]
#: These take no arrays.
WITHOUT_ARRAYS = {f"{module}.openmp_threads" for module in TWINS.values()}


def test_there_is_a_way_to_every_function() -> None:
    reached = {
        f"{module}.{name}"
        for *_, kernels in GATES
        for module, _, names in [kernels.partition(": ")]
        for name in names.split()
    }
    assert reached | WITHOUT_ARRAYS == {*functions("chart")}
    assert {*functions("scoring")} == {"_scanning.count_texts"}
    for _, gate, good, _ in GATES:
        taken = inspect.signature(gate).parameters
        assert set(good) <= set(taken) or any(p.kind is p.VAR_KEYWORD for p in taken.values())


def spoilt(array: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    """What might be given in place of an array."""
    for dtype in (np.float16, np.float32, np.float64, np.int16, np.int64, np.uint32, np.bool_):
        if array.dtype != dtype:
            with np.errstate(invalid="ignore"):
                yield np.dtype(dtype).name, array.astype(dtype)
    yield "complex", array.astype(np.complex64)
    yield "objects", array.astype(object)
    yield "the other byte order", array.astype(array.dtype.newbyteorder())
    yield "strided", np.repeat(array, 2, axis=-1)[..., ::2]
    yield "reversed", array[::-1][::-1]
    yield "column by column", np.asfortranarray(array)
    yield "one more dimension", array[None]
    yield "flat", array.ravel()
    yield "one row short", array[:-1]
    yield "one row more", np.concatenate([array, array[-1:]])
    if array.ndim > 1:
        yield "one column short", np.ascontiguousarray(array[:, :-1])
        yield "one column more", np.concatenate([array, array[:, -1:]], axis=1)
        yield "transposed", array.T
    yield "empty", array[:0]
    yield "a number", array.ravel()[0]
    yield "a text", "scores"
    numbers: tuple[float, ...] = ()
    if array.dtype.kind == "f":
        numbers = (np.nan, np.inf, -np.inf)
    elif array.dtype == np.int32:
        numbers = (-1, -2, -(2**31), 4, 7, 1_000, 2**31 - 1)
    for number in numbers:
        for place in range(array.size):
            wrong = array.copy()
            wrong.flat[place] = number
            yield f"{number} at {place}", wrong


def outcome(gate: Callable[..., object], given: Arguments) -> list[Any] | None:
    """What comes of it, as lists; None where it is refused."""
    try:
        result = gate(**given)
    except SpmrlError:
        return None
    if is_dataclass(result):
        parts = [getattr(result, field.name) for field in fields(result)]
    else:
        parts = result if isinstance(result, list) else [result]
    return [np.asarray(part).tolist() for part in parts]


@pytest.mark.parametrize(("name", "gate", "good", "kernels"), GATES, ids=[way[0] for way in GATES])
def test_no_array_is_misread(
    name: str, gate: Callable[..., object], good: Arguments, kernels: str, tally: Tally
) -> None:
    """Refused, or the result of the twin in plain Python, which reads no memory."""
    held = tally("R9", "arrays given to charts, each spoilt in many ways")
    assert outcome(gate, good) is not None
    for argument, value in good.items():
        ways = list(spoilt(value))
        found = []
        for _, wrong in ways:
            held.add()
            copies = {each: array.copy() for each, array in good.items()}
            found.append(outcome(gate, copies | {argument: wrong}))
        assert sum(result is None for result in found) >= 6
        with running_on("python"):
            for (way, wrong), result in zip(ways, found, strict=True):
                copies = {each: array.copy() for each, array in good.items()}
                assert outcome(gate, copies | {argument: wrong}) == result, (argument, way)


@pytest.mark.parametrize("lengths", [[2**31 - 1] * 5, [2**31 - 1], [2**30, 2**30]])
def test_lengths_that_no_memory_holds_are_refused(lengths: list[int]) -> None:
    with pytest.raises(ArrayError):
        decode_joint([], [], lengths)


@pytest.mark.parametrize("wrong", [None, ["text"], b"text"])
def test_what_is_no_text_is_refused(wrong: Any) -> None:
    count = functions("scoring")["_scanning.count_texts"]
    for sides in ((wrong, ""), ("", wrong)):
        with pytest.raises(TypeError):
            count(*sides, None, False)
