"""What is tried next and what is ended early, from dev curves that are made up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from spmrl_bench.errors import CheckpointError
from spmrl_bench.search.journal import FIRST_TRIALS, SAMPLERS, Journal, Rules, mend
from spmrl_bench.search.space import Choice, Range

SPACE = {"train.learning_rate": Range(0.0001, 0.005, log=True), "model.layers": Choice(("1", "2"))}
EPOCHS, EVALUATIONS = 4, 2


def rules(pruner: str = "median", sampler: str = "tpe", seed: int = 1) -> Rules:
    return Rules(sampler, pruner, seed, EVALUATIONS, EPOCHS * EVALUATIONS)


def follow(journal: Journal, height: float) -> int:
    """Begin a trial with a curve that rises to a height; where it was ended, 0 for nowhere."""
    trial = journal.begin(SPACE)
    for point in range(1, EPOCHS * EVALUATIONS + 1):
        if journal.report(trial.number, point, height * (1 - 0.5**point)):
            journal.end(trial.number, "pruned", dev=height)
            return point
    journal.end(trial.number, "complete", dev=height, minutes=0.5)
    return 0


def test_a_curve_below_the_others_is_ended_after_the_first_epoch(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rules())
    heights = [70.0, 10.0, 80.0, 75.0, 72.0]
    assert len(heights) == FIRST_TRIALS
    assert [follow(journal, height) for height in heights] == [0] * 5  # nothing to compare with
    assert follow(journal, 71.0) == EVALUATIONS
    assert follow(journal, 73.0) == 0
    assert follow(journal, 20.0) == EVALUATIONS
    states = [(trial.state, trial.dev) for trial in journal.trials()]
    assert states[5:] == [("pruned", 71.0), ("complete", 73.0), ("pruned", 20.0)]


def test_hyperband_ends_bad_trials_and_not_the_best(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rules("hyperband"))
    heights = [80.0, *(float(k) for k in range(20))]
    found = [follow(journal, height) for height in heights]
    assert found[0] == 0
    assert sum(point > 0 for point in found) >= 5
    assert all(point in (0, 2, 6) for point in found)  # after an epoch, and three times as much


def test_without_a_pruner_nothing_is_ended(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rules("none"))
    assert [follow(journal, height) for height in (80.0,) * 6 + (1.0,)] == [0] * 7


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_settings_are_a_function_of_the_seed_and_of_what_is_known(
    tmp_path: Path, sampler: str
) -> None:
    def drawn(folder: Path, seed: int, reopened: bool) -> list[object]:
        journal = Journal(folder, rules("none", sampler, seed))
        for number in range(9):
            if reopened:
                journal = Journal(folder, rules("none", sampler, seed))
            follow(journal, 50.0 + number)
        return [trial.values for trial in journal.trials()]

    once = drawn(tmp_path / "a", 1, False)
    assert drawn(tmp_path / "b", 1, True) == once
    assert drawn(tmp_path / "c", 2, False) != once


def test_the_sampler_learns_from_earlier_trials(tmp_path: Path) -> None:
    """Rates near 0.001 are the best, and those of later trials lie nearer to it than blind ones."""

    def distance(sampler: str, seed: int) -> float:
        """Mean of the last ten trials of 25, in powers of e."""
        journal = Journal(tmp_path / f"{sampler}{seed}", rules("none", sampler, seed))
        found = []
        for _ in range(25):
            trial = journal.begin(SPACE)
            found.append(abs(math.log(float(trial.values["train.learning_rate"]) / 0.001)))
            journal.end(trial.number, "complete", dev=90 - 10 * found[-1])
        return sum(found[-10:]) / 10

    means = {name: sum(distance(name, seed) for seed in (1, 2, 3)) / 3 for name in SAMPLERS}
    assert means["tpe"] < 0.7 * means["random"]


def test_no_settings_are_tried_twice(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rules("none"))
    space = {"model.layers": Range(1, 3, whole=True), "train.batch_size": Choice(("8", "16"))}
    for _ in range(6):
        trial = journal.begin(space)
        journal.end(trial.number, "complete", dev=1.0)
    assert journal.begin(space) is None
    assert len({tuple(trial.values.items()) for trial in journal.trials()}) == 6


def test_half_a_line_of_a_process_that_was_killed_is_removed(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rules())
    follow(journal, 50.0)
    before = journal.trials()
    path = tmp_path / "journal.log"
    path.write_bytes(path.read_bytes() + b'{"op_code":6,"wor')
    mend(tmp_path)
    again = Journal(tmp_path, rules())
    assert again.trials() == before
    follow(again, 60.0)
    assert [trial.dev for trial in Journal(tmp_path, rules()).trials()] == [50.0, 60.0]


def test_a_journal_that_was_changed_is_told_in_words(tmp_path: Path) -> None:
    follow(Journal(tmp_path, rules()), 50.0)
    path = tmp_path / "journal.log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"no JSON\n", *lines[1:]]))
    with pytest.raises(CheckpointError, match="the journal of the search is broken"):
        Journal(tmp_path, rules())


def test_a_failed_trial_says_why_and_is_not_learnt_from(tmp_path: Path) -> None:
    journal = Journal(tmp_path, rules())
    trial = journal.begin(SPACE)
    journal.end(trial.number, "failed", minutes=1.5, problem="it diverged")
    (found,) = journal.trials()
    assert (found.state, found.dev, found.minutes) == ("failed", None, 1.5)
    assert found.problem == "it diverged"
