"""Charts, transitions and scores: what their kernels would misread never reaches them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spmrl_bench import chart
from spmrl_bench.errors import ArrayError, SpmrlError
from spmrl_bench.transitions import (
    States,
    TransitionSystem,
    oracle_actions,
    replay,
    state_history,
)
from spmrl_bench.transitions.system import IllegalActionError
from tests.reliability.tally import Tally
from tests.twins import TWINS, built, functions, running_on

compiled = all(map(built, TWINS)) and find_spec("spmrl_bench.scoring._scanning")
pytestmark = pytest.mark.skipif(not compiled, reason="the kernels are not built")

Arguments = dict[str, Any]
LENGTHS = [3, 1, 2]
SYSTEM = TransitionSystem("arc-hybrid", 3, permitted=[[True, False], [False, True], [True, True]])
HEADS, RELATIONS = [2, 0, 2, 0, 2, 0], [1, 0, 2, 2, 1, 0]


def _scores() -> Arguments:
    rng = np.random.default_rng(1)
    cells = rng.standard_normal((10, 4)).astype(np.float32)
    return {"scores": cells, "lengths": np.array(LENGTHS, dtype=np.int32)}


def _gold() -> NDArray[np.int32]:
    return np.array([0, 1, 4, 2, 0, 3, 1, 2, 0, 4], dtype=np.int32)


def _by_blocks(scores: Any, lengths: Any, gold: Any) -> object:
    decoder = chart.BlockDecoder(lengths, gold)
    decoder.add(scores)
    return decoder.decode()


def _by_maxima(values: Any, labels: Any, lengths: Any) -> object:
    decoder = chart.BlockDecoder(lengths)
    decoder.add_maxima(values, labels)
    return decoder.decode()


def _arcs() -> Arguments:
    arcs = np.random.default_rng(2).standard_normal(20)
    return {"arcs": arcs, "lengths": np.array(LENGTHS, dtype=np.int32)}


def _states() -> Arguments:
    states = States.start(SYSTEM, LENGTHS)
    states.advance([0, 0, 0])
    names = ("sentences", "lengths", "stack", "sizes", "fronts", "heads", "relations")
    return {name: np.array(getattr(states, name)) for name in names}


def _after_step(actions: Any = (0, 4, 0), **arrays: Any) -> object:
    states = States(SYSTEM, **arrays)
    seen = [states.legal_actions(), *states.tops(), *states.masks()]
    states.advance(actions)
    return [*seen, *(getattr(states, name) for name in ("stack", "sizes", "fronts", "heads"))]


def _trees() -> Arguments:
    return {
        "heads": np.array(HEADS, dtype=np.int32),
        "relations": np.array(RELATIONS, dtype=np.int32),
        "lengths": np.array(LENGTHS, dtype=np.int32),
    }


def _actions() -> Arguments:
    return {
        "actions": oracle_actions(SYSTEM, HEADS, RELATIONS, LENGTHS),
        "lengths": np.array(LENGTHS, dtype=np.int32),
    }


def _legal() -> Arguments:
    states = States.start(SYSTEM, LENGTHS)
    return {"moves": states.legal_moves(), "at_root": states.sizes == 2}


#: The way to each kernel, with good arrays, and the functions of kernels that it leads to.
GATES: list[tuple[str, Callable[..., object], Arguments, str]] = [
    ("decode", chart.decode, _scores() | {"gold": _gold()}, "_cky: label_maxima find_labels"),
    ("add", _by_blocks, _scores() | {"gold": _gold()}, "_cky: label_maxima decode_maxima"),
    (
        "add_maxima",
        _by_maxima,
        {"values": np.arange(10.0) - 5, "labels": _gold() + 1, "lengths": _scores()["lengths"]},
        "_cky: decode_maxima",
    ),
    (
        "decode_dependencies",
        lambda **given: chart.decode_dependencies(**given, projective=False),
        _arcs(),
        "_dependency: decode_spanning",
    ),
    (
        "decode_dependencies, projective",
        lambda **given: chart.decode_dependencies(**given, projective=True),
        _arcs(),
        "_dependency: decode_projective",
    ),
    (
        "decode_joint",
        chart.decode_joint,
        {"values": np.arange(10.0) - 5} | _arcs(),
        "_joint: decode",
    ),
    ("States", _after_step, _states(), "_transitions: legal_moves masks tops advance"),
    (
        "States.advance",
        lambda actions: _after_step(actions, **_states()),
        {"actions": np.array([0, 4, 0], dtype=np.int32)},
        "_transitions: advance",
    ),
    ("legal_actions", SYSTEM.legal_actions, _legal(), "_transitions: legal_actions"),
    ("oracle_actions", lambda **g: oracle_actions(SYSTEM, **g), _trees(), "_transitions: oracle"),
    ("state_history", lambda **g: state_history(SYSTEM, **g), _actions(), "_transitions: history"),
    ("replay", lambda **given: replay(SYSTEM, **given), _actions(), "_transitions: advance"),
]
#: These take no arrays.
WITHOUT_ARRAYS = {"_cky.openmp_threads", "_dependency.openmp_threads", "_joint.openmp_threads"}
WITHOUT_ARRAYS |= {"_joint.vector_lanes"}


def test_there_is_a_way_to_every_function() -> None:
    reached = {
        f"{module}.{name}"
        for *_, kernels in GATES
        for module, _, names in [kernels.partition(": ")]
        for name in names.split()
    }
    assert reached | WITHOUT_ARRAYS == {*functions("chart"), *functions("transitions")}
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
    except (SpmrlError, IllegalActionError):
        return None
    if is_dataclass(result):
        parts = [getattr(result, field.name) for field in fields(result)]
    else:
        parts = result if isinstance(result, list) else [result]
    return [np.asarray(part).tolist() for part in parts if not isinstance(part, TransitionSystem)]


@pytest.mark.parametrize(("name", "gate", "good", "kernels"), GATES, ids=[way[0] for way in GATES])
def test_no_array_is_misread(
    name: str,
    gate: Callable[..., object],
    good: Arguments,
    kernels: str,
    tally: Tally,
) -> None:
    """Refused, or the result of the twin in plain Python, which reads no memory."""
    held = tally("R9", "arrays given to charts and transitions, each spoilt in many ways")
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


def test_the_kernels_were_those_that_are_tested() -> None:
    assert {twin.load().name for twin in TWINS.values()} == {"cython"}


def test_blocks_that_were_added_are_not_taken_for_the_whole() -> None:
    scores = _scores()["scores"]
    decoder = chart.BlockDecoder(LENGTHS)
    decoder.add(scores[:4])
    with pytest.raises(ArrayError, match="scores of 4 cells were added before"):
        decoder.decode_whole(scores[4:])


def test_a_block_that_was_refused_can_be_added_right() -> None:
    scores = _scores()["scores"]
    decoder, expected = chart.BlockDecoder(LENGTHS), chart.decode(scores, LENGTHS)
    decoder.add(scores[:4])
    wrong = scores[4:].copy()
    wrong[2, 1] = np.nan
    with pytest.raises(chart.NotFiniteError):
        decoder.add(wrong)
    decoder.add(scores[4:])
    assert decoder.decode().cells.tolist() == expected.cells.tolist()


@pytest.mark.parametrize("lengths", [[2**31 - 1] * 5, [2**31 - 1], [2**30, 2**30]])
def test_lengths_that_no_memory_holds_are_refused(lengths: list[int]) -> None:
    for gate in (chart.BlockDecoder, lambda given: chart.decode_joint([], [], given)):
        with pytest.raises(ArrayError):
            gate(lengths)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", 2**70])
def test_threads(threads: Any) -> None:
    if threads == 2**70:
        assert len(chart.decode(**_scores(), threads=threads).cells) == 9
        return
    for gate in (
        lambda: chart.decode(**_scores(), threads=threads),
        lambda: chart.decode_joint(np.zeros(10), **_arcs(), threads=threads),
        lambda: chart.decode_dependencies(**_arcs(), projective=True, threads=threads),
    ):
        with pytest.raises(ArrayError, match="threads is"):
            gate()


# ---- texts -------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [None, ["text"], b"text"])
def test_what_is_no_text_is_refused(wrong: Any) -> None:
    count = functions("scoring")["_scanning.count_texts"]
    for sides in ((wrong, ""), ("", wrong)):
        with pytest.raises(TypeError):
            count(*sides, None, False)
