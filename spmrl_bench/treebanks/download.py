"""Downloading the open treebanks that lie at a stable address.

What arrives over a network may be cut short, be something else, or be an archive that is meant to
do harm; the program may be stopped half-way, and somebody else may be downloading the same. Every
file is therefore checked against its SHA-256 before it is used, archives are unpacked within bounds
(:mod:`spmrl_bench.treebanks.archives`) into a folder that nobody reads, and files appear under
their names only when they are whole, below the directory of treebanks and nowhere else
(:mod:`spmrl_bench.storage.paths`). What is there already is never replaced, and of an archive that
cannot be put in its place as a whole nothing stays.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from spmrl_bench.errors import TreebankError
from spmrl_bench.storage.paths import check_path, home, require_inside
from spmrl_bench.treebanks.archives import UNPACKED, unpack
from spmrl_bench.treebanks.catalogue import ROOT_VARIABLE, Root, treebanks_root
from spmrl_bench.treebanks.files import file_digest
from spmrl_bench.treebanks.manifest import Fetch, Manifest
from spmrl_bench.treebanks.patterns import ALTERNATIVE

_TIMEOUT = 60.0  # seconds in which something must arrive
_CHUNK = 1 << 18
_FORGOTTEN = 24 * 3600.0  # seconds after which the folder of a download is nobody's any more

_Tell = Callable[[str], None]


def fetch_treebank(manifest: Manifest, root: Root = None, tell: _Tell = print) -> list[Path]:
    """Download the files of a treebank into the directory of treebanks.

    Args:
        manifest: of the treebank.
        root: the directory with treebanks; without it, the one that ``TREEBANKS`` names.
        tell: is told what happens.

    Returns:
        The files that were not there before.

    Raises:
        TreebankError: the treebank has no stable address, there is no directory, a download
            fails or is not what it should be, an archive is unsafe, or another file is in
            the way.
    """
    if manifest.track == "mini":
        raise TreebankError(f"{manifest.name} comes with the program: there is nothing to download")
    if not manifest.fetch:
        raise TreebankError(f"{manifest.name} has no stable address. {manifest.obtain}")
    base = treebanks_root(root)
    if base is None:
        raise TreebankError(f"set {ROOT_VARIABLE} to the directory that is to hold the treebanks")
    written: list[Path] = []
    for source in manifest.fetch:
        folder = base / (source.path or manifest.path.split(ALTERNATIVE)[0])
        if source.url.endswith("/"):
            written += _fetch_files(manifest, source, _Place(base, folder), tell)
        else:
            written += _fetch_archive(manifest, source, _Place(base, folder), tell)
    return written


class _Place:
    """The folder of a treebank, in which files are put that are not there yet."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder

    def lacks(self, name: str, digest: str) -> bool:
        """Whether a file is not there yet.

        Raises:
            TreebankError: another one is, or the place is not in the directory of treebanks.
        """
        path = self._path(name)
        if not os.path.lexists(path):
            return True
        if not path.is_file() or file_digest(path) != digest:
            raise TreebankError(
                f"{path} is there, but it is another file (its SHA-256 differs); move it away and "
                "fetch again"
            )
        return False

    def put(self, files: Mapping[str, Path]) -> list[Path]:
        """Put whole files in their places, by name; none of them if that fails for one.

        Raises:
            TreebankError: another file is there, a place is not in the directory of treebanks, or
                one cannot be written.
        """
        written: list[Path] = []
        made: list[Path] = []
        try:
            for name, source in files.items():
                path = self._path(name)
                self._make_folders(path.parent, made)
                self._path(name)  # what was made is where it seemed to be
                if _copy_new(source, path):
                    written.append(path)
                else:  # somebody else was faster
                    self.lacks(name, file_digest(source))
        except BaseException as error:
            for path in written:
                path.unlink(missing_ok=True)
            for folder in reversed(made):
                _remove_empty(folder)
            if isinstance(error, OSError):
                place = error.filename2 or error.filename or self._folder
                raise TreebankError(f"{place}: cannot be written: {error.strerror}") from error
            raise
        return written

    def _path(self, name: str) -> Path:
        try:
            return require_inside(
                self._root, self._folder / check_path(name), TreebankError, to="write"
            )
        except ValueError as error:
            raise TreebankError(f"{self._folder}: '{name}' {error}") from None

    def _make_folders(self, folder: Path, made: list[Path]) -> None:
        for one in reversed([folder, *folder.parents]):
            if not one.is_dir():
                try:
                    one.mkdir()
                except FileExistsError:
                    if not one.is_dir():
                        raise
                else:
                    made.append(one)


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # somebody else has put something there
        return


