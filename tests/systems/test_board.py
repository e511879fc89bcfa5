"""Everybody on every treebank, and who is ahead."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import RecipeError, SpmrlError
from spmrl_bench.experiments.plan import Run, make_runs, plan_board
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.leaderboard.record import Record, System, read_records, write_record
from spmrl_bench.leaderboard.tables import HeadToHead, ours_and_others, ours_and_others_table
from spmrl_bench.systems.description import SystemDescription
from spmrl_bench.systems.enter import enter
from spmrl_bench.systems.run import SystemRun, system_runs
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.tree import Tree
from tests.builders import works
from tests.laboratory import Laboratory

RUNS, RESULTS = Path("runs"), Path("results")


def ours(laboratory: Laboratory, *variants: str, **options: Any) -> list[Run]:
    settings = {"train.max_minutes": "5"}
    return make_runs(
        str(laboratory.recipe), variants=variants or None, settings=settings, **options
    )


def theirs(laboratory: Laboratory, system: SystemDescription, **options: Any) -> list[SystemRun]:
    return system_runs(str(laboratory.recipe), system, minutes=5, **options)


def score(runs: Sequence[Run | SystemRun]) -> tuple[list[Record], list[SpmrlError]]:
    return evaluate_all(runs, KnownRecords(RESULTS), device="cpu")


def ahead(results: Path = RESULTS, **options: Any) -> list[HeadToHead]:
    return ours_and_others(load_results([results]).groups, **options)[0]


def test_who_competes_where(laboratory: Laboratory, flat: SystemDescription) -> None:
    def board(track: str = "open", **options: Any) -> list[tuple[str, str]]:
        others = [("constituents", partial(system_runs, system=flat, minutes=5))]
        runs = plan_board(track, languages=[str(laboratory.recipe)], others=others, **options)
        return [(run.folder.parent.name, run.variant) for run in runs]

    names = ["charlstm", "word-charlstm", flat.name]
    assert board() == [("tiny-open", name) for name in names]
    named = [("tiny-mini", "charlstm"), ("tiny-mini", flat.name)]
    assert board("mini", variants=["charlstm"]) == named
    with pytest.raises(RecipeError, match="unknown treebank of track open 'tiny-opne'"):
        board(treebanks=["tiny-opne"])


def test_a_board_goes_on_where_it_was(laboratory: Laboratory, flat: SystemDescription) -> None:
    asked = ("--track", "open", "--minutes", "5")
    theirs = (*asked, "--languages", laboratory.recipe, "--system", flat.path)
    for options in ((laboratory.recipe, *asked), theirs):
        works("train", *options)
        table = works("eval", *options).stdout
    records = {record.variant.split()[0]: record for record in read_records(RESULTS / "runs")}
    assert records.keys() == {"charlstm", "word-charlstm", "Flat"}
    assert records["Flat"].recipe["system"]["minutes"] == 5
    works("train", *theirs)
    assert works("eval", *theirs).stdout == table
    assert len(read_records(RESULTS / "runs")) == 3
    (row,) = ahead(minutes=5)
    assert row.others.startswith("Flat")
    (chosen,) = [each for each in records.values() if each.selected and each.system is None]
    assert row.ours.startswith(chosen.variant)
    assert row.p is not None


def test_all_have_the_same_threads_and_what_fails_stops_nothing_else(
    laboratory: Laboratory, flat: SystemDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    text = flat.path.read_text()
    broken = flat.path.with_name("broken.toml")
    broken.write_text(text.replace('how = "well"', 'how = "fails"').replace("Flat", "Broken"))
    runs = [*ours(laboratory, "charlstm"), *theirs(laboratory, flat)]
    failing = theirs(laboratory, SystemDescription.read(broken))
    with pytest.raises(SpmrlError, match="ended with status 3"):
        train_all([*failing, *runs], device="cpu", jobs=2)
    records, failures = score([*failing, *runs])
    assert len(failures) == 1
    assert [record.variant.split()[0] for record in records] == ["charlstm", "Flat"]
    for run in runs:
        note, log = run.folder / "trained.json", run.folder / "events.jsonl"
        said = note.read_text() if note.exists() else log.read_text().splitlines()[0]
        assert json.loads(said)["threads"] == 1, run.title
    assert len({record.hardware.threads for record in records}) == 1


def entered(name: str, right: int) -> None:
    """A system that has so many sentences of each split right, and of others the words alone."""
    bank = open_treebank("tiny-open")
    files: dict[str, list[Path]] = {}
    for split in ("dev", "test"):
        gold = [parse.tree for parse in bank.examples(split) if parse.tree]
        flat = [Tree.build(tree.words, tree.tags, [(0, len(tree), "X")]) for tree in gold]
        path = Path(f"{name}.{split}")
        path.write_text("\n".join(map(write_brackets, [*gold[:right], *flat[right:]])) + "\n")
        files[split] = [path]
    enter(files, bank, System(name=name, outputs={}), RESULTS)


def test_who_is_ahead(laboratory: Laboratory) -> None:
    """By dev on both sides, and only where chance does not explain it."""
    own = make_runs(str(laboratory.recipe), variants=["charlstm"])
    train_all(own, device="cpu")
    (mine,), _ = score(own)
    assert ours_and_others_table(ahead()).notes == ("No treebank has entries of both sides.",)
    entered("Worst", 0)
    (row,) = ahead()
    assert row.our_test > row.their_test == 0
    assert row.ahead == ("ours" if row.p < 0.05 else "neither")
    entered("Best", 8)
    (row,) = ahead()
    assert (row.treebank, row.figure, row.others) == ("tiny-open", "F1", "Best")
    assert row.difference == row.our_test - row.their_test == row.our_test - 100 < 0
    assert row.p < 0.05
    assert row.ahead == ours_and_others_table([row]).rows[0][-1] == "others"
    # Of equals, nobody is ahead: the same parses as ours, by another name.
    same = {
        "system": System(name="Same", outputs={}), "kind": "system", "variant": "Same", "size": "",
        "recipe": {"kind": "system"}, "training": None, "hardware": None, "baselines": {},
    }  # fmt: skip
    for record in (mine, mine.model_copy(update=same)):
        write_record(record, Path("equal") / "runs")
    (row,) = ahead(Path("equal"))
    assert (row.difference, row.p, row.ahead) == (0, 1, "neither")
