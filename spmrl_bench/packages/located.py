"""The folder of a model, however somebody names it.

Whatever takes a model takes the folder of a run, of a saved parser or of a package; a zip file of a
package; the name of a package that is installed; or one of the hub of Hugging Face, pinned to a
commit. They are looked for in this order, and only what is on this machine is looked for unless the
name says by an ``@`` that it is of the hub.

No way runs code that came with the model. An installed one is found through its entry point of the
group ``spmrl_bench.models``, and its module is located but not imported.
"""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from spmrl_bench.errors import PackageError
from spmrl_bench.packages.archive import unpacked
from spmrl_bench.packages.description import PACKAGE
from spmrl_bench.packages.hub import fetched
from spmrl_bench.storage.files import last_complete_version

#: The entry points of installed models.
GROUP = "spmrl_bench.models"
_INSTALLED = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_ON_HUB = re.compile(r"([\w.-]+/[\w.-]+)@(.*)", re.ASCII)


def located(model: str | Path) -> Path:
    """The folder of a model, which holds files of a parser, or a run with its best one.

    Args:
        model: a folder; a zip file of a package; the name of an installed package; or
            ``OWNER/NAME@COMMIT``, a package on the hub.

    Returns:
        The folder; where there is nothing of that name, the path as it was given.

    Raises:
        PackageError: what was found is no package or a broken one, or the hub does not give it.
    """
    path = Path(model)
    if (found := last_complete_version(path)) is not None:
        return path if found.is_dir() else unpacked(path)
    name = path.as_posix()
    if _INSTALLED.fullmatch(name) and (folder := _installed(name.replace("-", "_"))) is not None:
        return folder
    if on_hub := _ON_HUB.fullmatch(name):
        return fetched(on_hub[1], on_hub[2])
    return path


def installed_models() -> list[str]:
    """The names of the installed packages, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def _installed(name: str) -> Path | None:
    """The folder of an installed package."""
    for point in entry_points(group=GROUP, name=name):
        if not point.value.isidentifier():  # what has a dot cannot be located without an import
            continue
        spec = find_spec(point.value)
        for place in (spec and spec.submodule_search_locations) or ():
            if (Path(place) / PACKAGE).is_file():
                return Path(place)
        raise PackageError(
            f"{name}: installed, but its folder or the {PACKAGE} in it is gone. Install it again: "
            "pip install --force-reinstall, with the wheel"
        )
    return None
