"""Honest archives, however they are packed; hostile ones are in tests/reliability/hostile.py."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks import archives
from spmrl_bench.treebanks.archives import unpack
from tests.reliability.hostile_archives import tar_of, zip_of

MEMBERS = [(f"release/{name}", f"(S (N {name}))\n".encode() * 999) for name in "abc"]
TAR = tar_of(MEMBERS, "w")
PACKINGS = {
    "zip": zip_of(MEMBERS),
    "tar": TAR,
    "tar.gz": gzip.compress(TAR),
    "tar.bz2": bz2.compress(TAR),
    "tar.xz": lzma.compress(TAR),
    "tar.gz in pieces": gzip.compress(TAR[:700]) + gzip.compress(TAR[700:]),
    "tar.xz in pieces": lzma.compress(TAR[:700]) + bytes(4) + lzma.compress(TAR[700:]) + bytes(8),
    "POSIX tar": tar_of([*MEMBERS, ("release/" + "ü" * 90, b"")], "w:gz"),
}


def unpacked(data: bytes, folder: Path, target: Callable[[str], str | None]) -> dict[str, bytes]:
    (folder / "archive").write_bytes(data)
    (folder / "into").mkdir()
    found = unpack(folder / "archive", folder / "into", target, name="URL")
    assert sorted(path.parent for path in found.values()) == [folder / "into"] * len(found)
    return {name: path.read_bytes() for name, path in found.items()}


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_is_wanted_is_unpacked(packing: str, tmp_path: Path) -> None:
    wanted = {"release/a": "x/a.mrg", "release/c": "c.mrg"}
    found = unpacked(PACKINGS[packing], tmp_path, wanted.get)
    assert found == {"x/a.mrg": MEMBERS[0][1], "c.mrg": MEMBERS[2][1]}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("part", [0.3, 0.6])
def test_what_is_cut_is_refused(packing: str, part: float, tmp_path: Path) -> None:
    data = PACKINGS[packing]
    with pytest.raises(TreebankError, match="URL: no whole zip or tar archive"):
        unpacked(data[: int(len(data) * part)], tmp_path, lambda name: name)


@pytest.mark.parametrize("packing", PACKINGS)
def test_bounds_hold_for_what_comes_out(
    packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "UNPACKED", 3 * len(MEMBERS[0][1]) - 1)
    with pytest.raises(TreebankError, match="URL: the archive unpacks to more than"):
        unpacked(PACKINGS[packing], tmp_path, lambda name: name)
