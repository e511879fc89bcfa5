"""Results of studies: what is trained, parsed and kept, and what is found in the scores."""

from __future__ import annotations

import csv
import io
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from spmrl_bench.analysis import study_run as module
from spmrl_bench.analysis.study import load_study, study_names
from spmrl_bench.analysis.study_plan import StudyPlan
from spmrl_bench.analysis.study_run import (
    ScoreKey,
    StudyResult,
    parsing_with,
    readable_scores,
    run_study,
    write_score,
)
from spmrl_bench.analysis.study_table import Findings, study_document, to_frame
from spmrl_bench.errors import CheckpointError, RecordError
from spmrl_bench.experiments.score import score_split
from spmrl_bench.leaderboard.formats import to_markdown
from spmrl_bench.leaderboard.record import SplitResult
from spmrl_bench.nn.encoders.attention import AttentionMask
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.scoring.counts import BracketCounts
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.training.schedule import Progress, read_progress
from spmrl_bench.treebanks.treebank import open_treebank
from tests.analysis.examples import measured, planned, result, study_of
from tests.builders import tiny
from tests.laboratory import Laboratory

ROWS = {
    "plain": {"published": 90.0},
    "better": {"published": 91.5, "model": {"heads": 2}},
    "worse": {"published": 88.0, "model": {"layers": 2}, "source": "A paper, section 9"},
    "new": {"model": {"heads": 4}},
}
SCORES = {
    "plain": (70.0, 72.0, 74.0),
    "better": (71.0, 74.0, 77.0),
    "worse": (73.0, 75.0, 77.0),
    "new": (60.0, 60.0, 60.0),
}


@pytest.fixture
def findings(laboratory: Laboratory) -> Findings:
    work = planned(laboratory, study_of(ROWS), seeds=3, settings={"train.max_epochs": "7"})
    return Findings(work, measured(work, SCORES))


def test_means_and_deviations_are_those_of_the_seeds(findings: Findings) -> None:
    for one in findings.rows:
        assert one.score.mean == statistics.mean(SCORES[one.name])
        assert one.score.sd == statistics.stdev(SCORES[one.name])


def test_differences_are_taken_seed_by_seed(findings: Findings) -> None:
    found = {name: (one.mean, one.sd) for name, one in findings.differences.items()}
    assert found["better"] == (2.0, 1.0)
    assert found["worse"] == (3.0, 0.0)
    assert "plain" not in found
    study = findings.work.study
    theirs = {row.name: study.published_difference(row) for row in study.rows}
    assert theirs == {"plain": None, "better": 1.5, "worse": -2.0, "new": None}


def test_reversed_pairs_go_beyond_their_spread(laboratory: Laboratory) -> None:
    work = planned(laboratory, study_of(ROWS), seeds=3)

    def found(**changes: tuple[float, ...]) -> tuple[int, list[str]]:
        pairs, told = Findings(work, measured(work, SCORES | changes)).published_order
        return pairs, [text.partition(" here")[0] for text in told]

    # Of 'better' and 'worse' the published order is reversed too, by 1 point in the mean and with
    # a standard deviation of 1: not beyond it.
    assert found() == (3, ["'worse' is better than 'plain'"])
    both = ["'worse' is better than 'plain'", "'worse' is better than 'better'"]
    assert found(worse=(74.0, 76.0, 78.0)) == (3, both)
    assert found(worse=(60.0, 61.0, 62.0)) == (3, [])
    rows = {"one": {"published": 90.0}, "two": {"published": 90.0, "model": {"heads": 2}}}
    equal = planned(laboratory, study_of(rows))
    assert Findings(equal, measured(equal, {"one": [1.0], "two": [2.0]})).published_order == (0, [])


