"""Archives that are meant to do harm, each made of a few kilobytes or little more."""

from __future__ import annotations

import bz2
import io
import lzma
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


def tar_of(members: Iterable[tuple[str, bytes | tarfile.TarInfo]], mode: str = "w:gz") -> bytes:
    """A tar file of plain files, and of whatever else is given as it is."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as file:
        for name, data in members:
            if isinstance(data, tarfile.TarInfo):
                data.name = name
                file.addfile(data)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def special(kind: bytes, link: str = "", size: int = 0) -> tarfile.TarInfo:
    """What is no plain file in a tar file."""
    info = tarfile.TarInfo()
    info.type, info.linkname, info.size = kind, link, size
    info.devmajor = info.devminor = 1
    return info


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The first block of a member of a tar file."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def tar_bomb(megabytes: int, packing: str) -> bytes:
    """A tar file with one member of zeros, compressed."""
    first = header("release/data/a_1.mrg", megabytes * MEGABYTE)
    if packing == "gz":
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        begin = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
        return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + begin + deflated(megabytes) + bytes(8)
    pack = bz2.compress if packing == "bz2" else lzma.compress
    return pack(first) + pack(bytes(16 * MEGABYTE)) * (megabytes // 16)


def many_members(number: int, folder: str) -> bytes:
    """A tar file, compressed, of so many thousand empty members; each thousand is the same."""
    thousand = b"".join(header(f"{folder}{k}.mrg", 0) for k in range(1000))
    return gzipped(number, thousand)


def long_header(kind: bytes, megabytes: int) -> bytes:
    """A tar file with a header of megabytes: a name, or what a member is said to be."""
    first = header("././@LongLink", megabytes * MEGABYTE, kind)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    begin = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
    noise = bytes(range(1, 256)) * (MEGABYTE // 255)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + begin + deflated(megabytes, noise) + bytes(8)


def sparse_tar(size: int) -> bytes:
    """A tar file with a member that is said to be large and has one byte."""
    block = bytearray(header("release/data/a_1.mrg", 1, tarfile.GNUTYPE_SPARSE))
    block[386:410] = b"%011o\0%011o\0" % (size - 1, 1)
    block[483:495] = b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + b"a".ljust(512, b"\0") + bytes(1024)


def greedy_xz() -> bytes:
    """An xz file whose decoder would take gigabytes of memory."""
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    data = bytearray(lzma.compress(tar_of([("a", b"a")], "w"), filters=filters))
    # The block header: size, flags, filter, its one property (the dictionary's size), and CRC32.
    place = data.index(b"\x21\x01", 12) + 2
    data[place] = 39  # 3 GiB
    length = (data[12] + 1) * 4
    data[12 + length - 4 : 12 + length] = struct.pack("<I", zlib.crc32(data[12 : 12 + length - 4]))
    return bytes(data)
