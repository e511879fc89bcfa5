"""Archives that are meant to do harm, each made of a few kilobytes or little more."""

from __future__ import annotations

import io
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from functools import cache

MEGABYTE = 1 << 20


@cache
def deflated(megabytes: int, content: bytes = b"\0" * MEGABYTE) -> bytes:
    """A megabyte again and again, as a deflate stream: pieces between full flushes repeat."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(content) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * megabytes + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


def gzipped(megabytes: int, content: bytes = b"\0" * MEGABYTE) -> bytes:
    """The same as a gzip file; its checksum is wrong, but who comes so far has read it all."""
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + deflated(megabytes, content) + bytes(8)


def raw_zip(
    entries: Iterable[tuple[str, bytes, int]],
    method: int = 8,
    says: int | None = None,
    attributes: int = 0,
    flags: int = 0,
) -> bytes:
    """A zip file of packed members as they are: name, bytes and what they unpack to.

    ``says`` is the size that the headers state instead.
    """
    body, directory = io.BytesIO(), io.BytesIO()
    number = 0
    for name, packed, size in entries:
        stated, encoded, number = (size if says is None else says), name.encode(), number + 1
        common = struct.pack(
            "<HHHHHIIIHH",
            20, flags | 0x800, method, 0, 33, 0, len(packed), stated, len(encoded), 0,
        )  # fmt: skip
        offset = body.tell()
        body.write(b"PK\x03\x04" + common + encoded + packed)
        directory.write(
            b"PK\x01\x02"
            + struct.pack("<H", 20 | 3 << 8)
            + common
            + struct.pack("<HHHII", 0, 0, 0, attributes, offset)
            + encoded
        )
    end = struct.pack(
        "<4sHHHHIIH",
        b"PK\x05\x06", 0, 0, number & 0xFFFF, number & 0xFFFF, directory.tell(), body.tell(), 0,
    )  # fmt: skip
    return body.getvalue() + directory.getvalue() + end


def overlapping_zip(members: int, megabytes: int) -> bytes:
    """Many members whose bytes are the same place of the file."""
    whole = raw_zip([("release/data/0.mrg", deflated(megabytes), megabytes * MEGABYTE)])
    begin = whole.index(b"PK\x01\x02")
    entry = whole[begin : whole.rindex(b"PK\x05\x06")]
    directory = b"".join(
        entry.replace(b"/0.mrg", f"/{chr(97 + k)}.mrg".encode()) for k in range(members)
    )
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, members, members, len(directory), begin, 0)
    return whole[:begin] + directory + end


def zip_of(members: Iterable[tuple[str, bytes]]) -> bytes:
    """An honest zip file, whose names need not be."""
    buffer = io.BytesIO()
    with (
        warnings.catch_warnings(action="ignore"),  # of names that are there twice
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        for name, data in members:
            info = zipfile.ZipInfo("x")
            info.filename = name  # the constructor would change it
            file.writestr(info, data)
    return buffer.getvalue()


def tar_of(members: Iterable[tuple[str, bytes]], mode: str = "w") -> bytes:
    """An honest tar file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as file:  # type: ignore[call-overload]
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
