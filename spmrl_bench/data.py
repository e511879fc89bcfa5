"""Where the data files of the program live: recipes, manifests, parameter files, published scores.

They are folders at the top of a checkout, so that people can read and edit them, and a copy
of them inside the package when it is installed from a wheel. Every look-up goes through
:func:`data_dir`, so that nothing else has to know which of the two is the case.

Users add recipes and manifests of their own. In a checkout these can stand beside the others;
they are also found under the user's own folder, :func:`home`, which outlives an installation.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

from spmrl_bench.errors import SpmrlError, unknown_name

DataKind = Literal["recipes", "treebanks", "evalb", "published", "systems"]

#: The environment variable that names the user's own folder.
HOME_VARIABLE = "SPMRL_BENCH_HOME"

_PACKAGE = Path(__file__).resolve().parent


def data_dir(kind: DataKind) -> Path:
    """The folder of one kind of data file.

    A wheel carries ``spmrl_bench/_data/<kind>``; a checkout has no such folder and keeps
    ``<kind>/`` beside the package.

    Raises:
        SpmrlError: the kind is unknown, or neither folder exists.
    """
    if kind not in get_args(DataKind):
        raise SpmrlError(unknown_name("kind of data", kind, get_args(DataKind)))
    candidates = (_PACKAGE / "_data" / kind, _PACKAGE.parent / kind)
    for folder in candidates:
        if folder.is_dir():
            return folder
    looked = " and ".join(str(folder) for folder in candidates)
    raise SpmrlError(f"no folder of {kind}: looked in {looked}; install the package again")


def home() -> Path:
    """The user's own folder: ``$SPMRL_BENCH_HOME``, or ``~/.spmrl_bench``; it may not exist.

    Raises:
        SpmrlError: the variable names something that is no folder.
    """
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


def data_dirs(kind: DataKind) -> list[Path]:
    """The folders to look in for one kind of data file: the program's, then the user's.

    A home folder that this user may not read, as that of another in a container, holds nothing
    of theirs; one that was named has to be readable.

    Raises:
        SpmrlError: as :func:`data_dir` and :func:`home`; the user's folder cannot be read.
    """
    own = home() / kind
    try:
        with os.scandir(own):
            return [data_dir(kind), own]
    except (FileNotFoundError, NotADirectoryError):
        return [data_dir(kind)]
    except OSError as error:
        if os.environ.get(HOME_VARIABLE):
            raise SpmrlError(f"{own}: cannot be read ({HOME_VARIABLE}): {error.strerror}") from None
        return [data_dir(kind)]
