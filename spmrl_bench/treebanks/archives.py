"""Unpacking archives of strangers: within bounds, and only where they are meant to.

A zip or tar file of a few kilobytes can unpack to terabytes, or to millions of files, and what its
headers say of that need not be true. So every bound is checked against the bytes that come out,
while they come: all of them together, those of one member, how many times the archive's own size
they are, the members, and what lies between them. Bounds are far above what treebanks have; a
manifest can state a larger size. Archives in an archive stay files. Packaged models are unpacked
here too.

Members are written one by one into a folder of the caller's, under numbers, so that no name of
the archive ever reaches the disk: where they go is for the caller to say.
"""

from __future__ import annotations

import lzma
import struct
import tarfile
import zipfile
import zlib
from bz2 import BZ2File
from collections.abc import Callable, Iterator
from functools import partial
from gzip import GzipFile
from pathlib import Path
from typing import IO, BinaryIO, Protocol, cast
from unicodedata import normalize

from spmrl_bench.errors import SpmrlError, TreebankError
from spmrl_bench.storage.paths import path_fault

#: Bytes that an archive may unpack to, unless the manifest states more. The largest treebanks that
#: are handed out have some hundred megabytes.
UNPACKED = 4 << 30
#: Members, or one for every :data:`MEMBER` bytes of the size that the manifest states, if these are
#: more: a treebank with a file for each sentence can have tens of thousands.
MEMBERS = 50_000
MEMBER = 4096
#: How many times its own size an archive may unpack to. Text becomes ten times smaller, XML thirty.
RATIO = 100
#: Below this, in bytes, the ratio says nothing.
SMALL = 16 << 20

_STATE = "If that is meant, state in the manifest, beside its url, the size that it unpacks to"
_CHUNK = 1 << 18
_HEADERS = 16 << 20  # bytes: of one member of a tar file, of all members of a zip file
_MEMORY = 128 << 20  # bytes that decoding xz may take
_UNIX = 3  # in zip files
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
# What the libraries raise where an archive is not what it says it is.
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, EOFError,
    OSError, ValueError, OverflowError, IndexError, NotImplementedError, RuntimeError,
)  # fmt: skip


