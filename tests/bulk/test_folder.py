"""The command ``parse --to``: a folder in, a folder out, a report; and whatever is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import Result

from spmrl_bench.bulk.progress import progress_line
from spmrl_bench.bulk.report import WorkerNote
from spmrl_bench.bulk.state import STATE
from spmrl_bench.parsing.bulk import ParseOptions
from spmrl_bench.process.executors import local
from tests.builders import cli
from tests.bulk.folders import Here, conllu, left_over, packed, results, streamed, tokens, write
from tests.conftest import PATIENCE

TEXTS = {"a.txt": tokens(35), "deep/b.txt.gz": tokens(25, 100), "d.conllu": conllu(31)}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    write(folder, TEXTS)
    return folder


@pytest.fixture
def parse(
    inputs: Path, neighbours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None
) -> Callable[..., Result]:
    """The command with more options, whose workers are in this process."""
    monkeypatch.setattr(local, "LocalExecutor", lambda *_: Here())

    def run(*options: str, model: Path = neighbours) -> Result:
        command = ["parse", "--model", str(model), "--to", str(tmp_path / "out"), *options]
        return cli(*command, str(inputs))

    return run


def expected(model: Path, texts: dict[str, bytes]) -> dict[str, bytes]:
    return {
        name: streamed(model, data, "conllu" if ".conllu" in name else "tokens", ParseOptions())
        for name, data in texts.items()
    }


def report_of(outputs: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((outputs / "report.json").read_text(encoding="utf-8"))
    return content


def test_a_folder_becomes_a_folder(
    parse: Callable[..., Result], neighbours: Path, inputs: Path, tmp_path: Path
) -> None:
    outputs = tmp_path / "out"
    (inputs / "README").touch()
    (inputs / ".hidden.txt").write_bytes(b"x")
    os.mkfifo(inputs / "pipe.txt")
    done = parse("--workers", "2")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    assert results(outputs) == expected(neighbours, TEXTS)
    assert left_over(outputs) == []
    left_out, first, *_, total, one = done.stderr.splitlines()
    assert left_out == (
        "left out: README: its name does not say what it holds; "
        "pipe.txt: no file that can be read again"
    )
    assert first == "worker 1 of 2: started (1 of 2)"
    assert re.fullmatch(r"3 of 3 files, 91 sentences, \d+\.\d s, [\d,.]+ sentences/s", total)
    assert re.fullmatch(r"worker 1 on \S+: 91 sentences, [\d,.]+/s", one)
    report = report_of(outputs)
    assert (report["files"], report["done"], report["sentences"]) == (3, 3, 91)
    assert report["failed"] == []
    (worker,) = report["workers"]
    assert (worker["shards"], worker["files"], worker["sentences"]) == (4 + 3 + 4, 3, 91)
    settings = json.loads((outputs / "parse.json").read_text(encoding="utf-8"))
    assert (settings["kind"], settings["output"]) == ("attach-neighbour", "conllu")

    again = parse()
    assert again.exit_code == 0
    assert "all 3 files are parsed" in again.stderr
    assert report_of(outputs) == report


def test_what_failed_is_tried_again_and_nothing_else(
    parse: Callable[..., Result], neighbours: Path, inputs: Path, tmp_path: Path
) -> None:
    outputs = tmp_path / "out"
    write(inputs, {"bad.txt": b"caf\xe9\n"})
    (inputs / "half.txt.gz").write_bytes(packed(tokens(9), "x.gz")[:-9])
    done = parse()
    assert done.exit_code == 1
    message = done.stderr[done.stderr.index("spmrl-bench:") :].splitlines()
    assert message[0] == (
        "spmrl-bench: 2 of 5 files not parsed; the same command again tries these:"
    )
    assert message[1].startswith("bad.txt:1: not UTF-8 text")
    assert message[2].startswith("half.txt.gz: cannot be decompressed")
    assert results(outputs) == expected(neighbours, TEXTS)
    assert [each["file"] for each in report_of(outputs)["failed"]] == ["bad.txt", "half.txt.gz"]
    assert parse().exit_code == 1

    then = {name: (outputs / name).stat().st_mtime_ns for name in TEXTS}
    write(inputs, {"bad.txt": tokens(2), "half.txt.gz": tokens(9)})
    assert parse().exit_code == 0
    more = TEXTS | {"bad.txt": tokens(2), "half.txt.gz": tokens(9)}
    assert results(outputs) == expected(neighbours, more)
    assert {name: (outputs / name).stat().st_mtime_ns for name in TEXTS} == then
    report = report_of(outputs)
    assert (report["failed"], report["sentences"]) == ([], 91 + 11)
    assert left_over(outputs) == []


def test_an_input_that_changed_or_an_output_that_is_gone_is_made_anew(
    parse: Callable[..., Result], neighbours: Path, inputs: Path, tmp_path: Path
) -> None:
    assert parse().exit_code == 0
    changed = TEXTS | {"a.txt": tokens(12)}
    write(inputs, {"a.txt": tokens(12)})
    (tmp_path / "out/d.conllu").unlink()
    assert parse().exit_code == 0
    assert results(tmp_path / "out") == expected(neighbours, changed)
    assert report_of(tmp_path / "out")["sentences"] == 12 + 25 + 31


def test_other_settings_are_refused_and_change_nothing(
    parse: Callable[..., Result], model: Path, tmp_path: Path
) -> None:
    assert parse().exit_code == 0
    before = results(tmp_path / "out")
    for options, said in (
        (("--on-long", "flat"), "on_long is error there; asked for now: on_long flat"),
        (("--input", "conllu"), "input is as the names say there; asked for now: input conllu"),
        (("--output", "json", "--compression", "gz"), "compression is as the names say there"),
    ):
        done = parse(*options)
        assert done.exit_code == 1
        assert said in done.stderr
    done = parse("--output", "json", model=model)
    assert done.exit_code == 1
    assert "kind is attach-neighbour there, sha256 is " in done.stderr
    assert results(tmp_path / "out") == before


def test_folders_that_do_not_fit_are_refused(
    parse: Callable[..., Result], inputs: Path, neighbours: Path, tmp_path: Path
) -> None:
    def refusal(*arguments: Path | str) -> str:
        command = ["parse", "--model", str(neighbours), *map(str, arguments)]
        done = cli(*command)
        assert done.exit_code == 1
        return done.stderr

    other, empty = tmp_path / "other", tmp_path / "empty"
    other.mkdir()
    empty.mkdir()
    (other / "mine").touch()
    assert "holds other files (mine), but no parse.json" in refusal("--to", other, inputs)
    assert "one of the two folders would be in the other" in refusal("--to", inputs / "x", inputs)
    assert "one of the two folders would be in the other" in refusal("--to", tmp_path, inputs)
    assert "nothing to parse; expected files that end in .txt" in refusal("--to", other, empty)
    assert "expected one folder" in refusal("--to", other, inputs / "a.txt")
    assert "expected one folder" in refusal("--to", other, inputs, empty)
    assert "is a file" in refusal("--to", other / "mine", inputs)
    assert "'--to' for a folder of them" in refusal(inputs)
    assert "--compression is for folders" in refusal("--compression", "gz", inputs / "a.txt")
    assert "unknown compression 'bz2'" in refusal("--to", other, "--compression", "bz2", inputs)
    (inputs / "a.txt.gz").write_bytes(packed(b"", "x.gz"))
    twice = refusal("--to", tmp_path / "out", "--compression", "none", inputs)
    assert "a.txt.gz: its parses would have the name of those of a.txt, a.txt" in twice
    assert not (tmp_path / "out").exists()


def test_rows_that_are_parsed_as_words_are_noticed(
    parse: Callable[..., Result], inputs: Path
) -> None:
    (inputs / "a.txt").write_bytes(conllu(200))
    assert "a.txt: the input looks like CoNLL-U, but its lines are" in parse().stderr


def test_without_its_library_zstd_is_refused_before_anything_is_done(
    parse: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    done = parse("--compression", "zst")
    assert done.exit_code == 1
    assert "pip install 'spmrl-bench[zstd]'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_progress_says_what_is_done_and_how_long_it_takes() -> None:
    notes = [
        WorkerNote(session="s", worker=k, machine="m", shards=4, sentences=9000, consumed=25)
        for k in (1, 2)
    ]
    assert progress_line(notes, 7, 200, 10.0) == (
        "18,000 sentences in 8 shards, 1,800/s; 0 of 7 files, 25%; about 30 s left"
    )
    assert "left" not in progress_line([], 7, 200, 0.0)


# Processes ---------------------------------------------------------------------------------


def start(model: Path, inputs: Path, outputs: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "spmrl_bench", "parse", "--model", str(model)]
    return subprocess.Popen(
        [*command, "--device", "cpu", "--workers", "2", "--to", str(outputs), str(inputs)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stderr=subprocess.PIPE,
        text=True,
    )


def shards(outputs: Path, ending: str) -> list[Path]:
    """The files of shards with an ending, while workers make and remove them."""
    files = [*(outputs / STATE).glob("*/*")] if (outputs / STATE).is_dir() else []
    return [path for path in files if path.suffix == ending and path.stem.isdecimal()]


def owners(outputs: Path) -> list[int]:
    """The processes that have a shard in work."""
    found = []
    for lock in shards(outputs, ".lock"):
        with suppress(OSError, ValueError):
            found.append(json.loads(lock.read_text(encoding="utf-8"))["pid"])
    return found


def test_workers_and_drivers_are_killed_beside_each_other(neighbours: Path, tmp_path: Path) -> None:
    """Two commands at once, of which one dies, and two workers of the other."""
    texts = {"a.txt": tokens(30_000), "b.conllu.gz": conllu(6000)}
    write(tmp_path / "in", texts)
    outputs = tmp_path / "out"
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
    assert report_of(outputs)["sentences"] == 36_000
    assert left_over(outputs) == []


def test_an_interrupt_keeps_what_is_done(
    neighbours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"a.txt": tokens(40_000)}
    write(tmp_path / "in", texts)
    outputs = tmp_path / "out"
    command = start(neighbours, tmp_path / "in", outputs)
    until = time.monotonic() + PATIENCE
    while not shards(outputs, ".part"):
        assert time.monotonic() < until
        time.sleep(0.02)
    command.send_signal(signal.SIGINT)
    said = command.communicate(timeout=PATIENCE)[1]
    assert command.returncode == 130, said
    assert "interrupted; what is done is kept: give the same command again to go on" in said
    assert list(outputs.glob(".parsing/*/*.lock")) == []
    assert results(outputs) == {}
    monkeypatch.setattr(local, "LocalExecutor", lambda *_: Here())
    arguments = ["--model", str(neighbours), "--to", str(outputs), str(tmp_path / "in")]
    assert cli("parse", *arguments).exit_code == 0
    workers = report_of(outputs)["workers"]
    assert sum(worker["sentences"] for worker in workers) == 40_000
    assert results(outputs) == expected(neighbours, texts)
