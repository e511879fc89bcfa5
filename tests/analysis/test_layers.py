"""Shares of a stack of layers."""

from __future__ import annotations

import pytest

from spmrl_bench.analysis.layers import NAMES, layer_numbers


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("all", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("none", ()),
        ("first half", (0, 1, 2, 3)),
        ("last half", (4, 5, 6, 7)),
        ("first 3/4", (0, 1, 2, 3, 4, 5)),
        ("last 3/4", (2, 3, 4, 5, 6, 7)),
        ((6, 1, 6), (1, 6)),
    ],
)
def test_of_eight_layers_shares_are_those_of_the_paper(
    name: str | tuple[int, ...], numbers: tuple[int, ...]
) -> None:
    assert layer_numbers(name, 8) == numbers


def test_shares_that_are_no_whole_number_are_rounded_up() -> None:
    assert layer_numbers("first half", 5) == (0, 1, 2)
    assert layer_numbers("last half", 5) == (2, 3, 4)
    assert layer_numbers("last 3/4", 1) == (0,)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", range(10))
def test_both_ends_take_the_same_number_of_layers_and_all_exist(name: str, count: int) -> None:
    numbers = layer_numbers(name, count)
    assert set(numbers) <= set(range(count))
    mirrored = name.replace("first", "?").replace("last", "first").replace("?", "last")
    assert layer_numbers(mirrored, count) == tuple(count - 1 - n for n in reversed(numbers))


def test_a_number_beyond_the_stack_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"^layer 4: the layers are 0 to 3$"):
        layer_numbers((0, 4), 4)
    with pytest.raises(ValueError, match=r"^layer 0: there are no layers$"):
        layer_numbers((0,), 0)
