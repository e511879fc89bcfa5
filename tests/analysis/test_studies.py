"""Results of studies: what is trained, parsed and kept, and what is found in the scores."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from spmrl_bench.analysis import study_run as module
from spmrl_bench.analysis.study import Study, load_study, study_names
from spmrl_bench.analysis.study_run import (
    ScoreKey,
    StudyPlan,
    StudyResult,
    plan_study,
    readable_scores,
    run_study,
    write_score,
)
from spmrl_bench.analysis.study_table import Findings, study_document, to_frame
from spmrl_bench.errors import CheckpointError, RecordError
from spmrl_bench.experiments.score import score_split
from spmrl_bench.leaderboard.record import MetricResult, SplitResult
from spmrl_bench.leaderboard.writing import to_markdown
from spmrl_bench.nn.encoders.self_attention import AttentionMask
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.scoring.counts import BracketCounts
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.training.schedule import Progress, read_progress
from tests.laboratory import Laboratory


def study_of(rows: Mapping[str, Mapping[str, Any]], **changes: Any) -> Study:
    """A study of these rows; the first is the reference."""
    content = {
        "name": "some",
        "title": "Some parsers",
        "source": "A paper, table 1",
        "measured": "another treebank",
        "metric": "brackets.f1",
        "reference": next(iter(rows)),
        "rows": [{"name": name, **row} for name, row in rows.items()],
    }
    return Study.model_validate(content | changes)


def planned(laboratory: Laboratory, study: Study, **options: Any) -> StudyPlan:
    return plan_study(study, lang=str(laboratory.recipe), **options)


def measured(work: StudyPlan, scores: Mapping[str, Sequence[float]]) -> list[StudyResult]:
    """The rows with these figures, a number for each seed."""
    usual = [Progress(epoch=epoch, stopped_by="max_epochs") for epoch in (3, 4, 5)]
    return [
        StudyResult(
            **vars(each),
            metric=work.study.metric,
            results=tuple(map(result, scores[each.row.name], (1, 2, 3))),
            ended=tuple(usual[: len(each.configs)]),
        )
        for each in work.runs
    ]


def result(f1: float | None, seed: int) -> SplitResult:
    """Scores of 1,234 sentences, without their counts."""
    signature = f"scorer:own|treebank:tiny-open(1234)|skipped:0|variant:charlstm|seed:{seed}"
    brackets = MetricResult(
        counts={}, figures={"f1": f1}, signature=signature, signature_long=signature
    )
    return SplitResult(sentences=1234, metrics={"brackets": brackets})


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


def found_in(laboratory: Laboratory, seeds: int = 3, **changes: Any) -> Findings:
    """The findings of ROWS, with other scores where some are named."""
    work = planned(laboratory, study_of(ROWS), seeds=seeds, settings={"train.max_epochs": "7"})
    scores = {name: f1[:seeds] for name, f1 in (SCORES | changes).items()}
    return Findings(work, measured(work, scores))


def test_the_tables_have_means_deviations_and_differences_seed_by_seed(
    laboratory: Laboratory,
) -> None:
    findings = found_in(laboratory)
    text = to_markdown(study_document(findings))
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert cells[0] == [
        "system", "dev F1", "each seed", "difference", "published", "published difference",
    ]  # fmt: skip
    assert cells[2] == ["plain", "72.00 ± 2.00", "70.00 72.00 74.00", "", "90.00", ""]
    better = ["better", "74.00 ± 3.00", "71.00 74.00 77.00", "+2.00 ± 1.00", "91.50", "+1.50"]
    assert cells[3] == better
    assert (cells[5][0], *cells[5][-2:]) == ("new", "", "")
    # Only what all signatures share is printed as one.
    assert "`scorer:own|treebank:tiny-open(1234)|skipped:0|variant:charlstm`" in text
    frame = pd.read_csv(io.StringIO(to_frame(findings).to_csv(index=False))).set_index("system")
    assert frame.loc["better", "dev_f1_seed2"] == 74.0
    assert frame.loc["better", "settings"] == '{"model.heads": 2, "train.max_epochs": 7}'
    assert frame.loc["worse", "layers"] == 2
    assert frame.loc["worse", "published_difference"] == -2.0
    assert frame.loc["worse", ["difference", "difference_sd"]].tolist() == [3.0, 0.0]
    assert pd.isna(frame.loc["plain", "difference"])


def test_reversed_pairs_go_beyond_their_spread(laboratory: Laboratory) -> None:
    findings = found_in(laboratory)
    # Of 'better' and 'worse' the published order is reversed too, by 1 point in the mean and with
    # a standard deviation of 1: not beyond it.
    assert findings.notes == [
        "'worse': 88.00 from A paper, section 9.",
        "Of 3 pairs of rows 1 in another order than published, by more than one standard "
        "deviation of their difference:",
        ["'worse' is better than 'plain' here, by 3.00 ± 0.00"],
    ]
    _, (first, second) = found_in(laboratory, worse=(74.0, 76.0, 78.0)).published_order
    assert first.startswith("'worse' is better than 'plain'")
    assert second.startswith("'worse' is better than 'better'")
    assert found_in(laboratory, worse=(60.0, 61.0, 62.0)).published_order == (3, [])
    rows = {name: {"published": 90.0, "model": {"heads": k}} for k, name in enumerate("ab", 1)}
    equal = planned(laboratory, study_of({**rows, "rich": {"lexical": ["vectors"]}}))
    found = Findings(equal, measured(equal, {"a": [1.0], "b": [2.0]}))
    assert found.published_order == (0, [])
    assert found.notes == ["Left out: 'rich' needs --set model.vectors=...."]
    assert to_frame(found).iloc[-1]["note"] == "needs --set model.vectors=..."


def test_one_seed_gives_a_verdict_only_where_sentences_do(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = found_in(laboratory, seeds=1)
    text = to_markdown(study_document(found))
    assert "one seed" in text
    assert "Of 3 pairs of rows none in another order than published, with p at" in text
    assert "each seed" not in text
    assert "±" not in text
    for p, named in ((0.04, 2), (0.06, 0), (None, 0)):
        monkeypatch.setattr("spmrl_bench.analysis.study_table._p", lambda *_, p=p: p)
        assert len(found_in(laboratory, seeds=1).published_order[1]) == named


def counted(result: SplitResult, matched: list[int]) -> SplitResult:
    """The result with sentences of ten brackets each, of which so many are right."""
    gold = [10] * len(matched)
    columns = {column.name.lower(): [0] * len(matched) for column in BracketCounts.columns}
    counts = BracketCounts.from_columns(columns | {"matched": matched, "gold": gold, "test": gold})
    metric, old = metric_named("brackets"), result.metrics["brackets"]
    own = old.model_copy(update={"counts": counts.to_columns(), "figures": metric.values(counts)})
    return SplitResult(sentences=len(matched), metrics={"brackets": own})


def test_how_likely_chance_makes_a_difference_and_other_figures(laboratory: Laboratory) -> None:
    study = study_of(ROWS, beside=["brackets.recall"])
    work = planned(laboratory, study, seeds=2)
    matched = {"plain": [5] * 12, "better": [8] * 12, "worse": [5] * 12, "new": [6, 4] * 6}
    rows = [
        replace(one, results=tuple(counted(result, matched[one.name]) for result in one.results))
        for one in measured(work, {name: SCORES[name][:2] for name in ROWS})
    ]
    found = Findings(work, rows)
    table, frame = study_document(found).tables[0], to_frame(found)
    # Of the 2^12 ways to swap 12 sentences, two make as large a difference.
    assert frame["p"].tolist()[1:] == [2 / 2**12, 1.0, 1.0]
    place = table.headings.index("p")
    assert [row[place] for row in table.rows] == ["", "0.0005", "1.0000", "1.0000"]
    assert frame["dev_recall"].tolist() == [50.0, 80.0, 50.0, 50.0]
    assert table.rows[1][table.headings.index("dev recall")] == "80.00 ± 0.00"
    several = study_of(ROWS, metric="brackets.f1 + brackets.recall")
    no_ratio = [replace(one, metric=several.metric) for one in rows]
    assert Findings(planned(laboratory, several, seeds=2), no_ratio).chances == {}


# Runs -----------------------------------------------------------------------------------

RUNS, KEPT = Path("runs"), Path("results/studies")
RUN_ROWS: dict[str, Any] = {
    "plain": {},
    "content": {"limit": {"position": "none"}},
    "near": {"limit": {"window": 1}},
    "unsure": {"parsing": {"threshold": 0.1}},
    "again": {},
    "lstm": {"model": {"encoder": "lstm"}},
}
FOLDER = RUNS / "tiny-open" / "small-charlstm-layers=2-seed1"


def plan(laboratory: Laboratory, seeds: int = 1) -> StudyPlan:
    return planned(laboratory, study_of(RUN_ROWS), seeds=seeds, settings={"model.layers": "2"})


def run(laboratory: Laboratory, seeds: int = 1) -> list[StudyResult]:
    return run_study(plan(laboratory, seeds), runs_dir=RUNS, scores_dir=KEPT)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is parsed, as it happens."""
    calls: list[object] = []
    score = module.score_split

    def counted(parser: Any, *rest: Any) -> Any:
        calls.append(parser.encoder.attention_parts and parser.encoder.masks)
        return score(parser, *rest)

    monkeypatch.setattr(module, "score_split", counted)
    return calls