def test_scores_by_the_clock_are_the_best_that_were_known_then(laboratory: Laboratory) -> None:
    study = study_of({name: ROWS[name] for name in ("plain", "better")}, minutes=[1, 2.5])
    work = planned(laboratory, study, seeds=2)
    curves = {
        "plain": [[(50.0, 30.0), (60.0, 20.0), (140.0, 44.0)], [(60.0, 40.0), (150.1, 90.0)]],
        "better": [[(61.0, 50.0)], [(10.0, 10.0)]],
    }
    rows = [
        replace(
            one,
            ended=tuple(
                Progress(curve=curve, stopped_by="max_epochs") for curve in curves[one.name]
            ),
        )
        for one in measured(work, {name: SCORES[name][:2] for name in curves})
    ]
    found = Findings(work, rows)
    table = study_document(found).tables[0]
    after = [[row[table.headings.index(f"after {m} min")] for row in table.rows] for m in (1, 2.5)]
    assert after == [["35.00 ± 7.07", ""], ["42.00 ± 2.83", "30.00 ± 28.28"]]
    assert to_frame(found)["dev_f1_after_2.5_minutes"].tolist() == [42.0, 30.0]
    assert (
        "Minutes are of training and dev scoring, with the best score until then." in found.caption
    )


def test_what_a_run_would_have_had_after_its_last_minute_is_not_known(
    laboratory: Laboratory,
) -> None:
    study = study_of({name: ROWS[name] for name in ("plain", "better")}, minutes=[1, 2, 5])
    work = planned(laboratory, study, seeds=1)
    ends = {"plain": "max_minutes", "better": "max_epochs"}
    rows = []
    for one in measured(work, {name: SCORES[name][:1] for name in ends}):
        config = one.configs[0]
        cut = config.model_copy(
            update={"train": config.train.model_copy(update={"max_minutes": 2.0})}
        )
        # The last evaluation ended a second before its time, or the second after.
        curve = [(50.0, 30.0), (119.0 if one.name == "plain" else 121.0, 40.0)]
        ended = Progress(curve=curve, stopped_by=ends[one.name])
        rows.append(replace(one, configs=(cut,), ended=(ended,)))
    found = Findings(work, rows)
    assert to_frame(found)["dev_f1_after_2_minutes"].tolist() == [40.0, 30.0]
    later = to_frame(found)["dev_f1_after_5_minutes"]
    assert later.isna().tolist() == [True, False]
    assert later[1] == 40.0
    both = Findings(work, [replace(one, ended=(rows[0].ended[0],)) for one in rows])
    headings = study_document(both).tables[0].headings
    assert "after 2 min" in headings
    assert "after 5 min" not in headings


def test_notes_name_reversed_pairs_and_other_sources(findings: Findings) -> None:
    assert findings.notes == [
        "'worse': 88.00 from A paper, section 9.",
        "Of 3 pairs of rows 1 in another order than published, by more than one standard "
        "deviation of their difference:",
        ["'worse' is better than 'plain' here, by 3.00 ± 0.00"],
    ]


def test_one_seed_has_no_spread_and_the_note_says_so(laboratory: Laboratory) -> None:
    work = planned(laboratory, study_of(ROWS))
    found = Findings(work, measured(work, {name: f1[:1] for name, f1 in SCORES.items()}))
    assert all(one.score.sd is None for one in found.rows)
    assert "one seed" in found.caption
    assert "Of 3 pairs of rows none in another order than published, with p at" in found.notes[-1]
    assert "each seed" not in to_markdown(study_document(found))
    assert "±" not in to_markdown(study_document(found))


@pytest.mark.parametrize(("p", "named"), [(0.04, 2), (0.06, 0), (None, 0)])
def test_one_seed_gives_a_verdict_only_where_sentences_do(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, p: float | None, named: int
) -> None:
    monkeypatch.setattr("spmrl_bench.analysis.study_table._p", lambda *_: p)
    work = planned(laboratory, study_of(ROWS))
    found = Findings(work, measured(work, {name: f1[:1] for name, f1 in SCORES.items()}))
    assert len(found.published_order[1]) == named


def test_rows_without_files_are_named_as_left_out(laboratory: Laboratory) -> None:
    work = planned(laboratory, study_of({**ROWS, "rich": {"lexical": ["vectors"]}}), seeds=3)
    found = Findings(work, measured(work, SCORES))
    assert "Left out: 'rich' needs --set model.vectors=...." in found.notes
    assert "rich" not in {one.name for one in found.rows}
    assert "| rich" not in to_markdown(study_document(found))
    assert to_frame(found).iloc[-1]["note"] == "needs --set model.vectors=..."


