"""Commands in odd surroundings: one line of what is wrong at most, and never a traceback.

Closed and full streams, readers that went away, folders that are gone or locked, encodings without
letters. Every command ends by itself, with status 0 where it did what it was asked for.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from spmrl_bench.leaderboard.documents import write_document
from tests.builders import MAIN, environment, make_record, process
from tests.reliability.tally import Tally

NOBODY = 65534

COMMANDS = {
    "help": "--help",
    "recipes": "recipes list",
    "treebanks": "treebanks list",
    "validate": "treebanks check german-mini",
    "settings": "recipes show train.max_epochs",
    "score": "score {folder}/gold.mrg {folder}/Grün.mrg",
    "breakdown": "score {folder}/gold.mrg {folder}/Grün.mrg --by label --format json",
    "dependencies": "score {folder}/gold.conllu {folder}/gold.conllu",
    "table": "results table --results {folder}/results",
    "compare": "compare {folder}/results/runs/{one} {folder}/results/runs/{other} --trials 10",
    "no such file": "score {folder}/none {folder}/gold.mrg",
    "no such command": "scores",
}
FAILING = ("no such file", "no such command")

# What a shell says after a command, and the statuses of a command that succeeds elsewhere.
STREAMS = {
    "plain": ("", (0,)),
    "output closed": (">&-", (1,)),
    "errors closed": ("2>&-", (0,)),
    "input closed": ("<&-", (0,)),
    "all closed": ("<&- >&- 2>&-", (1,)),
    "output full": (">/dev/full", (1,)),
    "errors full": ("2>/dev/full", (0,)),
    "output read-only": ("1</dev/null", (1,)),
    "nobody reads": ("| true", (0, 1)),
    "the first line is read": ("| head -n 1", (0, 1)),
    "nobody reads messages": ("2> >(true)", (0,)),
}
UNWRITABLE = ("output closed", "output full", "output read-only")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to score and results."""
    folder = tmp_path_factory.mktemp("edges")
    for name in ("gold.mrg", "Grün.mrg"):
        (folder / name).write_text("(S (NP (DT die) (NN Tür)) (VP (VB klemmt)))\n" * 3, "utf-8")
    rows = ("1\tTür\t_\t_\tNN\t_\t2\tsubj\t_\t_", "2\tklemmt\t_\t_\tVB\t_\t0\troot\t_\t_")
    (folder / "gold.conllu").write_text("\n".join(rows) + "\n\n", "utf-8")
    for seed in (1, 2):
        write_document(make_record(seed=seed), folder / "results" / "runs")
    return folder


def call(
    folder: Path,
    command: str,
    after: str = "",
    before: str = "",
    anybody: bool = False,
    **changes: str | None,
) -> tuple[int, str, str]:
    """The status of the program, standard output and standard error."""
    one, other = sorted(path.name for path in (folder / "results" / "runs").glob("[0-9a-f]*.json"))
    words = COMMANDS[command].format(folder=folder, one=one, other=other)
    program = f"{shlex.quote(sys.executable)} -P -c {shlex.quote(MAIN)}"
    place = folder / "work"
    place.mkdir(exist_ok=True)
    variables = environment(SPMRL_BENCH_CACHE="0") | changes
    done = process(
        *("bash", "-c", f"{before} {program} {words} {after}; exit ${{PIPESTATUS[0]}}"),
        cwd=place,
        env={name: value for name, value in variables.items() if value is not None},
        errors="replace",
        preexec_fn=as_anybody if anybody else None,
    )
    return done.returncode, done.stdout, done.stderr


def check(found: tuple[int, str, str], command: str, allowed: Sequence[int]) -> None:
    status, output, errors = found
    for sign in ("Traceback", "Exception ignored", "Error:", "lost sys.std"):
        assert sign not in output + errors or (command in FAILING and sign != "Traceback"), errors
    assert status in ((1, 2) if command in FAILING else allowed), (status, errors)


@pytest.mark.parametrize(
    ("streams", "commands"),
    [
        *((name, ("score",)) for name in ("all closed", "output full", "errors full")),
        ("nobody reads", ("score",)),
        *(pytest.param(name, tuple(COMMANDS), marks=pytest.mark.campaign) for name in STREAMS),
    ],
)
def test_streams_that_are_closed_full_or_broken(
    folder: Path, streams: str, commands: Sequence[str], tally: Tally
) -> None:
    held = tally("R19", "commands with streams that are closed, full or broken")
    after, allowed = STREAMS[streams]
    for command in commands:
        held.add()
        found = call(folder, command, after)
        check(found, command, allowed)
        if streams in UNWRITABLE and command not in FAILING:
            line = found[2].splitlines()[-1]
            assert line.startswith("spmrl-bench: standard output: cannot be written: ")


