"""The notation of what is searched: what it means, and what is refused in it."""

from __future__ import annotations

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.search_plan import notation, read_space, rounded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log:1e-4:5e-3", FloatDistribution(0.0001, 0.005, log=True)),
        (" log : 0.00010 : 5e-03", FloatDistribution(0.0001, 0.005, log=True)),
        ("0.1:0.5", FloatDistribution(0.1, 0.5)),
        ("-1 : 2", FloatDistribution(-1.0, 2.0)),
        ("int:2:8", IntDistribution(2, 8)),
        ("8|16|32", CategoricalDistribution(["8", "16", "32"])),
        ("[8, 16]|[32]", CategoricalDistribution(["[8, 16]", "[32]"])),
    ],
)
def test_several_values_are_searched(text: str, expected: object) -> None:
    _, space = read_space({"train.some": text})
    assert space == {"train.some": expected}
    assert read_space({"train.some": notation(space["train.some"])})[1] == space


@pytest.mark.parametrize("text", ["5", "0.1", "none", "vectors:v2.txt", "C:/files/v.txt", "[1, 2]"])
def test_one_value_is_that_of_all_trials(text: str) -> None:
    fixed, space = read_space({"model.one": text, "model.many": "1|2"})
    assert fixed == {"model.one": text}
    assert list(space) == ["model.many"]


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
        read_space({"train.some": text})
    assert str(caught.value) == f"--set train.some={text}: {reason}"


def test_a_search_has_something_to_search() -> None:
    with pytest.raises(RecipeError) as caught:
        read_space({"train.max_epochs": "5"})
    assert str(caught.value).startswith("nothing to search: give one setting at least several")


def test_numbers_are_short_enough_to_be_repeated_and_stay_inside() -> None:
    rate = FloatDistribution(0.00012344, 0.00498765, log=True)
    assert rounded(rate, 0.0012345678) == 0.001235
    assert rounded(rate, 0.0049876499) == 0.00498765
    assert rounded(rate, 0.00012344) == 0.00012344
    assert rounded(IntDistribution(2, 8), 3) == 3
    assert rounded(CategoricalDistribution(["a", "b"]), "b") == "b"
