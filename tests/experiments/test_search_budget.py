"""The record of a run whose settings a search has tried says what the search has cost."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from spmrl_bench.leaderboard.record import Record, read_records
from spmrl_bench.leaderboard.searches import SEARCH
from tests.experiments.test_search import folder_of, found, run
from tests.laboratory import Laboratory


def scored(*options: str) -> tuple[str, Record]:
    """Train and score; what is printed, and the newest record."""
    assert run("train", *options).exit_code == 0
    result = run("eval", *options)
    assert result.exit_code == 0, result.output
    return untimed(result.stdout), read_records(Path("results/runs"))[-1]


def untimed(text: str) -> str:
    return re.sub(r"\d+\.\d min", "N min", text)


def test_the_row_of_searched_settings_says_so(laboratory: Laboratory) -> None:
    recipe = str(laboratory.recipe)
    searching = ("study", "search", recipe, "--variant", "charlstm", "--trials", "2")
    result = run(*searching, "--set", "model.layers=1|2")
    command = shlex.split(result.stdout.splitlines()[-1])
    text, record = scored(*command[2:])
    (search,) = record.searches
    best = found().search.best
    assert search.found == best.number
    assert search.trials == found().search.trials
    assert search.space == {"model.layers": "1|2"}
    said = "found by a search of 2 trials, N min"
    assert f"| {said} |" in text
    assert f"| {said} |" in untimed(run("results", "table").stdout)
    assert f'"{said}"' in untimed(Path("results/table.csv").read_text(encoding="utf-8"))
    assert run("results", "site").exit_code == 0
    pages = [path.read_text(encoding="utf-8") for path in Path("results/site").rglob("*.html")]
    assert sum(said in untimed(page) for page in pages) >= 2

    def with_layers(number: int) -> tuple[str, ...]:
        return recipe, "--variant", "charlstm", "--set", f"model.layers={number}"

    # Any seed and time; then with another search for the variant, and settings of none.
    other = 3 - best.settings["model.layers"]
    text, record = scored(*with_layers(other), "--seed", "7", "--minutes", "9")
    assert record.searches[0].found == 3 - best.number
    assert "| tried, not as the best, by a search of 2 trials, N min |" in text
    assert run(*searching[:5], "--trials", "1", "--set", "model.layers=4|5").exit_code == 0
    word = ("study", "search", recipe, "--variant", "word-charlstm", "--trials", "1")
    assert run(*word, "--set", "model.layers=1|2").exit_code == 0
    text, record = scored(*with_layers(1), "--seed", "8")
    assert sorted(len(search.trials) for search in record.searches) == [1, 2]
    assert "by 2 searches of 3 trials, N min |" in text
    _, record = scored(*with_layers(3))
    assert record.searches == []


def test_a_search_that_cannot_be_read_is_not_passed_over(laboratory: Laboratory) -> None:
    options = (str(laboratory.recipe), "--variant", "charlstm")
    run("study", "search", *options, "--trials", "1", "--set", "model.layers=1|2")
    (folder_of("runs") / SEARCH).write_text("{", encoding="utf-8")
    assert run("train", *options).exit_code == 0
    result = run("eval", *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "not the document of a search" in result.stderr
