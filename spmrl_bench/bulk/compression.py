"""Files of inputs and outputs, plain or compressed.

A plain file is read from any place of it. A compressed one can only be read from its beginning,
so that whoever wants a later place reads all in front of it. What a worker has to read of a file
lies further and further back, and it keeps the file open in between: it decompresses each file
once, however many shards of it others parse. That is a hundred times faster than parsing.

What is compressed in pieces one after the other is a whole file in both formats.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from spmrl_bench.bulk.inputs import Compression
from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.storage.files import open_regular_file

_BLOCK = 1 << 20
#: Compressed bytes that are taken at a time; zstd makes at most 32,000 times as many of them.
_SIP = 1 << 12
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3


def check_installed(compression: Compression) -> None:
    """Make sure that a compression can be read and written here.

    Raises:
        SpmrlError: its library is missing.
    """
    if compression == "zst":
        _zstandard()


def compressed(data: bytes, compression: Compression) -> bytes:
    """Bytes as a file, or as a piece of one, has them; the same for the same bytes."""
    if compression == "gz":
        return gzip.compress(data, _GZIP_LEVEL, mtime=0)
    if compression == "zst":
        return bytes(_zstandard().ZstdCompressor(level=_ZSTD_LEVEL).compress(data))
    return data


class Source:
    """A file of which text is read, mostly from one place to a later one."""

    def __init__(self, path: Path, compression: Compression, name: str) -> None:
        """A file that is not opened yet; ``name`` is for messages."""
        self._path = path
        self._compression = compression
        self.name = name
        self._raw: io.BufferedReader | None = None
        self._text: BinaryIO | None = None
        self._place = 0

    def close(self) -> None:
        for file in (self._text, self._raw):
            if file is not None:
                file.close()
        self._text = self._raw = None

    def at(self, offset: int) -> BinaryIO:
        """The text from a place on, in bytes from its beginning.

        Raises:
            OSError, EOFError, zlib.error: see :func:`readable`.
        """
        if self._text is None or (self._compression != "none" and self._place > offset):
            self.close()
            self._raw = open_regular_file(self._path)
            self._text = _opened(self._raw, self._compression)
            self._place = 0
        if self._compression == "none":
            self._text.seek(offset)
        else:
            while self._place < offset:
                skipped = len(self._text.read(min(_BLOCK, offset - self._place)))
                if not skipped:
                    raise EOFError("it has become shorter")
                self._place += skipped
        self._place = offset
        return self._text

    def has_read(self, count: int) -> None:
        """So many bytes of the text have been taken by whoever asked for it."""
        self._place += count

    def consumed(self) -> int:
        """How far into the file, as it lies there, reading has come, in bytes."""
        return self._raw.tell() if self._raw is not None else 0


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Within it, whatever a file does not let itself be read for is an error of that file.

    Raises:
        ReadError: with the name.
    """
    try:
        yield
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror or error}", path=name) from None
    except (EOFError, zlib.error) as error:
        raise ReadError(f"cannot be decompressed: {error}", path=name) from None


def _opened(raw: io.BufferedReader, compression: Compression) -> BinaryIO:
    if compression == "gz":
        return gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[return-value]
    if compression == "zst":
        return io.BufferedReader(_Zstd(raw), _BLOCK)
    return raw


class _Zstd(io.RawIOBase):
    """The text of a file of zstd frames. The library's own readers take half a frame for whole."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._library = _zstandard()
        self._decompressor = self._library.ZstdDecompressor()
        self._frame: Any = None
        self._given = b""  # compressed
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            self._given = self._given or self._raw.read(_SIP)
            if not self._given:
                if self._frame is not None:
                    raise EOFError("it ends in the middle of a frame")
                return 0
            self._frame = self._frame or self._decompressor.decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(self._given))
            except self._library.ZstdError as error:
                raise zlib.error(str(error)) from None
            self._given = b""
            if self._frame.eof:
                self._given, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def _zstandard() -> ModuleType:
    try:
        import zstandard
    except ImportError:
        raise SpmrlError(
            "files that end in .zst need the package zstandard: pip install 'spmrl-bench[zstd]'"
        ) from None
    return zstandard
