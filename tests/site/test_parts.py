"""Parts of the site by themselves: addresses, standings, lengths, pictures, commands."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

from spmrl_bench.leaderboard.board import Difference, Group, Sums, groups_of
from spmrl_bench.leaderboard.frame import StoredRecord
from spmrl_bench.leaderboard.record import Record, SystemTraining
from spmrl_bench.scoring.bracket_metric import BRACKETS, by_sentence_length
from spmrl_bench.scoring.counts import BracketCounts, Column, Status
from spmrl_bench.scoring.significance import Ratio, compare, randomisation
from spmrl_bench.site.addresses import slugs
from spmrl_bench.site.atlas import runs_text
from spmrl_bench.site.lengths import by_length
from spmrl_bench.site.pictures import Picture, Series, logarithmic, places, scale
from spmrl_bench.site.reproducing import commands
from spmrl_bench.site.reproducing import settings as resolved
from spmrl_bench.site.sentences import sides
from spmrl_bench.site.standings import standing
from spmrl_bench.systems.description import load_system
from tests.builders import HALF, PERFECT, SKIPPED, make_result
from tests.site.generated import NASTY, random_counts, run_record, system_record

VIEW = ("brackets", "test")


def grouped(*records: Record) -> list[Group]:
    ordered = sorted(records, key=lambda one: one.finished)
    stored = [
        StoredRecord(one, Path(f"{k:016x}.json"), Path(), False) for k, one in enumerate(ordered)
    ]
    return groups_of(stored)


# ---- Addresses ----


def test_addresses_keep_what_they_can() -> None:
    found = slugs({1: "charlstm small", 2: "bilstm (layers=2, rate=0.1) small", 3: "a.b_c+d"})
    assert list(found.values()) == ["charlstm-small", "bilstm-layers=2-rate=0.1-small", "a.b_c+d"]


def test_addresses_are_safe_and_their_own() -> None:
    texts = [
        NASTY, "../../etc/passwd", "", ".", "..", "CON", "con", "Con", "日本", "日本語", "x" * 300,
        "x" * 301, "a/b", "a b", "a-b", "A b", "naïve", "naive", "\0", "-rf", "a\nb",
    ]  # fmt: skip
    found = slugs({text: text for text in texts})
    lowered = [name.lower() for name in found.values()]
    assert len(set(lowered)) == len(texts)
    for name in found.values():
        assert name.isascii()
        assert name.strip(".-") == name
        assert 0 < len(name) < 80
        assert not set(name) & set("/\\\0 <>&\"'`|:?*%#\n")
        assert name.lower() not in ("con", "nul")


def test_an_address_does_not_depend_on_what_else_there_is() -> None:
    assert slugs({1: "one", 2: NASTY})[2] == slugs({7: NASTY})[7]
    assert slugs({1: "a b", 2: "a-b"})[1] == slugs({2: "a-b", 1: "a b", 3: "c"})[1]


# ---- Standings ----


def test_randomisation_alone_is_that_of_the_whole_comparison() -> None:
    for seed, (one, other) in enumerate([(0.8, 0.82), (0.8, 0.9), (0.7, 0.7)]):
        pair = [BRACKETS.ratios(random_counts(quality, 60, 10 * seed + k))
                for k, quality in enumerate((one, other))]  # fmt: skip
        whole = compare(*pair, trials=500)[0]
        assert randomisation(pair[0][0], pair[1][0], trials=500) == whole.p_randomisation
    few = [Ratio.of("f1", [1, 2, 3], 4), Ratio.of("f1", [2, 2, 4], 4)]
    assert randomisation(*few) == compare(few[:1], few[1:])[0].p_randomisation == 0.5


def test_the_best_and_those_not_worse_share_a_mark() -> None:
    (group,) = grouped(
        run_record("polish-mini", "best", 1, 0.9),
        run_record("polish-mini", "close", 1, 0.895),
        run_record("polish-mini", "far", 1, 0.5),
        system_record("polish-mini", "near", 0.89),
    )
    order = standing(group, VIEW)
    marks = {entry.name: order.mark(entry) for entry in order.ordered}
    assert marks.pop("far") == ""
    assert set(marks.values()) == {"a"}
    assert len(marks) == 3
    assert order.p[order.ordered[-1]] < 0.05


def test_a_mark_needs_somebody_to_share_it_with() -> None:
    (group,) = grouped(run_record("polish-mini", "alone", 1, 0.9))
    order = standing(group, VIEW)
    assert (order.mark(order.best), order.rival) == ("", None)
    assert standing(group, ("attachment", "test")) is None


def test_who_leaves_out_other_sentences_is_not_tested() -> None:
    whole = make_result(PERFECT, HALF, PERFECT, split="test")
    # Of the same length, lest that alone tell the two apart.
    left_out = (HALF[0], *SKIPPED[1:])
    lacking = make_result(PERFECT, left_out, PERFECT, split="test", skipped="0")
    records = [
        run_record("polish-mini", name, 1, 0.9).model_copy(update={"test": result})
        for name, result in (("one", whole), ("other", lacking))
    ]
    (group,) = grouped(*records)
    order = standing(group, VIEW)
    assert order.best.name == "other"
    assert order.p == {}
    assert [order.mark(entry) for entry in order.ordered] == ["", ""]


def test_entries_of_other_numbers_of_runs_weigh_the_same() -> None:
    counts = random_counts(0.8, 50, 1)
    ratio = BRACKETS.ratios(counts)[0]
    lengths = counts.column(Column.LENGTH).tolist()
    one = Sums(ratio, counts.scored, lengths, 1)
    thrice = Ratio("f1", 3 * ratio.numerator, 3 * ratio.denominator)
    three = Sums(thrice, counts.scored, lengths, 3)
    assert one.compare(three) == Difference(0.0, 1.0)
    assert sides(one, three)[:3] == (0, 0, 50)


def test_scores_of_other_treebanks_or_rules_share_no_table() -> None:
    groups = grouped(
        run_record("polish-mini", "one", 1, 0.9),
        run_record("german-mini", "one", 1, 0.9),
        run_record("polish-mini", "two", 1, 0.9).model_copy(
            update={"test": None, "dev": make_result(PERFECT, prm="COLLINS(ef)")}
        ),
    )
    assert [(one.treebank, one.number, one.several) for one in groups] == [
        ("german-mini", 1, False), ("polish-mini", 1, True), ("polish-mini", 2, True),
    ]  # fmt: skip


# ---- Sentences ----


def test_sides_count_errors_for_each_run() -> None:
    def summed(matched: list[int], runs: int) -> Sums:
        gold = np.array([4, 4, 4, 4]) * runs
        ratio = Ratio.of("f1", 2 * np.array(matched), 2 * gold)
        return Sums(ratio, np.array([True, True, True, False]), [5, 6, 7, 8], runs)

    both = sides(summed([4, 2, 0, 0], 1), summed([7, 8, 0, 8], 2))
    assert both[:3] == (1, 1, 1)
    assert [(row.number, row.words, row.one, row.other) for row in both.rows] == [
        (2, 6, 4.0, 0.0), (1, 5, 0.0, 1.0),
    ]  # fmt: skip
    assert [row.difference for row in both.most(1)] == [4.0, -1.0]


def test_classes_of_length_are_those_of_the_breakdown() -> None:
    counts = random_counts(0.8, 200, 3)
    rows = counts.rows.copy()
    rows[5, Column.STATUS] = Status.WORDS_UNMATCH
    rows[5, Column.MATCHED :] = 0
    counts = BracketCounts(rows)
    sums = Sums(BRACKETS.ratios(counts)[0], counts.scored, list(BRACKETS.lengths(counts)), 1)
    for own, part in zip(by_length(sums), by_sentence_length(counts), strict=True):
        assert (own.name, own.sentences) == (part.name, part.sentences)
        assert own.score == pytest.approx(part.figures()["f1"])
    assert by_length(Sums(sums.ratio, sums.scored, None, 1)) == []


# ---- Pictures ----


@pytest.mark.parametrize(
    ("scores", "low", "high"),
    [([85.2, 91.7], 84.0, 92.0), ([50.0], 50.0, 50.2), ([0.0, 100.0], 0.0, 100.0)],
)
def test_scales_are_round_and_hold_all(scores: list[float], low: float, high: float) -> None:
    found = scale(scores)
    assert (found[0], found[-1]) == (low, high)
    steps = np.diff(found)
    assert steps == pytest.approx(steps[0])
    assert 2 <= len(found) <= 9


def test_points_lie_inside_and_higher_scores_higher() -> None:
    ticks = places(["a", "b", "c"])
    picture = Picture("p", "t", "x", "F1", ticks, [Series("one", [(0.0, 80.0), (0.5, 90.0)])])
    (line,) = picture.lines
    low, high = line.marks
    assert picture.left < low.x < high.x < picture.right
    assert picture.top <= high.y < low.y <= picture.bottom
    assert high.text == "one, b: 90.00"
    assert picture.told == "F1 over x. one: a 80.0, b 90.0."
    assert [at for at, _ in logarithmic([100, 1000, 10000])] == [0.0, 0.5, 1.0]


# ---- Commands ----


@pytest.mark.parametrize(
    "value", [5, 0.5, True, "full", "5", "true", "a b", "it's", 'say "x"', [1, 2], ["a", "b"]]
)
def test_settings_of_commands_are_read_as_they_were(value: object) -> None:
    settings = {"model.some_key": value}
    record = run_record("polish-mini", "one", 3, 0.9, recipe={"settings": settings})
    train, evaluate = commands(record)
    words = shlex.split(train)
    assert words[:2] == ["spmrl-bench", "train"]
    assert shlex.split(evaluate)[2:] == words[2:]
    assert words[words.index("--seed") + 1] == "3"
    key, _, text = words[words.index("--set") + 1].partition("=")
    assert key == "model.some_key"
    try:
        assert tomllib.loads(f"x = {text}")["x"] == value
    except tomllib.TOMLDecodeError:
        assert text == value


def trained_system(digest: str) -> Record:
    """A system of somebody else that was trained here."""
    about = {"name": "UDPipe", "version": "1", "description": digest, "minutes": 10.0}
    recipe = {"kind": "system", "system": about, "settings": {"system.mode": "a b"}}
    own, other = run_record("polish-mini", "UDPipe 1", 3, 0.9), system_record("polish-mini", "x", 1)
    training = SystemTraining(wall_seconds=600, minutes=10, out_of_time=True)
    update = {"name": "UDPipe", "version": "1", "training": training}
    system = other.system.model_copy(update=update)
    more = {"kind": "system", "system": system, "recipe": recipe, "training": None}
    return own.model_copy(update=more)


def test_a_system_that_was_trained_here_is_trained_again() -> None:
    record = trained_system(load_system("udpipe").digest)
    options = (
        "--treebank polish-mini --system udpipe --size small --seed 3 --set 'mode=a b' --minutes 10"
    )
    assert commands(record) == [
        f"spmrl-bench train polish {options}", f"spmrl-bench eval polish {options}",
    ]  # fmt: skip
    assert commands(trained_system("0" * 16)) == []  # by a description that is not here
    (group,) = grouped(record)
    (entry,) = group.entries
    assert (entry.kind, entry.origin, runs_text(entry)) == ("system", "of others", "seed 3")
    assert [key for key, _, _ in resolved(record)] == [
        "system.description", "system.minutes", "system.mode", "system.name", "system.version",
    ]  # fmt: skip


def test_an_ensemble_is_made_of_so_many_seeds() -> None:
    record = run_record("polish-mini", "one", 1, 0.9).model_copy(
        update={"ensemble": ["ab" * 32, "cd" * 32]}
    )
    assert commands(record)[1].endswith("--seeds 2 --ensemble")
