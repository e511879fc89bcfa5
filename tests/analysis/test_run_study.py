"""Running a study on a tiny treebank: what is trained, limited, parsed and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spmrl_bench.analysis import run_study as module
from spmrl_bench.analysis.run_study import Measured, parsing_with, run_study
from spmrl_bench.analysis.scores import readable_scores
from spmrl_bench.analysis.trials import StudyPlan
from spmrl_bench.errors import CheckpointError
from spmrl_bench.experiments.evaluation import score_split
from spmrl_bench.nn.encoders.attention import AttentionMask
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.training.schedule import read_progress
from spmrl_bench.treebanks.treebank import open_treebank
from tests.analysis.examples import measured as made_up
from tests.analysis.examples import planned, result, study_of
from tests.builders import tiny
from tests.laboratory import Laboratory

RUNS, SCORES = Path("runs"), Path("results/studies")
ROWS = {
    "plain": {},
    "content": {"limit": {"position": "none"}},
    "near": {"limit": {"window": 1}},
    "again": {},
    "lstm": {"model": {"encoder": "lstm"}},
}
FOLDER = RUNS / "tiny-open" / "small-charlstm-layers=2-seed1"


def plan(laboratory: Laboratory, seeds: int = 1) -> StudyPlan:
    return planned(laboratory, study_of(ROWS), seeds=seeds, settings={"model.layers": "2"})


def run(laboratory: Laboratory, **options: int) -> list[Measured]:
    return run_study(plan(laboratory, **options), runs_dir=RUNS, scores_dir=SCORES)


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
        assert [parts["seed"] for parts in after.signatures] == ["1", "2", "3"]


def test_a_broken_file_of_scores_is_parsed_anew(
    laboratory: Laboratory, parsed: list[object]
) -> None:
    first = run(laboratory)
    number = len(parsed)
    files = sorted((SCORES / "scores").glob("*.json"))
    files[0].write_text("{", encoding="utf-8")
    again = run(laboratory)
    assert len(parsed) == number + 1
    assert [one.scores for one in again] == [one.scores for one in first]
    scores, (mistake,) = readable_scores(SCORES)
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
    (first, *_) = made_up(plan(laboratory), {name: [50.0] for name in ROWS})
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
