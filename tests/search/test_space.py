"""The notation of what is searched: what it means, and what is refused in it."""

from __future__ import annotations

import pytest

from spmrl_bench.errors import RecipeError
from spmrl_bench.search.space import Choice, Range, read_settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log:1e-4:5e-3", Range(0.0001, 0.005, log=True)),
        ("0.1:0.5", Range(0.1, 0.5)),
        ("-1 : 2", Range(-1.0, 2.0)),
        ("int:2:8", Range(2, 8, whole=True)),
        ("8|16|32", Choice(("8", "16", "32"))),
        ("[8, 16]|[32]", Choice(("[8, 16]", "[32]"))),
    ],
)
def test_several_values_are_searched(text: str, expected: object) -> None:
    assert read_settings({"train.some": text}).space == {"train.some": expected}


@pytest.mark.parametrize("text", ["5", "0.1", "none", "vectors:v2.txt", "C:/files/v.txt", "[1, 2]"])
def test_one_value_is_that_of_all_trials(text: str) -> None:
    found = read_settings({"model.one": text, "model.many": "1|2"})
    assert found.fixed == {"model.one": text}
    assert list(found.space) == ["model.many"]


def test_ways_to_write_a_range_are_the_same_search() -> None:
    texts = ("log:1e-4:5e-3", "log:0.0001:0.005", " log : 0.00010 : 5e-03")
    spaces = [read_settings({"train.learning_rate": text}).space for text in texts]
    assert {space["train.learning_rate"].text for space in spaces} == {"log:0.0001:0.005"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0.5:0.1", "0.5 is not less than 0.1"),
        ("int:2:2", "2 is not less than 2"),
        ("int:2.5:8", "int:LOW:HIGH has whole numbers"),
        ("log:0:1", "log:LOW:HIGH has numbers above 0"),
        ("log:a:1", "expected log:LOW:HIGH with two finite numbers"),
        ("log:1e-4", "expected log:LOW:HIGH with two finite numbers"),
        ("1:2:3", "expected LOW:HIGH with two finite numbers"),
        ("0.1:", "expected LOW:HIGH with two finite numbers"),
        ("1:inf", "expected LOW:HIGH with two finite numbers"),
        ("8||16", "a value beside | is empty; expected A|B|C"),
        ("8|16|8", "a value is there twice; expected A|B|C"),
    ],
)
def test_what_is_no_range_and_no_list_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read_settings({"train.some": text})
    assert str(caught.value) == f"--set train.some={text}: {reason}"


def test_a_search_has_something_to_search() -> None:
    with pytest.raises(RecipeError) as caught:
        read_settings({"train.max_epochs": "5"})
    assert str(caught.value).startswith("nothing to search: give one setting at least several")


def test_numbers_are_short_enough_to_be_repeated_and_stay_inside() -> None:
    rate = Range(0.00012344, 0.00498765, log=True)
    assert rate.value(0.0012345678) == 0.001235
    assert rate.value(0.0049876499) == 0.00498765
    assert rate.value(0.00012344) == 0.00012344
    assert Range(2, 8, whole=True).value(3) == 3
    assert Choice(("a", "b")).value("b") == "b"