class _Source(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """As of a file."""


#: Name of a member, and what opens its content; folders have none.
_Member = tuple[str, Callable[[], IO[bytes]] | None]


def unpack(
    archive: Path,
    into: Path,
    target: Callable[[str], str | None],
    *,
    name: str,
    size: int | None = None,
    error: type[SpmrlError] = TreebankError,
    advice: str = _STATE,
) -> dict[str, Path]:
    """Unpack the members of a zip or tar archive that are wanted.

    Args:
        archive: a zip file, or a tar file as it is or compressed by gzip, bzip2 or xz.
        into: an empty folder that gets them, under numbers.
        target: the path that a member becomes in the end; None if it is not wanted.
        name: of the archive, for messages.
        size: bytes that it may unpack to, if more than :data:`UNPACKED`.
        error: the class of what is raised.
        advice: what can be done about an archive that is too large.

    Returns:
        Where each wanted member lies, by its target.

    Raises:
        SpmrlError: of the class given: it is no whole archive, a member would leave its folder,
            is no plain file or meets another one, or a bound is exceeded. What is in ``into`` by
            then is for the caller to remove.
        OSError: ``into`` cannot be written.
    """
    bounds = _Bounds(name, archive.stat().st_size, size or 0, error, advice)
    found: dict[str, Path] = {}
    taken: dict[str, str] = {}
    members = _members(archive, bounds)
    while (member := _next(members, bounds)) is not None:
        place, content = member
        bounds.member()
        if (fault := path_fault(place)) is not None:
            raise bounds.unsafe(place, f"{fault}, and would be written outside its folder")
        if content is not None and (wanted := target(place)) is not None:
            _take(wanted, place, taken, bounds)
            found[wanted] = into / str(len(found))
            _write(found[wanted], content, bounds)
    return found


def _next(members: Iterator[_Member], bounds: _Bounds) -> _Member | None:
    """The next member; what the libraries raise becomes an error of the archive."""
    try:
        return next(members, None)
    except _BROKEN as error:
        raise bounds.broken(error) from error


def _write(path: Path, content: Callable[[], IO[bytes]], bounds: _Bounds) -> None:
    """Write a member, of which only a piece at a time is in memory."""
    with path.open("xb") as file:
        source: IO[bytes] | None = None
        while True:
            try:
                source = source or content()
                data = source.read(_CHUNK)
            except _BROKEN as error:
                raise bounds.broken(error) from error
            if not data:
                break
            file.write(data)


def _take(wanted: str, member: str, taken: dict[str, str], bounds: _Bounds) -> None:
    """Take a target that no other member has, also where capitals are no difference.

    ``taken`` has the members by their target, and the folders of targets.
    """
    key = normalize("NFC", wanted).casefold()
    for folder in (key[:place] for place, letter in enumerate(key) if letter == "/"):
        if taken.setdefault(folder, "/") != "/":
            raise bounds.unsafe(member, f"would lie in the file '{taken[folder]}'")
    if key in taken:
        other = "a folder" if taken[key] == "/" else f"'{taken[key]}'"
        raise bounds.unsafe(member, f"would become the same file as {other}")
    taken[key] = member


class _Bounds:
    """Counts what comes out of an archive, and raises where that is too much."""

    def __init__(
        self, name: str, packed: int, stated: int, error: type[SpmrlError], advice: str
    ) -> None:
        self._name = name
        self._error = error
        self._advice = advice
        self._packed = packed
        self._largest = max(stated, UNPACKED)
        self._most = max(stated // MEMBER, MEMBERS)
        self._bytes = 0
        self._members = 0

    def count(self, number: int) -> None:
        """So many bytes more have come out."""
        self._bytes += number
        if self._bytes > SMALL and self._bytes > RATIO * self._packed:
            raise self.refused(
                f"has {self._packed:,} bytes and unpacks to more than {RATIO} times as many"
            )
        if self._bytes > self._largest:
            raise self.refused(f"unpacks to more than {self._largest:,} bytes. {self._advice}")

    def member(self) -> None:
        """There is one member more."""
        self._members += 1
        if self._members > self._most:
            raise self.refused(f"has more than {self._most:,} members. {self._advice}")

    def unsafe(self, member: str, problem: str) -> SpmrlError:
        """The error of a member that no honest archive has."""
        shown = member[:200].encode(errors="backslashreplace").decode()
        return self.refused(f"is not safe: its member '{shown}' {problem}")

    def refused(self, problem: str) -> SpmrlError:
        """The error of an archive."""
        return self._error(f"{self._name}: the archive {problem}; nothing was unpacked")

    def broken(self, error: Exception) -> SpmrlError:
        """The error of what is no archive, or a part of one."""
        return self._error(f"{self._name}: no whole zip or tar archive: {error}")


def _members(archive: Path, bounds: _Bounds) -> Iterator[_Member]:
    """Every plain file and folder, one after the other; content must be read when it is given."""
    with archive.open("rb") as file:
        if zipfile.is_zipfile(file):
            yield from _zip_members(file, bounds)
        else:
            yield from _tar_members(file, bounds)


def _zip_members(file: BinaryIO, bounds: _Bounds) -> Iterator[_Member]:
    with zipfile.ZipFile(cast("IO[bytes]", _Headers(file, bounds))) as archive:
        for info in archive.infolist():
            kind = info.external_attr >> 28  # of Unix: 8 is a plain file, 4 a folder, 10 a link
            if info.is_dir():
                yield info.filename, None
            elif info.create_system == _UNIX and kind not in (0, 8):
                raise bounds.unsafe(info.filename, "is no plain file")
            elif info.compress_type not in _ZIP_METHODS:
                raise bounds.unsafe(info.filename, f"is packed by method {info.compress_type}")
            else:
                yield info.filename, partial(_zip_content, archive, info, bounds)


def _zip_content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, bounds: _Bounds) -> IO[bytes]:
    return cast("IO[bytes]", _Counted(archive.open(info), bounds))


def _tar_members(file: BinaryIO, bounds: _Bounds) -> Iterator[_Member]:
    stream = _Counted(_decompressed(file), bounds)
    stream.expect(_HEADERS)  # opening reads the first
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as archive:
        while (member := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # else it keeps them all
            stream.expect(None)
            if member.isdir():
                yield member.name, None
            elif not member.isfile() or member.sparse is not None or member.size < 0:
                raise bounds.unsafe(member.name, "is no plain file")
            elif (content := archive.extractfile(member)) is not None:
                yield member.name, partial(_same, content)
                while content.read(_CHUNK):  # what was not wanted
                    pass
            stream.expect(_HEADERS)


def _same(content: IO[bytes]) -> IO[bytes]:
    return content


def _decompressed(file: BinaryIO) -> _Source:
    """The tar file inside a file."""
    file.seek(0)
    begin = file.read(6)
    file.seek(0)
    if begin.startswith(b"\x1f\x8b"):
        return GzipFile(fileobj=file)
    if begin.startswith(b"BZh"):
        return BZ2File(file)
    if begin == b"\xfd7zXZ\0":
        return _Xz(file)
    return file


class _Xz:
    """The content of an xz file; in the library's own class it may claim any amount of memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)

    def read(self, size: int) -> bytes:
        """As of a file."""
        while True:
            data = b""
            if self._decoder.eof:
                data = self._decoder.unused_data.lstrip(b"\0") or self._file.read(_CHUNK)
                if not data.strip(b"\0"):
                    return b""
                self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
            elif self._decoder.needs_input:
                data = self._file.read(_CHUNK)
                if not data:
                    raise EOFError("the end of the file is missing")
            if out := self._decoder.decompress(data, size):
                return out


class _Counted:
    """What is read from a source, counted."""

    def __init__(self, source: _Source, bounds: _Bounds) -> None:
        self._source = source
        self._bounds = bounds
        self._expected: int | None = None

    def expect(self, number: int | None) -> None:
        """No more bytes than this come now."""
        self._expected = number

    def read(self, size: int = _CHUNK) -> bytes:
        """As of a file."""
        data = self._source.read(size)
        self._bounds.count(len(data))
        if self._expected is not None:
            self._expected -= len(data)
            if self._expected < 0:
                raise self._bounds.refused(f"has headers of more than {_HEADERS:,} bytes")
        return data


class _Headers:
    """A zip file of which nobody reads much at once: the library takes all headers in one piece."""

    def __init__(self, file: BinaryIO, bounds: _Bounds) -> None:
        self._file = file
        self._bounds = bounds
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        data = self._file.read(size if 0 <= size <= _HEADERS else _HEADERS + 1)
        if len(data) > _HEADERS:
            raise self._bounds.refused(f"has headers of more than {_HEADERS:,} bytes")
        return data
