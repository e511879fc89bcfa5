"""The table over languages: what is in a row, what an average is of, and what is marked."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime
from typing import Any

import pytest

from spmrl_bench.leaderboard.board import Column, SeedMean, average, groups_of
from spmrl_bench.leaderboard.frame import by_age
from spmrl_bench.leaderboard.multilingual import Setup, TreebankRow, setups_of, track_document
from spmrl_bench.leaderboard.published import load_published
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.writing import Document, to_markdown
from spmrl_bench.scoring.bracket_metric import BRACKETS
from spmrl_bench.scoring.significance import Ratio, compare
from tests.builders import SKIPPED, make_record, make_result, make_treebank, noisy

PUBLISHED, _ = load_published()
TEST = Column("", "test", "brackets", "f1")
ORDER = ("charlstm", "word-charlstm")
SENTENCES = 60


def one_run(
    language: str,
    variant: str = "charlstm",
    seed: int = 1,
    *,
    errors: float = 0.2,
    selected: bool = False,
    track: str = "mini",
    prm: str = "spmrl(1234)",
    **changes: Any,
) -> Record:
    """A run with scores of its own; a selected one also has test scores."""
    name = f"{language}-{track}"
    number = seed * 1000 + sum(map(ord, language + variant))

    def result(rate: float, split: str, shift: int) -> Any:
        made = noisy(rate, number + shift, SENTENCES)
        return make_result(*made, split=split, prm=prm, treebank=name, variant=variant)

    fields = {
        "lang": language,
        "treebank": make_treebank(name, track, language=language),
        "variant": variant,
        "seed": seed,
        "weights": f"{number:08d}" * 8,
        "selected": selected,
        "dev": result(errors, "dev", 0),
        "test": result(errors, "test", 1) if selected else None,
        "baselines": {"right-branching": result(0.8, "test", 2)} if selected else {},
    }
    return make_record(**(fields | changes))


def both(language: str, seeds: tuple[int, ...] = (1,), **changes: Any) -> list[Record]:
    """Runs of both variants, of which ``charlstm`` is the better."""
    made = []
    for seed in seeds:
        made.append(one_run(language, seed=seed, errors=0.1, selected=True, **changes))
        made.append(one_run(language, "word-charlstm", seed, errors=0.3, **changes))
    return made


def scores_of(records: list[Record]) -> tuple[list[Setup], list[str]]:
    return setups_of(groups_of(by_age(records)), "mini", ORDER)


def only(records: list[Record]) -> Setup:
    ((setup,), _) = scores_of(records)
    return setup


def row_of(records: list[Record]) -> TreebankRow:
    (row,) = only(records).rows
    return row


def document(records: list[Record], track: str = "mini") -> Document:
    return track_document(groups_of(by_age(records)), track, PUBLISHED)


def text_of(records: list[Record]) -> str:
    return to_markdown(document(records))


def f1(result: Any) -> float:
    return float(result.figure("brackets", "f1"))


def dev(variant: str) -> Column:
    return Column("", "dev", "brackets", "f1", variant=variant)


def averages(records: list[Record]) -> list[dict[str, str]]:
    """The cells of the lines of averages, by heading."""
    table = document(records).tables[0]
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    return [row for row in rows if row["language"] == "average"]


def test_one_seed() -> None:
    records = both("german") + both("french")
    setup = only(records)
    assert setup.variants == list(ORDER)
    assert [row.group.treebank for row in setup.rows] == ["french-mini", "german-mini"]
    row, chosen = setup.rows[1], records[0]
    assert row.scores(TEST) == {1: f1(chosen.test)}
    baseline = TEST._replace(variant="right-branching")
    assert row.scores(baseline) == {0: f1(chosen.baselines["right-branching"])}
    assert list(row.notes) == []
    assert "±" not in text_of(records)


def test_mean_over_seeds_selects_not_the_best_seed() -> None:
    records = [one_run("german", seed=seed, errors=0.15, selected=True) for seed in (1, 2)]
    for seed, errors in ((1, 0.02), (2, 0.6)):
        records.append(one_run("german", "word-charlstm", seed, errors=errors))
    row = row_of(records)
    best = {name: max(row.scores(dev(name)).values()) for name in ORDER}
    assert best["word-charlstm"] > best["charlstm"]
    assert row.selected == "charlstm"
    assert sorted(row.scores(TEST)) == [1, 2]


def test_p_and_mark_are_those_of_the_significance_test_on_summed_counts() -> None:
    records = both("german", (1, 2))
    row = row_of(records)

    def summed(variant: str) -> Ratio:
        counts = [each.dev.counts("brackets") for each in records if each.variant == variant]
        one, other = (BRACKETS.ratios(own)[0] for own in counts)
        above = one.numerator + other.numerator
        return Ratio("f1", above, one.denominator + other.denominator)

    (expected,) = compare([summed("word-charlstm")], [summed("charlstm")])
    assert row.compared["word-charlstm"] == (expected.difference, expected.p_randomisation)
    assert row.p == expected.p_randomisation < 0.05
    assert row.significant
    mean = statistics.fmean(f1(one.dev) for one in records if one.variant == "charlstm")
    assert f" {mean:.2f}* ± " in text_of(records)
    assert f" {expected.p_randomisation:.4f} |" in text_of(records)
    alike = [one_run("german", selected=True), one_run("german", "word-charlstm", errors=0.22)]
    assert not row_of(alike).significant


def test_only_common_seeds_are_compared() -> None:
    records = both("german", (1, 2))
    row = row_of([one for one in records if (one.variant, one.seed) != ("word-charlstm", 2)])
    assert row.compared == row_of(records[:2]).compared
    assert list(row.notes) == [
        "german-mini: variants have different seeds (charlstm: 1, 2; word-charlstm: 1)."
    ]
    row = row_of([records[0], records[3]])
    assert row.compared == {}
    assert not row.significant


def test_variants_that_do_not_compare_are_not_tested() -> None:
    # One sentence is left out of both, but not the same one.
    last, first = (
        make_result(*found, prm="spmrl(1234)", treebank="german-mini")
        for found in (
            [*noisy(0.3, 5, SENTENCES)[:-1], SKIPPED],
            [SKIPPED, *noisy(0.3, 5, SENTENCES)[1:]],
        )
    )
    row = row_of(
        [one_run("german", dev=last, selected=True), one_run("german", "word-charlstm", dev=first)]
    )
    assert row.p is None
    assert any("word-charlstm: not compared" in note for note in row.notes)


def test_average_of_languages() -> None:
    assert average([("a", {1: 80.0}), ("b", {1: 90.0})]) == SeedMean(85.0, None, 1)
    assert average([("a", {1: 80.0}), ("b", {})]) is None
    mixed = [("a", {1: 80.0}), ("a", {1: 60.0}), ("b", {1: 90.0})]
    assert average(mixed) == SeedMean(80.0, None, 1)  # each language counts once
    # Seeds 1 and 2 average to 82 and 86.
    several = [("a", {1: 80.0, 2: 82.0}), ("b", {1: 84.0, 2: 90.0})]
    assert average(several) == SeedMean(84.0, pytest.approx(statistics.stdev((82, 86))), 2)
    uneven = average([("a", {1: 80.0, 2: 82.0}), ("b", {1: 84.0})])
    assert (uneven.mean, uneven.sd) == (82.5, None)


def test_missing_variant_of_a_language_has_no_average() -> None:
    records = [*both("german"), one_run("french", errors=0.1, selected=True)]
    (found,) = averages(records)
    assert (found["dev F1 word-charlstm"], found["p"]) == ("", "")
    assert found["dev F1 charlstm"]
    assert only(records).rows[0].p is None
    assert "None" not in text_of(records)


def test_selected_variant_without_test_scores_is_said() -> None:
    best = one_run("german", "word-charlstm", errors=0.1)
    row = row_of([one_run("german", errors=0.3, selected=True), best])
    assert row.selected == "word-charlstm"
    assert row.scores(TEST) == {}
    assert list(row.notes) == ["german-mini: word-charlstm is not scored on test (seed 1)."]


def test_scores_of_different_parameters_are_not_averaged() -> None:
    records = both("german") + both("french") + both("english", prm="COLLINS(5678)")
    (found,) = averages(records)
    assert found["treebank"] == "2 languages, spmrl"
    assert "Scores that were counted in different ways are not averaged" in text_of(records)


def test_two_states_of_a_treebank_are_not_mixed() -> None:
    old = both("german", finished=datetime(2019, 1, 1, tzinfo=UTC))
    new = [
        one.model_copy(update={"treebank": make_treebank(fingerprint="cd" * 32)})
        for one in both("german", (7,))
    ]
    setup = only([*old, *new, *both("french")])
    assert [row.seeds for row in setup.rows] == [[1], [7]]
    name = "german-mini (mini track, generated sentences, table {})".format
    assert setup.left_out == [f"Not shown: {name(1)}, which does not compare with {name(2)}."]


def test_experiments_on_one_language_are_left_out_with_a_note() -> None:
    changed = {"variant": "charlstm", "settings": {"model.layers": 2}}
    records = [
        *both("german"),
        *both("french"),
        one_run("german", "tag", errors=0.01, selected=True),
        one_run("german", recipe=changed, selected=True),
        one_run("german", ensemble=["ab" * 32, "cd" * 32], selected=True, errors=0.0),
    ]
    (setup,), left_out = scores_of(records)
    assert left_out == ["Not shown, records of one language only: small, layers=2 (german)."]
    assert setup.left_out == ["Not shown, variants of one language only: tag (german)."]
    assert setup.variants == list(ORDER)
    assert setup.rows[1].selected == "charlstm"
    assert setup.rows[1].scores(dev("charlstm")) == {1: f1(records[0].dev)}
    # By themselves they are shown.
    assert only([records[5]]).name == "small, layers=2"


def test_figures_of_another_treebank_are_not_shown() -> None:
    (own,) = document(both("german") + both("english")).tables
    assert not any("K&K18" in cell for row in own.rows for cell in row)


def test_own_scores_stand_below_published_ones_of_the_same_treebank() -> None:
    records = both("german", track="spmrl") + both("french", track="spmrl")
    tables = {table.title: table for table in document(records, "spmrl").tables}
    table = tables["Beside published scores: spmrl (dev F1)"]
    lines = {row[0]: row[1:] for row in table.rows}
    german, french = f1(records[0].dev), f1(records[2].dev)
    assert table.headings == ["system", "french", "german", "average"]
    assert lines["K&K18, charlstm"] == ["84.27", "91.26", f"{(84.27 + 91.26) / 2:.2f}"]
    own = [f"{value:.2f}" for value in (french, german, (german + french) / 2)]
    assert lines["ours, charlstm"] == own
    table = tables["Beside published scores: spmrl (test F1)"]
    lines = {row[0]: row[1:] for row in table.rows}
    tested = [f"{f1(records[number].test):.2f}" for number in (2, 0)]
    assert lines["ours, selected on dev"][:2] == tested
    assert lines["Cross & Huang 2016"].count("") == 2  # French only, so no average
