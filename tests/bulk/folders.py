"""Folders to parse, and the work on them in this process."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import zstandard

from spmrl_bench.bulk.inputs import Compression, inputs_of
from spmrl_bench.bulk.state import STATE, WORKERS
from spmrl_bench.bulk.worker import Job, work
from spmrl_bench.parsing.bulk import Counts, ParseOptions, Worker, parse_input
from spmrl_bench.parsing.models import identity, load_parser
from spmrl_bench.parsing.streams import Form, sentences_of
from spmrl_bench.process.executors.base import Outcome, Unit


def packed(data: bytes, name: str) -> bytes:
    """Bytes as a file of that name has them, in two pieces one after the other."""
    half = len(data) // 2
    if name.endswith(".gz"):
        return gzip.compress(data[:half]) + gzip.compress(data[half:])
    if name.endswith(".zst"):
        compress = zstandard.ZstdCompressor().compress
        return bytes(compress(data[:half]) + compress(data[half:]))
    return data


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            return reader.read()
    return data


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


def job_of(
    model: Path,
    inputs: Path,
    outputs: Path,
    options: ParseOptions | None = None,
    *,
    form: Form | None = None,
    compression: Compression | None = None,
) -> Job:
    (outputs / STATE).mkdir(parents=True, exist_ok=True)
    files, _ = inputs_of(inputs, form)
    options = options or ParseOptions()
    sha256 = identity(model).sha256
    return Job(model, sha256, inputs, outputs, files, options, (), compression, "session")


def do(job: Job, number: int = 0, workers: int = 1) -> None:
    work(job, number, workers, device="cpu")


def results(outputs: Path) -> dict[str, bytes]:
    """The outputs by name, without files that a worker has not finished (see ``left_over``)."""
    found = {}
    for place, folders, files in os.walk(outputs):  # ``rglob`` fails if a folder goes meanwhile
        folders[:] = sorted(name for name in folders if name != STATE)
        for path in (Path(place) / name for name in sorted(files)):
            name = path.relative_to(outputs).as_posix()
            if path.name[0] != "." and name not in ("parse.json", "report.json"):
                found[name] = unpacked(path)
    return found


def left_over(outputs: Path) -> list[str]:
    """What is in the folder of the outputs that is neither an output nor a note."""
    found = []
    for place, folders, files in os.walk(outputs):
        here = Path(place)
        if here == outputs / STATE:
            found += [name for name in folders if name != WORKERS]
            found += [name for name in files if not name.endswith(".json")]
        else:
            found += [name for name in files if name.startswith(".")]
    return found


class Here:
    """An executor that does each unit at once, in this process."""

    preemptible = False
    capacity = 1

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self._over: list[Outcome] = []
        self._before = before

    def start(self, unit: Unit) -> str:
        self._before()
        try:
            unit.function(*unit.arguments, device="cpu", console=None)
            self._over.append(Outcome(unit, "done"))
        except Exception as error:
            self._over.append(Outcome(unit, "failed", error))
        return ""

    def outcomes(self, seconds: float) -> list[Outcome]:
        over, self._over = self._over, []
        return over

    def ask_to_stop(self) -> None:
        """Nothing is in work."""

    def close(self) -> None:
        """Nothing is in work."""


def tokens(count: int, first: int = 0) -> bytes:
    """So many sentences, each with a word of its own."""
    lines = (f"the dog w{k} barks{' .' * (k % 3)}" for k in range(first, first + count))
    return "".join(f"{line}\n" for line in lines).encode()


def conllu(count: int) -> bytes:
    def sentences() -> Iterator[str]:
        for k in range(count):
            yield f"# sent_id = s{k}\n1\tthe\tthe\tDET\tD\t_\t_\t_\t_\t_\n2\tw{k}\t_\tN\tN\tA=\t_\t"
            yield "_\t_\t_\n\n" + "\n" * (k % 4 == 1)

    return "".join(sentences()).encode()


def trees(count: int, *, lines: bool = True) -> bytes:
    """Trees with a line each, and blank lines among them; or with several lines each."""
    one = "(S (D the) (N w{}))\n" if lines else "( (S\n  (D the)\n  (N w{})))\n"
    return "".join(one.format(k) + "\n" * (k % 5 == 2) for k in range(count)).encode()