def test_the_table_has_all_figures(findings: Findings) -> None:
    rows = [
        line.split("|")[1:-1]
        for line in to_markdown(study_document(findings)).splitlines()
        if line[:1] == "|"
    ]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert cells[0] == [
        "system", "dev F1", "each seed", "difference", "published", "published difference",
    ]  # fmt: skip
    assert cells[2] == ["plain", "72.00 ± 2.00", "70.00 72.00 74.00", "", "90.00", ""]
    better = ["better", "74.00 ± 3.00", "71.00 74.00 77.00", "+2.00 ± 1.00", "91.50", "+1.50"]
    assert cells[3] == better
    assert cells[5][0] == "new"
    assert cells[5][-2:] == ["", ""]


def test_only_what_all_signatures_share_is_printed_as_one(findings: Findings) -> None:
    text = to_markdown(study_document(findings))
    assert "`scorer:own|treebank:tiny-open(1234)|skipped:0|variant:charlstm`" in text
    assert "seed:" not in text


def test_csv_keeps_numbers_and_what_made_each_row(findings: Findings) -> None:
    text = to_frame(findings).to_csv(index=False)
    frame = pd.read_csv(io.StringIO(text)).set_index("system")
    assert frame.loc["better", "dev_f1_seed2"] == 74.0
    assert frame.loc["better", "settings"] == '{"model.heads": 2, "train.max_epochs": 7}'
    assert frame.loc["worse", "layers"] == 2
    assert frame.loc["worse", "published_difference"] == -2.0
    assert pd.isna(frame.loc["plain", "difference"])


def counted(result: SplitResult, matched: list[int]) -> SplitResult:
    """The result with sentences of ten brackets each, of which so many are right."""
    gold = [10] * len(matched)
    columns = {column.name.lower(): [0] * len(matched) for column in BracketCounts.columns}
    counts = BracketCounts.from_columns(columns | {"matched": matched, "gold": gold, "test": gold})
    metric, old = metric_named("brackets"), result.metrics["brackets"]
    own = old.model_copy(update={"counts": counts.to_columns(), "figures": metric.values(counts)})
    return SplitResult(sentences=len(matched), metrics={"brackets": own})


def test_how_likely_chance_makes_a_difference(laboratory: Laboratory) -> None:
    work = planned(laboratory, study_of(ROWS), seeds=2)
    matched = {"plain": [5] * 12, "better": [8] * 12, "worse": [5] * 12, "new": [6, 4] * 6}
    rows = [
        replace(one, results=tuple(counted(result, matched[one.name]) for result in one.results))
        for one in measured(work, {name: SCORES[name][:2] for name in ROWS})
    ]
    found = Findings(work, rows)
    # Of the 2^12 ways to swap 12 sentences, two make as large a difference.
    assert found.chances == {"better": 2 / 2**12, "worse": 1.0, "new": 1.0}
    table = study_document(found).tables[0]
    assert [row[table.headings.index("p")] for row in table.rows] == [
        "",
        "0.0005",
        "1.0000",
        "1.0000",
    ]
    assert to_frame(found)["p"].tolist()[1:] == [2 / 2**12, 1.0, 1.0]
    several = study_of(ROWS, metric="brackets.f1 + brackets.recall")
    no_ratio = [replace(one, metric=several.metric) for one in rows]
    assert Findings(planned(laboratory, several, seeds=2), no_ratio).chances == {}


