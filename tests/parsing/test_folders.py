"""A folder in, a folder out, as ``parse`` would stream each file, whatever dies meanwhile."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from spmrl_bench.errors import CheckpointError, SpmrlError
from spmrl_bench.parsing import folders
from spmrl_bench.parsing.bulk import Counts, ParseOptions, Worker, parse_input
from spmrl_bench.parsing.folders import SETTINGS, Job, find_inputs, parse_files
from spmrl_bench.parsing.models import identity, load_parser
from spmrl_bench.parsing.streams import Form, sentences_of
from spmrl_bench.process.executors import local
from spmrl_bench.storage.locks import SILENCE, lock_of, locked
from tests.builders import cli, environment
from tests.conftest import PATIENCE, until
from tests.reliability.faults import calls_under, counted, fail_at, killed


def packed(data: bytes, name: str) -> bytes:
    """Bytes as a file of that name has them, compressed in two pieces one after the other."""
    half = len(data) // 2 if name.endswith(".gz") else 0
    return gzip.compress(data[:half]) + gzip.compress(data[half:]) if half else data


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(packed(data, name))


def streamed(model: Path, data: bytes, form: Form, options: ParseOptions) -> bytes:
    """What ``parse`` writes to standard output."""
    answers = Worker(load_parser(model, "cpu"), options)
    given = sentences_of(BytesIO(data), "-", form, options.tag_column, ())
    texts = parse_input(given, lambda windows: map(answers, windows), Counts())
    return "".join("".join(some) for some in texts).encode()


def job_of(model: Path, inputs: Path, outputs: Path, options: ParseOptions | None = None) -> Job:
    files = find_inputs(inputs, outputs, None)
    return Job(model, identity(model).sha256, files, options or ParseOptions(), ())


def do(job: Job) -> None:
    parse_files(job, 0, 1, device="cpu")


def results(outputs: Path) -> dict[str, bytes]:
    """The outputs by name, unpacked."""
    found = {}
    for place, _, names in os.walk(outputs):  # ``rglob`` fails if a folder goes meanwhile
        for path in (Path(place, name) for name in sorted(names)):
            if path.name[0] != "." and path.name != SETTINGS:
                data = path.read_bytes()
                unpacked = gzip.decompress(data) if path.suffix == ".gz" else data
                found[path.relative_to(outputs).as_posix()] = unpacked
    return found


def left_over(outputs: Path) -> list[str]:
    return sorted(path.name for path in outputs.rglob(".*"))


def tokens(count: int, first: int = 0) -> bytes:
    """So many sentences, each with a word of its own."""
    lines = (f"the dog w{k} barks{' .' * (k % 3)}" for k in range(first, first + count))
    return "".join(f"{line}\n" for line in lines).encode()


def conllu(count: int) -> bytes:
    rows = (
        "# sent_id = s{0}\n1\tthe\tthe\tDET\tD\t_\t_\t_\t_\t_\n2\tw{0}\t_\tN\tN\tA=\t_\t_\t_\t_\n\n"
    )
    return "".join(rows.format(k) + "\n" * (k % 4 == 1) for k in range(count)).encode()


def trees(count: int) -> bytes:
    return "".join(f"(S (D the) (N w{k}))\n" + "\n" * (k % 5 == 2) for k in range(count)).encode()


TEXTS = {
    "a.txt": tokens(35),
    "b.txt.gz": tokens(25, 100),
    "deep/er/c.tok": tokens(10, 200),
    "d.conllu": conllu(31),
    "empty.txt": b"",
    "no-end.txt": b"cats sleep",
}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    write(tmp_path / "in", TEXTS)
    return tmp_path / "in"


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return tmp_path / "out"


def expected(model: Path, texts: dict[str, bytes] = TEXTS) -> dict[str, bytes]:
    return {
        name: streamed(model, data, "conllu" if ".conllu" in name else "tokens", ParseOptions())
        for name, data in texts.items()
    }


@pytest.fixture
def parse(
    inputs: Path, outputs: Path, neighbours: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """The command with more options, whose workers are in this process."""
    monkeypatch.setattr(local, "LocalExecutor", lambda *_: local.InProcess("cpu"))

    def run(*options: str | Path, model: Path = neighbours, to: Path = outputs) -> Result:
        given = options if any(isinstance(each, Path) for each in options) else (*options, inputs)
        return cli("parse", "--model", str(model), "--to", str(to), *map(str, given))

    return run


def test_a_folder_becomes_a_folder(
    parse: Callable[..., Result], neighbours: Path, inputs: Path, outputs: Path
) -> None:
    (inputs / "README").touch()
    (inputs / ".hidden.txt").write_bytes(b"x")
    os.mkfifo(inputs / "pipe.txt")
    done = parse("--workers", "2")
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert results(outputs) == expected(neighbours)
    assert list(outputs.rglob(".*")) == []
    said = done.stderr.splitlines()
    assert said[0] == "left out, since nothing says what they hold: README, pipe.txt"
    assert {"a.txt: 35 sentences", "empty.txt: 0 sentences"} < set(said)
    assert re.fullmatch(r"6 of 6 files parsed in \d+\.\d s", said[-1])
    settings = json.loads((outputs / "parse.json").read_text(encoding="utf-8"))
    assert (settings["kind"], settings["output"]) == ("attach-neighbour", "conllu")
    assert "all 6 files are parsed" in parse().stderr


def test_outputs_are_those_of_the_stream_and_long_sentences_are_counted(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = b"a a a a a a a a a\n"
    texts = {"a.txt.gz": (tokens(15) + long + tokens(9) + long, "tokens")}
    texts["b.mrg"] = (trees(31), "brackets")
    write(tmp_path / "in", {name: data for name, (data, _) in texts.items()})
    for output in ("brackets", "json", "json"):
        options = ParseOptions("flat", output)
        outputs = tmp_path / f"{output}{len(list(tmp_path.iterdir()))}"
        do(job_of(model, tmp_path / "in", outputs, options))
        assert results(outputs) == {
            name: streamed(model, data, form, options) for name, (data, form) in texts.items()
        }
        said = "a.txt.gz: 26 sentences, 2 too long to be parsed, the first a.txt.gz:16: a sen"
        assert said in capsys.readouterr().err
    once, again = tmp_path.glob("json*/a.txt.gz")
    assert once.read_bytes() == again.read_bytes()


def test_what_failed_is_tried_again_and_nothing_else(
    parse: Callable[..., Result], neighbours: Path, inputs: Path, outputs: Path
) -> None:
    bad = {"bad.txt": tokens(17) + b"caf\xe9\n", "rows.conllu": conllu(12) + b"1\tx\n\n"}
    write(inputs, bad)
    (inputs / "half.txt.gz").write_bytes(packed(tokens(9), "x.gz")[:-9])
    (inputs / "plain.txt.gz").write_bytes(tokens(9))
    done = parse("--workers", "2")
    assert done.exit_code == 1
    message = done.stderr[done.stderr.index("spmrl-bench:") :].splitlines()
    assert message[0].endswith("4 of 10 files not parsed; the same command again tries these:")
    assert message[1].startswith("bad.txt:18: not UTF-8 text")
    assert message[2].startswith("half.txt.gz: cannot be decompressed")
    assert message[3].startswith("plain.txt.gz:1: cannot be read on: Not a gzipped file")
    # Behind 12 sentences of four lines, and the three blank lines more of the 2nd, 6th and 10th.
    assert message[4].startswith("rows.conllu:52: sentence 13:")
    assert results(outputs) == expected(neighbours)
    assert parse().exit_code == 1

    then = {name: (outputs / name).stat().st_mtime_ns for name in TEXTS}
    mended = dict.fromkeys(("bad.txt", "half.txt.gz", "plain.txt.gz"), tokens(2))
    write(inputs, mended)
    (inputs / "rows.conllu").unlink()
    assert "3 of 9 files parsed" in parse().stderr
    assert results(outputs) == expected(neighbours, TEXTS | mended)
    assert {name: (outputs / name).stat().st_mtime_ns for name in TEXTS} == then
    # An input that has changed and an output that is gone are parsed anew.
    write(inputs, {"a.txt": tokens(12)})
    (outputs / "d.conllu").unlink()
    assert "2 of 9 files parsed" in parse().stderr
    assert results(outputs) == expected(neighbours, TEXTS | mended | {"a.txt": tokens(12)})


def test_other_settings_and_folders_that_do_not_fit_are_refused(
    parse: Callable[..., Result], model: Path, inputs: Path, outputs: Path, tmp_path: Path
) -> None:
    other, empty = tmp_path / "other", tmp_path / "empty"
    other.mkdir()
    empty.mkdir()
    (other / "mine").touch()
    for to, given, said in (
        (other, [inputs], "holds other files (mine), but no parse.json"),
        (inputs / "x", [inputs], "one of the two folders would be in the other"),
        (tmp_path, [inputs], "one of the two folders would be in the other"),
        (other, [empty], "nothing to parse; expected files that end in .txt"),
        (other, [inputs / "a.txt"], "expected one folder"),
        (other, [inputs, empty], "expected one folder"),
        (other / "mine", [inputs], "cannot hold parses: File exists"),
    ):
        done = parse(*given, to=to)
        assert done.exit_code == 1
        assert said in done.stderr
    assert not outputs.exists()
    assert parse().exit_code == 0
    before = results(outputs)
    for options, said in (
        (("--on-long", "flat"), "on_long error there, flat now"),
        (("--input", "conllu"), "input None there, conllu now"),
    ):
        done = parse(*options)
        assert done.exit_code == 1
        assert said in done.stderr
    done = parse("--output", "json", model=model)
    assert "kind attach-neighbour there, chart now; sha256 " in done.stderr
    assert results(outputs) == before


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.campaign)])
def test_a_kill_at_any_call_loses_and_doubles_nothing(
    neighbours: Path, inputs: Path, tmp_path: Path, every: int
) -> None:
    wanted = expected(neighbours)
    calls = counted(tmp_path / "count", lambda: do(job_of(neighbours, inputs, tmp_path / "count")))
    assert results(tmp_path / "count") == wanted
    replaced = [k for k, call in enumerate(calls) if call.startswith("replace")]
    assert len(replaced) == len(TEXTS)
    for step in sorted({*range(0, len(calls), every), *replaced}):
        outputs = tmp_path / str(step)
        job = job_of(neighbours, inputs, outputs)
        assert killed(outputs, step, partial(do, job)), calls[step]
        assert results(outputs).items() <= wanted.items(), calls[step]
        do(job)
        folders._tidy(job.files)
        assert results(outputs) == wanted, calls[step]
        assert list(outputs.rglob(".*")) == [], calls[step]
        shutil.rmtree(outputs)


def test_a_disk_that_fails_is_told_and_nothing_is_lost(
    neighbours: Path, inputs: Path, tmp_path: Path
) -> None:
    calls = counted(tmp_path / "count", lambda: do(job_of(neighbours, inputs, tmp_path / "count")))
    for call in (r"write .*lock", r"fsync .*a\.txt", r"replace .*b\.txt"):
        step = next(k for k, made in enumerate(calls) if re.match(call, made))
        outputs = tmp_path / str(step)
        job = job_of(neighbours, inputs, outputs)
        with (
            calls_under(outputs, fail_at(step, 28)),
            pytest.raises(SpmrlError, match=r"No space left on device. Make room, and give"),
        ):
            do(job)
        do(job)
        assert results(outputs) == expected(neighbours)


def test_what_another_has_in_work_is_left_to_it(
    neighbours: Path, inputs: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker parses all else, and waits; a silent machine keeps nothing."""
    monkeypatch.setattr(folders, "PAUSE", 0.01)
    job = job_of(neighbours, inputs, outputs)
    wanted = expected(neighbours)
    outputs.mkdir()
    silent = lock_of(job.files[1].output)
    owner = {"machine": "elsewhere", "pid": 1, "birth": "", "token": "0"}
    silent.write_text(json.dumps({**owner, "since": "2026-01-01T00:00:00Z"}), encoding="utf-8")
    then = silent.stat().st_mtime - SILENCE - 60
    os.utime(silent, (then, then))
    other = threading.Thread(target=do, args=(job,))
    with locked(lock_of(job.files[0].output)):
        other.start()
        until(lambda: len(results(outputs)) >= len(wanted) - 1)
        time.sleep(0.05)
        assert other.is_alive()
        assert job.files[0].shown not in results(outputs)
    other.join(PATIENCE)
    assert results(outputs) == wanted
    assert left_over(outputs) == []


