"""Pre-trained files count by their content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from spmrl_bench.storage.digests import digests, file_digest


def sha256(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_content_counts_and_not_the_path(tmp_path: Path) -> None:
    one, other = tmp_path / "one.txt", tmp_path / "folder" / "other.bin"
    other.parent.mkdir()
    for path in (one, other):
        path.write_bytes(b"numbers")
    # Names of a hub are no files.
    places = {"vectors": str(one), "elmo_weights": str(other), "transformer": "elves/quenya-base"}
    assert digests(places) == dict.fromkeys(("vectors", "elmo_weights"), sha256(b"numbers"))
    for name, content in (("b.safetensors", b"2"), ("a.safetensors", b"1"), ("README.md", b"0")):
        (tmp_path / name).write_bytes(content)  # of a folder the weights count
    both = sha256(sha256(b"1").encode(), sha256(b"2").encode())
    assert digests({"transformer": str(tmp_path)}) == {"transformer": both}


def test_a_changed_file_counts_anew(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    for content in (b"one", b"two", b"six"):  # within a tick of the clock of the file system
        path.write_bytes(content)
        assert file_digest(path) == sha256(content)
    for number, content in enumerate((b"numbers", b"NUMBERS", b"more numbers")):
        path.write_bytes(content)
        os.utime(path, ns=(number, number))  # whatever that clock shows
        assert file_digest(path) == sha256(content)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a named pipe"):
        file_digest(tmp_path / "pipe")
