"""Whatever a file holds: sentences or typed errors with their place, in time and in memory."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.formats import FORMATS
from tests.builders import cli_process
from tests.readers.test_fuzz import check_whole
from tests.reliability.extreme_files import EXTREMES, LARGE, OPTIONS, Extreme
from tests.reliability.tally import Tally

SECONDS = 4.0  # of the processor, which others may use too; what is quadratic takes minutes
LARGE_SECONDS = 30.0
MEMORY = 1 << 30
LONGEST = 1200  # characters of a message, without the path


def read(form: str, path: Path) -> tuple[list[Any], list[ReadError]]:
    """The sentences and the errors."""
    errors: list[ReadError] = []
    sentences: list[Any] = []
    try:
        found = FORMATS.get(form).read(path, on_error=errors.append, **OPTIONS.get(form, {}))
        sentences.extend(getattr(sentence, "tree", sentence) for sentence in found)
    except ReadError as error:  # not of the encoding
        errors.append(error)
    return sentences, errors


def check_errors(errors: list[ReadError], path: Path) -> None:
    for error in errors:
        message = str(error)
        assert message.startswith(f"{path}:")
        assert error.line is not None, message
        assert error.line > 0
        assert len(message) < LONGEST + len(str(path))
        message.encode()


@pytest.mark.parametrize("extreme", EXTREMES, ids=lambda one: f"{one.form}: {one.name}")
def test_extremes(extreme: Extreme, tmp_path: Path, tally: Tally) -> None:
    held = tally("R11", "extreme files")
    path = tmp_path / "file"
    path.write_bytes(extreme.make())
    held.add()
    begun = time.process_time()
    sentences, errors = read(extreme.form, path)
    assert time.process_time() - begun < SECONDS
    check_errors(errors, path)
    if path.stat().st_size < 300_000:  # else it takes longer than to read it
        for sentence in sentences[:10]:
            check_whole(sentence)


@pytest.mark.campaign
@pytest.mark.parametrize("extreme", LARGE, ids=lambda one: f"{one.form}: {one.name}")
def test_lines_of_100_megabytes(extreme: Extreme, tmp_path: Path, tally: Tally) -> None:
    """In a process of its own, which may have a gigabyte besides what the program takes."""
    held = tally("R11", "lines of 100 MB")
    path = tmp_path / "file"
    path.write_bytes(extreme.make())
    held.add()
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from spmrl_bench.process.pools import peak_memory_bytes\n"
        "from tests.reliability.test_files import check_errors, read\n"
        "before = peak_memory_bytes()\n"
        "path = Path(sys.argv[2])\n"
        "check_errors(read(sys.argv[1], path)[1], path)\n"
        "print((peak_memory_bytes() - before) // 1024)\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = cli_process(extreme.form, path, code=code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr[-2000:]
    assert after.ru_utime - before.ru_utime < LARGE_SECONDS
    assert int(result.stdout) * 1024 < MEMORY
