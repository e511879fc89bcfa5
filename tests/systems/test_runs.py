"""Parsers of others, trained and run by their descriptions, beside ours; who is ahead."""

from __future__ import annotations

import ast
import importlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import nltk
import pytest
from nltk import Nonterminal
from nltk.grammar import PCFG, ProbabilisticProduction
from nltk.parse import ViterbiParser

from spmrl_bench.errors import CheckpointError, RecipeError, SpmrlError, TrainingError
from spmrl_bench.experiments.plan import Run, make_runs, plan_board
from spmrl_bench.experiments.run_folder import SettingsMismatchError, state_of
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import chosen_sentences, train_all
from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.leaderboard.documents import write_document
from spmrl_bench.leaderboard.record import Record, System
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.leaderboard.tables import HeadToHead, ours_and_others, ours_and_others_table
from spmrl_bench.storage.living import is_dead, process_start_time
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.systems import run as module
from spmrl_bench.systems.description import SystemDescription, load_system, system_paths
from spmrl_bench.systems.enter import enter, file_text
from spmrl_bench.systems.run import SystemRun, system_runs
from spmrl_bench.treebanks.treebank import ClosedSplitError, open_treebank
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.tree import Tree
from tests.builders import environment, records_in, refused, works
from tests.conftest import PATIENCE, until
from tests.laboratory import Laboratory
from tests.systems.conftest import DESCRIPTION

RUNS, RESULTS = Path("runs"), Path("results")


def runs(
    laboratory: Laboratory, system: SystemDescription, how: str = "well", **options: object
) -> list[SystemRun]:
    options = {"settings": {"how": how}, **options}
    return system_runs(str(laboratory.recipe), system, **options)


def score(asked: Sequence[Run | SystemRun], **options: Any) -> list[Record]:
    records, errors = evaluate_all(asked, KnownRecords(RESULTS), device="cpu", **options)
    for error in errors:
        raise error
    return records


def process_in(marker: Path) -> tuple[int, str]:
    """The process of which a file says the number, when it is there."""
    until(lambda: marker.exists() and marker.read_text())
    pid = int(marker.read_text())
    return pid, process_start_time(pid) or ""


