"""Files that are meant to do harm, against the command line: ``make attack``.

The generators of the tests write each into a folder of its own, where it stays to be looked at. One
command meets it, in a process whose time and memory are measured. The working directory is full of
modules that leave a sign when they are imported, and a sleeping process is named by locks.

usage: python -m tests.reliability.attack FOLDER    print the counts; status 1 where harm was done
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from spmrl_bench.leaderboard.documents import write_document
from spmrl_bench.process.pools import usable_cores
from spmrl_bench.storage.living import this_machine
from spmrl_bench.storage.paths import data_dir
from tests.builders import ROOT, make_record
from tests.laboratory import build_laboratory
from tests.readers.test_bracket_formats import BRACKETS
from tests.readers.test_conll import CONLL
from tests.reliability import test_broken_records as records
from tests.reliability.extreme_files import EXTREMES
from tests.reliability.hostile import CASES, Stage, set_stage
from tests.reliability.hostile_models import HARMS, save_models
from tests.reliability.test_hostile_treebanks import listing
from tests.reliability.test_mistakes import spoilt
from tests.scoring.test_prm import MISTAKES
from tests.treebanks.serving import serving

#: Of the processor and of memory, beyond what an honest file takes.
SECONDS, MEGABYTES = 2.0, 500
#: Seconds until a process is ended; bytes of addresses that it may have.
PATIENCE, MEMORY = 120.0, 6 << 30
MODULES = (
    "_pickle", "abc", "codecs", "copy", "io", "joblib", "json", "linecache", "loky", "numpy", "os",
    "multiprocessing", "pathlib", "pickle", "pydantic", "random", "re", "safetensors", "site",
    "sitecustomize", "spmrl_bench", "struct", "threading", "torch", "typer", "types", "warnings",
)  # fmt: skip
COMMANDS = {
    "open": ("treebanks", "check", "tiny"),
    "fetch": ("treebanks", "fetch", "tiny"),
    "treebanks": ("treebanks", "list"),
    "train": ("train", "elvish"),
}
HARM = ("executed", "outside", "shown", "traceback", "beyond bounds")
#: What a command may write below the folder of a try.
OWN = ("results/", "runs/", "work/", "out/")

Command = Sequence[object]


@dataclass(frozen=True)
class Try:
    """One command; ``make`` writes what it meets, and says what it is given."""

    kind: str
    name: str
    make: Callable[[Stage], Command]
    harmless: bool = False  # it has to succeed, as what lies beside it is nobody's business


@dataclass
class Found:
    """What came of a try."""

    status: int
    said: str
    seconds: float
    megabytes: int
    harm: list[str] = field(default_factory=list)


def _model(models: Path, name: str, do: Callable[[Path], object], stage: Stage) -> Command:
    shutil.copytree(models / name, stage.folder / "model")
    do(stage.folder / "model")
    return "parse", "--model", "model", "--device", "cpu", "--input", "brackets"


def _record(how: str | bytes, stage: Stage) -> Command:
    folder = stage.folder / "results" / "runs"
    write_document(make_record(seed=1), folder)
    if isinstance(how, str):
        records.break_it(folder, how)
    else:
        (folder / records.document_name(how)).write_bytes(how)
    return "results", "table", "--results", "results"


def _scored(form: str, data: Callable[[], bytes], stage: Stage) -> Command:
    name = "x.conllu" if form in ("conll", "dp") else "x.mrg"
    stage.write(name, data())
    return "score", name, name


def _parameters(text: str, stage: Stage) -> Command:
    stage.write("x.prm", text)
    return "score", "treebanks/tiny_data/a_1.mrg", "treebanks/tiny_data/a_1.mrg", "--prm", "x.prm"


def _toml(what: str, seed: int, stage: Stage) -> Command:
    draw = random.Random(f"{what} {seed}")
    source = draw.choice(sorted(data_dir(what).glob("*.toml")))
    stage.write(f"home/{what}/mine.toml", spoilt(source.read_bytes(), draw))
    return what, "list"


def _lock(pid: str, command: Command, stage: Stage) -> Command:
    laboratory = build_laboratory(stage.folder / "work")
    run = stage.folder / "runs" / "tiny-open" / "small-charlstm-seed1"
    run.mkdir(parents=True)
    text = (
        f'{{"machine": "{this_machine()}", "pid": {pid}, "birth": "", "token": "../../../x",'
        '"since": "2020-01-01T00:00:00Z", "job": "1; touch executed", "cancel": true}'
    )
    stage.write("runs/tiny-open/.small-charlstm-seed1.lock", text)
    named = {"RUN": run, "RECIPE": laboratory.recipe}
    return [named.get(str(word), word) for word in command]


def _among_modules(models: Path, command: Command, stage: Stage) -> Command:
    laboratory = build_laboratory(stage.folder / "work")
    for path in laboratory.manifests.glob("*.toml"):
        shutil.copy(path, stage.folder / "home" / "treebanks")
    shutil.copytree(laboratory.treebanks, stage.root, dirs_exist_ok=True)
    shutil.copytree(models / "chart", stage.folder / "model")
    stage.write("texts/a.txt", "the dog sees\n" * 3)
    stage.write("texts/b.txt", "the dog sees\n" * 3)
    return [laboratory.recipe if word == "RECIPE" else word for word in command]


def tries(models: Path, victim: int) -> Iterator[Try]:
    """All of them; ``victim`` is the process that locks name."""
    heavy = [one for one in HARMS if "million" in one.name or " MB" in one.name]
    for harm in (*heavy, *HARMS[::6]):
        yield Try("models", str(harm), partial(_model, models, harm.model, harm.do))
    for case in CASES:
        listed = case.harmless and case.use == "train"
        command = ("recipes", "list") if listed else COMMANDS[case.use]
        kind = "archives" if "zip" in case.name or "tar" in case.name else "manifests and recipes"
        yield Try(kind, case.name, lambda stage, c=case, o=command: (c.make(stage), o)[1])  # type: ignore[misc]
    for how in (*records.CONTENTS, *(name for name in records.OTHERS if name != "no permission")):
        yield Try("records", how, partial(_record, how))
    for number, data in enumerate(random.Random(5).sample(records.tried_parts(), 50)):
        yield Try("records", f"a part replaced, {number}", partial(_record, data))
    for text, *_ in BRACKETS.malformed:
        yield Try("treebank files", repr(text), partial(_scored, "brackets", text.encode))
    for name, (text, *_) in CONLL.malformed.items():
        yield Try("treebank files", name, partial(_scored, "conll", text.encode))
    for extreme in EXTREMES:
        if extreme.form in ("brackets", "conll"):
            yield Try("treebank files", extreme.name, partial(_scored, extreme.form, extreme.make))
    for text, _ in MISTAKES:
        yield Try("treebank files", f"parameters: {text[:30]}", partial(_parameters, text))
    for file in ("a_1.mrg", "d_08.mrg", "t.mrg"):
        yield Try("treebank files", f"{file} is a link", partial(_link, file))
    for what in ("recipes", "treebanks", "systems"):
        for seed in range(20):
            yield Try("TOML", f"{what}, {seed}", partial(_toml, what, seed))
    commands = (("runs", "list"), ("train", "RECIPE", "--variant", "charlstm"), ("runs", "clean"))
    for pid in (victim, -victim, 0, -1 << 31, 1 << 31, 10**40, "true", '"1"', "1.5", "[1]", "NaN"):
        for command in commands[: 2 if pid == victim else 3]:
            yield Try("locks", f"{pid}, {command[0]} {command[1]}", partial(_lock, pid, command))
    for command in (
        ("train", "RECIPE"),
        ("train", "RECIPE", "--jobs", 2),
        ("parse", "--model", "model", "--device", "cpu", "--workers", 2),
        ("parse", "--model", "model", "--device", "cpu", "--workers", 2, "texts", "--to", "out"),
        ("study", "search", "RECIPE", "--variant", "charlstm", "--trials", 2, "--jobs", 2,
         "--set", "train.learning_rate=log:1e-4:5e-3"),
    ):  # fmt: skip
        name = " ".join(map(str, command))
        make = partial(_among_modules, models, command)
        yield Try("a working directory of modules", name, make, harmless=True)


def _link(file: str, stage: Stage) -> Command:
    stage.write("outside/accounts", "root:x:0:0:secretword\n")
    place = stage.root / "tiny_data" / file
    place.unlink()
    place.symlink_to(stage.folder / "outside" / "accounts")
    return "treebanks", "check", "tiny"


_making = threading.Lock()  # a generator may change the working directory for a moment


def run(one: Try, folder: Path, usual: Found | None, victim: subprocess.Popen[bytes]) -> Found:
    """Make the files of a try in a folder, run its command, and look at what it has done."""
    folder.mkdir(parents=True)
    canary = folder / "outside" / "executed"
    with serving() as server, _making:
        stage = set_stage(folder / "here", server)
        canary.parent.mkdir()
        for name in MODULES:
            stage.write(f"{name}.py", f"open({str(canary)!r}, 'a').close()\n")
        command = [Path(sys.executable).with_name("spmrl-bench"), *one.make(stage)]
        words = list(map(str, command))
        before = listing(folder)
        _making.release()
        try:
            found = _measured(words, stage, folder)
        finally:
            _making.acquire()
    after = listing(folder)
    if canary.exists() or victim.poll() is not None:
        found.harm.append("executed")
    mine = {name for name in before.keys() | after.keys() if name != "outside/executed"}
    changed = {name for name in mine if before.get(name) != after.get(name)}
    # What is downloaded may go to the treebanks; whatever was there stays.
    new = {name for name in changed if name not in before and name.startswith("here/treebanks/")}
    if any(
        not f"{name}/".startswith(tuple(f"here/{own}" for own in OWN)) for name in changed - new
    ):
        found.harm.append("outside")
    if "\x1b" in found.said or "secretword" in found.said:
        found.harm.append("shown")
    wrong = found.status not in ((0,) if one.harmless else (0, 1, 2))
    if "Traceback" in found.said or wrong:
        found.harm.append("traceback")
    if (
        usual is not None
        and not one.harmless
        and (  # which has work to do
            found.seconds - usual.seconds > SECONDS or found.megabytes - usual.megabytes > MEGABYTES
        )
    ):
        found.harm.append("beyond bounds")
    (folder / "command.txt").write_text(f"{' '.join(words)}\n\n{found}\n", "utf-8")
    return found


def _measured(command: list[str], stage: Stage, folder: Path) -> Found:
    environment = os.environ | {
        "SPMRL_BENCH_HOME": str(stage.folder / "home"), "TREEBANKS": str(stage.root),
        "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    said = folder.with_suffix(".txt")
    with said.open("wb") as output, subprocess.Popen(
        command, cwd=stage.folder, env=environment, stdin=subprocess.PIPE, stdout=output,
        stderr=output, start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    ) as process:  # fmt: skip
        timer = threading.Timer(PATIENCE, lambda: os.killpg(process.pid, signal.SIGKILL))
        timer.start()
        assert process.stdin is not None
        try:
            process.stdin.write(b"(S (D the) (N dog) (V sees) (N zebras) (P .))\n")
            process.stdin.close()
        except OSError:
            process.stdin = None  # it has ended without a look at it
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
    text = said.read_text("utf-8", errors="replace")[-3000:]
    said.unlink()
    spent, kilobytes = used.ru_utime + used.ru_stime, used.ru_maxrss
    return Found(process.returncode, text, spent, kilobytes >> 10)


def attack(folder: Path, kinds: Sequence[str] = ()) -> dict[str, Counter[str]]:
    """Run all tries, or those of some kinds, in new folders; return the counts of each kind."""
    models = folder / "models"
    save_models(models)
    counts: dict[str, Counter[str]] = {}
    with subprocess.Popen(["sleep", "86400"], start_new_session=True) as victim:
        try:
            honest = Try("", "", partial(_model, models, "joint", lambda _: None), harmless=True)
            usual = run(honest, folder / "honest", None, victim)
            assert not usual.harm, usual
            work = [one for one in tries(models, victim.pid) if not kinds or one.kind in kinds]
            with ThreadPoolExecutor(usable_cores()) as pool:
                places = [folder / "tries" / f"{number:04}" for number in range(len(work))]
                done = pool.map(lambda a, b: run(a, b, usual, victim), work, places)
                for one, place, found in zip(work, places, done, strict=True):
                    kept = counts.setdefault(one.kind, Counter())
                    kept.update(["tried", "refused" if found.status else "sound", *found.harm])
                    if found.harm:
                        print(f"{place}: {one.kind}: {one.name}: {', '.join(found.harm)}")
        finally:
            victim.kill()
    return counts


def main() -> int:
    """Print the counts as a table; return the status."""
    folder = Path(sys.argv[1]).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    counts = attack(folder, sys.argv[2:])
    columns = ("tried", "refused", "sound", *HARM)
    print(f"| files | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for kind, kept in {**counts, "all": sum(counts.values(), Counter())}.items():
        print(f"| {kind} | {' | '.join(f'{kept[name]:,}' for name in columns)} |")
    return any(kept[name] for kept in counts.values() for name in HARM)


if __name__ == "__main__":
    sys.exit(main())
