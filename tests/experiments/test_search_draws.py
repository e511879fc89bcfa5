"""What is searched, what is tried next, and what is ended early, from made-up dev curves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.search import (
    FIRST_TRIALS,
    SearchPlan,
    Value,
    draw,
    falls_behind,
    notation,
    read_space,
    trial_folder,
)
from spmrl_bench.leaderboard.searches import SEARCH, Search, SearchDocument, SearchTrial
from spmrl_bench.training import LAST
from spmrl_bench.training.schedule import Progress

SPACE = {"train.learning_rate": "log:1e-4:5e-3", "model.layers": "1|2"}
POINTS, EVALUATIONS = 8, 2


def test_several_values_are_searched_and_one_is_that_of_all_trials() -> None:
    for text, expected in (
        ("log:1e-4:5e-3", FloatDistribution(0.0001, 0.005, log=True)),
        (" log : 0.00010 : 5e-03", FloatDistribution(0.0001, 0.005, log=True)),
        ("-1 : 2", FloatDistribution(-1.0, 2.0)),
        ("int:2:8", IntDistribution(2, 8)),
        ("[8, 16]|[32]", CategoricalDistribution(["[8, 16]", "[32]"])),
        *((text, None) for text in ("5", "0.1", "none", "vectors:v2.txt", "C:/files/v.txt")),
    ):
        fixed, space = read_space({"train.some": text, "model.many": "1|2"})
        assert space.get("train.some") == expected
        assert fixed == ({} if expected else {"train.some": text})
        again = {key: notation(searched) for key, searched in space.items()}
        assert read_space(again)[1] == space


def test_what_is_no_range_and_no_list_is_refused() -> None:
    wrong = ("0.5:0.1", "int:8:2", "int:2.5:8", "log:0:1", "log:a:1", "log:1e-4", "1:2:3", "0.1:")
    for text in (*wrong, "1:inf", "8||16", "8|16|8"):
        with pytest.raises(RecipeError) as caught:
            read_space({"train.some": text})
        begins = f"--set train.some={text}: expected LOW:HIGH, the smaller"
        assert str(caught.value).startswith(begins)


class Made:
    """A search whose trials are not trained: their curves are made up."""

    def __init__(self, folder: Path, pruner: str = "none", **space: str) -> None:
        train = SimpleNamespace(evaluations_per_epoch=EVALUATIONS)
        first: Any = SimpleNamespace(config=SimpleNamespace(seed=1, train=train))
        self.folder = folder
        self.work = SearchPlan({}, first, {}, read_space(space or SPACE)[1], "tpe", pruner)
        self.trials: list[SearchTrial] = []

    def begin(self) -> dict[str, Value] | None:
        values = draw(self.work, self.folder, self.trials)
        if values is not None:
            number = len(self.trials) + 1
            self.trials.append(SearchTrial(number=number, settings=values, state="running"))
        return values

    def end(self, state: str, dev: float | None = None) -> None:
        self.trials[-1] = self.trials[-1].model_copy(update={"state": state, "dev": dev})

    def follow(self, height: float) -> int:
        """Begin a trial with a curve that rises to a height; where it was ended, 0 for nowhere."""
        self.begin()
        number = len(self.trials)
        search = Search(
            space={}, sampler="tpe", pruner="none", seed=1, select="f1", trials=self.trials
        )
        document = SearchDocument(search=search, base={}, recipes={}, versions={})
        place = trial_folder(self.folder, number) / LAST
        place.mkdir(parents=True)
        (place / "progress.json").write_text("{}")
        (self.folder / SEARCH).write_text(document.model_dump_json())
        curve: list[tuple[float, float]] = []
        for point in range(1, POINTS + 1):
            score = height * (1 - 0.5**point)
            if falls_behind(self.work, self.folder, number, point, score):
                self.end("pruned", height)
                return point
            curve.append((1.0, score))
            (place / "progress.json").write_text(Progress(curve=curve).model_dump_json())
        self.end("complete", height)
        return 0


def test_a_curve_below_the_others_is_ended_after_the_first_epoch(tmp_path: Path) -> None:
    search = Made(tmp_path, "median")
    heights = [70.0, 10.0, 80.0, 75.0, 72.0]
    assert len(heights) == FIRST_TRIALS
    assert [search.follow(height) for height in heights] == [0] * 5  # nothing to compare with
    assert search.follow(71.0) == EVALUATIONS
    assert search.follow(73.0) == 0
    assert search.follow(20.0) == EVALUATIONS
    unpruned = Made(tmp_path / "none")
    assert [unpruned.follow(height) for height in (80.0,) * 6 + (1.0,)] == [0] * 7


def test_no_settings_are_tried_twice_and_failed_ones_teach_nothing(tmp_path: Path) -> None:
    search = Made(tmp_path, **{"model.layers": "int:1:3", "train.batch_size": "8|16"})
    for number in range(6):
        search.begin()
        search.end("complete" if number % 2 else "failed", number % 2 or None)
    assert search.begin() is None
    assert len({tuple(trial.settings.items()) for trial in search.trials}) == 6
