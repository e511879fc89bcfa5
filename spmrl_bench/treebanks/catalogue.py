"""The manifests by name: the files they are in, their editions, and the checksums beside them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from spmrl_bench.errors import TreebankError, unknown_name
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.storage.paths import check_name, data_dirs, path_fault
from spmrl_bench.storage.toml import read_toml, validated
from spmrl_bench.treebanks.manifest import FileManifest, Manifest, MiniManifest

_CHECKSUM = re.compile(r"([0-9a-f]{64}) [ *](\S.*)")


def manifest_names() -> list[str]:
    """Names of all treebanks that have a manifest, editions included, sorted.

    Raises:
        TreebankError: a file is no TOML.
    """
    found = []
    for path in _paths():
        editions = _editions(path)
        found += [path.stem, *(f"{path.stem}-{edition}" for edition in editions)]
    return sorted(found)


def is_known(name: str) -> bool:
    """Whether there is a manifest, or an edition of one, of that name."""
    return _place(name) is not None


def language_of(name: str) -> str | None:
    """What the manifest of a treebank gives as its language, whatever else is wrong there.

    None if there is no manifest of that name, or it gives none.

    Raises:
        TreebankError: a file is no TOML.
    """
    place = _place(name)
    if place is None:
        return None
    content = read_toml(place[0], TreebankError)
    found = content.get("language")
    if place[1] is not None:
        edition = content["editions"][place[1]]
        found = edition.get("language", found) if isinstance(edition, dict) else found
    return found if isinstance(found, str) else None


def load_manifest(name: str) -> Manifest:
    """The manifest of a treebank.

    Raises:
        TreebankError: there is none of that name, or it has mistakes.
    """
    place = _place(name)
    if place is None:
        raise TreebankError(unknown_name("treebank", name, manifest_names()))
    return read_manifest(*place)


def read_manifest(path: Path, edition: str | None = None) -> Manifest:
    """The manifest in a file, whose name must be the treebank's with ``.toml``.

    Args:
        path: of the file; ``checksums/NAME.sha256`` beside it is read too, if it is there.
        edition: name of one of its editions.

    Raises:
        TreebankError: the file is not TOML or has mistakes; all of them are named.
    """
    content = read_toml(path, TreebankError)
    forms = [*FORMATS.names(), "mini"]
    form = content.get("format")
    if form not in forms:
        found = f"; found {form!r}" if form is not None else "; missing"
        raise TreebankError(f"{path}: format: must be one of {', '.join(forms)}{found}")
    name = content.get("name")
    misnamed = isinstance(name, str) and name != path.stem
    also = [f"name: must be {path.stem!r}, as the file is called; found {name!r}"]
    if misnamed:
        content["name"] = name = path.stem  # it is said once
    editions = content.pop("editions", {})
    if not isinstance(editions, dict) or not all(isinstance(e, dict) for e in editions.values()):
        raise TreebankError(f"{path}: editions: must be tables, [editions.NAME]")
    for one in editions:
        try:
            check_name(one)
        except ValueError as error:
            raise TreebankError(f"{path}: editions.{one}: {error}") from None
    place: str | Path = path
    if edition is not None:
        content = _merged(content, editions[edition] | {"name": f"{name}-{edition}"})
        place = f"{path}, edition {edition}"
    model: type[Manifest] = MiniManifest if form == "mini" else FileManifest
    checksums = path.parent / "checksums" / f"{path.stem}.sha256"
    if checksums.is_file():
        content["sha256"] = _read_checksums(checksums)
    # Left out in the file, these are checked all the same: whether they must be there depends on
    # the format.
    if form != "mini":
        content = {"prm": None, "escapes": None} | content
    return validated(model, content, place, TreebankError, also=also if misnamed else ())


def _place(name: str) -> tuple[Path, str | None] | None:
    """The file of a treebank's manifest, and the edition if it is one."""
    paths = {path.stem: path for path in _paths()}
    if name in paths:
        return paths[name], None
    for cut in (match.start() for match in re.finditer("-", name)):
        base, edition = name[:cut], name[cut + 1 :]
        if base in paths and edition in _editions(paths[base]):
            return paths[base], edition
    return None


def _editions(path: Path) -> Collection[str]:
    """Names of the editions in the file of a manifest, which may have mistakes."""
    found = read_toml(path, TreebankError).get("editions", {})
    return found if isinstance(found, dict) else ()


def _paths() -> Iterator[Path]:
    """The files of all manifests; a user's own cannot replace one of the program's."""
    seen: set[str] = set()
    for folder in data_dirs("treebanks"):
        for path in sorted(folder.glob("*.toml")):
            if path.stem not in seen:
                seen.add(path.stem)
                yield path


def _merged(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The content with keys replaced; tables are merged key by key, or left out by ``false``."""
    result = dict(content)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, Mapping) and value is False:
            del result[key]
            continue
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def _read_checksums(path: Path) -> dict[str, str]:
    """SHA-256 by path, in a file as the program ``sha256sum`` writes it."""
    found = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TreebankError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        match = _CHECKSUM.fullmatch(line)
        if match is None:
            raise TreebankError(
                f"{path}:{number}: found {line[:80]!r}, expected 64 hex digits, two spaces "
                "and a path"
            )
        if (fault := path_fault(match[2])) is not None:
            raise TreebankError(
                f"{path}:{number}: the path {fault}; expected one under the treebank's folder; "
                f"found {match[2][:80]!r}"
            )
        found[match[2]] = match[1]
    return found
