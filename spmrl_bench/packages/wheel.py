"""A packaged model as a wheel, which pip installs and Python imports.

A wheel is a zip file of a few conventions (PEP 427, PEP 491); it is written here because every tool
that builds one puts times, its own version or compressed bytes into it, and the same model should
be the same wheel. Its module has one function, ``load``; an entry point of the group
``spmrl_bench.models`` lets the program find the model by name without importing the module.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from spmrl_bench.packages.description import CARD, PACKAGE, Package
from spmrl_bench.packages.located import GROUP
from spmrl_bench.packages.stable_zip import write_zip

_MODULE = '''\
"""A parser of spmrl_bench, as a module: README.md beside this file says what it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

__version__ = "{version}"

#: The folder of the model.
FOLDER = Path(__file__).resolve().parent


def load(device: str = "auto") -> Parser:
    """The parser, ready to parse; `device` as for `spmrl_bench.load_parser`."""
    from spmrl_bench import load_parser

    return load_parser(FOLDER, device)
'''

_METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: {license}
Requires-Python: >=3.11
Requires-Dist: spmrl-bench>={program}
Description-Content-Type: text/markdown

{readme}"""

_WHEEL = """\
Wheel-Version: 1.0
Generator: spmrl_bench ({program})
Root-Is-Purelib: true
Tag: py3-none-any
"""


def wheel_name(package: Package) -> str:
    """The file name of a package's wheel."""
    return f"{package.name}-{package.version}-py3-none-any.whl"


def write_wheel(path: Path, package: Package, summary: str, folder: Path) -> None:
    """Write the wheel of a package, whole or not at all.

    Args:
        path: of the wheel.
        package: its description.
        summary: what it is, in one line.
        folder: of the package.

    Raises:
        OSError: it cannot be written.
    """
    write_zip(path, dict(_members(package, summary, folder)))


def _members(package: Package, summary: str, folder: Path) -> Iterator[tuple[str, bytes | Path]]:
    """The members of the wheel; the list of all of them comes last."""
    facts = {
        "name": package.name,
        "version": package.version,
        "program": package.program,
        "license": " ".join(package.license.split()),
        "summary": " ".join(summary.split()),
        "readme": _for_people((folder / CARD).read_text(encoding="utf-8")),
    }
    module, info = package.name, f"{package.name}-{package.version}.dist-info"
    entries = f"[{GROUP}]\n{package.name} = {package.name}\n"
    members: dict[str, bytes | Path] = {f"{module}/__init__.py": _MODULE.format(**facts).encode()}
    for name in (CARD, PACKAGE, *sorted(package.files)):
        members[f"{module}/{name}"] = folder / name
    members |= {
        f"{info}/METADATA": _METADATA.format(**facts).encode(),
        f"{info}/WHEEL": _WHEEL.format(**facts).encode(),
        f"{info}/entry_points.txt": entries.encode(),
        f"{info}/top_level.txt": f"{module}\n".encode(),
    }
    yield from members.items()
    yield f"{info}/RECORD", _record(members, f"{info}/RECORD").encode()


def _for_people(card: str) -> str:
    """A card without the part for the hub, which stands between two lines in front."""
    return card.split("\n---\n", 1)[-1].lstrip("\n")


def _record(members: Mapping[str, bytes | Path], own: str) -> str:
    """The list of a wheel's files, each with its hash and size."""
    lines = []
    for name, content in members.items():
        if isinstance(content, bytes):
            digest, size = hashlib.sha256(content).digest(), len(content)
        else:
            with content.open("rb") as file:
                digest, size = hashlib.file_digest(file, "sha256").digest(), content.stat().st_size
        encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        lines.append(f"{name},sha256={encoded},{size}")
    return "".join(f"{line}\n" for line in [*lines, f"{own},,"])
