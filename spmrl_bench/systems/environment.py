"""Where a system is installed: a virtual environment of its own, made by pip.

Parsers of others want other releases of the libraries that this program uses. So each has an
environment under the user's own folder, which has its requirements and nothing else; systems that
require the same share one. A file written last says that it is whole, and which versions it has.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

from spmrl_bench.errors import RecipeError, SpmrlError, remedy
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.storage.files import remove_folder, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.paths import home
from spmrl_bench.systems.description import Known

_WHOLE = "versions.json"
_LAST = 5  # lines of what pip printed that an error shows


def folder_of(system: Known) -> Path:
    """The environment's folder, which need not exist; systems that require the same share it."""
    required = system.description.requirements
    digest = hashlib.sha256("\n".join(required).encode()).hexdigest()[:8]
    return home() / "environments" / f"{_normal(_distribution(required[0]))}-{digest}"


def python_of(system: Known) -> str:
    """The interpreter that runs the system.

    Raises:
        RecipeError: it is not installed, or not with what the description requires now.
    """
    if system.description.environment == "program":
        return sys.executable
    _noted(system)
    return str(_interpreter(folder_of(system)))


def versions_of(system: Known) -> dict[str, str]:
    """Versions of all packages of the system's environment, by name.

    Raises:
        RecipeError: it is not installed.
    """
    if system.description.environment == "program":
        return find_versions()
    return _noted(system)


def version_of(system: Known) -> str:
    """The version of the system: that of the first of its requirements.

    Raises:
        RecipeError: it is not installed.
    """
    required = system.description.requirements
    if not required:
        return find_versions()["spmrl_bench"]
    if system.description.environment == "program":
        from importlib import metadata

        try:
            return metadata.version(_distribution(required[0]))
        except metadata.PackageNotFoundError:
            raise RecipeError(
                f"system {system.name} needs {required[0]}: install it with "
                f"'{sys.executable} -m pip install \"{required[0]}\"'"
            ) from None
    return versions_of(system).get(_normal(_distribution(required[0])), "")


def is_installed(system: Known) -> bool:
    """Whether the system can be run."""
    try:
        version_of(system)
    except RecipeError:
        return False
    return True


def install(system: Known, python: str | None, say: Callable[[str], None]) -> Path:
    """Make the environment of a system, in place of one that is not whole.

    Args:
        python: the interpreter to make it with; without it, the one that runs this program.

    Raises:
        RecipeError: the system has none of its own.
        SpmrlError: it cannot be written, or pip fails; with the last lines that it printed.
    """
    folder, required = folder_of(system), system.description.requirements
    if system.description.environment == "program":
        version_of(system)
        say(f"{system.name} runs in the environment of this program: nothing to install")
        return Path(sys.prefix)
    if is_installed(system):
        say(f"{folder}: has {', '.join(required)} already")
        return folder
    say(f"{folder}: installing {', '.join(required)}")
    try:
        remove_folder(folder)
        if python is None:
            venv.create(folder, with_pip=True, symlinks=True)
        else:
            _call([python, "-m", "venv", str(folder)])
        pip = [str(_interpreter(folder)), "-m", "pip", "--disable-pip-version-check"]
        _call([*pip, "install", "--quiet", *required])
        found = json.loads(_call([*pip, "list", "--format", "json"]))
        versions = {_normal(each["name"]): each["version"] for each in found}
        text = json.dumps({"requirements": required, "versions": versions}, indent=1)
        write_text(folder / _WHOLE, text + "\n")
    except OSError as error:
        raise SpmrlError(
            f"{folder}: cannot be written: {error.strerror}. {remedy(error)}, or name another "
            "folder in SPMRL_BENCH_HOME"
        ) from None
    except subprocess.CalledProcessError as error:  # the module venv, without ensurepip
        raise SpmrlError(f"{folder}: no environment can be made: {error}") from None
    return folder


def _noted(system: Known) -> dict[str, str]:
    """What the environment says of itself."""
    advice = f"install it with 'spmrl-bench systems install {system.name}'"
    path = folder_of(system) / _WHOLE
    try:
        noted = parse_json(path.read_bytes())
    except (OSError, ValueError):
        raise RecipeError(f"system {system.name} is not installed here: {advice}") from None
    versions = noted.get("versions") if isinstance(noted, Mapping) else None
    if not isinstance(versions, dict):
        raise RecipeError(f"{path}: not the versions of an environment: {advice}")
    return {str(name): str(version) for name, version in versions.items()}


def _interpreter(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _call(command: list[str]) -> str:
    """What a command prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).splitlines()[-_LAST:]
        said = "\n".join(f"  {line}" for line in lines)
        raise SpmrlError(f"{' '.join(command)}\nfailed:\n{said}")
    return done.stdout


def _distribution(requirement: str) -> str:
    """The name in ``name[extra]==1.0``."""
    for end, character in enumerate(requirement):
        if not (character.isalnum() or character in "-_."):
            return requirement[:end]
    return requirement


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
