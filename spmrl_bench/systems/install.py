"""Where a system is installed: a virtual environment of its own, made by pip.

It lies under the user's own folder and has what the system requires and nothing else; systems
that require the same share one. A file written last says that it is whole, and its versions.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from subprocess import CalledProcessError
from typing import NamedTuple

from spmrl_bench.errors import RecipeError, SpmrlError, remedy
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.storage.files import remove_folder, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.paths import home
from spmrl_bench.systems.description import SystemDescription

_WHOLE = "versions.json"
#: Before a requirement whose own are among the others, since it pins one that is too old.
_ALONE = "--no-deps "


class Environment(NamedTuple):
    python: str  # the interpreter that runs a system
    versions: dict[str, str]  # of its packages, by name


def environment_of(system: SystemDescription) -> Environment:
    """Where the system runs; a RecipeError if it is not installed, or its interpreter is gone."""
    command = f"spmrl-bench systems install {system.name}"
    try:
        if system.environment == "program":
            required = " ".join(f'"{one}"' for one in system.requirements)
            command = f"{sys.executable} -m pip install {required}"
            own = {name: metadata.version(name) for name in map(_distribution, system.requirements)}
            return Environment(sys.executable, find_versions() | own)
        python = _folder(system) / "bin/python"
        subprocess.run([python, "-c", ""], check=True, capture_output=True)
        noted = parse_json((_folder(system) / _WHOLE).read_bytes())["versions"]
        return Environment(str(python), {str(name): str(noted[name]) for name in noted})
    except (OSError, ValueError, LookupError, TypeError, ImportError, CalledProcessError):
        problem = f"system {system.name} is not installed here: install it with '{command}'"
        raise RecipeError(problem) from None


def version_of(system: SystemDescription) -> str:
    """That of the first of its requirements; a RecipeError if it is not installed."""
    names = [*map(_distribution, system.requirements), "spmrl_bench"]
    return environment_of(system).versions.get(names[0], "")


def is_installed(system: SystemDescription) -> bool:
    try:
        version_of(system)
    except RecipeError:
        return False
    return True


def install(system: SystemDescription, python: str | None, log: Callable[[str], None]) -> None:
    """Make the environment of a system with an interpreter, by default that of this program."""
    folder, required = _folder(system), system.requirements
    if system.environment == "program":
        version_of(system)
        log(f"{system.name} runs in the environment of this program: nothing to install")
        return
    if is_installed(system):
        log(f"{folder}: has {', '.join(required)} already")
        return
    log(f"{folder}: installing {', '.join(required)}")
    try:
        remove_folder(folder)
        _call([python or sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin/python"), "-m", "pip", "--disable-pip-version-check"]
        alone = [one for one in required if one.startswith(_ALONE)]
        _call([*pip, "install", "--quiet", *(one for one in required if one not in alone)])
        for one in alone:
            _call([*pip, "install", "--quiet", *one.split()])
        found = json.loads(_call([*pip, "list", "--format", "json"]))
        versions = {_distribution(each["name"]): each["version"] for each in found}
        text = json.dumps({"requirements": required, "versions": versions}, indent=1)
        write_text(folder / _WHOLE, text + "\n")
    except OSError as error:
        raise SpmrlError(
            f"{folder}: cannot be written: {error.strerror}. {remedy(error)}, or name another "
            "folder in SPMRL_BENCH_HOME"
        ) from None


def _folder(system: SystemDescription) -> Path:
    digest = hashlib.sha256("\n".join(system.requirements).encode()).hexdigest()[:8]
    return home() / "environments" / f"{_distribution(system.requirements[0])}-{digest}"


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = "\n  ".join((done.stderr or done.stdout).splitlines()[-5:])
        raise SpmrlError(f"{' '.join(command)}\nfailed:\n  {said}")
    return done.stdout


def _distribution(requirement: str) -> str:
    """The normal form of the name in ``name[extra]==1.0``."""
    name = re.split(r"[^\w.-]", requirement.removeprefix(_ALONE), maxsplit=1)[0]
    return name.lower().replace("_", "-").replace(".", "-")