def test_an_input_or_a_parser_that_changes_under_work_fails(
    neighbours: Path, inputs: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = folders.parse_input

    def changing(*arguments: Any) -> object:
        write(inputs, {"a.txt": tokens(26)})
        return real(*arguments)

    job = job_of(neighbours, inputs, outputs)
    with pytest.raises(CheckpointError, match="another parser has come into its place"):
        do(job._replace(sha256="another"))
    assert results(outputs) == {}
    monkeypatch.setattr(folders, "parse_input", changing)
    do(job)
    assert "a.txt" not in results(outputs)
    assert job.files[0].failed.read_text() == "a.txt: has changed while it was parsed"


def start(model: Path, inputs: Path, outputs: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "spmrl_bench", "parse", "--model", str(model)]
    return subprocess.Popen(
        [*command, "--device", "cpu", "--workers", "2", "--to", str(outputs), str(inputs)],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )


def owners(outputs: Path) -> list[int]:
    """The processes that have a file in work."""
    found = []
    for lock in outputs.glob(".*.lock"):
        with suppress(OSError, ValueError):
            found.append(json.loads(lock.read_text(encoding="utf-8"))["pid"])
    return found


@pytest.mark.campaign
def test_workers_and_drivers_are_killed_beside_each_other(
    neighbours: Path, tmp_path: Path, outputs: Path
) -> None:
    """Two commands at once, of which one dies, and two workers of the other."""
    texts = {f"{k}.txt": tokens(1500) for k in range(6)} | {"b.conllu.gz": conllu(700)}
    write(tmp_path / "in", texts)
    commands = [start(neighbours, tmp_path / "in", outputs) for _ in range(2)]
    until = time.monotonic() + PATIENCE
    killed: set[int] = set()
    while commands[0].poll() is None and len(killed) < 3:
        assert time.monotonic() < until
        for pid in owners(outputs):
            if pid not in killed and len(killed) < 3:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        if killed and commands[1].poll() is None:
            commands[1].kill()
        time.sleep(0.02)
    ends = [command.communicate(timeout=PATIENCE)[1] for command in commands]
    assert len(killed) == 3
    assert commands[0].returncode == 0, ends[0]
    assert results(outputs) == expected(neighbours, texts)
    assert list(outputs.rglob(".*")) == []


def test_an_interrupt_keeps_what_is_done(
    neighbours: Path, outputs: Path, parse: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = folders._parse_file

    def interrupted(file: folders.Input, *rest: Any) -> None:
        if file.shown == "b.txt.gz":
            signal.raise_signal(signal.SIGINT)
        real(file, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "_parse_file", interrupted)
        done = parse()
    assert done.exit_code == 130, done.stderr
    assert "interrupted; what is done is kept: give the same command again to go on" in done.stderr
    assert set(results(outputs)) == {"a.txt"}
    assert left_over(outputs) == []
    assert "5 of 6 files parsed" in parse().stderr
    assert results(outputs) == expected(neighbours)