def test_a_run_has_the_scores_of_its_answers_entered_by_file(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    asked = runs(laboratory, flat, seeds=[1, 2])
    train_all(asked, device="cpu")
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
    assert first.system.training.epochs == 2
    assert first.system.training.minutes is None
    assert first.system.training_data == "train of tiny-open"
    signature = str(first.test and first.test.metrics["brackets"].signature_long)
    assert re.search(r"\|settings:how=well\|.*\|seed:1\|", signature)
    assert (folder / "model" / "model").read_text() == "1"
    assert "Flat" in works("results", "table").stdout


def test_training_sees_train_and_dev_alone(laboratory: Laboratory, flat: SystemDescription) -> None:
    (this,) = runs(laboratory, flat)
    train_all([this], device="cpu")
    assert (this.folder / "model" / "seen.txt").read_text().split() == ["dev.mrg", "train.mrg"]
    assert not (this.folder / "data").exists()
    with pytest.raises(ClosedSplitError):
        this.treebank.examples("test")


def test_some_sentences_are_those_that_ours_would_have(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    some = {"how": "well", "sentences": "5"}
    (this,) = asked = runs(laboratory, flat, settings=some, seeds=[2])
    train_all(asked, device="cpu")
    every = this.treebank.examples("train", ["constituents"])
    own = [every[n] for n in chosen_sentences(5, 2, "tiny-open", len(every))]
    read = (this.folder / "model" / "read.txt").read_text()
    own += this.treebank.examples("dev", ["constituents"])
    assert read == file_text(own, "brackets", structure=True)
    (record,) = score(asked)
    assert record.system.training_data == "5 sentences of train of tiny-open"
    assert record.settings["system.sentences"] == 5
    with pytest.raises(TrainingError, match=r"999 sentences are wanted, but tiny-open has \d+ to"):
        train_all(runs(laboratory, flat, settings={**some, "sentences": "999"}), device="cpu")
    with pytest.raises(RecipeError, match="--set sentences: '0', expected a value such as 125"):
        runs(laboratory, flat, settings={"sentences": "0"})


def test_what_is_done_is_not_done_again(laboratory: Laboratory, flat: SystemDescription) -> None:
    asked = runs(laboratory, flat)
    with pytest.raises(CheckpointError, match="training has not ended; run 'spmrl-bench train'"):
        score(asked)
    train_all(asked, device="cpu")
    (record,) = score(asked)
    times = {path: path.stat().st_mtime_ns for path in asked[0].folder.rglob("*") if path.is_file()}
    train_all(asked, device="cpu")
    saved = SavedParses.of_record(RESULTS, record)
    assert not saved.folder.exists()
    # Parses of a record that there is are kept when that is asked for.
    assert score(asked, save_parses=True) == [record]
    assert len(saved.read("dev", "constituents")[1]) == 8
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert len(records_in(RESULTS / "runs")) == 1
    assert record.system.tested == 1


def test_a_search_on_another_treebank_is_in_the_record(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    recipe, system = str(laboratory.recipe), ("--system", str(flat.path))
    searching = ("study", "search", recipe, "--treebank", "tiny-mini", *system, "--trials", "2")
    said = works(*searching, "--set", "how=well|faulty").stdout
    assert "2 trials (2 complete)" in said
    assert said.endswith(f"--system {flat.path} --size small --seed 1 --set how=well\n")
    assert not [*RUNS.rglob("test.parses")]
    asked = runs(laboratory, flat, treebank="tiny-open")
    train_all(asked, device="cpu")
    (search,) = score(asked)[0].searches
    assert (search.treebank, search.select) == ("tiny-mini", "brackets.f1")
    assert search.best is not None
    assert search.best.number == search.found
    assert search.best.settings == {"how": "well"}
    assert "found by a search of 2 trials on tiny-mini" in works("results", "table").stdout
    # Settings that no trial had.
    others = runs(laboratory, flat, "starts", treebank="tiny-open")
    train_all(others, device="cpu")
    assert score(others)[0].searches == []


def test_other_settings_are_refused(laboratory: Laboratory, flat: SystemDescription) -> None:
    (this,) = runs(laboratory, flat)
    train_all([this], device="cpu")
    flat.path.write_text(DESCRIPTION.replace("Flat", "Flatter"))
    changed = runs(laboratory, SystemDescription.read(flat.path))
    with pytest.raises(SettingsMismatchError, match=r"description is \w{16} there, \w{16} now"):
        train_all(changed, device="cpu")
    train_all(changed, device="cpu", fresh=True)
    with pytest.raises(RecipeError, match=r"unknown setting 'hwo'\. Did you mean how"):
        runs(laboratory, flat, settings={"hwo": "well"})
    with pytest.raises(RecipeError, match="--set epochs: 'x', expected a value such as 400"):
        load_system("stanza-constituents").chosen("small", {"epochs": "x"})


def test_the_clock_ends_a_training(
    laboratory: Laboratory, flat: SystemDescription, capfd: pytest.CaptureFixture[str]
) -> None:
    (this,) = asked = runs(laboratory, flat, "slow", minutes=0.02)
    train_all(asked, device="cpu")
    assert "trained in 4 s, ended by the clock" in capfd.readouterr().err  # since it only waits
    assert is_dead(*process_in(this.folder / "model" / "pid.txt"))
    (record,) = score(asked)
    training = record.system.training
    assert training.out_of_time
    assert training.minutes == 0.02
    assert 3.6 <= training.wall_seconds < PATIENCE
    assert training.processor_seconds < 1.2
    assert record.settings == {"system.how": "slow", "train.max_minutes": 0.02}
    assert "how=slow,max_minutes=0.02" in str(record.test and record.test.metrics)
    with pytest.raises(TrainingError, match=r"has no model when its time was over \(--minutes\)"):
        train_all(runs(laboratory, flat, "nothing", minutes=0.02), device="cpu")


def test_the_start_of_a_program_is_no_part_of_its_speed(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    asked = runs(laboratory, flat, "starts")
    train_all(asked, device="cpu")
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
    train_all(asked, device="cpu")
    said = "seed 0: already trained, on OntoNotes: 'spmrl-bench eval' scores it"
    assert said in capfd.readouterr().err
    (record,) = score(asked)
    assert record.system.training is None
    assert record.system.training_data == "OntoNotes"


def test_answers_that_cannot_be_scored(laboratory: Laboratory, flat: SystemDescription) -> None:
    """They are counted, and tests too, also where several are scored at once."""
    asked = [*runs(laboratory, flat), *runs(laboratory, flat, "faulty")]
    train_all(asked, device="cpu")
    records = score(asked, jobs=2)
    assert sorted(record.system.tested for record in records) == [1, 2]
    record = records[-1]
    output = record.system.outputs["test"]
    assert (output.policy, output.handled) == ("missing", {"malformed": 1})
    assert "|output:malformed 1|" in record.test.metrics["brackets"].signature_long


def test_a_failure_shows_the_end_of_its_log(
    laboratory: Laboratory, flat: SystemDescription
) -> None:
    (this,) = asked = runs(laboratory, flat, "fails")
    with pytest.raises(TrainingError, match=r"status 3: the re(.*\n)+its log, .*\n  first"):
        train_all(asked, device="cpu")
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
        processes.extend(map(process_in, pids))
        states.extend(state_of(this.folder).state for this in asked)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        train_all(asked, device="cpu", jobs=jobs)
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
    "settings: model, sentences mean": ('how = "well"', 'how = "well"\nmodel = 1\nsentences = 1'),
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


def test_a_description_like_another_with_an_encoder(
    laboratory: Laboratory, flat: SystemDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = laboratory.folder / "home"
    (home / "encoders" / "elvish").mkdir(parents=True)
    (home / "encoders" / "elvish.toml").touch()
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(home))
    path = laboratory.folder / "flat-elvish.toml"
    command = DESCRIPTION.splitlines()[7].replace("{train}", "{encoder}")
    path.write_text(
        'like = "flat"\ntitle = "Flat, Elvish"\nencoder = "elvish"\nsettings.how = "fails"\n'
        f'[train]\n{command}\nformat = "brackets"\nproduct = "model"\n'
    )
    found = load_system(str(path))
    assert (found.title, found.url, found.parse) == ("Flat, Elvish", flat.url, flat.parse)
    assert found.settings == {"how": "fails"}
    assert found.digest != flat.digest
    (this,) = system_runs(str(laboratory.recipe), found)
    with pytest.raises(SpmrlError, match="'spmrl-bench model fetch elvish' puts it there"):
        train_all([this], device="cpu")
    (home / "encoders" / "elvish" / "config.json").touch()
    with pytest.raises(TrainingError, match=rf"flat\.py train fails {home}/encoders/elvish "):
        train_all([this], device="cpu")
    before = found.digest
    (laboratory.folder / "flat.toml").write_text(DESCRIPTION + "# other\n")
    assert load_system(str(path)).digest != before
    path.write_text('like = "../flat"\n')
    with pytest.raises(RecipeError, match=r"like: .* pattern"):
        load_system(str(path))


def test_a_system_that_is_not_installed(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(laboratory.folder / "home"))
    said = refused("train", laboratory.recipe, "--system", "stanza-constituents")
    assert "install it with 'spmrl-bench systems install stanza-constituents'" in said
    assert "unknown system 'stanzer'" in refused("train", laboratory.recipe, "--system", "stanzer")
    rows = {line.split()[0]: line for line in works("systems", "list").stdout.splitlines()[2:]}
    assert "not installed" in rows["udpipe"]
    assert "not installed" not in rows["pcfg"]


# Beside ours ----------------------------------------------------------------------------


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


def test_all_have_the_same_threads_and_what_fails_stops_nothing_else(
    laboratory: Laboratory, flat: SystemDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    own = make_runs(str(laboratory.recipe), variants=["charlstm"])
    both = [*own, *runs(laboratory, flat)]
    failing = runs(laboratory, flat, "fails")
    with pytest.raises(SpmrlError, match="ended with status 3"):
        train_all([*failing, *both], device="cpu", jobs=2)
    records, failures = evaluate_all([*failing, *both], KnownRecords(RESULTS), device="cpu")
    assert len(failures) == 1
    assert [record.variant.split()[0] for record in records] == ["charlstm", "Flat"]
    for run in both:
        note, log = run.folder / "trained.json", run.folder / "events.jsonl"
        said = note.read_text() if note.exists() else log.read_text().splitlines()[0]
        assert json.loads(said)["threads"] == 1, run.title
    assert len({record.hardware.threads for record in records}) == 1


def ahead(results: Path = RESULTS) -> list[HeadToHead]:
    return ours_and_others(load_results([results]).groups)[0]


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
    (mine,) = score(own)
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
        write_document(record, Path("equal") / "runs")
    (row,) = ahead(Path("equal"))
    assert (row.difference, row.p, row.ahead) == (0, 1, "neither")


# Commands: they end when they are to, and run with what is theirs ------------------------------

SLEEPER = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    return Path("log")


def test_libraries_threads_output_and_cost(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the name of one of ours, where ours are found, is not what it imports."""
    planted = Path("site-packages")
    planted.mkdir()
    (planted / "planted_library.py").write_text("ours = True")
    monkeypatch.setenv("PYTHONPATH", str(planted.absolute()))
    code = (
        "import importlib.util, os; x = b'x' * 50_000_000\n"
        "found = importlib.util.find_spec('planted_library')\n"
        "print(found, os.environ['OMP_NUM_THREADS'], 'ä')"
    )
    usage = module.run_command([sys.executable, "-c", code], log, threads=3)
    assert log.read_text(encoding="utf-8") == "None 3 ä\n"
    assert 2**25 < usage.peak_memory_bytes < 2**28
    assert not usage.out_of_time


def test_the_clock_ends_it_by_force_if_need_be(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE", 0.2)
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    Path("sleeper.py").write_text(deaf + SLEEPER)
    usage = module.run_command([sys.executable, "sleeper.py"], log, threads=1, seconds=1)
    assert usage.out_of_time
    assert 3 <= usage.seconds < PATIENCE  # it only waits
    assert is_dead(*process_in(Path("pid")))


def test_what_counts_is_the_time_of_the_processor_for_each_thread(log: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    usage = module.run_command([sys.executable, "-c", code], log, threads=2, seconds=0.4)
    assert usage.out_of_time
    assert 0.1 < usage.processor_seconds < 1.2
    assert usage.seconds >= 0.8  # one of its two threads works


def test_it_ends_with_the_program(log: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from spmrl_bench.systems.run import run_command\n"
        "run_command([sys.executable, 'sleeper.py'], Path('log'), threads=1)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", code], env=environment())
    process = process_in(Path("pid"))
    program.kill()
    program.wait()
    until(lambda: is_dead(*process))


def test_one_that_is_killed_or_is_not_there(log: Path) -> None:
    """A signal to it, or to what watches over it, is not the end of its time."""
    with pytest.raises(TrainingError, match="no-such-program: cannot be run: no such program"):
        module.run_command(["no-such-program"], log, threads=1)
    log.write_text("of an earlier one")
    for process, number in (("os.getpid()", 9), ("os.getppid()", 9), ("os.getppid()", 15)):
        code = f"import os, time; os.kill({process}, {number}); time.sleep(60)"
        with pytest.raises(TrainingError, match=rf"was ended by signal {number}: \(nothing\)"):
            module.run_command([sys.executable, "-c", code], log, threads=1, seconds=50)


@pytest.mark.parametrize("name", sorted(system_paths()))
def test_a_driver_takes_what_its_description_gives_it(name: str) -> None:
    """Without the parser that it drives: its options are read off its text."""
    system = load_system(name)
    command = [] if system.train is None else system.train.command
    if not any("/drivers/" in word for word in command):
        pytest.skip("it has no driver")
    (driver,) = re.findall(r"/drivers/(\w+)\.py", " ".join(command))
    text = (data_dir("systems") / "drivers" / f"{driver}.py").read_text(encoding="utf-8")
    (given,) = (
        keyword.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "common.main"
        for keyword in node.keywords
        if keyword.arg == "train"
    )
    assert isinstance(given, ast.Tuple)
    kinds = [ast.literal_eval(names).split() for names in given.elts[1:]]
    takes = {
        f"--{option}": kind
        for kind, options in zip((str, int, float), kinds, strict=False)
        for option in options
    }
    places = dict.fromkeys(re.findall(r"{(\w+)}", " ".join(command)), "0")
    places |= {key: str(value) for key, value in system.settings.items()}
    filled = [word.format(**places).split("=", 1) for word in command if word.startswith("--")]
    assert {option for option, _ in filled} == takes.keys()
    for option, value in filled:
        takes[option](value)


# The treebank grammar: the parser that asks for rules by their children is nltk's own -----------


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(data_dir("systems") / "drivers")
    return importlib.import_module("pcfg_driver")


def random_rules(choose: random.Random) -> list[ProbabilisticProduction]:
    """Rules with one and two children, chains and circles among them, and with words."""
    symbols = [Nonterminal(name) for name in "STUVW"]
    rules = []
    for left in symbols:
        rights: list[tuple[object, ...]] = [(choose.choice("abc"),)]
        rights += [tuple(choose.choices(symbols, k=2)) for _ in range(3)]
        rights += [(choose.choice(symbols),) for _ in range(choose.randint(0, 2))]
        weights = [choose.random() for _ in rights]
        rules += [
            ProbabilisticProduction(left, right, prob=weight / sum(weights))
            for right, weight in zip(rights, weights, strict=True)
        ]
    return rules


@pytest.mark.parametrize("seed", range(20))
def test_the_best_tree_is_the_one_that_nltk_finds(seed: int, driver: ModuleType) -> None:
    choose = random.Random(seed)
    rules = random_rules(choose)
    grammar = PCFG(Nonterminal("S"), rules)
    lexical = [rule for rule in rules if rule.is_lexical()]
    content = {
        name: [[str(rule.lhs()), *map(str, rule.rhs()), rule.prob()] for rule in some]
        for name, some in (("rules", set(rules) - set(lexical)), ("lexical", lexical))
    }
    ours = driver.Grammar({"start": "S", **content})
    known = sorted({rule.rhs()[0] for rule in lexical})
    for length in range(1, 7):
        words = choose.choices(known, k=length)
        expected = next(ViterbiParser(grammar).parse(words), None)
        found = ours.parse(words)
        assert (found is None) == (expected is None)
        if expected is not None:
            tree, probability = found
            assert probability == pytest.approx(expected.prob(), rel=1e-12)
            assert tree.leaves() == words


def test_trees_that_were_learnt_come_back(driver: ModuleType, tmp_path: Path) -> None:
    """Chains, more than two children, and words as they were spelt."""
    trees = [
        "(ROOT (S (NP (PRP I)) (VP (VBP see) (NP (DT a) (JJ big) (NN dog)))))",
        "(ROOT (S (NP (PRP I)) (VP (VBP see) "
        "(NP (NP (DT a) (NN dog)) (PP (IN in) (NP (NNP Ulm)))))))",
        r"(ROOT (S (NP (CD 1-RRB-) (CD 1\/2)) (VP (VBP -LRB-))))",
        r"(ROOT (S (NP (CD 1-RRB-) (CD 1\/2)) (VP (VBP -LRB-))))",
    ]
    train, given, answers = (tmp_path / name for name in ("train", "given", "answers"))
    train.write_text("\n".join(trees) + "\n", encoding="utf-8")
    sentences = ["I see a big dog", r"1-RRB- 1\/2 -LRB-", "dog dog", "I see Aue"]
    flat = [" ".join(f"(X {word})" for word in sentence.split()) for sentence in sentences]
    given.write_text("".join(f"(ROOT {words})\n" for words in flat), encoding="utf-8")
    options = Namespace(
        train=str(train), model=str(tmp_path), horizontal=1, vertical=0,
        input=str(given), output=str(answers), seconds=10.0,
    )  # fmt: skip
    driver.train(options)
    driver.parse(options)
    found = answers.read_text(encoding="utf-8").splitlines()
    assert found[:3] == [trees[0], trees[2], "(())"]
    assert "Aue" in found[3]  # a name that was never seen


def test_the_treebank_grammar(laboratory: Laboratory) -> None:
    """The whole way of a system that comes with the program."""
    for command in ("train", "eval"):
        works(command, laboratory.recipe, "--system", "pcfg")
    (record,) = records_in(RESULTS / "runs")
    assert record.dev.figure("brackets", "f1") > 60  # type: ignore  # right-branching has less
    assert record.variant == f"PCFG (nltk) {nltk.__version__}"
