"""Workers parse each shard once and put together what ``parse`` would write, whatever dies."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from spmrl_bench.bulk import worker
from spmrl_bench.bulk.folder import tidy
from spmrl_bench.bulk.inputs import Compression, inputs_of
from spmrl_bench.bulk.report import worker_notes
from spmrl_bench.bulk.state import FileState
from spmrl_bench.bulk.worker import Job
from spmrl_bench.errors import CheckpointError, SpmrlError
from spmrl_bench.parsing.bulk import ParseOptions
from spmrl_bench.process.signals import Interrupted, interrupt, on_signals
from spmrl_bench.storage import files
from spmrl_bench.storage.locks import SILENCE, locked
from tests.bulk.folders import (
    conllu,
    do,
    job_of,
    left_over,
    results,
    streamed,
    tokens,
    trees,
    write,
)
from tests.conftest import PATIENCE
from tests.reliability.faults import calls_under, counted, fail_at, killed, told_to_stop_at

pytestmark = pytest.mark.usefixtures("small")

TEXTS = {
    "a.txt": tokens(35),
    "b.txt.gz": tokens(25, 100),
    "deep/er/c.tok.zst": tokens(10, 200),
    "d.conllu": conllu(31),
    "e.conllu.gz": conllu(3),
    "empty.txt": b"",
    "no-end.txt": b"cats sleep",
}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    write(folder, TEXTS)
    return folder


@pytest.fixture(scope="module")
def expected(neighbours: Path) -> dict[str, bytes]:
    return {
        name: streamed(
            neighbours, data, "conllu" if ".conllu" in name else "tokens", ParseOptions()
        )
        for name, data in TEXTS.items()
    }


@pytest.mark.parametrize("output", ["brackets", "json"])
def test_outputs_are_those_of_the_stream(model: Path, tmp_path: Path, output: str) -> None:
    texts = {
        "a.txt.gz": (tokens(25), "tokens"),
        "b.mrg.zst": (trees(25), "brackets"),
        "c.ptb": (trees(25, lines=False), "brackets"),
        "d.conllu": (conllu(25), "conllu"),
    }
    write(tmp_path / "in", {name: data for name, (data, _) in texts.items()})
    options = ParseOptions("flat", output)
    do(job_of(model, tmp_path / "in", tmp_path / "out", options))
    assert results(tmp_path / "out") == {
        name: streamed(model, data, form, options) for name, (data, form) in texts.items()
    }
    assert left_over(tmp_path / "out") == []


def test_every_compression_in_and_out(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    compressions: tuple[Compression | None, ...] = (None, "none", "gz", "zst")
    for compression in compressions:
        outputs = tmp_path / str(compression)
        do(job_of(neighbours, inputs, outputs, compression=compression))
        endings = {"none": "", "gz": ".gz", "zst": ".zst"}
        names = {
            name: name.removesuffix(".gz").removesuffix(".zst") + endings[compression]
            if compression
            else name
            for name in expected
        }
        assert results(outputs) == {names[name]: data for name, data in expected.items()}


def test_long_sentences_are_counted_with_the_place_of_the_first(
    model: Path, tmp_path: Path
) -> None:
    long = b"a a a a a a a a a\n"
    write(tmp_path / "in", {"a.txt": tokens(15) + long + tokens(9) + long})
    job = job_of(model, tmp_path / "in", tmp_path / "out", ParseOptions("skip"))
    do(job)
    note = FileState(job.outputs, job.files[0]).note()
    assert (note.sentences, note.long) == (26, 2)
    assert note.first_long.startswith("a.txt:16: a sentence of 9 words")
    assert results(job.outputs)["a.txt"].count(b"(())\n") == 2


def go_on(job: Job) -> None:
    """Do the rest in a process of its own, which has visited no folder yet; and tidy up."""
    files._first_visit.cache_clear()
    do(job)
    tidy(job.outputs, job.files)


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.campaign)])
def test_a_kill_at_any_call_loses_and_doubles_nothing(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes], every: int
) -> None:
    for name in TEXTS.keys() - {"a.txt", "b.txt.gz"}:
        (inputs / name).unlink()
    wanted = {name: expected[name] for name in ("a.txt", "b.txt.gz")}
    job = job_of(neighbours, inputs, tmp_path / "count")
    calls = counted(job.outputs, partial(do, job))
    assert results(job.outputs) == wanted
    assert len(calls) > 150
    written = [k for k, call in enumerate(calls) if re.match("(write|replace) .*(part|txt)", call)]
    assert len(written) > 15
    for step in sorted({*range(0, len(calls), every), *written}):
        job = job_of(neighbours, inputs, tmp_path / str(step))
        assert killed(job.outputs, step, partial(do, job)), calls[step]
        assert results(job.outputs).items() <= wanted.items(), calls[step]
        go_on(job)
        assert results(job.outputs) == wanted, calls[step]
        assert left_over(job.outputs) == [], calls[step]
        shutil.rmtree(job.outputs)


@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.campaign)])
def test_a_worker_that_is_told_to_stop_has_counted_what_is_there(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes], every: int
) -> None:
    for name in TEXTS.keys() - {"a.txt"}:
        (inputs / name).unlink()
    job = job_of(neighbours, inputs, tmp_path / "count")
    calls = counted(job.outputs, partial(do, job))
    parts = [k for k, call in enumerate(calls) if re.match("replace .*part", call)]
    assert len(parts) == 4
    for step in sorted({*range(0, len(calls), every), *(k + j for k in parts for j in range(5))}):
        files._first_visit.cache_clear()
        job = job_of(neighbours, inputs, tmp_path / str(step))
        with (
            on_signals(interrupt, signal.SIGTERM),
            pytest.raises(Interrupted),
            calls_under(job.outputs, told_to_stop_at(step)),
        ):
            do(job)
        go_on(job)
        assert results(job.outputs) == {"a.txt": expected["a.txt"]}, calls[step]
        assert sum(note.sentences for note in worker_notes(job.outputs)) == 35, calls[step]
        assert left_over(job.outputs) == [], calls[step]
        shutil.rmtree(job.outputs)


def test_kills_upon_kills(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    """Each process gets a little further than the one before it, which leaves its claims."""
    job = job_of(neighbours, inputs, tmp_path / "out")
    deaths = 0
    while killed(job.outputs, 65, partial(do, job)):
        deaths += 1
        assert deaths < 50
    assert deaths > 3
    go_on(job)
    assert results(job.outputs) == expected
    assert left_over(job.outputs) == []


def test_a_disk_that_fails_is_told_and_nothing_is_lost(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    job = job_of(neighbours, inputs, tmp_path / "count")
    calls = counted(job.outputs, partial(do, job))
    for call in (
        r"write .*lock",
        r"write .*part",
        r"fsync .*cut",
        r"write .*a\.txt",
        r"replace .*json",
    ):
        step = next(k for k, made in enumerate(calls) if re.match(call, made))
        job = job_of(neighbours, inputs, tmp_path / str(step))
        with (
            calls_under(job.outputs, fail_at(step, 28)),
            pytest.raises(SpmrlError, match=r"No space left on device. Make room, and give"),
        ):
            do(job)
        do(job)
        assert results(job.outputs) == expected


def test_what_another_has_in_work_is_left_to_it(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    """A worker parses what is behind a claimed shard, and waits until that is done."""
    job = job_of(neighbours, inputs, tmp_path / "out")
    first = FileState(job.outputs, job.files[0])
    first.folder.mkdir(parents=True)
    other = threading.Thread(target=do, args=(job,))
    with locked(first.lock(0)):
        other.start()
        deadline = PATIENCE / 0.01
        while first.part(3) is None or len(results(job.outputs)) < len(expected) - 1:
            other.join(0.01)
            deadline -= 1
            assert deadline
        assert other.is_alive()
        assert first.part(0) is None
        assert "a.txt" not in results(job.outputs)
    other.join(PATIENCE)
    assert results(job.outputs) == expected


def test_the_claim_of_a_silent_machine_is_taken_over(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    job = job_of(neighbours, inputs, tmp_path / "out")
    state = FileState(job.outputs, job.files[0])
    state.folder.mkdir(parents=True)
    for name in (2, "assembly"):
        text = (
            '{"machine": "elsewhere", "pid": 1, "birth": "", "token": "0",'
            '"since": "2026-01-01T00:00:00Z"}'
        )
        state.lock(name).write_text(text, encoding="utf-8")
        then = state.lock(name).stat().st_mtime - SILENCE - 60
        os.utime(state.lock(name), (then, then))
    do(job)
    assert results(job.outputs) == expected
    assert left_over(job.outputs) == []


def test_workers_side_by_side_parse_each_shard_once(
    neighbours: Path,
    inputs: Path,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[tuple[str, int]] = []
    real = FileState.write_part

    def write_part(self: FileState, shard: int, *rest: object) -> None:
        parsed.append((self.key, shard))
        real(self, shard, *rest)

    monkeypatch.setattr(FileState, "write_part", write_part)
    job = job_of(neighbours, inputs, tmp_path / "out")
    threads = [threading.Thread(target=do, args=(job, number, 4)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert results(job.outputs) == expected
    assert len(parsed) == len(set(parsed)) == 4 + 3 + 1 + 4 + 1 + 1 + 1


def test_what_was_parsed_while_a_claim_was_made_is_not_parsed_again(
    neighbours: Path,
    inputs: Path,
    tmp_path: Path,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = job_of(neighbours, inputs, tmp_path / "out")
    state = FileState(job.outputs, job.files[0])
    calls = counted(tmp_path / "out", partial(do, job_of(neighbours, inputs, job.outputs)))
    shutil.rmtree(job.outputs)
    job = job_of(neighbours, inputs, tmp_path / "out")
    step = next(k for k, call in enumerate(calls) if call.startswith("write") and "2.lock" in call)
    assert killed(job.outputs, step, partial(do, job))
    before = [state.part(0), state.part(1)]
    assert None not in before
    real, lies = FileState.part, [0, 1]

    def part(self: FileState, shard: int) -> object:
        if self.key == state.key and shard in lies:
            lies.remove(shard)
            return None
        return real(self, shard)

    monkeypatch.setattr(FileState, "part", part)
    places = [state.folder / f"{shard}.part" for shard in (0, 1)]
    monkeypatch.setattr(
        FileState,
        "clear",
        lambda self, shards: made.append([place.stat().st_ino for place in places]),
    )
    made = [[place.stat().st_ino for place in places]]
    do(job)
    assert lies == []
    assert made[1] == made[0]
    assert results(job.outputs) == expected


def test_a_bad_file_fails_by_itself(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    bad = {
        "bad/utf8.txt": tokens(17) + b"caf\xe9\n" + tokens(30),
        "bad/rows.conllu": conllu(12) + b"1\tx\n\n" + conllu(20),
        "bad/trees.mrg": trees(9) + b"(S (N\n",
    }
    write(inputs, bad)
    (inputs / "bad/half.txt.gz").write_bytes((inputs / "b.txt.gz").read_bytes()[:-12])
    job = job_of(neighbours, inputs, tmp_path / "out")
    do(job)
    assert results(job.outputs) == expected
    notes = {file.name: FileState(job.outputs, file).note() for file in job.files}
    problems = {name: note.problem for name, note in notes.items() if note and note.problem}
    assert sorted(problems) == [
        "bad/half.txt.gz",
        "bad/rows.conllu",
        "bad/trees.mrg",
        "bad/utf8.txt",
    ]
    assert problems["bad/utf8.txt"].startswith("bad/utf8.txt:18: not UTF-8 text")
    # Behind 12 sentences of four lines, and the three blank lines more of the 2nd, 6th and 10th.
    assert problems["bad/rows.conllu"].startswith("bad/rows.conllu:52: sentence 13:")
    assert problems["bad/half.txt.gz"].startswith("bad/half.txt.gz: cannot be decompressed: ")


def test_an_input_that_changes_under_work_fails(neighbours: Path, tmp_path: Path) -> None:
    write(tmp_path / "in", {"a.txt": tokens(25)})
    job = job_of(neighbours, tmp_path / "in", tmp_path / "out")
    write(tmp_path / "in", {"a.txt": tokens(26)})
    do(job)
    (note,) = [FileState(job.outputs, file).note() for file in job.files]
    assert note.problem.startswith("a.txt: has changed since parsing began")
    assert results(job.outputs) == {}
    job = job_of(neighbours, tmp_path / "in", tmp_path / "out")
    do(job)
    assert results(job.outputs)["a.txt"].count(b"\n\n") == 26


def test_a_parser_that_changes_under_work_is_refused(
    model: Path, tmp_path: Path, inputs: Path
) -> None:
    job = job_of(model, inputs, tmp_path / "out", ParseOptions("flat"))
    other = job_of(model, inputs, tmp_path / "out", ParseOptions("flat"))
    object.__setattr__(other, "sha256", "another")
    with pytest.raises(CheckpointError, match="another parser has come into its place"):
        do(other)
    assert results(job.outputs) == {}


def test_nothing_is_loaded_where_all_is_done(
    neighbours: Path, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(neighbours, inputs, tmp_path / "out")
    do(job)
    monkeypatch.setattr(worker, "own_worker", None)
    do(job)


def test_a_part_that_a_lost_machine_left_half_is_made_again(
    neighbours: Path, inputs: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    job = job_of(neighbours, inputs, tmp_path / "out")
    state = FileState(job.outputs, job.files[0])
    state.folder.mkdir(parents=True)
    (state.folder / "1.part").write_bytes(b'{"sentences": 3')
    (state.folder / "1.cut").write_bytes(b"")
    do(job)
    assert results(job.outputs) == expected


MEMORY = """
import sys
from pathlib import Path
from spmrl_bench.bulk import shards
from spmrl_bench.process.pools import peak_memory_bytes
from tests.bulk.folders import do, job_of
shards.SHARD_SENTENCES = 200
do(job_of(*map(Path, sys.argv[1:])))
print(peak_memory_bytes() / 1e6)
"""


def peak_of(model: Path, inputs: Path, outputs: Path) -> float:
    """Megabytes that a process held at most that did a folder."""
    command = [sys.executable, "-c", MEMORY, str(model), str(inputs), str(outputs)]
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": root}, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


@pytest.mark.parametrize("count", [8000, pytest.param(600_000, marks=pytest.mark.campaign)])
def test_memory_does_not_grow_with_the_folder(neighbours: Path, tmp_path: Path, count: int) -> None:
    text = tokens(count)
    write(tmp_path / "small", {"a.txt": tokens(1000), "b.txt.gz": tokens(1000)})
    write(tmp_path / "large", {"a.txt": text, "b.txt.gz": text, "c.txt.zst": text})
    few = peak_of(neighbours, tmp_path / "small", tmp_path / "few")
    many = peak_of(neighbours, tmp_path / "large", tmp_path / "many")
    assert len(results(tmp_path / "many")) == 3
    assert many < few + 8


def test_names_that_are_no_text_are_parsed(neighbours: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / "in" / name).write_bytes(tokens(12))
    job = job_of(neighbours, tmp_path / "in", tmp_path / "out")
    do(job)
    assert os.listdir(os.fsencode(tmp_path / "out")).count(b"caf\xe9.txt") == 1
    assert inputs_of(tmp_path / "in", None)[0][0].shown == "caf\ufffd.txt"
