"""A whole search: its trials, its end, how it goes on after any other end, and what it cost."""

from __future__ import annotations

import json
import pickle
import re
import shlex
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from spmrl_bench.errors import CheckpointError, RecipeError
from spmrl_bench.experiments import search as search_module
from spmrl_bench.experiments.search import (
    FIRST_TRIALS,
    SearchPlan,
    Value,
    draw,
    falls_behind,
    notation,
    plan_search,
    read_space,
    trial_folder,
)
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.searches import (
    SEARCH,
    Search,
    SearchDocument,
    SearchTrial,
    read_search,
)
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.legacy import short
from spmrl_bench.training import LAST
from spmrl_bench.training.schedule import Progress
from tests.builders import cli, cli_process, records_in, refused, works
from tests.laboratory import Laboratory

SPACE = ("--set", "train.learning_rate=log:1e-3:5e-2", "--set", "train.batch_size=8|20")
WEIGHTS = ("best/weights.safetensors", "last/weights.safetensors", "last/optimiser.safetensors")

# Training of two epochs, of which the process is killed in place of a save.
KILLED = """\
import os, signal, sys
from spmrl_bench.training import trainer
real, number = trainer.save_checkpoint, int(sys.argv.pop(1))
def save(*arguments):
    global number
    number -= 1
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*arguments)
trainer.save_checkpoint = save
from spmrl_bench.entry import main
main()
"""


@pytest.fixture
def words(laboratory: Laboratory) -> tuple[str, ...]:
    """A search over a tiny parser, of two epochs with two evaluations each."""
    laboratory.write_recipe(["tiny-open"], train={"evaluations_per_epoch": 2, "max_epochs": 2})
    return "study", "search", str(laboratory.recipe), "--variant", "charlstm", *SPACE


def folder_of(runs: str) -> Path:
    (folder,) = Path(runs).glob("tiny-open/search-*")
    return folder


def found(runs: str = "runs") -> SearchDocument:
    document = read_search(folder_of(runs))
    assert document is not None
    return document


def state_of(runs: str) -> tuple[list[dict[str, Any]], list[bytes]]:
    """All trials but for their time, and their weights."""
    trials = [trial.model_dump(exclude={"minutes"}) for trial in found(runs).search.trials]
    folders = sorted((folder_of(runs) / "trials").iterdir())
    return trials, [(folder / name).read_bytes() for folder in folders for name in WEIGHTS]


def test_a_search_tells_its_trials_and_the_command_of_the_best(words: tuple[str, ...]) -> None:
    result = works(*words, "--trials", "3")
    search = found().search
    assert [trial.state for trial in search.trials] == ["complete"] * 3
    assert all(1e-3 <= trial.settings["train.learning_rate"] <= 5e-2 for trial in search.trials)
    assert search.best.dev == max(trial.dev or 0 for trial in search.trials)
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["trial", "batch_size", "learning_rate"]
    assert "3 trials (3 complete), " in result.stdout
    command = lines[-1].split()
    assert command[:2] == ["spmrl-bench", "train"]
    values = [f"{key}={value}" for key, value in search.best.settings.items()]
    assert [command[k + 1] for k, word in enumerate(command) if word == "--set"] == values
    # Nothing takes trials for runs that were trained for their own sake.
    assert "not trained yet" in refused("eval", words[2], "--variant", "charlstm")
    assert [path.name for path in Path("runs/tiny-open").iterdir()] == [folder_of("runs").name]


def test_the_same_search_has_the_same_trials_and_more_are_added(words: tuple[str, ...]) -> None:
    works(*words, "--trials", "3")
    works(*words, "--trials", "2", "--runs", "again")
    first = state_of("again")
    again = works(*words, "--trials", "2", "--runs", "again")
    assert "started" not in again.stderr
    assert state_of("again") == first
    # As one that was begun when settings were flat, and one was not known.
    path = folder_of("again") / SEARCH
    content = json.loads(path.read_text(encoding="utf-8"))
    content["base"]["model"] = short(content["base"]["model"])
    assert {"lexical", "d_ff"} <= content["base"]["model"].keys()
    del content["base"]["model"]["threshold"]
    path.write_text(json.dumps(content), encoding="utf-8")
    works(*words, "--trials", "3", "--runs", "again")
    assert state_of("again") == state_of("runs")


