"""A zip file of a package, unpacked once and kept by the hash of its bytes.

Weights are mapped into memory from where they lie, so they need to lie somewhere as long as the
parser is used, in each of the processes that use it. So archives are unpacked to a folder of the
user's own, which is the same for the same bytes; it may be removed at any time.

Of the members only those are taken that the description in the archive lists, within the bounds of
:mod:`spmrl_bench.storage.unzip`, and they are checked as those of any package.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from functools import partial
from pathlib import Path, PurePosixPath

from spmrl_bench.errors import PackageError, remedy
from spmrl_bench.packages.description import LARGEST_MODEL, PACKAGE, check_files, read_package
from spmrl_bench.storage.files import last_complete_version, open_regular_file, write_folder
from spmrl_bench.storage.paths import home
from spmrl_bench.storage.unzip import unzip

_ADVICE = "Unpack it yourself, and give the folder"


def unpacked(archive: Path) -> Path:
    """The folder of the package in an archive, which may lie in one folder in it.

    Raises:
        PackageError: it is no archive of one package, is not safe or too large, has other files
            than the package lists, or cannot be unpacked.
    """
    place = home() / "models" / _digest(archive)[:32]
    if last_complete_version(place) is None:
        try:
            write_folder(place, partial(_unpack, archive))
        except OSError as error:
            raise PackageError(
                f"{error.filename or place}: the package in {archive} cannot be unpacked there: "
                f"{error.strerror or error}. {remedy(error)}, or name another folder with "
                "SPMRL_BENCH_HOME"
            ) from None
    return last_complete_version(place) or place


def _digest(archive: Path) -> str:
    """SHA-256 of an archive, in hex."""
    try:
        with open_regular_file(archive) as file:
            size = os.fstat(file.fileno()).st_size
            if not zipfile.is_zipfile(file):
                raise PackageError(
                    f"{archive}: no trained parser here: a file, and no zip archive of a package. "
                    "Give a run folder written by 'spmrl-bench train', or a package"
                )
            if size > LARGEST_MODEL:
                raise PackageError(
                    f"{archive}: has {size:,} bytes, where at most {LARGEST_MODEL:,} are unpacked. "
                    f"{_ADVICE}"
                )
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PackageError(f"{archive}: cannot be read: {error.strerror or error}") from None


def _unpack(archive: Path, folder: Path) -> None:
    """Write the files of the package in an archive into a folder."""
    take = partial(unzip, archive, error=PackageError, name=str(archive), advice=_ADVICE)
    members = folder / ".members"
    members.mkdir()
    described = take(into=members, target=_description)
    if len(described) != 1:
        raise PackageError(
            f"{archive}: {len(described) or 'no'} {PACKAGE} at its top or in a folder there, "
            "expected one: it is no archive of a package. 'spmrl-bench package RUN --zip' writes "
            "one"
        )
    ((name, place),) = described.items()
    os.rename(place, folder / PACKAGE)
    package = read_package(folder)
    if package is not None:
        wanted = {name.removesuffix(PACKAGE) + file: file for file in package.files}
        for file, part in take(into=members, target=wanted.get).items():
            (folder / file).parent.mkdir(exist_ok=True)
            os.rename(part, folder / file)
        check_files(folder, package)
    shutil.rmtree(members)


def _description(member: str) -> str | None:
    """The member, if it is a description where one can be."""
    name = member.removeprefix("./")
    return member if PurePosixPath(name).name == PACKAGE and name.count("/") <= 1 else None
