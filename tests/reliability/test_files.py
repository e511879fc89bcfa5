"""Whatever a file holds: sentences or typed errors with their place, in time and in memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.scoring.prm import load_prm
from tests.conftest import PATIENCE
from tests.readers.test_fuzz import check_whole
from tests.reliability.extreme_files import EXTREMES, LARGE, OPTIONS, Extreme
from tests.reliability.malformed_files import CONLL, DP, MALFORMED, PRM
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


def test_there_are_many_files_with_a_mistake() -> None:
    assert sum(map(len, MALFORMED.values())) + len(PRM) >= 150
    assert len(CONLL) + len(DP) >= 30
    assert len(EXTREMES) > 300


@pytest.mark.parametrize(
    ("form", "name"), [(form, name) for form, texts in MALFORMED.items() for name in texts]
)
def test_malformed(form: str, name: str, tmp_path: Path, tally: Tally) -> None:
    heads = form in ("conll", "dp")
    held = tally(*(("R13", "dependency files with a mistake") if heads else ("R11", "malformed")))
    path = tmp_path / "file"
    path.write_text(MALFORMED[form][name], encoding="utf-8", newline="")
    held.add()
    begun = time.process_time()
    _, errors = read(form, path)
    assert time.process_time() - begun < SECONDS
    assert errors, "it was read"
    check_errors(errors, path)
    with pytest.raises(ReadError) as caught:
        list(FORMATS.get(form).read(path, **OPTIONS.get(form, {})))
    assert str(caught.value) == str(errors[0])


@pytest.mark.parametrize("name", PRM)
def test_malformed_parameters(name: str, tmp_path: Path, tally: Tally) -> None:
    held = tally("R11", "malformed")
    path = tmp_path / "file.prm"
    path.write_text(PRM[name], encoding="utf-8")
    held.add()
    with pytest.raises(ScoreError) as caught:
        load_prm(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert len(message) < LONGEST + len(str(path))


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
    result = subprocess.run(
        [sys.executable, "-P", "-c", code, extreme.form, str(path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr[-2000:]
    assert after.ru_utime - before.ru_utime < LARGE_SECONDS
    assert int(result.stdout) * 1024 < MEMORY
