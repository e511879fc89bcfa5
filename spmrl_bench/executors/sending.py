"""Units on a Dask cluster whose machines share no folder: all that they need goes through it.

Files go to a worker once, in blocks, are checked by their hashes, and lie in its user's folder. The
folder of a unit goes there first where it has something to go on from, and comes back when the
unit has ended; a unit whose worker is gone begins with what there is here, or on the same machine
goes on. While a unit is away its folder is owned by the driver, so that nobody else begins it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from spmrl_bench.errors import RunOwnedError, SpmrlError, TrainingError, remedy
from spmrl_bench.executors.dask import DaskExecutor
from spmrl_bench.executors.parcel import Parcel, there
from spmrl_bench.executors.unit import Ended, How, Unit
from spmrl_bench.files import write_folder

#: Bytes that travel at once.
BLOCK = 4 << 20

_NAME = re.compile(r"[\w.-]+", re.ASCII)


class _File(NamedTuple):
    """A file of a folder: its place in it, its size and SHA-256."""

    name: str
    size: int
    digest: str


class _Away(NamedTuple):
    """A unit that is away: as it is known here, what was sent to whom, the lock on its folder."""

    unit: Unit
    parcel: Parcel
    worker: str
    lock: ExitStack


class SendingExecutor(DaskExecutor):
    """The workers of a Dask cluster that see nothing of what is here."""

    needs_folder = False

    def __init__(
        self,
        address: str | None,
        shared: Path,
        *,
        licensed: bool,
        device: str = "auto",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """As of :class:`DaskExecutor`; ``licensed`` treebanks may be sent or not."""
        super().__init__(address, shared, device=device, say=say)
        self._licensed = licensed
        self._away: dict[Unit, _Away] = {}
        self._refused: list[Ended] = []

    def start(self, unit: Unit) -> str:
        """Send what a unit needs to a worker that has none, and then the unit."""
        if unit.pack is None:
            raise SpmrlError(f"{unit.title}: cannot be sent; use a folder that all machines share")
        lock = ExitStack()
        worker = self._free_worker().address
        try:
            parcel = unit.pack(unit, self._licensed)
            lock.enter_context(parcel.lock)
            self._send(parcel, worker)
            where = super().start(parcel.unit)
        except (SpmrlError, _BrokenError) as error:
            lock.close()
            how: How = "lost" if isinstance(error, _BrokenError) else "failed"
            how = "owned" if isinstance(error, RunOwnedError) else how
            self._refused.append(Ended(unit, how, TrainingError(str(error))))
            return ""
        except BaseException:
            lock.close()
            raise
        self._away[parcel.unit] = _Away(unit, parcel, worker, lock)
        return where

    def ended(self, seconds: float) -> list[Ended]:
        """The units whose folders are back, whose workers are gone, or that could not be sent."""
        found, self._refused = self._refused, []
        for unit, how, error in super().ended(0.0 if found else seconds):
            away = self._away.pop(unit)
            with away.lock:
                if how in ("done", "stopped"):
                    try:
                        self._bring_back(away)
                    except _BrokenError as broken:
                        how, error = "lost", TrainingError(str(broken))
            found.append(Ended(away.unit, how, error))
        return found

    def close(self) -> None:
        """End what is left."""
        for away in self._away.values():
            away.lock.close()
        self._away.clear()
        super().close()

    def _on(self, worker: str, function: Callable[..., object], *arguments: object) -> object:
        """What a function gives on a worker.

        Raises:
            _BrokenError: it fails there, or the worker is gone.
        """
        found = self._run(function, *arguments, workers=[worker])[worker]
        if isinstance(found, Exception):
            raise _BrokenError(f"worker {worker}: {found}")
        return found

    def _send(self, parcel: Parcel, worker: str) -> None:
        for digest in self._on(worker, _lacking, list(parcel.files)):  # type: ignore[attr-defined]
            self._send_bytes(worker, ("files", digest), parcel.files[digest], digest)
        if parcel.home.exists() and not self._on(worker, _list, parcel.away):
            for name, _, digest in _files_of(parcel.home):
                data = (parcel.home / name).read_bytes()
                self._send_bytes(worker, ("runs", parcel.away, name), data, digest)

    def _send_bytes(self, worker: str, place: tuple[str, ...], data: bytes, digest: str) -> None:
        for low in range(0, len(data) or 1, BLOCK):
            self._on(worker, _put, place, low, data[low : low + BLOCK])
        self._on(worker, _seal, place, digest)

    def _bring_back(self, away: _Away) -> None:
        """Put the folder that a unit has left there in the place of that which is here.

        Raises:
            _BrokenError: it did not arrive whole.
            SpmrlError: it cannot be written here.
        """
        parcel, worker = away.parcel, away.worker
        listed = self._on(worker, _list, parcel.away)
        assert isinstance(listed, list)

        def fill(new: Path) -> None:
            for name, size, digest in listed:
                place = new / _inside(name)
                place.parent.mkdir(parents=True, exist_ok=True)
                found = hashlib.sha256()
                with place.open("wb") as file:
                    for low in range(0, size, BLOCK):
                        block = self._on(worker, _get, parcel.away, name, low, BLOCK)
                        assert isinstance(block, bytes)
                        file.write(block)
                        found.update(block)
                if found.hexdigest() != digest:
                    raise _BrokenError(f"{name} did not arrive whole")

        if not listed:
            return
        try:
            write_folder(parcel.home, fill)
        except OSError as error:
            raise SpmrlError(
                f"{parcel.home}: the run folder cannot be written: {error.strerror}. "
                f"{remedy(error)}, and give the same command again"
            ) from None
        with suppress(_BrokenError):
            self._on(worker, _remove, parcel.away, [] if parcel.keep else list(parcel.files))


class _BrokenError(Exception):
    """What was sent or brought did not arrive."""


def _inside(name: str) -> Path:
    """The place of a file in a folder, named by another machine.

    Raises:
        _BrokenError: it would lie elsewhere.
    """
    parts = PurePosixPath(name).parts
    if not parts or any(part == ".." or not _NAME.fullmatch(part) for part in parts):
        raise _BrokenError(f"a file with the name {name!r} is not of a run")
    return Path(*parts)


def _files_of(folder: Path) -> Iterator[_File]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            yield _File(path.relative_to(folder).as_posix(), path.stat().st_size, digest)


# What workers do ---------------------------------------------------------------------------


def _lacking(digests: list[str]) -> list[str]:
    """Those of some files that are not here."""
    return [digest for digest in digests if not (there("files") / digest).is_file()]


def _place(place: tuple[str, ...]) -> Path:
    part, *rest = place
    return there(part).joinpath(*map(_inside, rest))


def _arriving(place: tuple[str, ...]) -> Path:
    path = _place(place)
    return path.with_name(f"{path.name}.arriving")


def _put(place: tuple[str, ...], low: int, block: bytes) -> None:
    path = _arriving(place)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if low else "wb") as file:
        file.seek(low)
        file.write(block)


def _seal(place: tuple[str, ...], digest: str) -> None:
    path = _arriving(place)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise OSError(f"{path.name} did not arrive whole")
    os.replace(path, _place(place))


def _list(run: str) -> list[_File]:
    return list(_files_of(there("runs") / _inside(run)))


def _get(run: str, name: str, low: int, size: int) -> bytes:
    with (there("runs") / _inside(run) / _inside(name)).open("rb") as file:
        file.seek(low)
        return file.read(size)


def _remove(run: str, files: list[str]) -> None:
    shutil.rmtree(there("runs") / _inside(run), ignore_errors=True)
    for digest in files:
        (there("files") / _inside(digest)).unlink(missing_ok=True)
