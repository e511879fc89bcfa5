"""Zip archives of strangers, unpacked within bounds and nowhere but where they are meant to.

An archive of a few kilobytes can unpack to terabytes, or to millions of files. ``zipfile`` takes
the headers on trust but yields no more of a member than they state, if it is stored or deflated:
so other methods are refused, and the bounds, far above what honest archives have, are sums over
what is stated. Archives in an archive stay files. Members are written under numbers, so that no
name of the archive ever reaches the disk: where they go is for the caller to say.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from unicodedata import normalize

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.paths import path_fault

#: Bytes that an archive may unpack to. The largest treebanks have some hundred megabytes.
UNPACKED = 4 << 30
#: Members: a treebank with a file for each sentence can have tens of thousands.
MEMBERS = 50_000
#: How many times its own size an archive may unpack to. Text becomes ten times smaller, XML thirty.
RATIO = 100
#: Below this, in bytes, the ratio says nothing.
SMALL = 16 << 20

_CHUNK = 1 << 18
_HEADERS = 16 << 20  # bytes of the headers of all members
_BEGIN = (b"PK\x03\x04", b"PK\x05\x06")  # of a member, or of an archive without any
_UNIX = 3
_PLAIN = (0, 8)  # kinds of files of Unix; 4 is a folder, 10 a link
# What the library raises where an archive is not what it says it is.
_BROKEN = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError,
    IndexError, NotImplementedError, RuntimeError,
)  # fmt: skip


def unzip(
    archive: Path,
    into: Path,
    target: Callable[[str], str | None],
    error: type[SpmrlError],
    *,
    name: str,
) -> dict[str, Path]:
    """Unpack the members of a zip archive that are wanted; return where each lies, by its target.

    The empty folder ``into`` gets them, under numbers. ``target`` gives the path that a member
    becomes in the end, None if it is not wanted; ``name`` is the archive's in messages. Raise an
    ``error`` if it is no whole archive, a member would leave its folder, is no plain file or meets
    another one, or a bound is exceeded, an OSError if ``into`` cannot be written; empty it then.
    """

    def refused(problem: str) -> SpmrlError:
        return error(f"{name}: the archive {problem}; nothing was unpacked")

    def broken(problem: object) -> SpmrlError:
        return error(f"{name}: no whole zip archive: {problem}")

    def content(member: zipfile.ZipInfo) -> Iterator[bytes]:
        try:  # an error of writing is not raised in here
            with opened.open(member) as stored:
                while piece := stored.read(_CHUNK):
                    yield piece
        except _BROKEN as problem:
            raise broken(problem) from problem

    with ExitStack() as used:
        try:
            file = used.enter_context(_Headers(archive))
            if not file.read(4).startswith(_BEGIN):  # the last file of another archive may be one
                raise broken("it does not begin as one; other archives are for you to unpack")
            opened = used.enter_context(zipfile.ZipFile(file))
        except _BROKEN as problem:
            raise broken(problem) from problem
        members = opened.infolist()
        if len(members) > MEMBERS:
            raise refused(f"has more than {MEMBERS:,} members. Unpack it yourself")
        wanted: dict[str, zipfile.ZipInfo] = {}
        taken: dict[str, str] = {}
        for member in members:
            fault = _fault(member)
            place = None if fault or member.is_dir() else target(member.filename)
            if place is not None:
                fault = _clash(place, member.filename, taken)
                wanted[place] = member
            if fault is not None:
                raise refused(f"is not safe: its member {_shown(member.filename)} {fault}")
        size = sum(member.file_size for member in wanted.values())
        packed = archive.stat().st_size
        if size > max(SMALL, RATIO * packed):
            raise refused(f"has {packed:,} bytes and unpacks to more than {RATIO} times as many")
        if size > UNPACKED:
            raise refused(f"unpacks to more than {UNPACKED:,} bytes. Unpack it yourself")
        found = {place: into / str(number) for number, place in enumerate(wanted)}
        for place, path in found.items():
            with path.open("xb") as copy:
                copy.writelines(content(wanted[place]))
    return found


def _fault(member: zipfile.ZipInfo) -> str | None:
    """Return what no honest member has; None if there is nothing."""
    if (fault := path_fault(member.filename)) is not None:
        return f"{fault}, and would be written outside its folder"
    kind = member.external_attr >> 28
    if not member.is_dir() and member.create_system == _UNIX and kind not in _PLAIN:
        return "is no plain file"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"is packed by method {member.compress_type}"
    return None


def _clash(place: str, member: str, taken: dict[str, str]) -> str | None:
    """Take a place that no other member has, also where capitals are no difference. ``taken`` has
    the members by their places, and the folders around them."""
    key = normalize("NFC", place).casefold()
    for folder in (key[:end] for end, letter in enumerate(key) if letter == "/"):
        if taken.setdefault(folder, "/") != "/":
            return f"would lie in the file {_shown(taken[folder])}"
    if key in taken:
        other = "a folder" if taken[key] == "/" else _shown(taken[key])
        return f"would become the same file as {other}"
    taken[key] = member
    return None


def _shown(member: str) -> str:
    return f"'{member[:200].encode(errors='backslashreplace').decode()}'"


class _Headers(io.FileIO):
    """A file of which nobody reads much at once: the library takes all headers in one piece."""

    def read(self, size: int | None = -1, /) -> bytes:
        within = size is not None and 0 <= size <= _HEADERS
        data = super().read(size if within else _HEADERS + 1) or b""
        if len(data) > _HEADERS:
            raise zipfile.BadZipFile(f"headers of more than {_HEADERS:,} bytes")
        return data
