"""Where files lie: the program's data, the user's own folder, and paths that a file names.

Data files (recipes, manifests, parameter files, published scores) are folders at the top of a
checkout, where people can edit them, and a copy inside the package in a wheel. Users add recipes
and manifests under their own folder, :func:`home`, which outlives an installation.

Manifests and recipes are handed on, so a path in one of them, or in an archive that one of them
names, is the word of a stranger. The rule for them is stated here alone:

* as text (:func:`check_path`, for schemas): relative, with ``/`` between its parts, none of which
  is ``..``, and nothing that some system takes for more than a name;
* on the disk (:func:`require_inside`, at its use): it lies in its folder, and for writing so does
  what it leads to. Reading goes through links: archives cannot bring any, so they are the owner's.

What the user names may be read as well: folders on the command line, and those that
``folders.txt`` in the user's own folder lists, one on each line.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.files import write_text

DataKind = Literal["recipes", "treebanks", "evalb", "published", "systems", "encoders"]

HOME_VARIABLE = "SPMRL_BENCH_HOME"  # of the environment; it names the user's own folder
#: Set to ``0`` in the environment, nothing is kept and nothing kept is used.
CACHE_VARIABLE = "SPMRL_BENCH_CACHE"

_LIST = "folders.txt"  # in the user's own folder
_PACKAGE = Path(__file__).resolve().parent.parent
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DEVICE = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³]) *(?:\..*)?", re.I)
_MAX_PART = 255  # bytes of a name that file systems hold
_MAX_PATH = 1024  # bytes of a path
_NAME = re.compile(r"[^\W_][\w.+-]*")


def data_dir(kind: DataKind) -> Path:
    """The folder of one kind of data file: ``_data/<kind>`` of a wheel, else the checkout's."""
    candidates = (packaged(kind), _PACKAGE.parent / kind)
    for folder in candidates:
        if folder.is_dir():
            return folder
    looked = " and ".join(str(folder) for folder in candidates)
    raise SpmrlError(f"no folder of {kind}: looked in {looked}; install the package again")


def packaged(folder: str) -> Path:
    """Where a wheel has a folder of the checkout; it is there only if this is one."""
    return _PACKAGE / "_data" / folder


def home() -> Path:
    """The user's own folder: ``$SPMRL_BENCH_HOME``, or ``~/.spmrl_bench``; it may not exist. A
    SpmrlError says that the variable names something that is no folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    try:
        if not chosen:
            return Path.home() / ".spmrl_bench"
        folder = Path(chosen).expanduser().absolute()
    except RuntimeError as error:  # whose home folder is not known
        if not chosen:
            return Path("/nonexistent/.spmrl_bench")  # as systems write it
        raise SpmrlError(f"{HOME_VARIABLE}: {chosen}: {error}; name a folder") from None
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise SpmrlError(f"{HOME_VARIABLE}: {folder}: not a folder; name one, or unset it")
    return folder


def cache_folder() -> Path | None:
    """Where is kept what can be computed again; it may not exist. None where nothing is to be."""
    return None if os.environ.get(CACHE_VARIABLE) == "0" else home() / "cache"


def data_dirs(kind: DataKind) -> list[Path]:
    """The folders to look in for one kind of data file: the program's, then the user's. A home
    folder that this user may not read, as that of another in a container, holds nothing of theirs;
    one that was named has to be readable, else there is a SpmrlError."""
    own = home() / kind
    try:
        with os.scandir(own):
            return [data_dir(kind), own]
    except OSError as error:
        absent = isinstance(error, FileNotFoundError | NotADirectoryError)
        if os.environ.get(HOME_VARIABLE) and not absent:
            raise SpmrlError(f"{own}: cannot be read ({HOME_VARIABLE}): {error.strerror}") from None
        return [data_dir(kind)]


def path_fault(text: str) -> str | None:
    """What keeps a text from being a relative path that leads downwards; None if nothing does.
    ``./`` at its beginning and a slash at its end are allowed."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "has characters that are no text"
    if _CONTROL.search(text):
        return "has control characters"
    if "\\" in text:
        return "has a backslash; '/' stands between folders"
    if text.startswith("/"):
        return "is absolute"
    if size > _MAX_PATH:
        return f"has {size:,} bytes; {_MAX_PATH:,} are allowed"
    parts = text.removeprefix("./").removesuffix("/").split("/")
    if parts == [""]:
        return None if text == "./" else "is empty"
    for part in parts:
        if part in ("", ".", ".."):
            return f"has the part '{part}'"
        if _DRIVE.match(part):
            return "names a drive"
        if _DEVICE.fullmatch(part):
            return f"has the part '{part}', which is a device on some systems"
        if part.endswith((" ", ".")):
            return f"has the part '{part}', which ends with a space or a dot"
        if len(part.encode()) > _MAX_PART:
            return f"has a part of {len(part.encode()):,} bytes; {_MAX_PART} are allowed"
    return None


def check_path(text: str) -> str:
    """The text, for a schema; a ValueError says why it is no path that leads downwards."""
    if (fault := path_fault(text)) is not None:
        raise ValueError(
            f"{fault}; expected a relative path inside its folder, such as 'trees/train.mrg'"
        )
    return text


def check_name(text: str) -> str:
    """The text, for a schema; a ValueError if it cannot be the name of a file everywhere."""
    if _NAME.fullmatch(text) is None or path_fault(text) is not None:
        raise ValueError(
            "expected a name: letters, digits and any of '_', '-', '+' and '.', "
            "beginning with a letter or digit"
        )
    return text


def require_inside(
    folder: Path | None, path: Path, error: type[SpmrlError], *, to: str = "read"
) -> Path:
    """The path, which need not exist, if it may be used; else an ``error``. It must be a folder or
    lie in it, or, ``to`` be ``"read"`` rather than ``"write"``, in one that the user listed.
    ``folder`` is None if there is none but those."""
    named, real = os.path.abspath(path), os.path.realpath(path)
    if folder is not None and Path(real).is_relative_to(os.path.realpath(folder)):
        return path
    advice = "Nothing is written there"
    if to == "read":
        allowed = listed_folders(error) + ([folder] if folder is not None else [])
        if any(Path(named).is_relative_to(os.path.abspath(one)) for one in allowed):
            return path
        advice = f"To allow it to be read, add the folder as a line to {home() / _LIST}"
    leads = "lies" if real == named else f"leads to {real}, which lies"
    where = f"outside of {folder}" if folder is not None else "in no folder that was named"
    raise error(f"{path}: {leads} {where}. {advice}")


def listed_folders(error: type[SpmrlError], top: Path | None = None) -> list[Path]:
    """The folders outside that the user allows to be read; an ``error`` if the list is bad."""
    path = (top or home()) / _LIST
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"{path}: cannot be read: {problem}") from None
    found = []
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        folder = Path(os.path.expanduser(line))  # leaves ~ where the user is unknown
        if not folder.is_absolute() or "\0" in line:
            raise error(f"{path}:{number}: found {line[:80]!r}, expected an absolute folder")
        found.append(folder)
    return found


def list_folder(folder: Path, error: type[SpmrlError], top: Path | None = None) -> None:
    """Allow a folder to be read that the user has named, if it is not allowed already."""
    folder = folder.absolute()
    if folder in listed_folders(error, top):
        return
    path = (top or home()) / _LIST
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_text(path, f"{before.rstrip()}\n{folder}\n".lstrip())
    except OSError as problem:
        raise error(f"{path}: cannot be written: {problem.strerror}") from None
