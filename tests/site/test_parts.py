"""Parts of the site by themselves: addresses, rankings, sentences, pictures, commands."""

from __future__ import annotations

import shlex
import tomllib

import numpy as np
import pytest

from spmrl_bench.leaderboard.board import Sums, groups_of
from spmrl_bench.leaderboard.frame import Run
from spmrl_bench.leaderboard.record import Record, SystemTraining
from spmrl_bench.scoring.bracket_metric import BRACKETS, by_sentence_length
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.site.parses import compared
from spmrl_bench.site.reproduce import commands
from spmrl_bench.site.standings import by_length, ranking, slugs
from spmrl_bench.systems.description import load_system
from tests.site.generated import NASTY, random_counts, run_record, system_record

VIEW = ("brackets", "test")


def test_addresses_are_safe_and_their_own() -> None:
    assert slugs(["word-charlstm small", "a=1.5"]) == ["word-charlstm_small", "a=1.5"]
    texts = [
        NASTY, "../../etc/passwd", "", ".", "..", "CON", "con", "Con", "日本", "日本語", "x" * 300,
        "x" * 301, "a/b", "a b", "a-b", "a_b", "A b", "naïve", "naive", "\0", "-rf", "a\nb", "aa",
        "aa", "aa~2",
    ]  # fmt: skip
    found = slugs(texts)
    assert len({name.lower() for name in found}) == len(texts)
    for name in found:
        assert name.isascii()
        assert 0 < len(name) < 80
        assert name[0] not in ".-"
        assert not set(name) & set("/\\\0 <>&\"'`|:?*%#\n")
        assert name.lower() not in ("con", "nul")
    assert slugs([NASTY])[0] == found[0]  # whatever else there is


def test_the_best_and_those_not_worse_share_a_mark() -> None:
    qualities = {"best": 0.9, "close": 0.895, "far": 0.5}
    runs = [run_record("polish-mini", name, 1, own) for name, own in qualities.items()]
    runs.append(system_record("polish-mini", "near", 0.89))
    (group,), (single,) = groups_of(map(Run, runs)), groups_of([Run(runs[0])])
    ranked, alone = ranking(group, VIEW), ranking(single, VIEW)
    marks = {entry.name: ranked.mark(entry) for entry in ranked.ordered}
    assert marks.pop("far") == ""
    assert [*marks.values()] == ["a"] * 3
    assert ranked.rival(ranked.ordered[0]) is ranked.ordered[1]
    assert (alone.mark(alone.ordered[0]), alone.rival(alone.ordered[0])) == ("", None)


def test_errors_are_counted_for_each_run() -> None:
    def summed(matched: list[int], runs: int) -> Sums:
        gold = np.array([4, 4, 4, 4]) * runs
        ratio = Ratio("f1", 2 * np.array(matched), 2 * gold)
        return Sums(ratio, np.array([True, True, True, False]), [5, 6, 7, 8], runs)

    both = compared(summed([4, 2, 0, 0], 1), summed([7, 8, 0, 8], 2))
    assert both[:3] == (1, 1, 1)
    assert both.differing == [(2, 6, 4.0, 0.0), (1, 5, 0.0, 1.0)]


def test_classes_of_length_are_those_of_the_breakdown() -> None:
    rows = random_counts(0.8, 200, 3).rows.copy()
    rows[5, Column.STATUS] = Status.WORDS_UNMATCH
    rows[5, Column.MATCHED :] = 0
    counts = BracketCounts(rows)
    sums = Sums(BRACKETS.ratios(counts)[0], counts.scored, list(BRACKETS.lengths(counts)), 1)
    parts = by_sentence_length(counts)
    expected = {one.name: (one.sentences, pytest.approx(one.figures()["f1"])) for one in parts}
    assert by_length(sums) == expected


@pytest.mark.parametrize(
    "value", [5, 0.5, True, "full", "5", "true", "a b", "it's", 'say "x"', [1, 2], ["a", "b"]]
)
def test_settings_of_commands_are_read_as_they_were(value: object) -> None:
    recipe = {"settings": {"model.some_key": value}}
    train, evaluate = commands(run_record("polish-mini", "one", 3, 0.9, recipe=recipe))
    words = shlex.split(train)
    assert shlex.split(evaluate) == ["spmrl-bench", "eval", *words[2:]]
    assert words[words.index("--seed") + 1] == "3"
    key, _, text = words[words.index("--set") + 1].partition("=")
    assert key == "model.some_key"
    try:
        assert tomllib.loads(f"x = {text}")["x"] == value
    except tomllib.TOMLDecodeError:
        assert text == value


def trained_system(**about: object) -> Record:
    """A system of somebody else that was trained here."""
    recipe = {"kind": "system", "system": about, "settings": {"system.mode": "a b"}}
    training = SystemTraining(wall_seconds=600, minutes=10, out_of_time=True)
    system = system_record("polish-mini", "x", 1).system.model_copy(update={"training": training})
    more = {"kind": "system", "system": system, "recipe": recipe, "training": None}
    return run_record("polish-mini", "UDPipe 1", 3, 0.9).model_copy(update=more)


def test_systems_and_ensembles_are_made_again() -> None:
    digest = load_system("udpipe").digest
    options = "--treebank polish-mini --system udpipe --size small --seed 3 --set 'mode=a b'"
    assert commands(trained_system(description=digest, minutes=10.0)) == [
        f"spmrl-bench {what} polish {options} --minutes 10" for what in ("train", "eval")
    ]
    assert commands(trained_system(description=digest, minutes="x"))[0].endswith(options)
    record = trained_system(description="0" * 16)
    assert commands(record) == []  # which is not here
    alike = record.model_copy(
        update={"system": record.system.model_copy(update={"name": "UDPipe 1"})}
    )
    assert commands(alike) == [
        "# the description of this system has changed since",
        *(f"spmrl-bench {what} polish {options}" for what in ("train", "eval")),
    ]
    ensemble = run_record("polish-mini", "one", 1, 0.9, ensemble=["ab" * 32, "cd" * 32])
    assert commands(ensemble)[1].endswith("--seeds 2 --ensemble")
