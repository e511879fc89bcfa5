"""The record of a run whose settings a search has tried says what the search has cost."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from spmrl_bench.experiments.search_document import NAME
from spmrl_bench.leaderboard.record import Record, read_records
from tests.experiments.test_search import folder_of, found, run
from tests.laboratory import Laboratory

SEARCH = ("--variant", "charlstm", "--trials", "2")


@pytest.fixture
def searched(laboratory: Laboratory) -> str:
    """The recipe, after a search of two trials."""
    recipe = str(laboratory.recipe)
    assert run("search", recipe, *SEARCH, "--set", "model.layers=1|2").exit_code == 0
    return recipe


def untimed(text: str) -> str:
    return re.sub(r"\d+\.\d min", "N min", text)


def scored(*options: str) -> tuple[str, Record]:
    """Train and score; what is printed, and the newest record."""
    assert run("train", *options).exit_code == 0
    result = run("eval", *options)
    assert result.exit_code == 0, result.output
    return result.stdout, read_records(Path("results/runs"))[-1]


def layers(recipe: str, number: int) -> tuple[str, ...]:
    return recipe, "--variant", "charlstm", "--set", f"model.layers={number}"


def test_the_row_of_the_chosen_settings_says_so(searched: str) -> None:
    again = run("search", searched, *SEARCH, "--set", "model.layers=1|2")
    command = shlex.split(again.stdout.splitlines()[-1])
    text, record = scored(*command[2:])
    (search,) = record.searches
    best = found().search.best
    assert search.found == best.number
    assert search.trials == found().search.trials
    assert search.space == {"model.layers": "1|2"}
    assert "| found by a search of 2 trials, N min |" in untimed(text)
    table = run("table").stdout
    assert "| found by a search of 2 trials, N min |" in untimed(table)
    rows = Path("results/table.csv").read_text(encoding="utf-8").splitlines()
    place = rows[0].split(",").index("searched")
    assert '"found by a search of 2 trials, N min"' in untimed(rows[1])
    assert rows[0].split(",")[place - 1] == "settings"
    assert run("site").exit_code == 0
    pages = [path.read_text(encoding="utf-8") for path in Path("results/site").rglob("*.html")]
    assert sum("found by a search of 2 trials, N min" in untimed(page) for page in pages) >= 3
    assert sum("Trials of a search by tpe, pruner median, seed 1" in page for page in pages) == 1


def test_settings_of_another_trial_are_told_too_with_any_seed_and_time(searched: str) -> None:
    best = found().search.best
    other = 3 - best.settings["model.layers"]
    text, record = scored(*layers(searched, other), "--seed", "7", "--minutes", "9")
    assert record.searches[0].found == 3 - best.number
    assert "| tried, not as the best, by a search of 2 trials, N min |" in untimed(text)


def test_all_searches_for_the_variant_count(searched: str) -> None:
    more = ("--set", "model.layers=3|4", "--variant", "charlstm", "--trials", "1")
    assert run("search", searched, *more).exit_code == 0
    other = ("--set", "model.layers=1|2", "--variant", "word-charlstm", "--trials", "1")
    assert run("search", searched, *other).exit_code == 0
    text, record = scored(*layers(searched, 1))
    assert sorted(len(search.trials) for search in record.searches) == [1, 2]
    assert "by 2 searches of 3 trials, N min |" in untimed(text)


def test_settings_that_no_search_has_tried_are_nobodys_choice(searched: str) -> None:
    text, record = scored(*layers(searched, 3))
    assert record.searches == []
    assert "search" not in text


def test_a_search_that_cannot_be_read_is_not_passed_over(searched: str) -> None:
    (folder_of("runs") / NAME).write_text("{", encoding="utf-8")
    assert run("train", *layers(searched, 1)).exit_code == 0
    result = run("eval", *layers(searched, 1))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "not the document of a search" in result.stderr
