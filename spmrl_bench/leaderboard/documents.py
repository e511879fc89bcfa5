"""Documents of results in a folder, each a file named by the hash of its bytes and never changed.

Any number of processes write into one folder, each file atomically. Whatever else lies under such a
name is refused with a reason, within bounds of time and memory. What one says is not known here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import RecordError
from spmrl_bench.storage.files import read_regular, write_bytes
from spmrl_bench.storage.json import parse_json

NAME_LENGTH = 16  # hexadecimal digits of the SHA-256 that name a file
MOST_BYTES = 2**28  # of a file; the counts of a million sentences are a quarter of it
_MOST_PROBLEMS = 20  # listed for one document


# An infinite number inside what may be anything is refused, not written as none.
class Part(
    BaseModel, extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="constants"
):
    """Base of a document and its parts: no unknown key, no NaN, no change once it is made."""


class StoredModel(Part):
    """A document; its field ``schema_version`` says which layout it has."""

    what: ClassVar[str]  # it is called in messages
    version: ClassVar[int]  # of the newest layout

    @classmethod
    def upgraded(cls, content: Any) -> Any:
        """The JSON of any version in the newest layout."""
        return content


Model = TypeVar("Model", bound=StoredModel)


def write_document(content: StoredModel, folder: Path) -> Path:
    """Write a document under its name and return the path; a RecordError where that fails. It is
    JSON on one line with sorted keys, so that equal contents are equal bytes."""
    value = content.model_dump(mode="json")
    compact: dict[str, Any] = {"sort_keys": True, "separators": (",", ":")}
    try:
        data = f"{json.dumps(value, ensure_ascii=False, allow_nan=False, **compact)}\n".encode()
        parse_json(data)
        if len(data) > MOST_BYTES:
            raise ValueError(
                f"it has {len(data):,} bytes, and at most {MOST_BYTES:,} can be read again: score "
                "fewer sentences at once"
            )
        path = folder / document_name(data)
        write_bytes(path, data)
    except (ValueError, RecursionError, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordError(f"{folder}: cannot write the {content.what}: {reason}") from error
    return path


def read_document(cls: type[Model], path: Path) -> Model:
    """Read and check one document. A RecordError lists all problems where it cannot be read, is no
    JSON, has not the hash of its name, is of a newer version, or does not follow the layout."""
    data = file_bytes(path, f"the {cls.what}")
    try:
        found = parse_json(data)
        version = found.get("schema_version") if isinstance(found, Mapping) else None
        if isinstance(version, int) and version > cls.version:
            raise RecordError(
                f"{path}: written by a newer version of spmrl_bench (schema {version}; this one "
                f"reads up to {cls.version}): update the program"
            )
        found = cls.upgraded(found)
        if isinstance(found, Mapping) and found.get("schema_version") != cls.version:
            raise ValueError(
                f"schema_version is {json.dumps(version):.40}, and no version of spmrl_bench has "
                "written that"
            )
        content = cls.model_validate(found)
    except ValidationError as error:
        raise RecordError(f"{path}: not a {cls.what}: {problems(error)}") from error
    except ValueError as error:
        raise RecordError(f"{path}: not a {cls.what}: {error}; delete it or restore it") from error
    if path.name != document_name(data):
        raise RecordError(
            f"{path}: the content has the name {document_name(data)}: the file was changed or "
            "renamed after it was written; restore it or delete it"
        )
    return content


def load_documents(cls: type[Model], folder: Path) -> tuple[dict[Path, Model], list[str]]:
    """The documents of a folder by path, in order, and what is wrong with other files. An absent
    folder has none; a RecordError where it cannot be read."""
    found: dict[Path, Model] = {}
    errors: list[str] = []
    for path in files_of(folder, ".json"):
        try:
            found[path] = read_document(cls, path)
        except RecordError as error:
            errors.append(str(error))
    return found, errors


def files_of(folder: Path, ending: str) -> list[Path]:
    """Files with an ending in a folder, hidden ones left out; a RecordError if it is unreadable."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"{folder}: cannot be read: {error.strerror or error}") from None
    return [folder / name for name in sorted(names) if name.endswith(ending) and name[0] != "."]


def file_bytes(path: Path, what: str) -> bytes:
    """The content of a file of results, whatever lies under its name. A RecordError where it cannot
    be read, is no file (opening a named pipe would wait for somebody who writes into it), or is
    larger than any that the program writes."""
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        raise RecordError(
            f"{path}: cannot read {what}: {error.strerror or error}; restore it, delete it or "
            "move it away"
        ) from error


def document_name(data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()[:NAME_LENGTH]}.json"


def problems(error: ValidationError) -> str:
    found = [
        f"{'.'.join(map(str, item['loc']))[:200] or 'document'}: {item['msg']}"
        for item in error.errors()
    ]
    more = len(found) - _MOST_PROBLEMS
    return "; ".join(found[:_MOST_PROBLEMS]) + (f"; and {more:,} more" if more > 0 else "")