def test_a_search_that_was_killed_goes_on_with_the_same_trials(
    words: tuple[str, ...], laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the second trial."""
    works(*words, "--trials", "3", "--pruner", "none")
    options = ("--trials", "3", "--pruner", "none", "--runs", "killed")
    with monkeypatch.context() as patch:
        laboratory.in_use_by_processes(patch)
        patch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
        ended = cli_process(6, *words, *options, code=KILLED)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert [trial.state for trial in found("killed").search.trials] == ["complete", "running"]
    works(*words, *options)
    assert state_of("killed") == state_of("runs")


def test_a_trial_that_fails_counts_and_the_search_goes_on(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two batch sizes one diverges; then no settings are left."""
    real = ChartParser.gradients

    def diverging(self: Any, batch: Any, *rest: Any) -> float:
        return float("nan") if len(batch) > 8 else real(self, batch, *rest)

    monkeypatch.setattr(ChartParser, "gradients", diverging)
    words = (*words[:5], "--set", "train.batch_size=8|20", "--trials", "3")
    result = works(*words)
    search = found().search
    assert sorted(trial.state for trial in search.trials) == ["complete", "failed"]
    (failed,) = (trial for trial in search.trials if trial.state == "failed")
    assert "training diverged after 0 of 2 batches of epoch 1: the loss is nan" in failed.problem
    assert f"trial {failed.number}: {failed.problem}" in result.stdout
    assert "2 trials (1 complete, 1 failed)" in result.stdout
    assert "no settings are left that none of the 2 trials has had" in result.stderr
    works(*words)
    assert found().search.trials == search.trials


def test_what_is_no_fault_of_a_trial_ends_the_search_and_leaves_it_open(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise CheckpointError("no room on the disk")

    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.training.trainer.save_checkpoint", full)
        result = cli(*words, "--trials", "2")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("spmrl-bench: no room on the disk\n")
    assert [trial.state for trial in found().search.trials] == ["running"]
    works(*words, "--trials", "2")
    assert [trial.number for trial in found().search.trials] == [1, 2]


def test_bad_trials_are_pruned(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate that learns nothing, after one that does."""
    key = "train.learning_rate"
    drawn = iter(({key: "0.02"}, {key: "1e-9"}))
    monkeypatch.setattr(search_module, "FIRST_TRIALS", 1)
    monkeypatch.setattr(search_module, "draw", lambda *_: next(drawn))
    options = ("--trials", "2", "--set", "train.max_epochs=4")
    works(*words[:5], "--set", f"{key}=0.02|1e-9", *options)
    assert [trial.state for trial in found().search.trials] == ["complete", "pruned"]
    assert found().search.best.settings == {key: 0.02}
    progress = folder_of("runs") / "trials" / "002" / "last" / "progress.json"
    assert json.loads(progress.read_text(encoding="utf-8"))["epoch"] < 4


def test_another_search_has_another_folder_or_is_refused(
    words: tuple[str, ...], laboratory: Laboratory
) -> None:
    def folder(seed: int = 1, **options: Any) -> Path:
        given = dict(word.split("=") for word in SPACE[1::2]) | options.pop("settings", {})
        work = plan_search(words[2], variants=["charlstm"], settings=given, seed=seed, **options)
        return pickle.loads(pickle.dumps(work)).folder(Path("runs"))

    others: list[dict[str, Any]] = [{"seed": 2}, {"pruner": "none"}, {"sampler": "random"}]
    others += [{"settings": {"train.max_epochs": "1"}}, {"settings": {"train.batch_size": "8|9"}}]
    assert len({folder(), *(folder(**other) for other in others)}) == 1 + len(others)

    works(*words, "--trials", "1")
    assert folder() == folder_of("runs")
    laboratory.write_recipe(["tiny-open"], train={"evaluations_per_epoch": 2, "max_epochs": 3})
    said = refused(*words, "--trials", "2")
    assert "holds another search: base.train.max_epochs is 2 there, 3 now" in said
    path = folder_of("runs") / SEARCH
    path.write_text("{}", encoding="utf-8")
    assert f"{path}: not the document of a search: " in refused(*words, "--trials", "1")


def test_mistakes_are_told_before_anything_is_trained(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, message in (
        ("--set model.layers=1:3", "of whole numbers int:LOW:HIGH"),
        ("--set train.batch_size=8|0", "--set train.batch_size=8|0: 0 is refused: "),
        ("--set model.lexical=word|tag", "the variant decides it"),
        ("--set model.layer=int:1:3", "model.layer"),
        ("--set train.max_minutes=1:2", "at the same time"),
        ("--set train.evaluations_per_epoch=int:1:2", "at the same time and evaluations"),
        ("--set train.checkpoint_minutes=1:2", "it does not change what is learnt"),
        ("--set model.layers=1", "nothing to search"),
    ):
        assert message in refused(*words[:5], *options.split())
    wanted = "name it with --variant. The recipe has: charlstm, word-charlstm"
    assert wanted in refused(*words[:3], *SPACE)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'spmrl-bench[search]'" in refused(*words)
    assert not Path("runs").exists()


# The record of a run whose settings a search has tried says what the search has cost ---------


def scored(*options: str) -> tuple[str, Record]:
    """Train and score; what is printed, and the newest record."""
    works("train", *options)
    return untimed(works("eval", *options).stdout), records_in(Path("results/runs"))[-1]


def untimed(text: str) -> str:
    return re.sub(r"\d+\.\d min", "N min", text)


def test_the_row_of_searched_settings_says_so(laboratory: Laboratory) -> None:
    recipe = str(laboratory.recipe)
    searching = ("study", "search", recipe, "--variant", "charlstm", "--trials", "2")
    result = works(*searching, "--set", "model.layers=1|2")
    command = shlex.split(result.stdout.splitlines()[-1])
    text, record = scored(*command[2:])
    (search,) = record.searches
    best = found().search.best
    assert search.found == best.number
    assert search.trials == found().search.trials
    assert search.space == {"model.layers": "1|2"}
    said = "found by a search of 2 trials on tiny-open, N min"
    assert f"| {said} |" in text
    assert f"| {said} |" in untimed(works("results", "table").stdout)
    assert f'"{said}"' in untimed(Path("results/table.csv").read_text(encoding="utf-8"))
    works("results", "site")
    pages = [path.read_text(encoding="utf-8") for path in Path("results/site").rglob("*.html")]
    assert sum(said in untimed(page) for page in pages) >= 2

    def with_layers(number: int) -> tuple[str, ...]:
        return recipe, "--variant", "charlstm", "--set", f"model.layers={number}"

    # Any seed and time; then with another search for the variant, and settings of none.
    other = 3 - best.settings["model.layers"]
    text, record = scored(*with_layers(other), "--seed", "7", "--minutes", "9")
    assert record.searches[0].found == 3 - best.number
    assert "| tried, not as the best, by a search of 2 trials on tiny-open, N min |" in text
    works(*searching[:5], "--trials", "1", "--set", "model.layers=4|5")
    word = ("study", "search", recipe, "--variant", "word-charlstm", "--trials", "1")
    works(*word, "--set", "model.layers=1|2")
    text, record = scored(*with_layers(1), "--seed", "8")
    assert sorted(len(search.trials) for search in record.searches) == [1, 2]
    assert "by 2 searches of 3 trials on tiny-open, N min |" in text
    _, record = scored(*with_layers(3))
    assert record.searches == []


def test_a_search_that_cannot_be_read_is_not_passed_over(laboratory: Laboratory) -> None:
    options = (str(laboratory.recipe), "--variant", "charlstm")
    works("study", "search", *options, "--trials", "1", "--set", "model.layers=1|2")
    (folder_of("runs") / SEARCH).write_text("{", encoding="utf-8")
    works("train", *options)
    assert "not the document of a search" in refused("eval", *options)


# What is searched, what is tried next, and what is ended early, from made-up dev curves -------

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
        self.work = SearchPlan(
            {},
            first,
            {},
            read_space(space or {"train.learning_rate": "log:1e-4:5e-3"})[1],
            "tpe",
            pruner,
        )
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