def _copy_new(source: Path, path: Path) -> bool:
    """Copy a file to where there is none, whole or not at all; False if there is one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    try:
        with os.fdopen(descriptor, "wb") as file, source.open("rb") as content:
            shutil.copyfileobj(content, file, _CHUNK)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        try:
            os.link(name, path)  # unlike a renaming, it replaces nothing
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            if os.path.lexists(path):
                return False
            os.replace(name, path)
        return True
    finally:
        Path(name).unlink(missing_ok=True)


def _fetch_files(manifest: Manifest, source: Fetch, place: _Place, tell: _Tell) -> Iterator[Path]:
    for name, digest in manifest.sha256.items():
        if place.lacks(name, digest):
            with _download(source.url + quote(name), digest, None, tell) as downloaded:
                yield from place.put({name: downloaded})


def _fetch_archive(manifest: Manifest, source: Fetch, place: _Place, tell: _Tell) -> list[Path]:
    recorded = {
        name: digest for name, digest in manifest.sha256.items() if _comes_from(source, name)
    }
    lacking = [name for name, digest in recorded.items() if place.lacks(name, digest)]
    if recorded and not lacking:
        return []

    def target(member: str) -> str | None:
        name = _target(member, source.members)
        return name if not recorded or name in recorded else None  # a release may have more

    with _download(source.url, source.sha256 or "", None, tell) as archive:
        into = archive.parent / "unpacked"
        try:
            into.mkdir()
            files = unpack(archive, into, target, name=source.url, size=None)
        except OSError as error:
            raise TreebankError(
                f"{into}: the archive cannot be unpacked: {error.strerror}"
            ) from error
        absent = sorted(set(recorded) - set(files))
        if absent:
            raise TreebankError(f"{source.url}: the archive lacks {', '.join(absent[:5])}")
        digests = {name: file_digest(path) for name, path in files.items()}
        other = [name for name in files if digests[name] != recorded.get(name, digests[name])]
        if other:
            raise TreebankError(
                f"{source.url}: {other[0]}: the download has another file of this name (SHA-256)"
            )
        return place.put(
            {name: path for name, path in files.items() if place.lacks(name, digests[name])}
        )


def _comes_from(source: Fetch, name: str) -> bool:
    """Whether a file of the treebank is one that the archive has."""
    return any(
        name == target or (target.endswith("/") and name.startswith(target.removeprefix("./")))
        for target in source.members.values()
    )


@contextmanager
def _download(url: str, digest: str, size: int | None, tell: _Tell) -> Iterator[Path]:
    """The file at a URL, checked; it lies in a folder of its own as long as it is in use."""
    import pooch
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    folder = home() / "downloads"
    tell(f"downloading {url}")
    logger = pooch.get_logger()
    level = logger.level
    with ExitStack() as used:
        logger.setLevel(logging.ERROR)
        used.callback(logger.setLevel, level)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _remove_forgotten(folder)
            own = Path(used.enter_context(tempfile.TemporaryDirectory(dir=folder)))
            name = pooch.retrieve(
                url, f"sha256:{digest}", fname="file", path=own, downloader=_Downloader(size)
            )
        except (RequestException, HTTPError) as error:
            raise TreebankError(f"{url}: the download failed: {error}") from error
        except ValueError as error:
            raise TreebankError(
                f"{url}: what was downloaded is not the file that the manifest names (its SHA-256 "
                "differs): it was cut short, or the server has another one now"
            ) from error
        except OSError as error:
            raise TreebankError(f"{folder}: cannot keep the download: {error}") from error
        yield Path(name)


class _Downloader:
    """Writes what a server sends, byte by byte as it is, and no more than is meant to come."""

    def __init__(self, size: int | None) -> None:
        self._largest = max(size or 0, UNPACKED)

    def __call__(self, url: str, output: str, _: object) -> None:
        """Download a file; named and called as pooch does it."""
        import requests

        # Asked not to compress, and not unpacked here: what is compressed can be of any size.
        headers = {"Accept-Encoding": "identity"}
        with requests.get(url, stream=True, timeout=_TIMEOUT, headers=headers) as response:
            response.raise_for_status()
            arrived = 0
            with open(output, "wb") as file:
                for data in response.raw.stream(_CHUNK, decode_content=False):
                    arrived += len(data)
                    if arrived > self._largest:
                        raise TreebankError(
                            f"{url}: the server sends more than {self._largest:,} bytes. If that "
                            "is meant, state in the manifest, beside the url, how many: size"
                        )
                    file.write(data)


def _remove_forgotten(folder: Path) -> None:
    """Remove what downloads left that were killed, a day ago at least."""
    for path in folder.iterdir():
        try:
            if time.time() - path.stat().st_mtime > _FORGOTTEN and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # another process removes it
            continue


def _target(name: str, members: Mapping[str, str]) -> str | None:
    """Where a member goes under the treebank's folder; None if it is not wanted."""
    for source, target in members.items():
        if name == source:
            return target
        if source.endswith("/") and name.startswith(source):
            folder = "" if target == "./" else target
            return folder + name.removeprefix(source)
    return None
