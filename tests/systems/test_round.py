"""Everybody on every treebank, and who is ahead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import RecipeError, TreebankError
from spmrl_bench.experiments.run_folder import OtherSettingsError
from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.leaderboard.record import Record, System, read_records, write_record
from spmrl_bench.leaderboard.tables import HeadToHead, ours_and_others, ours_and_others_table
from spmrl_bench.process.executors.driver import carry_out
from spmrl_bench.process.executors.unit import Unit
from spmrl_bench.systems.description import Known
from spmrl_bench.systems.entry import enter
from spmrl_bench.systems.round import Field, Round, plan_round
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.tree import Tree
from tests.laboratory import QUICK, TRAIN, Laboratory

RUNS, RESULTS = Path("runs"), Path("results")


def competition(jobs: int = 1) -> Round:
    return Round(
        minutes=5,
        seeds=[1],
        jobs=jobs,
        device="cpu",
        size=None,
        runs_dir=RUNS,
        results_dir=RESULTS,
        say=lambda text: None,
    )


def fields(laboratory: Laboratory, *systems: Known, **options: Any) -> list[Field]:
    track = options.pop("track", "open")
    return plan_round(track, languages=[str(laboratory.recipe)], systems=systems, **options)


def ahead(results: Path = RESULTS, **options: Any) -> list[HeadToHead]:
    return ours_and_others(load_results([results]).groups, **options)[0]


def test_who_competes_where(laboratory: Laboratory, flat: Known) -> None:
    (field,) = fields(laboratory, flat)
    assert field[1:] == ("tiny-open", "constituents", ["charlstm", "word-charlstm"], [flat])
    (field,) = fields(laboratory, flat, variants=["charlstm"], track="mini")
    assert field.treebank == "tiny-mini"
    assert field.variants == ["charlstm"]
    with pytest.raises(RecipeError, match="unknown treebank of track open 'tiny-opne'"):
        fields(laboratory, treebanks=["tiny-opne"])
    with pytest.raises(RecipeError, match=r"unknown variant 'charlsmt'\. Did you mean charlstm"):
        fields(laboratory, flat, variants=["charlsmt"])
    with pytest.raises(RecipeError, match="unknown track 'opne'"):
        fields(laboratory, track="opne")
    with pytest.raises(TreebankError, match="no treebank of track spmrl is present"):
        fields(laboratory, track="spmrl")


def test_a_round_goes_on_where_it_was(laboratory: Laboratory, flat: Known) -> None:
    planned = fields(laboratory, flat)
    records, failures = competition().run(planned)
    assert not failures
    assert [record.variant for record in records if record.system is None] == [
        "charlstm",
        "word-charlstm",
    ]
    assert records[-1].system is not None
    assert records[-1].recipe["system"]["minutes"] == 5
    assert competition().run(planned) == (records, [])
    assert len(read_records(RESULTS / "runs")) == 3
    (row,) = ahead(minutes=5)
    assert row.others.startswith("Flat")
    (chosen,) = [record for record in records if record.selected and record.system is None]
    assert row.ours.startswith(chosen.variant)
    assert row.p is not None


def test_what_fails_stops_nothing_else(laboratory: Laboratory, flat: Known) -> None:
    text = flat.path.read_text()
    broken = flat.path.with_name("broken.toml")
    broken.write_text(text.replace('how = "well"', 'how = "fails"').replace("Flat", "Broken"))
    records, failures = competition().run(fields(laboratory, Known(broken), flat))
    assert len(records) == 3
    assert [str(one).count("ended with status 3") for one in failures] == [1]


def test_all_treebanks_are_handed_over_at_once(
    laboratory: Laboratory, flat: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no machine waits until the others have ended with a treebank.

    The two have the same trees, and what is trained on them the same weights.
    """
    handed: list[list[str]] = []

    def noted(units: Sequence[Unit], *rest: Any, **options: Any) -> Any:
        handed.append(sorted(unit.title.split()[0] for unit in units))
        return carry_out(units, *rest, **options)

    monkeypatch.setattr("spmrl_bench.experiments.campaign.carry_out", noted)
    both = [
        field
        for track in ("open", "mini")
        for field in fields(laboratory, flat, variants=["charlstm"], track=track)
    ]
    records, failures = competition(jobs=2).run(both)
    assert not failures
    assert handed == [["tiny-mini", "tiny-open"]]
    found = [(record.system is None, record.treebank.name) for record in records]
    assert found == [
        (True, "tiny-open"),
        (True, "tiny-mini"),
        (False, "tiny-open"),
        (False, "tiny-mini"),
    ]


def test_other_settings_are_told_before_anything_is_trained(
    laboratory: Laboratory, flat: Known
) -> None:
    planned = fields(laboratory, variants=["word-charlstm"])
    competition().run(planned)
    laboratory.write_base(size__small__train=TRAIN | QUICK | {"batch_size": 19})
    with pytest.raises(OtherSettingsError, match="batch_size"):
        competition().run(fields(laboratory, flat))
    (trained,) = [path.parent.parent for path in RUNS.glob("*/*/last/progress.json")]
    assert [path for path in trained.parent.iterdir() if path.name[0] != "."] == [trained]


def entered(name: str, right: int, results: Path) -> None:
    """A system that has so many sentences of each split right, and of others the words alone."""
    bank = open_treebank("tiny-open")
    for split in ("dev", "test"):
        gold = [parse.tree for parse in bank.examples(split) if parse.tree]
        flat = [Tree.build(tree.words, tree.tags, [(0, len(tree), "X")]) for tree in gold]
        lines = [write_brackets(tree) for tree in [*gold[:right], *flat[right:]]]
        path = Path(f"{name}.{split}")
        path.write_text("\n".join(lines) + "\n")
        enter(path, bank, split, System(name=name, outputs={}), results)


def test_who_is_ahead(laboratory: Laboratory) -> None:
    """By dev on both sides, and only where chance does not explain it."""
    (ours,) = competition().run(fields(laboratory, variants=["charlstm"]))[0]
    assert ours_and_others_table(ahead()).notes == ("No treebank has entries of both sides.",)
    entered("Worst", 0, RESULTS)
    (row,) = ahead()
    assert row.our_test > row.their_test == 0
    assert row.ahead == ("ours" if row.p < 0.05 else "neither")
    entered("Best", 8, RESULTS)
    (row,) = ahead()
    assert (row.treebank, row.figure) == ("tiny-open", "F1")
    assert row.others == "Best"
    assert row.their_test == 100
    assert row.difference == row.our_test - 100 < 0
    assert row.p < 0.05
    assert row.ahead == "others"
    assert ours_and_others_table([row]).rows[0][-1] == "others"
    assert ahead(treebanks={"another"}) == []
    # Of equals, nobody is ahead: the same parses as ours, by another name.
    equal = Path("equal")
    for record in (ours, ours.model_copy(update=theirs(ours))):
        write_record(record, equal / "runs")
    (row,) = ahead(equal)
    assert (row.difference, row.p, row.ahead) == (0, 1, "neither")


def theirs(record: Record) -> dict[str, Any]:
    system = System(name="Same", outputs={})
    more = {"kind": "system", "variant": "Same", "size": "", "recipe": {"kind": "system"}}
    return {"system": system, "training": None, "hardware": None, "baselines": {}, **more}
