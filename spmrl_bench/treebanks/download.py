"""Downloading the open treebanks that lie at a stable address.

What arrives over a network may be cut short, be something else, or be an archive that writes
outside its folder; the program may be stopped half-way, and somebody else may be downloading
the same. Every file is therefore checked against its SHA-256 before it is used, an archive
whose members would leave their folder is refused as a whole, and files appear under their names
only when they are whole. What is there already is never replaced.
"""

from __future__ import annotations

import logging
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from spmrl_bench.data import home
from spmrl_bench.errors import TreebankError
from spmrl_bench.files import write_bytes
from spmrl_bench.treebanks.checksums import file_digest
from spmrl_bench.treebanks.manifest import Fetch, FileManifest, Manifest, MiniManifest
from spmrl_bench.treebanks.patterns import ALTERNATIVE
from spmrl_bench.treebanks.presence import ROOT_VARIABLE, Root, treebanks_root

# Nothing here is larger; a server that sends without end must not fill the disk.
_LARGEST_MEMBER = 1 << 30

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
    if isinstance(manifest, MiniManifest):
        raise TreebankError(f"{manifest.name} is generated: there is nothing to download")
    if not manifest.fetch:
        raise TreebankError(f"{manifest.name} has no stable address. {manifest.obtain}")
    base = treebanks_root(root)
    if base is None:
        raise TreebankError(f"set {ROOT_VARIABLE} to the directory that is to hold the treebanks")
    written: list[Path] = []
    for source in manifest.fetch:
        folder = base / (source.path or manifest.path.split(ALTERNATIVE)[0])
        if source.url.endswith("/"):
            written += _fetch_files(manifest, source, folder, tell)
        else:
            written += _fetch_archive(manifest, source, folder, tell)
    return written


def _fetch_files(
    manifest: FileManifest, source: Fetch, folder: Path, tell: _Tell
) -> Iterator[Path]:
    for name, digest in manifest.sha256.items():
        path = folder / name
        if _is_there(path, digest):
            continue
        with _download(source.url + quote(name), digest, tell) as downloaded:
            _write(path, downloaded.read_bytes(), digest)
        yield path


def _fetch_archive(
    manifest: FileManifest, source: Fetch, folder: Path, tell: _Tell
) -> Iterator[Path]:
    recorded = {
        name: digest for name, digest in manifest.sha256.items() if _comes_from(source, name)
    }
    if recorded and all(_is_there(folder / name, digest) for name, digest in recorded.items()):
        return
    with _download(source.url, source.sha256 or "", tell) as archive:
        contents = _wanted(archive, source)
    lacking = sorted(set(recorded) - set(contents))
    if lacking:
        raise TreebankError(f"{source.url}: the archive lacks {', '.join(lacking[:5])}")
    for name, data in contents.items():
        if recorded and name not in recorded:
            continue  # the release has more than the treebank
        path = folder / name
        digest = recorded.get(name)
        if digest is None or not _is_there(path, digest):
            _write(path, data, digest)
            yield path


def _comes_from(source: Fetch, name: str) -> bool:
    """Whether a file of the treebank is one that the archive has."""
    return any(
        name == target or (target.endswith("/") and name.startswith(target.removeprefix("./")))
        for target in source.members.values()
    )


def _is_there(path: Path, digest: str) -> bool:
    """Whether the file is there already; a TreebankError where another one is."""
    if not path.exists():
        return False
    if not path.is_file() or file_digest(path) != digest:
        raise TreebankError(
            f"{path} is there, but it is another file (its SHA-256 differs); move it away and "
            "fetch again"
        )
    return True


def _write(path: Path, data: bytes, digest: str | None) -> None:
    try:
        write_bytes(path, data)
    except OSError as error:
        raise TreebankError(f"{path}: cannot be written: {error.strerror}") from error
    if digest is not None and file_digest(path) != digest:
        path.unlink(missing_ok=True)
        raise TreebankError(f"{path}: the download has another file of this name (SHA-256)")


@contextmanager
def _download(url: str, digest: str, tell: _Tell) -> Iterator[Path]:
    """The file at a URL, checked; it lies in a folder of its own as long as it is in use."""
    import pooch
    from requests import RequestException

    folder = home() / "downloads"
    tell(f"downloading {url}")
    logger = pooch.get_logger()
    level = logger.level
    with ExitStack() as used:
        logger.setLevel(logging.ERROR)
        used.callback(logger.setLevel, level)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            own = used.enter_context(tempfile.TemporaryDirectory(dir=folder))
            downloader = pooch.HTTPDownloader(progressbar=False, timeout=60)
            name = pooch.retrieve(
                url, f"sha256:{digest}", fname="file", path=own, downloader=downloader
            )
        except RequestException as error:
            raise TreebankError(f"{url}: the download failed: {error}") from error
        except ValueError as error:
            raise TreebankError(
                f"{url}: what was downloaded is not the file that the manifest names (its SHA-256 "
                "differs): it was cut short, or the server has another one now"
            ) from error
        except OSError as error:
            raise TreebankError(f"{folder}: cannot keep the download: {error}") from error
        yield Path(name)


def _wanted(archive: Path, source: Fetch) -> dict[str, bytes]:
    """The content of the members to take, by their path under the treebank's folder."""
    found: dict[str, bytes] = {}
    try:
        for name, read in _members(archive, source.url):
            parts = PurePosixPath(name).parts
            if name.startswith("/") or ".." in parts or "\\" in name or ":" in name:
                raise TreebankError(
                    f"{source.url}: the archive is not safe: its member '{name}' would be written "
                    "outside its folder; nothing was unpacked"
                )
            target = _target(name, source.members)
            if target is not None:
                found[target] = read()
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as error:
        raise TreebankError(f"{source.url}: no whole zip or tar archive: {error}") from error
    return found


def _members(archive: Path, url: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Name and reader of every plain file; links and devices have none."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            for info in file.infolist():
                _check_size(url, info.filename, info.file_size)
                if not info.is_dir():
                    yield info.filename, partial(file.read, info)
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                _check_size(url, member.name, member.size)
                if member.isfile():
                    yield member.name, partial(_tar_content, tar, member)
                elif not member.isdir():
                    raise TreebankError(
                        f"{url}: the archive is not safe: its member '{member.name}' is no plain "
                        "file; nothing was unpacked"
                    )


def _tar_content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return file.read() if file is not None else b""


def _check_size(url: str, name: str, size: int) -> None:
    if size > _LARGEST_MEMBER:
        raise TreebankError(f"{url}: the member '{name}' has {size:,} bytes; refused")


def _target(name: str, members: Mapping[str, str]) -> str | None:
    """Where a member goes under the treebank's folder; None if it is not wanted."""
    for source, target in members.items():
        if name == source:
            return target
        if source.endswith("/") and name.startswith(source):
            folder = "" if target == "./" else target
            return folder + name.removeprefix(source)
    return None
