"""Downloading the open treebanks that lie at a stable address.

What arrives over a network may be cut short, be something else, or be meant to do harm; the program
may be stopped half-way, and somebody else may be downloading the same. Every file is therefore
checked against its SHA-256, archives are unpacked within bounds into a folder that nobody reads
(:mod:`spmrl_bench.storage.unzip`), and files appear under their names only when they are whole, and
only below the directory of treebanks (:mod:`spmrl_bench.storage.paths`). What is there is never
replaced; when a download fails, files that came before it stay, and the next goes on from there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from spmrl_bench.errors import TreebankError
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import create
from spmrl_bench.storage.paths import require_inside
from spmrl_bench.storage.unzip import UNPACKED, unzip
from spmrl_bench.treebanks.catalogue import ROOT_VARIABLE, Root, treebanks_root
from spmrl_bench.treebanks.manifest import Fetch, Manifest
from spmrl_bench.treebanks.patterns import ALTERNATIVE, some

_TIMEOUT = 60.0  # seconds in which something must arrive
_CHUNK = 1 << 18

_Tell = Callable[[str], None]


def fetch_treebank(manifest: Manifest, root: Root = None, tell: _Tell = print) -> list[Path]:
    """Download the files of a treebank into ``root``, or the directory that ``TREEBANKS`` names.

    ``tell`` is told what happens. Returned are the files that were not there before. Raise a
    TreebankError if the treebank has no stable address, there is no directory, a download fails or
    is not what it should be, an archive is unsafe, or another file is in the way.
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
        fetch = _fetch_archive if source.members else _fetch_files
        written += fetch(source, _recorded(manifest, source), _Place(base, folder), tell)
    return written


def _recorded(manifest: Manifest, source: Fetch) -> dict[str, str]:
    """The SHA-256 of the files that a source brings: a folder, what no archive does."""
    archives = [source] if source.members else manifest.fetch
    targets = [target for archive in archives for target in archive.members.values()]
    folders = tuple(target.removeprefix("./") for target in targets if target.endswith("/"))
    return {
        name: digest
        for name, digest in manifest.sha256.items()
        if (name in targets or name.startswith(folders)) == bool(source.members)
    }


@dataclass(frozen=True)
class _Place:
    """The folder of a treebank, in which files are put that are not there yet."""

    root: Path
    folder: Path

    def lacks(self, name: str, digest: str) -> bool:
        """Whether a file is not there yet; TreebankError if another one is."""
        path = self._path(name)
        if not os.path.lexists(path):
            return True
        if not path.is_file() or file_digest(path) != digest:
            raise TreebankError(
                f"{path} is there, but it is another file (its SHA-256 differs); move it away and "
                "fetch again"
            )
        return False

    def put(self, name: str, source: Path, digest: str) -> Iterator[Path]:
        """Put a whole file in its place, and yield it unless somebody else was faster."""
        path = self._path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            create(path, source.read_bytes())
        except OSError as error:
            if isinstance(error, FileExistsError) and not self.lacks(name, digest):
                return
            place = error.filename2 or error.filename or path
            raise TreebankError(f"{place}: cannot be written: {error.strerror}") from error
        yield path

    def _path(self, name: str) -> Path:
        return require_inside(self.root, self.folder / name, TreebankError, to="write")


def _fetch_files(
    source: Fetch, recorded: Mapping[str, str], place: _Place, tell: _Tell
) -> Iterator[Path]:
    for name, digest in recorded.items():
        if place.lacks(name, digest):
            with _download(source.url + quote(name), digest, tell) as downloaded:
                yield from place.put(name, downloaded, digest)


def _fetch_archive(
    source: Fetch, recorded: Mapping[str, str], place: _Place, tell: _Tell
) -> Iterator[Path]:
    lacking = [name for name, digest in recorded.items() if place.lacks(name, digest)]
    if recorded and not lacking:
        return

    def target(member: str) -> str | None:
        """Where a member goes under the treebank's folder; None if it is not wanted."""
        for given, goal in source.members.items():
            if member == given or (given.endswith("/") and member.startswith(given)):
                name = ("" if goal == "./" else goal) + member.removeprefix(given)
                return name if not recorded or name in recorded else None  # there may be more
        return None

    with _download(source.url, source.sha256 or "", tell) as archive:
        into = archive.parent / "unpacked"
        try:
            into.mkdir()
            files = unzip(archive, into, target, TreebankError, name=source.url)
        except OSError as error:
            problem = f"{into}: the archive cannot be unpacked: {error.strerror}"
            raise TreebankError(problem) from error
        if absent := sorted(set(recorded) - set(files)):
            raise TreebankError(f"{source.url}: the archive lacks {some(absent)}")
        digests = {name: file_digest(path) for name, path in files.items()}
        if other := [name for name in files if digests[name] != recorded.get(name, digests[name])]:
            raise TreebankError(
                f"{source.url}: {other[0]}: the download has another file of this name (SHA-256)"
            )
        for name in [name for name in files if place.lacks(name, digests[name])]:
            yield from place.put(name, files[name], digests[name])


@contextmanager
def _download(url: str, digest: str, tell: _Tell) -> Iterator[Path]:
    """Download and check a file; it lies in a folder of its own as long as it is in use."""
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    tell(f"downloading {url}")
    with ExitStack() as used:
        try:
            own = used.enter_context(tempfile.TemporaryDirectory(prefix="spmrl-bench-"))
            _get(url, path := Path(own, "file"))
            found = file_digest(path)
        except (RequestException, HTTPError) as error:
            raise TreebankError(f"{url}: the download failed: {error}") from error
        except OSError as error:
            raise TreebankError(f"cannot keep the download of {url}: {error}") from error
        if found != digest:
            raise TreebankError(
                f"{url}: what was downloaded is not the file that the manifest names (its SHA-256 "
                "differs): it was cut short, or the server has another one now"
            )
        yield path


def _get(url: str, output: Path) -> None:
    """Write what a server sends, as it is, and no more than is meant to come."""
    import requests

    # Asked not to compress, and not unpacked here: what is compressed can be of any size.
    headers = {"Accept-Encoding": "identity"}
    with requests.get(url, stream=True, timeout=_TIMEOUT, headers=headers) as response:
        response.raise_for_status()
        arrived = 0
        with output.open("wb") as file:
            while data := response.raw.read1(_CHUNK, decode_content=False):
                arrived += len(data)
                if arrived > UNPACKED:
                    raise TreebankError(f"{url}: the server sends more than {UNPACKED:,} bytes")
                file.write(data)
