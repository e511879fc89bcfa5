"""Damaged files: any reader gives sentences or a ReadError, and the same ones in both modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import fail


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """The bytes with one to three pieces removed, repeated or replaced."""
    data = whole
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        end = place + draw(st.integers(0, 12))
        special = [b"\t", b"\n", b"\r", b" ", b"0", b"7", b"#", b'"', b"<", b">", b"/", b"\xff"]
        piece = draw(st.sampled_from([b"", data[place:end] * 2, *special]))
        data = data[:place] + piece + data[end:]
    return data


def read_both_ways(read: Callable[..., Iterator[Any]], data: bytes) -> None:
    """Read bytes as a file twice; assert that leaving sentences out changes nothing else."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "damaged")
        path.write_bytes(data)
        before, first = _read(read, path, None)
        errors: list[ReadError] = []
        after, raised = _read(read, path, errors)
    assert all(error.line is not None for error in errors)
    if raised is None:
        assert str(first or "") == (str(errors[0]) if errors else "")
    else:  # a file that cannot be decoded
        assert str(first) == str(raised)
    assert list(map(repr, after[: len(before)])) == list(map(repr, before))


def _read(
    read: Callable[..., Iterator[Any]], path: Path, errors: list[ReadError] | None
) -> tuple[list[Any], ReadError | None]:
    found: list[Any] = []
    try:
        for sentence in read(path, on_error=fail if errors is None else errors.append):
            found.append(getattr(sentence, "tree", sentence))
    except ReadError as error:
        return found, error
    return found, None
