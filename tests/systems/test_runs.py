"""Parsers of others, trained and run by their descriptions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nltk
import pytest

from spmrl_bench.errors import CheckpointError, RecipeError, SpmrlError, TrainingError
from spmrl_bench.experiments.listing import state_of
from spmrl_bench.experiments.run_folder import SettingsMismatchError
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.record import Record, System, read_record, read_records
from spmrl_bench.storage.living import is_dead, process_start_time
from spmrl_bench.systems.command import run as run_command
from spmrl_bench.systems.description import SystemDescription, load_system, system_paths
from spmrl_bench.systems.entry import enter
from spmrl_bench.systems.run import SystemRun, system_runs
from spmrl_bench.treebanks.treebank import ClosedSplitError, open_treebank
from tests.builders import cli
from tests.conftest import PATIENCE
from tests.laboratory import Laboratory
from tests.systems.flat import DESCRIPTION

RUNS, RESULTS = Path("runs"), Path("results")
STARTING = "import os, sys, time\nif sys.argv[1] == 'parse': time.sleep(1)"


def runs(
    laboratory: Laboratory, system: SystemDescription, how: str = "well", **options: object
) -> list[SystemRun]:
    options = {"settings": {"how": how}, **options}
    return system_runs(str(laboratory.recipe), system, **options)


def train(asked: list[SystemRun], *, jobs: int = 1, fresh: bool = False) -> None:
    train_all(asked, device="cpu", jobs=jobs, fresh=fresh)


def score(asked: list[SystemRun], *, jobs: int = 1) -> list[Record]:
    records, errors = evaluate_all(asked, KnownRecords(RESULTS), device="cpu", jobs=jobs)
    for error in errors:
        raise error
    return records


def test_a_run_has_the_scores_of_its_answers_entered_by_file(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    asked = runs(laboratory, flat, seeds=[1, 2])
    train(asked, jobs=2)
    first, second = score(asked, jobs=2)
    assert (first.seed, second.seed) == (1, 2)
    folder = RUNS / "tiny-open" / "flat-small-how=well-seed1"
    bank = open_treebank("tiny-open")
    system = System(name="Flat by file", outputs={})
    for split in ("dev", "test"):
        entered = enter({split: [folder / f"{split}.parses"]}, bank, system, RESULTS)[0]
        ours, theirs = first.result(split), entered.result(split)
        assert ours.metrics["brackets"].counts == theirs.metrics["brackets"].counts
        # The constituent that was put around the trees is no bracket of theirs.
        assert ours.metrics["brackets"].counts["test"] == [2] * ours.sentences
    assert first.system.training.wall_seconds > 0
    assert 2**20 < first.system.training.peak_memory_bytes < 2**28
    assert first.system.training.minutes is None
    assert first.system.training_data == "train of tiny-open"
    signature = first.test and first.test.metrics["brackets"].signature_long
    assert "|settings:how=well|" in str(signature)
    assert "|seed:1|" in str(signature)
    assert (folder / "model" / "model").read_text() == "1"
    shown = cli("table").stdout
    assert "Flat" in shown


def test_training_sees_train_and_dev_alone(laboratory: Laboratory, flat: SystemDescription) -> None:
    (this,) = runs(laboratory, flat)
    train([this])
    assert (this.folder / "model" / "seen.txt").read_text().split() == ["dev.mrg", "train.mrg"]
    assert (this.folder / "model" / "threads.txt").read_text() == "1"
    assert not (this.folder / "data").exists()
    with pytest.raises(ClosedSplitError):
        this.treebank.examples("test")


def test_what_is_done_is_not_done_again(laboratory: Laboratory, flat: SystemDescription) -> None:
    asked = runs(laboratory, flat)
    train(asked)
    (record,) = score(asked)
    times = {path: path.stat().st_mtime_ns for path in asked[0].folder.rglob("*") if path.is_file()}
    train(asked)
    assert score(asked) == [record]
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert len(read_records(RESULTS / "runs")) == 1
    assert record.system.tested == 1


def test_other_settings_are_refused(laboratory: Laboratory, flat: SystemDescription) -> None:
    (this,) = runs(laboratory, flat)
    train([this])
    flat.path.write_text(DESCRIPTION.replace("Flat", "Flatter"))
    with pytest.raises(SettingsMismatchError, match=r"description is \w{16} there, \w{16} now"):
        train(runs(laboratory, SystemDescription.read(flat.path)))
    train(runs(laboratory, SystemDescription.read(flat.path)), fresh=True)
    with pytest.raises(RecipeError, match=r"unknown setting 'hwo'\. Did you mean how"):
        runs(laboratory, flat, settings={"hwo": "well"})


def test_eval_before_train(laboratory: Laboratory, flat: SystemDescription) -> None:
    with pytest.raises(CheckpointError, match="training has not ended; run 'spmrl-bench train'"):
        score(runs(laboratory, flat))


def test_a_failure_shows_the_end_of_its_log_and_stops_no_other(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    asked = [*runs(laboratory, flat, "fails"), *runs(laboratory, flat)]
    with pytest.raises(
        TrainingError, match=r"ended with status 3; its log, .*\n  first line\n  the re"
    ):
        train(asked)
    assert not (asked[0].folder / "data").exists()  # a copy of a treebank that may be licensed
    assert (asked[1].folder / "trained.json").exists()
    assert not (asked[0].folder / "trained.json").exists()
    failed, done = (state_of(this.folder) for this in asked)
    assert (failed.state, done.state) == ("failed", "done")
    assert "ended with status 3; its log" in failed.message
    assert "Z FAILED: " in (asked[0].folder / "train.log").read_text(encoding="utf-8")


def test_the_clock_ends_a_training(
    laboratory: Laboratory, flat: SystemDescription, capfd: pytest.CaptureFixture[str]
) -> None:
    (this,) = asked = runs(laboratory, flat, "slow", minutes=0.02)
    train(asked)
    assert "trained in 1 s, ended by the clock" in capfd.readouterr().err
    pid = int((this.folder / "model" / "pid.txt").read_text())
    assert is_dead(pid, process_start_time(pid) or "")
    (record,) = score(asked)
    assert record.system.training.out_of_time
    assert record.system.training.minutes == 0.02
    assert record.settings == {"system.how": "slow", "train.max_minutes": 0.02}
    assert "how=slow,max_minutes=0.02" in str(record.test and record.test.metrics)
    assert 1.2 < record.system.training.wall_seconds < PATIENCE
    with pytest.raises(
        TrainingError, match=r"has no model, so nothing was learnt within 0\.02 min"
    ):
        train(runs(laboratory, flat, "nothing", minutes=0.02))


def test_the_start_of_a_program_is_no_part_of_its_speed(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    driver = laboratory.folder / "flat.py"
    driver.write_text(driver.read_text().replace("import os, sys, time", STARTING))
    asked = runs(laboratory, flat)
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


def test_records_say_how_often_test_was_scored(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    """Also where several are scored at once; the same answers count once."""
    asked = [
        *runs(laboratory, flat),
        *runs(laboratory, flat, "faulty"),
        *runs(laboratory, flat, "slow", minutes=0.02),
    ]
    train(asked, jobs=3)
    tested = [record.system.tested for record in score(asked, jobs=3)]
    assert max(tested) == 2


def test_answers_that_cannot_be_scored(laboratory: Laboratory, flat: SystemDescription) -> None:
    asked = runs(laboratory, flat, "faulty")
    train(asked)
    (record,) = score(asked)
    assert record.system.outputs["test"].handled == {"malformed": 1}
    assert "|output:malformed 1|" in record.test.metrics["brackets"].signature_long
    asked = runs(laboratory, flat, "short")
    train(asked)
    with pytest.raises(SpmrlError, match=r"dev\.parses: has 2 sentences, the split has 8"):
        score(asked)


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
        processes.extend((pid, process_start_time(pid) or "") for pid in map(pid_in, pids))
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


def pid_in(path: Path) -> int:
    return int(path.read_text())


def test_a_command_ends_with_the_program(tmp_path: Path) -> None:
    """Even where the program that runs it is killed."""
    marker = tmp_path / "pid"
    child = tmp_path / "child.py"
    child.write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    code = (
        "import sys; from pathlib import Path\n"
        "from spmrl_bench.systems.command import run\n"
        "run([sys.executable, 'child.py'], Path('log'), threads=1)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    deadline = time.monotonic() + PATIENCE
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        assert program.poll() is None
        time.sleep(0.05)
    pid = int(marker.read_text())
    born = process_start_time(pid) or ""
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    while not is_dead(pid, born) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_dead(pid, born)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no-such-program: cannot be run: no such program"):
        run_command(["no-such-program"], tmp_path / "log", threads=1)


def test_mistakes_of_a_description_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(
        DESCRIPTION.replace('"{how}", "{train}"', '"{huw}", "{train}"').replace('how = "well"', "")
    )
    with pytest.raises(RecipeError, match=r"unknown placeholder 'huw'|unknown placeholder 'how'"):
        SystemDescription.read(path)
    path.write_text(
        DESCRIPTION.replace('input = "words"', 'input = "speech"').replace("[train]\n", "[trian]\n")
    )
    with pytest.raises(RecipeError) as caught:
        SystemDescription.read(path)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    assert any("trian: unknown key. Did you mean train" in line for line in lines)
    assert any("parse.input" in line and "'speech'" in line for line in lines)
    path.write_text(DESCRIPTION.replace('"{seed}"]', '"{seed", "{seed!r}"]'))
    with pytest.raises(RecipeError, match="expected '}' before end of string"):
        SystemDescription.read(path)
    path.write_text(DESCRIPTION.replace('how = "well"', 'how = "well"\nmodel = 1'))
    with pytest.raises(RecipeError, match="settings: model mean something already"):
        SystemDescription.read(path)
    path.write_text(DESCRIPTION.replace('environment = "program"\n', ""))
    with pytest.raises(RecipeError, match="requirements: an environment of its own needs one"):
        SystemDescription.read(path)
    with pytest.raises(RecipeError, match="unknown system 'stanzer'"):
        load_system("stanzer")


@pytest.mark.parametrize("name", system_paths())
def test_descriptions_that_come_with_the_program(name: str) -> None:
    system = load_system(name)
    about = system
    assert about.url.startswith("https://")
    assert about.adapted
    assert all("==" in one for one in about.requirements) or about.environment == "program"
    assert all(driver.is_file() for driver in system.drivers)
    values = {**about.settings, "here": "h", "python": "p", "model": "m", "seed": 1, "threads": 1}
    values |= {"device": "cpu", "train": "t", "dev": "d", "seconds": 0, "input": "i", "output": "o"}
    for _, command, _ in about._commands():
        assert not any("{" in argument for argument in filled(command, values))


def test_a_system_that_is_not_installed(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(laboratory.folder / "home"))
    result = cli("train", str(laboratory.recipe), "--system", "stanza-constituents")
    assert result.exit_code == 1
    assert "install it with 'spmrl-bench systems install stanza-constituents'" in result.stderr
    result = cli("train", str(laboratory.recipe), "--system", "pcfg", "--variant", "x")
    assert "--variant: not for the parsers of others (--system)" in result.stderr
    listed = cli("systems")
    assert listed.exit_code == 0, listed.output
    rows = {line.split()[0]: line for line in listed.stdout.splitlines()[2:]}
    assert "not installed" in rows["udpipe"]
    assert "not installed" not in rows["pcfg"]


def test_the_treebank_grammar(laboratory: Laboratory) -> None:
    """The whole way of a system that comes with the program."""
    lang = str(laboratory.recipe)
    result = cli("train", lang, "--system", "pcfg")
    assert result.exit_code == 0, result.output
    result = cli("eval", lang, "--system", "pcfg")
    assert result.exit_code == 0, result.output
    (path,) = (RESULTS / "runs").iterdir()
    record = read_record(path)
    assert record.dev.figure("brackets", "f1") > 60  # type: ignore  # right-branching has less
    assert record.variant == f"PCFG (nltk) {nltk.__version__}"
    trained = json.loads((RUNS / "tiny-open" / "pcfg-small-seed1" / "trained.json").read_text())
    assert trained["out_of_time"] is False
