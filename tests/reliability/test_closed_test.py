"""Test data are opened by the evaluation alone."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.plan import Run, make_runs, plan_track
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.treebanks import treebank
from spmrl_bench.treebanks.treebank import ClosedSplitError, open_treebank
from tests.builders import cli, works
from tests.laboratory import Laboratory
from tests.reliability.tally import Tally

STUDY = """
title = "Heads"
source = "none"
measured = "nothing else"
metric = "brackets.f1"
reference = "one"
[shared]
lexical = ["charlstm"]
[[rows]]
name = "one"
[[rows]]
name = "two"
limit = { content = "none" }
"""


def test_commands_that_train_or_compare_on_dev_do_not_open_test(
    laboratory: Laboratory, opened: list[str], tally: Tally
) -> None:
    held = tally("R23", "commands whose reading of splits was watched")
    bank = laboratory.treebanks / "tiny-open"
    # Sentences that are no trees: who reads them is told so, and who does not works on.
    whole = (bank / "test.mrg").read_bytes()
    (bank / "test.mrg").write_text("(S (NP (DT the", encoding="utf-8")
    study = laboratory.folder / "heads.toml"
    study.write_text(STUDY, encoding="utf-8")
    recipe = str(laboratory.recipe)
    for arguments in (
        ("train", recipe, "--variant", "charlstm"),
        ("train", recipe, "--variant", "charlstm", "--seeds", "2", "--jobs", "2"),
        ("study", "run", str(study), "--lang", recipe),
        f"study search {recipe} --variant charlstm --trials 2 --set model.layers=1|2".split(),
    ):
        held.add()
        works(*arguments)
        assert "test" not in opened, arguments
        assert ("dev" in opened) == ("--jobs" not in arguments)  # other processes read theirs
        opened.clear()
    held.add()
    assert cli("eval", recipe, "--variant", "charlstm").exit_code == 1
    assert "test" in opened
    opened.clear()
    (bank / "test.mrg").write_bytes(whole)
    options = ("--variant", "charlstm", "--runs", "others")
    works("train", recipe, *options)
    assert "test" not in opened
    for arguments in (("eval", recipe, *options), ("treebanks", "check", "tiny-open")):
        held.add()
        works(*arguments)
        assert ("test" in opened) == (arguments[0] == "eval")  # check looks at files itself
        opened.clear()


def test_a_track_opens_test_when_all_its_runs_are_trained(
    laboratory: Laboratory, opened: list[str], monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    held = tally("R23", "commands whose reading of splits was watched")
    held.add()
    monkeypatch.setattr(
        "spmrl_bench.experiments.plan.list_recipes", lambda: [str(laboratory.recipe)]
    )
    runs, _ = plan_track("open", variants=["charlstm"])
    train_all(runs)
    assert "test" not in opened
    evaluate_all(runs, KnownRecords(Path("results")))
    assert "test" in opened


def test_a_run_has_no_test_whatever_it_was_made_of(laboratory: Laboratory, tally: Tally) -> None:
    held = tally("R23", "ways to a closed test split")
    made, *_ = make_runs(str(laboratory.recipe))
    banks = [made.treebank, Run(open_treebank("tiny-open"), made.config, made.folder).treebank]
    banks += [pickle.loads(pickle.dumps(banks[0])), copy.copy(banks[0]), banks[0].without_test()]
    for bank in banks:
        for ask in (bank.examples, bank.split, bank.data):
            held.add()
            with pytest.raises(ClosedSplitError, match="tiny-open: the test split was asked for"):
                ask("test")
            assert ask("dev")
        assert bank.fingerprint == open_treebank("tiny-open").fingerprint
    assert len(banks[0].with_test().examples("test")) == 6
    with pytest.raises(ClosedSplitError):  # the one that was opened is another
        banks[0].examples("test")
    assert issubclass(ClosedSplitError, SpmrlError)
    assert len(treebank.open_treebank("tiny-open").examples("test")) == 6


def test_a_sentence_of_test_that_is_too_long_is_named_by_the_evaluation(
    laboratory: Laboratory,
) -> None:
    laboratory.lengthen("tiny-open", "test")
    works("train", str(laboratory.recipe), "--variant", "charlstm")
    result = cli("eval", str(laboratory.recipe), "--variant", "charlstm")
    assert result.exit_code == 1
    assert "tiny-open, split test, sentence 6: " in result.stderr
    assert "of 42 words" in result.stderr
