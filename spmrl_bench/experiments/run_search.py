"""Finding runs: all below a folder, or the one that a name stands for."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.experiments.ownership import file_clock
from spmrl_bench.experiments.run_state import NOTES, OWN_FILES, RunState, state_by_names, state_of


class Found(NamedTuple):
    """A run, by the names of its files."""

    folder: Path
    names: frozenset[str]
    """Of what is in the folder; none if it is not there yet."""
    notes: frozenset[str]
    """Endings of the notes beside it."""


def find_runs(place: Path) -> list[Found]:
    """The runs below a folder, through no links, or the one whose folder it is; in their order.

    Raises:
        SpmrlError: there is no such folder.
    """
    if not place.is_dir():
        if (alone := _noted_alone(place)) is not None:
            return [alone]
        raise SpmrlError(f"{place}: no such folder; expected a run or a folder of runs")
    beside = _noted_alone(place)
    return sorted(_found(place, beside.notes if beside else frozenset()))


def states(place: Path) -> Iterator[RunState]:
    """The states of the runs below a folder, or of one, as of :func:`find_runs`."""
    clock = _Clock()
    for found in find_runs(place):
        yield state_by_names(*found, clock)


def run_named(name: str, runs_dir: Path) -> RunState:
    """The run that a path is of, from here or below the folder of runs.

    Raises:
        SpmrlError: there is none; with those whose names are near.
    """
    for folder in (Path(name), runs_dir / name):
        if folder.name and (found := state_of(folder)) is not None:
            return found
    known = [shown(found.folder, runs_dir) for found in find_runs(runs_dir)]
    raise SpmrlError(unknown_name("run", name, known))


def shown(folder: Path, runs_dir: Path) -> str:
    """What a run is called: its path below the folder of runs, where it is there."""
    below = folder.is_relative_to(runs_dir) and folder != runs_dir
    return str(folder.relative_to(runs_dir) if below else folder)


def _found(folder: Path, beside: frozenset[str]) -> Iterator[Found]:
    """The runs in a folder, or itself; ``beside`` has the endings of the notes beside it."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # whose it is does not want it to be seen
        return
    names = frozenset(entry.name for entry in entries)
    if beside or not OWN_FILES.isdisjoint(names):
        yield Found(folder, names, beside)
        return
    notes = _notes(names)
    folders = {
        entry.name
        for entry in entries
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    }
    for name in folders:
        yield from _found(folder / name, notes.pop(name, frozenset()))
    for name in notes:
        yield Found(folder / name, frozenset(), notes[name])


def _notes(names: frozenset[str]) -> dict[str, frozenset[str]]:
    """Of the runs that have notes among the files of a folder, the endings of these."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        run, dot, ending = name[1:].rpartition(".")
        if name.startswith(".") and run and dot + ending in NOTES:
            found[run].add(dot + ending)
    return {run: frozenset(endings) for run, endings in found.items()}


def _noted_alone(folder: Path) -> Found | None:
    """A run of which notes are looked for beside its folder."""
    try:
        names = frozenset(os.listdir(folder.parent))
    except OSError:
        return None
    notes = _notes(names).get(folder.name)
    return Found(folder, frozenset(), notes) if notes else None


class _Clock:
    """The clocks of file systems, each looked at once."""

    def __init__(self) -> None:
        self._ahead: dict[Path, float] = {}

    def __call__(self, folder: Path) -> float:
        if folder not in self._ahead:
            self._ahead[folder] = file_clock(folder) - time.monotonic()
        return self._ahead[folder] + time.monotonic()