def test_other_figures_stand_beside(laboratory: Laboratory) -> None:
    study = study_of({name: ROWS[name] for name in ("plain", "new")}, beside=["brackets.recall"])
    work = planned(laboratory, study, seeds=2)
    rows = measured(work, {name: SCORES[name][:2] for name in ("plain", "new")})
    matched = ([5, 5], [5, 6])
    results = zip(rows[0].results, matched, strict=True)
    rows[0] = replace(rows[0], results=tuple(counted(*pair) for pair in results))
    found = Findings(work, rows)
    table = study_document(found).tables[0]
    shown = [row[table.headings.index("dev recall")] for row in table.rows]
    assert shown == ["52.50 ± 3.54", "0.00 ± 0.00"]
    assert to_frame(found)["dev_recall"].tolist() == [52.5, 0.0]


# Runs -----------------------------------------------------------------------------------

RUNS, FOLDER_OF_SCORES = Path("runs"), Path("results/studies")
RUN_ROWS: dict[str, Any] = {
    "plain": {},
    "content": {"limit": {"position": "none"}},
    "near": {"limit": {"window": 1}},
    "again": {},
    "lstm": {"model": {"encoder": "lstm"}},
}
FOLDER = RUNS / "tiny-open" / "small-charlstm-layers=2-seed1"


def plan(laboratory: Laboratory, seeds: int = 1) -> StudyPlan:
    return planned(laboratory, study_of(RUN_ROWS), seeds=seeds, settings={"model.layers": "2"})