def test_rows_share_runs_and_are_scored_with_their_limits(
    laboratory: Laboratory, parsed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = run(laboratory)
    found = {one.name: one for one in results}
    assert len(list((RUNS / "tiny-open").iterdir())) == 2
    # Of 'plain' and 'again', which are the same, one is parsed.
    position, near = AttentionMask(position=False), AttentionMask(window=1)
    assert parsed == [
        (AttentionMask(),) * 2,
        (position,) * 2,
        (near,) * 2,
        (AttentionMask(),) * 2,
        (),
    ]
    progress = read_progress(FOLDER / "last")
    assert found["plain"].scores == found["again"].scores == {1: progress.best_score}
    assert found["plain"].ended == (progress,)
    parser, bank = load_parser(FOLDER), plan(laboratory).treebank
    for name, limit in (("content", position), ("near", near)):
        with parser.limited({0: limit, 1: limit}):
            expected = score_split(parser, bank, "dev").figure("brackets", "f1")
        assert found[name].scores == {1: expected}
    parser.config = parser.config.model_copy(update={"threshold": 0.1})
    expected = score_split(parser, bank, "dev").figure("brackets", "f1")
    assert found["unsure"].scores == {1: expected} != found["plain"].scores
    # A second call neither trains nor parses.
    monkeypatch.setattr(module, "load_parser", None)
    assert run(laboratory) == results
    (first,) = measured(planned(laboratory, study_of({"plain": {}})), {"plain": [50.0]})
    assert replace(first, results=(result(None, 1),)).scores == {1: 0.0}  # a score of nothing


def test_what_an_interrupted_call_parsed_is_kept_and_seeds_can_be_added(
    laboratory: Laboratory, parsed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = module.write_score

    def interrupt(*given: Any) -> None:
        written(*given)
        if len(parsed) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_score", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(laboratory)
    one = run(laboratory)
    assert len(parsed) == 5
    two = run(laboratory, seeds=2)
    assert len(parsed) == 2 * 5
    for before, after in zip(one, two, strict=True):
        assert list(after.scores) == [config.seed for config in after.configs] == [1, 2]
        assert after.scores[1] == before.scores[1]


def test_a_broken_file_of_scores_is_parsed_anew(
    laboratory: Laboratory, parsed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(laboratory)
    number = len(parsed)
    files = sorted((KEPT / "scores").glob("*.json"))
    files[0].write_text("{", encoding="utf-8")
    again = run(laboratory)
    assert len(parsed) == number + 1
    assert [one.scores for one in again] == [one.scores for one in first]
    scores, (mistake,) = readable_scores(KEPT)
    assert len(scores) == len(files)
    assert f"{files[0]}: not a score of a study" in mistake
    # A run that has not ended is not scored.
    progress = read_progress(FOLDER / "last")
    text = progress.model_copy(update={"stopped_by": None}).model_dump_json()
    (FOLDER / "last" / "progress.json").write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "train_all", lambda *_, **__: None)
    with pytest.raises(CheckpointError, match="training has not ended"):
        run(laboratory)


def test_a_score_is_found_by_its_whole_key(tmp_path: Path) -> None:
    limits = ((1, AttentionMask(content=False)), (3, AttentionMask(window=5)))
    key = ScoreKey(weights="1", fingerprint="f", split="dev", rules="prm:p", limits=limits)
    write_score(key, result(80.0, 1), tmp_path)
    others = [
        key.model_copy(update=change)
        for change in (
            {"limits": ()},
            {"limits": (limits[0], (3, AttentionMask(window=6)))},
            {"weights": "2"},
            {"fingerprint": "g"},
            {"rules": "prm:q"},
            {"parsing": (("beam", 2),)},
        )
    ]
    assert readable_scores(tmp_path)[0] == {key: result(80.0, 1)}
    write_score(others[0], result(70.0, 1), tmp_path)
    found, _ = readable_scores(tmp_path)
    assert found == {key: result(80.0, 1), others[0]: result(70.0, 1)}
    assert found.keys().isdisjoint(others[1:])
    assert readable_scores(tmp_path / "absent")[0] == {}
    with pytest.raises(RecordError, match=r"scores.*cannot write the score of a study"):
        write_score(key, result(1.0, 1), next((tmp_path / "scores").iterdir()))


def test_the_tables_that_are_shipped_show_scores_that_are_shipped() -> None:
    shipped = Path(__file__).resolve().parents[2] / "results" / "studies"
    results = readable_scores(shipped)[0].values()
    for path in shipped.glob("*.csv"):
        name = max((one for one in study_names() if path.stem.startswith(f"{one}-")), key=len)
        metric = load_study(name).metric
        scored = [one for one in results if set(metric.metrics) <= set(one.metrics)]
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        shown = {
            float(cell)
            for row in rows
            for name, cell in row.items()
            if name.startswith("dev_") and "_seed" in name and cell
        }
        assert len(shown) >= len(rows)
        assert shown <= {result.score(metric) for result in scored}
