"""Finding runs: all below a folder, or the one that a name stands for."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.experiments.run_state import NOTES, OWN_FILES, RunState, state_by_names, state_of

# Folders looked at at once: over the network, most of the time is spent waiting for files.
_AT_ONCE = 16
_MANY = 20  # names, more than are listed in a message

# A folder, and the endings of the notes beside it.
_Place = tuple[Path, frozenset[str]]


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
    alone = _noted_alone(place)
    level = [(place, alone.notes if alone else frozenset())]
    found: list[Found] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while level:  # a level of folders after the other
            opened, level = list(pool.map(_opened, level)), []
            for runs, folders in opened:
                found += runs
                level += folders
    return sorted(found, key=lambda run: run.folder)


def states(place: Path) -> Iterator[RunState]:
    """The states of the runs below a folder, or of one, as of :func:`find_runs`."""

    def look(at: Found) -> RunState:
        return state_by_names(at.folder, at.names, at.notes)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(look, find_runs(place))


def run_named(name: str, runs_dir: Path) -> RunState:
    """The run that a path is of, from here or below the folder of runs.

    Raises:
        SpmrlError: there is none; with those whose names are near.
    """
    for folder in (Path(name), runs_dir / name):
        if folder.name and (found := state_of(folder)) is not None:
            return found
    known = [shown(found.folder, runs_dir) for found in find_runs(runs_dir)]
    if len(known) <= _MANY:
        raise SpmrlError(unknown_name("run", name, known))
    near = get_close_matches(name, known, n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise SpmrlError(f"unknown run '{name}'.{hint} 'spmrl-bench runs' lists all {len(known):,}.")


def shown(folder: Path, runs_dir: Path) -> str:
    """What a run is called: its path below the folder of runs, where it is there."""
    below = folder.is_relative_to(runs_dir) and folder != runs_dir
    return str(folder.relative_to(runs_dir) if below else folder)


def _opened(place: _Place) -> tuple[list[Found], list[_Place]]:
    """The runs that a look into a folder shows, and the folders in which there may be more."""
    folder, beside = place
    try:
        entries = list(os.scandir(folder))
    except OSError:  # whose it is does not want it to be seen
        return [], []
    names = frozenset(entry.name for entry in entries)
    if beside or not OWN_FILES.isdisjoint(names):
        return [Found(folder, names, beside)], []
    notes = _notes(names)
    folders = [
        (folder / entry.name, notes.pop(entry.name, frozenset()))
        for entry in entries
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    ]
    return [Found(folder / name, frozenset(), notes[name]) for name in notes], folders


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
