"""Parsers of others, trained and run by their descriptions."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import nltk
import pytest

from spmrl_bench.errors import CheckpointError, RecipeError, SpmrlError, TrainingError
from spmrl_bench.experiments.listing import state_of
from spmrl_bench.experiments.run_folder import SettingsMismatchError
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.record import Record, System, read_records
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.storage.living import is_dead, process_start_time
from spmrl_bench.systems.description import SystemDescription, load_system, system_paths
from spmrl_bench.systems.enter import enter
from spmrl_bench.systems.run import SystemRun, system_runs
from spmrl_bench.treebanks.treebank import ClosedSplitError, open_treebank
from tests.builders import refused, works
from tests.conftest import PATIENCE
from tests.laboratory import Laboratory
from tests.systems.conftest import DESCRIPTION

RUNS, RESULTS = Path("runs"), Path("results")


def runs(
    laboratory: Laboratory, system: SystemDescription, how: str = "well", **options: object
) -> list[SystemRun]:
    options = {"settings": {"how": how}, **options}
    return system_runs(str(laboratory.recipe), system, **options)


def train(asked: list[SystemRun], **options: Any) -> None:
    train_all(asked, device="cpu", **options)


def score(asked: list[SystemRun], **options: Any) -> list[Record]:
    records, errors = evaluate_all(asked, KnownRecords(RESULTS), device="cpu", **options)
    for error in errors:
        raise error
    return records


def test_a_run_has_the_scores_of_its_answers_entered_by_file(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    asked = runs(laboratory, flat, seeds=[1, 2])
    train(asked)
    first, second = score(asked)
    assert (first.seed, second.seed) == (1, 2)
    folder = RUNS / "tiny-open" / "flat-small-how=well-seed1"
    files = {split: [folder / f"{split}.parses"] for split in ("dev", "test")}
    system = System(name="Flat by file", outputs={})
    entered, _ = enter(files, open_treebank("tiny-open"), system, RESULTS)
    for split in files:
        counts, theirs = (one.result(split).metrics["brackets"].counts for one in (first, entered))
        # The constituent that was put around the trees is no bracket of theirs.
        assert set(counts["test"]) == {2}
        assert counts == theirs
    assert 2**20 < first.system.training.peak_memory_bytes < 2**28
    assert first.system.training.minutes is None
    assert first.system.training_data == "train of tiny-open"
    signature = str(first.test and first.test.metrics["brackets"].signature_long)
    assert re.search(r"\|settings:how=well\|.*\|seed:1\|", signature)
    assert (folder / "model" / "model").read_text() == "1"
    assert "Flat" in works("results", "table").stdout


def test_training_sees_train_and_dev_alone(laboratory: Laboratory, flat: SystemDescription) -> None:
    (this,) = runs(laboratory, flat)
    train([this])
    assert (this.folder / "model" / "seen.txt").read_text().split() == ["dev.mrg", "train.mrg"]
    assert not (this.folder / "data").exists()
    with pytest.raises(ClosedSplitError):
        this.treebank.examples("test")


def test_what_is_done_is_not_done_again(laboratory: Laboratory, flat: SystemDescription) -> None:
    asked = runs(laboratory, flat)
    with pytest.raises(CheckpointError, match="training has not ended; run 'spmrl-bench train'"):
        score(asked)
    train(asked)
    (record,) = score(asked)
    times = {path: path.stat().st_mtime_ns for path in asked[0].folder.rglob("*") if path.is_file()}
    train(asked)
    saved = SavedParses.of_record(RESULTS, record)
    assert not saved.folder.exists()
    # Parses of a record that there is are kept when that is asked for.
    assert score(asked, save_parses=True) == [record]
    assert len(saved.read("dev", "constituents")[1]) == 8
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert len(read_records(RESULTS / "runs")) == 1
    assert record.system.tested == 1


def test_other_settings_are_refused(laboratory: Laboratory, flat: SystemDescription) -> None:
    (this,) = runs(laboratory, flat)
    train([this])
    flat.path.write_text(DESCRIPTION.replace("Flat", "Flatter"))
    changed = runs(laboratory, SystemDescription.read(flat.path))
    with pytest.raises(SettingsMismatchError, match=r"description is \w{16} there, \w{16} now"):
        train(changed)
    train(changed, fresh=True)
    with pytest.raises(RecipeError, match=r"unknown setting 'hwo'\. Did you mean how"):
        runs(laboratory, flat, settings={"hwo": "well"})
    with pytest.raises(RecipeError, match="--set epochs: 'x', expected a value such as 400"):
        load_system("stanza-constituents").chosen("small", {"epochs": "x"})


def test_the_clock_ends_a_training(
    laboratory: Laboratory, flat: SystemDescription, capfd: pytest.CaptureFixture[str]
) -> None:
    (this,) = asked = runs(laboratory, flat, "slow", minutes=0.02)
    train(asked)
    assert "trained in 1 s, ended by the clock" in capfd.readouterr().err
    pid = int((this.folder / "model" / "pid.txt").read_text())
    assert is_dead(pid, process_start_time(pid) or "")
    (record,) = score(asked)
    training = record.system.training
    assert training.out_of_time
    assert training.minutes == 0.02
    assert 1.2 <= training.wall_seconds < PATIENCE
    assert record.settings == {"system.how": "slow", "train.max_minutes": 0.02}
    assert "how=slow,max_minutes=0.02" in str(record.test and record.test.metrics)
    with pytest.raises(TrainingError, match=r"has no model when its time was over \(--minutes\)"):
        train(runs(laboratory, flat, "nothing", minutes=0.02))


def test_the_start_of_a_program_is_no_part_of_its_speed(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    asked = runs(laboratory, flat, "starts")
    train(asked)
    (record,) = score(asked)
    words = sum(map(len, open_treebank("tiny-open").examples("dev")))
    # It starts for a second and then parses in no time that can be measured.
    speed = record.dev.tokens_per_second
    assert speed is None or speed > 2 * words


def test_what_is_not_trained_here_is_scored(
    laboratory: Laboratory, flat: SystemDescription, capfd: pytest.CaptureFixture[str]
) -> None:
    text = re.sub(r"(?s)\[train\].*(?=\[parse\])", "", DESCRIPTION)
    flat.path.write_text(text.replace("layer =", 'training_data = "OntoNotes"\nlayer ='))
    asked = runs(laboratory, SystemDescription.read(flat.path), seeds=[1, 2])
    train(asked)
    said = "seed 0: already trained, on OntoNotes: 'spmrl-bench eval' scores it"
    assert said in capfd.readouterr().err
    (record,) = score(asked)
    assert record.system.training is None
    assert record.system.training_data == "OntoNotes"


def test_answers_that_cannot_be_scored(laboratory: Laboratory, flat: SystemDescription) -> None:
    """They are counted, and tests too, also where several are scored at once."""
    asked = [*runs(laboratory, flat), *runs(laboratory, flat, "faulty")]
    train(asked)
    records = score(asked, jobs=2)
    assert sorted(record.system.tested for record in records) == [1, 2]
    record = records[-1]
    output = record.system.outputs["test"]
    assert (output.policy, output.handled) == ("missing", {"malformed": 1})
    assert "|output:malformed 1|" in record.test.metrics["brackets"].signature_long
    asked = runs(laboratory, flat, "short")
    train(asked)
    with pytest.raises(SpmrlError, match=r"dev\.parses: has 2 sentences, the split has 8"):
        score(asked)


def test_a_failure_shows_the_end_of_its_log(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    (this,) = asked = runs(laboratory, flat, "fails")
    with pytest.raises(TrainingError, match=r"status 3; its log, .*\n  first line\n  the re"):
        train(asked)
    assert not (this.folder / "data").exists()  # a copy of a treebank that may be licensed
    assert state_of(this.folder).state == "failed"
    assert "Z FAILED: " in (this.folder / "train.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_ends_together(laboratory: Laboratory, flat: SystemDescription, jobs: int) -> None:
    """Ctrl-C ends the commands, whatever they have started; of the trees nothing is left."""
    asked = runs(laboratory, flat, "slow", seeds=[1, 2][:jobs])
    pids = [this.folder / "model" / "pid.txt" for this in asked]
    states: list[str] = []
    processes: list[tuple[int, str]] = []

    def press() -> None:
        deadline = time.monotonic() + PATIENCE
        while not all(path.exists() and path.read_text() for path in pids):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for pid in (int(path.read_text()) for path in pids):
            processes.append((pid, process_start_time(pid) or ""))
        states.extend(state_of(this.folder).state for this in asked)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        train(asked, jobs=jobs)
    pressing.join(PATIENCE)
    assert states == ["running"] * jobs
    for this, process in zip(asked, processes, strict=True):
        assert is_dead(*process)
        assert not (this.folder / "trained.json").exists()
        assert not (this.folder / "data").exists()
        assert state_of(this.folder).state == "interrupted"


#: Changes of a description, and what is said of them.
MISTAKES = {
    "unknown placeholder 'huw'": ("{how}", "{huw}"),
    "expected '}' before end of string": ('"{seed}"]', '"{seed"]'),
    "settings: model mean something already": ('how = "well"', 'how = "well"\nmodel = 1'),
    "requirements: an environment of its own": ('environment = "program"\n', ""),
    r"(?s)(?=.*trian: unknown key. Did you mean train)(?=.*parse.input.*'words')": (
        'input = "words"', 'input = "speech"\n[trian]',
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", MISTAKES)
def test_mistakes_of_a_description_are_all_named(tmp_path: Path, said: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(DESCRIPTION.replace(*MISTAKES[said]))
    with pytest.raises(RecipeError, match=said) as caught:
        SystemDescription.read(path)
    assert all(line.startswith(f"{path}: ") for line in str(caught.value).splitlines())


@pytest.mark.parametrize("name", system_paths())
def test_descriptions_that_come_with_the_program(name: str) -> None:
    system = load_system(name)
    assert system.url.startswith("https://")
    assert system.adapted
    assert all("==" in one for one in system.requirements) or system.environment == "program"
    assert len(system.digest) == 16  # its scripts are there


def test_a_system_that_is_not_installed(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(laboratory.folder / "home"))
    said = refused("train", laboratory.recipe, "--system", "stanza-constituents")
    assert "install it with 'spmrl-bench systems install stanza-constituents'" in said
    said = refused("train", laboratory.recipe, "--system", "pcfg", "--variant", "x")
    assert "--variant: not for external parsers (--system)" in said
    assert "unknown system 'stanzer'" in refused("train", laboratory.recipe, "--system", "stanzer")
    rows = {line.split()[0]: line for line in works("systems", "list").stdout.splitlines()[2:]}
    assert "not installed" in rows["udpipe"]
    assert "not installed" not in rows["pcfg"]


def test_the_treebank_grammar(laboratory: Laboratory) -> None:
    """The whole way of a system that comes with the program."""
    for command in ("train", "eval"):
        works(command, laboratory.recipe, "--system", "pcfg")
    (record,) = read_records(RESULTS / "runs")
    assert record.dev.figure("brackets", "f1") > 60  # type: ignore  # right-branching has less
    assert record.variant == f"PCFG (nltk) {nltk.__version__}"
