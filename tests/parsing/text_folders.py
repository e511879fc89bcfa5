"""Folders of text to parse, and what lies in a folder of parses."""

from __future__ import annotations

import gzip
import os
from io import BytesIO
from pathlib import Path

from spmrl_bench.parsing.bulk import Counts, ParseOptions, Worker, parse_input
from spmrl_bench.parsing.folders import SETTINGS, Job, find_inputs, parse_files
from spmrl_bench.parsing.models import identity, load_parser
from spmrl_bench.parsing.streams import Form, sentences_of


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
    files = find_inputs(inputs, outputs, None, print)
    return Job(model, identity(model).sha256, files, options or ParseOptions(), ())


def do(job: Job, number: int = 0, workers: int = 1) -> None:
    parse_files(job, number, workers, device="cpu")


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
