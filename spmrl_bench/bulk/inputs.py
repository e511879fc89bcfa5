"""Which files of a folder are parsed, and what each of them is, by its name.

A name ends in what the file holds (``.txt``, ``.mrg``, ``.conllu``) and how it is compressed
(``.gz``, ``.zst``, or nothing). What has another name is left out, and named, so that a README
between the texts is no mistake and a forgotten file is seen. Hidden files are not looked at.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.parsing.streams import Form

Compression = Literal["none", "gz", "zst"]
COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)

#: Endings of names, in front of that of the compression.
ENDINGS: Mapping[str, Form] = {
    ".txt": "tokens",
    ".text": "tokens",
    ".tok": "tokens",
    ".tokens": "tokens",
    ".mrg": "brackets",
    ".ptb": "brackets",
    ".psd": "brackets",
    ".brackets": "brackets",
    ".trees": "brackets",
    ".conllu": "conllu",
}


class Input(NamedTuple):
    """A file that is to be parsed."""

    name: str
    """Its path in the folder."""
    form: Form
    compression: Compression
    size: int
    """In bytes, as it lies there."""
    changed: int
    """When, in nanoseconds."""

    @property
    def shown(self) -> str:
        """The name for a message, where a name may hold bytes that are no text."""
        return os.fsencode(self.name).decode(errors="replace")

    def output(self, compression: Compression | None) -> str:
        """The path of its parses in their folder; without a compression they have the input's."""
        if compression is None or compression == self.compression:
            return self.name
        plain, _ = _compression_of(self.name)
        return plain if compression == "none" else f"{plain}.{compression}"


def inputs_of(folder: Path, form: Form | None) -> tuple[list[Input], list[str]]:
    """The files of a folder and of those in it, in the order of their names, and what is left out.

    Args:
        folder: that is read; folders that are links are not followed.
        form: what all files hold, whatever their names end in; None leaves it to their names.

    Returns:
        The inputs, and the others, each with the reason.

    Raises:
        ReadError: a folder cannot be read.
    """
    inputs: list[Input] = []
    others: list[str] = []
    for place in _files(folder):
        name = place.relative_to(folder).as_posix()
        plain, compression = _compression_of(name)
        found = form or ENDINGS.get(os.path.splitext(plain)[1].lower())
        status = _status(place)
        shown = os.fsencode(name).decode(errors="replace")
        if status is None or not stat.S_ISREG(status.st_mode):
            others.append(f"{shown}: no file that can be read again")
        elif found is None:
            others.append(f"{shown}: its name does not say what it holds")
        else:
            inputs.append(Input(name, found, compression, status.st_size, status.st_mtime_ns))
    return inputs, others


def check_outputs(
    inputs: Sequence[Input], compression: Compression | None, taken: Sequence[str]
) -> None:
    """Make sure that each input has an output of its own.

    Args:
        inputs, compression: see :meth:`Input.output`.
        taken: names of other files in the folder of the outputs.

    Raises:
        SpmrlError: two have the same, or one has the name of another file.
    """
    owners = dict.fromkeys(taken, "the account of what was parsed")
    for each in inputs:
        output = each.output(compression)
        if output in owners:
            raise SpmrlError(
                f"{each.shown}: its parses would have the name of {owners[output]}, {output}. "
                "Rename the file, or leave --compression as the inputs have it"
            )
        owners[output] = f"those of {each.shown}"


def _compression_of(name: str) -> tuple[str, Compression]:
    """A name without the ending of its compression, and the compression."""
    plain, ending = os.path.splitext(name)
    for compression in COMPRESSIONS:
        if ending.lower() == f".{compression}":
            return plain, compression
    return name, "none"


def _files(folder: Path) -> Iterator[Path]:
    """All that is in a folder but folders, in order, without what is hidden."""

    def unreadable(error: OSError) -> None:
        raise ReadError(f"cannot be read: {error.strerror}", path=error.filename or folder)

    for place, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in sorted([*files, *links]):
            if not name.startswith("."):
                yield Path(place, name)


def _status(place: Path) -> os.stat_result | None:
    try:
        return place.stat()
    except OSError:  # a link to nothing, or removed right now
        return None
