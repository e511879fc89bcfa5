"""Errors that a user can cause, each saying where, what was found, what is allowed and what to do.

The command line prints the message of a :class:`SpmrlError` and exits with status 1; any
other exception is a defect of the program and keeps its traceback.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike


class SpmrlError(Exception):
    """Base class of every error that the user's input can cause."""

    def __reduce__(self) -> tuple[object, ...]:
        # Between processes an error goes past its constructor, which may want more than a message.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class ReadError(SpmrlError):
    """A treebank file breaks its format. The message starts with ``path:line:`` (or
    ``path:line:column:``), both from 1, and names the sentence where one is known."""

    def __init__(
        self,
        problem: str,
        *,
        path: str | PathLike[str],
        line: int | None = None,
        column: int | None = None,
        sentence: str | int | None = None,
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        which = f" sentence {sentence}:" if sentence is not None else ""
        super().__init__(f"{place}:{which} {_shortened(problem)}")
        self.problem = problem
        self.path = str(path)
        self.line = line
        self.column = column
        self.sentence = sentence


class TokensError(SpmrlError, TypeError):
    """A text was given where a list of words or tags is expected."""


class ArrayError(SpmrlError, ValueError):
    """An array or tensor that a computation cannot take: of a wrong type, shape, order or range.
    The message names the argument, what was found and what is allowed."""


class NotFiniteError(ArrayError):
    """A score is NaN or infinite, as those of a model whose training diverged are."""


class TreeError(SpmrlError):
    """Spans that form no tree, or a tree that an operation cannot handle."""


class TreebankError(SpmrlError):
    """A manifest is wrong, or the files of a treebank are absent or not as declared."""


class RecipeError(SpmrlError):
    """A recipe or a setting is unknown or out of range."""


class ScoreError(SpmrlError, ValueError):
    """Gold and test cannot be compared, or a parameter file is wrong."""


class TrainingError(SpmrlError):
    """Training cannot go on, for example because the loss is no longer a number."""


class SentenceTooLongError(SpmrlError):
    """A sentence needs more positions than the model has."""


class CheckpointError(SpmrlError):
    """A checkpoint is absent, incomplete or does not fit the recipe."""


class PackageError(CheckpointError):
    """A packaged model is broken or not to be had, or a run cannot be made one."""


class UnsupportedError(SpmrlError):
    """A parser is asked for what only others can do."""


class RunOwnedError(SpmrlError):
    """Another process is training in the run folder."""


class PretrainedError(SpmrlError):
    """A pre-trained file or folder is missing, broken or does not fit."""


class RecordError(SpmrlError):
    """A result record or a published table cannot be written or read."""


@contextmanager
def as_value_error() -> Iterator[None]:
    """Turn a SpmrlError into the ValueError that a schema takes for a mistake of a value."""
    try:
        yield
    except SpmrlError as error:
        raise ValueError(str(error)) from None


def remedy(error: OSError) -> str:
    """What the user can do where something cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "Make room"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "See to it that you may write there"
    return "Look whether the disk is in order"


_LONGEST = 1000  # characters of what is said of a file, which may quote a line of it


def _shortened(text: str) -> str:
    """The text, or its beginning and end with the number of characters between them."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} ... ({len(text) - 2 * half:,} characters) ... {text[-half:]}"


def unknown_name(kind: str, name: str, known: Iterable[str], also: Iterable[str] = ()) -> str:
    """Message for a failed look-up, with near matches; ``also`` are names that are not listed."""
    name = _shortened(name)
    names = sorted(known)
    near = difflib.get_close_matches(name, [*names, *also], n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"unknown {kind} '{name}'.{hint} Known: {', '.join(names) if names else 'none'}."