SURROUNDINGS: dict[str, dict[str, object]] = {
    "no home": {"HOME": None, "SPMRL_BENCH_HOME": None},
    "a home that is a file": {"HOME": "/etc/passwd", "SPMRL_BENCH_HOME": None},
    "no folder for temporary files": {"TMPDIR": "/proc/none", "TEMP": "/none", "TMP": "/none"},
    "ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "POSIX, coerced": {"LC_ALL": "POSIX"},
    "an unknown locale": {"LC_ALL": "xx_XX.ISO-8859-1", "PYTHONUTF8": "0"},
    "ASCII streams": {"PYTHONIOENCODING": "ascii:strict"},
    "nothing set": dict.fromkeys(("HOME", "PATH", "LANG", "TERM", "USER", "SPMRL_BENCH_HOME")),
    "a cache folder that is a file": {"SPMRL_BENCH_CACHE": "/etc/passwd"},
    "treebanks that are a file": {"TREEBANKS": "/etc/passwd"},
    "no columns": {"COLUMNS": "0"},
}


@pytest.mark.parametrize(
    ("surroundings", "commands"),
    [
        *((name, ("score",)) for name in ("ASCII", "nothing set")),
        *(pytest.param(name, tuple(COMMANDS), marks=pytest.mark.campaign) for name in SURROUNDINGS),
    ],
)
def test_homes_locales_and_folders(
    folder: Path, surroundings: str, commands: Sequence[str], tally: Tally
) -> None:
    held = tally("R19", "commands without home, letters or folders")
    for command in commands:
        held.add()
        found = call(folder, command, **SURROUNDINGS[surroundings])
        check(found, command, (0,))
        if command == "score":
            assert "100.00" in found[1]


def test_the_home_named_has_to_be_a_folder(folder: Path, tally: Tally) -> None:
    tally("R19", "commands without home, letters or folders").add()
    status, output, errors = call(folder, "recipes", SPMRL_BENCH_HOME="/etc/passwd")
    assert (status, output) == (1, "")
    assert errors == (
        "spmrl-bench: SPMRL_BENCH_HOME: /etc/passwd: not a folder; name one, or unset it\n"
    )


@pytest.mark.parametrize(
    "commands", [("score",), pytest.param(tuple(COMMANDS), marks=pytest.mark.campaign)]
)
def test_a_working_directory_that_is_gone(
    folder: Path, commands: Sequence[str], tally: Tally
) -> None:
    held = tally("R19", "commands without home, letters or folders")
    for command in commands:
        held.add()
        gone = folder / "gone"
        gone.mkdir()
        found = call(folder, command, before=f"cd {gone}; rmdir {gone};")
        check(found, command, (0, 1))
        if command in ("help", "score", "recipes"):  # they need no relative path
            assert found[0] == 0, found[2]


def as_anybody() -> None:
    """Make root a user like others, who may not read every file, from the next program on."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
            raise OSError(ctypes.get_errno(), "prctl")


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A folder of somebody else, with a folder and a file in it."""
    if os.getuid() != 0 or sys.platform != "linux":
        pytest.skip("only root can give a folder to somebody else")
    folder = tmp_path / "locked"
    (folder / "own" / "recipes").mkdir(parents=True)
    for path in (folder, folder / "own"):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o700)
    return folder


@pytest.mark.parametrize("variable", ["HOME", "SPMRL_BENCH_HOME"])
def test_a_home_of_somebody_else(folder: Path, locked: Path, variable: str, tally: Tally) -> None:
    tally("R19", "commands without home, letters or folders").add()
    homes = {"SPMRL_BENCH_HOME": None, variable: str(locked / "own")}
    status, output, errors = call(folder, "recipes", anybody=True, **homes)
    assert "Traceback" not in errors
    if variable == "SPMRL_BENCH_HOME":
        assert (status, output) == (1, "")
        assert errors.startswith(f"spmrl-bench: {locked}/own")
        assert "Permission denied" in errors
    else:
        assert (status, "Permission" in errors) == (0, False), errors
        assert "german" in output


def test_a_record_of_somebody_else_is_left_out(folder: Path, locked: Path, tally: Tally) -> None:
    tally("R11", "broken files among results").add()
    (folder / "results" / "runs" / "unread.json").symlink_to(locked / "own" / "record.json")
    try:
        status, output, errors = call(folder, "table", anybody=True)
    finally:
        (folder / "results" / "runs" / "unread.json").unlink()
    assert status == 0
    assert "unread.json: cannot read the record: Permission denied;" in errors
    assert "LEFT OUT: 1 file or line" in errors
    assert "mean of 2" in output