def run(laboratory: Laboratory, **options: int) -> list[StudyResult]:
    return run_study(plan(laboratory, **options), runs_dir=RUNS, scores_dir=FOLDER_OF_SCORES)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is parsed, as it happens."""
    calls: list[object] = []
    score = module.score_split

    def counted(parser, *rest):
        calls.append(parser.encoder.attention_parts and parser.encoder.masks)
        return score(parser, *rest)

    monkeypatch.setattr(module, "score_split", counted)
    return calls


def test_rows_share_runs_and_are_scored_with_their_limits(
    laboratory: Laboratory, parsed: list[object]
) -> None:
    found = {one.row.name: one for one in run(laboratory)}
    assert len(list((RUNS / "tiny-open").iterdir())) == 2
    # Of 'plain' and 'again', which are the same, one is parsed.
    position, near = AttentionMask(position=False), AttentionMask(window=1)
    assert parsed == [(AttentionMask(),) * 2, (position,) * 2, (near,) * 2, ()]
    progress = read_progress(FOLDER / "last")
    assert found["plain"].scores == found["again"].scores == {1: progress.best_score}
    assert found["plain"].ended == (progress,)
    parser, bank = load_parser(FOLDER), plan(laboratory).treebank
    for name, limit in (("content", position), ("near", near)):
        with parser.limited({0: limit, 1: limit}):
            expected = score_split(parser, bank, "dev").figure("brackets", "f1")
        assert found[name].scores == {1: expected}


def test_a_second_call_neither_trains_nor_parses(
    laboratory: Laboratory, parsed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(laboratory)
    parsed.clear()

    def refuse(*_: object) -> None:
        raise AssertionError("a parser was loaded")

    monkeypatch.setattr(module, "load_parser", refuse)
    assert run(laboratory) == first
    assert parsed == []


def test_what_an_interrupted_call_parsed_is_kept(
    laboratory: Laboratory, parsed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    score = module.score_split

    def interrupted(parser, *rest):
        if len(parsed) == 2:
            raise KeyboardInterrupt
        return score(parser, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(module, "score_split", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(laboratory)
    run(laboratory)
    assert len(parsed) == 4


def test_seeds_stand_in_their_order_and_more_can_be_added(
    laboratory: Laboratory, parsed: list[object]
) -> None:
    one = run(laboratory)
    three = run(laboratory, seeds=3)
    assert len(parsed) == 3 * 4
    for before, after in zip(one, three, strict=True):
        assert list(after.scores) == [1, 2, 3]
        assert after.scores[1] == before.scores[1]
        assert [config.seed for config in after.configs] == [1, 2, 3]


def test_a_broken_file_of_scores_is_parsed_anew(
    laboratory: Laboratory, parsed: list[object]
) -> None:
    first = run(laboratory)
    number = len(parsed)
    files = sorted((FOLDER_OF_SCORES / "scores").glob("*.json"))
    files[0].write_text("{", encoding="utf-8")
    again = run(laboratory)
    assert len(parsed) == number + 1
    assert [one.scores for one in again] == [one.scores for one in first]
    scores, (mistake,) = readable_scores(FOLDER_OF_SCORES)
    assert len(scores) == len(files)
    assert f"{files[0]}: not a score of a study" in mistake


def test_a_run_that_has_not_ended_is_not_scored(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(laboratory)
    progress = read_progress(FOLDER / "last")
    text = progress.model_copy(update={"stopped_by": None}).model_dump_json()
    (FOLDER / "last" / "progress.json").write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "train_all", lambda *_, **__: None)
    with pytest.raises(CheckpointError, match="training has not ended"):
        run(laboratory)


def test_a_score_of_nothing_counts_as_zero(laboratory: Laboratory) -> None:
    (first, *_) = measured(plan(laboratory), {name: [50.0] for name in RUN_ROWS})
    assert replace(first, results=(result(None, 1),)).scores == {1: 0.0}


def test_a_trained_parser_has_other_settings_of_parsing_for_a_while() -> None:
    sentences = open_treebank("german-mini").examples("train", ["constituents", "dependencies"])
    words = [sentence.words for sentence in sentences[:20]]
    parser = tiny("joint", sentences[:60], seed=1, max_positions=60)
    settings = parser.config
    with torch.no_grad():
        for weight in parser.dependencies.parameters():
            weight.normal_(std=0.7)
    as_trained = list(parser.parse(words))
    with parsing_with(parser, {"span_weight": 0.9}):
        other = list(parser.parse(words))
    assert list(parser.parse(words)) == as_trained != other
    with parsing_with(parser, {}):
        assert parser.config is settings
    parser.config = settings.model_copy(update={"span_weight": 0.9})
    assert list(parser.parse(words)) == other


# Scores that are kept -------------------------------------------------------------------

SHIPPED = Path(__file__).resolve().parents[2] / "results" / "studies"


def key(**changes: Any) -> ScoreKey:
    whole = {"weights": "1", "fingerprint": "f", "split": "dev", "rules": "prm:p", "limits": ()}
    return ScoreKey(**(whole | changes))


def test_a_score_is_found_by_its_whole_key(tmp_path: Path) -> None:
    limits = ((1, AttentionMask(content=False)), (3, AttentionMask(window=5)))
    kept = key(limits=limits)
    write_score(kept, result(80.0, 1), tmp_path)
    found = readable_scores(tmp_path)[0]
    assert found == {kept: result(80.0, 1)}
    for other in (
        {"limits": ()},
        {"limits": ((1, AttentionMask(content=False)), (3, AttentionMask(window=6)))},
        {"limits": limits, "weights": "2"},
        {"limits": limits, "fingerprint": "g"},
        {"limits": limits, "rules": "prm:q"},
        {"limits": limits, "split": "test"},
    ):
        assert key(**other) not in found


def test_scores_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    scores = {key(weights=str(seed)): result(seed / 10, seed) for seed in (1, 2, 3)}
    for one, its in scores.items():
        write_score(one, its, tmp_path / "some")
    assert readable_scores(tmp_path / "some")[0] == scores
    assert readable_scores(tmp_path / "absent")[0] == {}


def test_the_tables_that_are_shipped_show_scores_that_are_shipped() -> None:
    results = readable_scores(SHIPPED)[0].values()
    for path in SHIPPED.glob("*.csv"):
        name = max((one for one in study_names() if path.stem.startswith(f"{one}-")), key=len)
        metric = load_study(name).metric
        scored = [one for one in results if set(metric.metrics) <= set(one.metrics)]
        known = {result.score(metric) for result in scored}
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        shown = {
            float(cell)
            for row in rows
            for name, cell in row.items()
            if name.startswith("dev_") and "_seed" in name and cell
        }
        assert len(shown) >= len(rows)
        assert shown <= known


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "scores").write_text("not a folder")
    with pytest.raises(RecordError, match=r"scores.*cannot write the score of a study"):
        write_score(key(), result(1.0, 1), tmp_path)
