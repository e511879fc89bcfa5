"""Zip files whose bytes depend on nothing but their members.

No time, no user, no compression (whose result is another with each release of a library): the same
members in the same order are the same bytes, on any machine. Weights would not get much smaller.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from spmrl_bench.storage.files import write_file

_BEGIN = (1980, 1, 1, 0, 0, 0)  # of the time of zip files
_UNIX = 3
_MODE = 0o100644  # a plain file, for all to read


def write_zip(path: Path, members: Mapping[str, bytes | Path]) -> None:
    """Write a zip file, whole or not at all.

    Args:
        path: of the file, replaced if it is there.
        members: bytes, or the file that has them, by name in their order.

    Raises:
        OSError: it cannot be written, or a file not read.
    """
    write_file(path, partial(_fill, members))


def _fill(members: Mapping[str, bytes | Path], path: Path) -> None:
    with zipfile.ZipFile(path, "x", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _BEGIN)
            info.create_system, info.external_attr = _UNIX, _MODE << 16
            if isinstance(content, bytes):
                archive.writestr(info, content)
                continue
            info.file_size = content.stat().st_size
            with content.open("rb") as source, archive.open(info, "w") as target:
                shutil.copyfileobj(source, target)
