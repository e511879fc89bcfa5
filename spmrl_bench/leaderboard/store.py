"""Results that any number of processes write into one folder, of which none is lost.

A result is a JSON document in a file of its own, named by the hash of its bytes: ``sha256sum FILE``
begins with the name of the file. It is written whole under another name, then renamed, and never
changed. So writers need not wait for each other, the same result written twice is one file, and a
reader sees a document whole or not yet.

A folder of results is also what disks, other programs and other people make of it. Whatever is
found under the name of a document is read as one or refused with a reason, within bounds of time
and memory; tables go without it and say so.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from spmrl_bench.errors import RecordError
from spmrl_bench.storage.files import read_regular, write_bytes
from spmrl_bench.storage.json import parse_json

NAME_LENGTH = 16  # hexadecimal digits of the SHA-256 that name a file
MOST_BYTES = 2**28  # of a file; the counts of a million sentences are a quarter of it
_MOST_PROBLEMS = 20  # told of one document


class Part(BaseModel):
    """Base of a document and its parts: no unknown key, no NaN, no change once it is made."""

    # An infinite number inside what may be anything is refused, not written as none.
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, ser_json_inf_nan="constants"
    )


Content = TypeVar("Content", bound=Part)


@dataclass(frozen=True, slots=True)
class Documents(Generic[Content]):
    """Documents of one kind.

    Attributes:
        what: one of them is called.
        content: what it holds, with its version as ``schema_version``.
        version: of the newest layout.
        upgraded: the JSON of any version in the newest layout.
    """

    what: str
    content: type[Content]
    version: int
    upgraded: Callable[[Any], Any] = lambda content: content

    def write(self, content: Content, folder: Path) -> Path:
        """Write a document under its name and return the path.

        It is JSON on one line with sorted keys, so that equal contents are equal bytes.

        Raises:
            RecordError: the folder or the file cannot be written, or the document not be read
                again.
        """
        try:
            text = json.dumps(
                content.model_dump(mode="json"),
                ensure_ascii=False,
                allow_nan=False,
                sort_keys=True,
                separators=(",", ":"),
            )
            data = f"{text}\n".encode()
            parse_json(data)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{folder}: cannot write the {self.what}: {error}") from None
        path = folder / document_name(data)
        if len(data) > MOST_BYTES:
            raise RecordError(
                f"{path}: the {self.what} has {len(data):,} bytes; at most {MOST_BYTES:,} can be "
                "read again, so it is not written: score fewer sentences at once"
            )
        try:
            write_bytes(path, data)
        except OSError as error:
            raise RecordError(
                f"{path}: cannot write the {self.what}: {error.strerror or error}; "
                "those written earlier are unharmed"
            ) from error
        return path

    def read(self, path: Path) -> Content:
        """Read and check one document.

        Raises:
            RecordError: the file cannot be read, is no JSON, was changed after it was written
                (its bytes do not have the hash of its name), was written by a newer version of
                the program, or does not follow the layout; all problems are listed at once.
        """
        data = file_bytes(path, f"the {self.what}")
        try:
            found = parse_json(data)
        except ValueError as error:
            raise RecordError(
                f"{path}: not a {self.what}: {error}; delete it or restore it"
            ) from error
        version = found.get("schema_version") if isinstance(found, Mapping) else None
        if isinstance(version, int) and version > self.version:
            raise RecordError(
                f"{path}: written by a newer version of spmrl_bench (schema {version}; this one "
                f"reads up to {self.version}): update the program"
            )
        found = self.upgraded(found)
        if isinstance(found, Mapping) and found.get("schema_version") != self.version:
            raise RecordError(
                f"{path}: not a {self.what}: schema_version is {json.dumps(version):.40}, and no "
                "version of spmrl_bench has written that; delete it or restore it"
            )
        try:
            content = self.content.model_validate(found)
        except ValidationError as error:
            raise RecordError(f"{path}: not a {self.what}: {problems(error)}") from error
        if path.name != document_name(data):
            raise RecordError(
                f"{path}: the content has the name {document_name(data)}: the file was changed or "
                "renamed after it was written; restore it or delete it"
            )
        return content

    def readable(self, folder: Path) -> tuple[list[Content], list[str]]:
        """The documents of a folder in the order of their names, and what is wrong with others.

        Files whose names begin with a point are none, such as those that are being written. An
        absent folder has no documents.

        Returns:
            What could be read, and a message for each file that could not.

        Raises:
            RecordError: the folder cannot be read.
        """
        found, mistakes = self.readable_files(folder)
        return list(found.values()), mistakes

    def readable_files(self, folder: Path) -> tuple[dict[Path, Content], list[str]]:
        """The same by the path of each document."""
        found: dict[Path, Content] = {}
        mistakes: list[str] = []
        for path in files_of(folder, ".json"):
            try:
                found[path] = self.read(path)
            except RecordError as error:
                mistakes.append(str(error))
        return found, mistakes

    def read_all(self, folder: Path) -> list[Content]:
        """All documents of a folder in the order of their names; an absent folder has none.

        Raises:
            RecordError: the folder cannot be read, or at least one document is wrong; names
                every wrong file.
        """
        found, mistakes = self.readable(folder)
        if mistakes:
            raise RecordError("\n".join(mistakes))
        return found


def files_of(folder: Path, ending: str) -> list[Path]:
    """What has names with an ending in a folder, hidden files left out; nothing if it is absent.

    Raises:
        RecordError: the folder cannot be read.
    """
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RecordError(f"{folder}: cannot be read: {error.strerror or error}") from None
    return [folder / name for name in sorted(names) if name.endswith(ending) and name[0] != "."]


def file_bytes(path: Path, what: str) -> bytes:
    """The content of a file of results, whatever lies under its name.

    Raises:
        RecordError: it cannot be read, is no file (opening a named pipe would wait for somebody
            who writes into it), or is larger than any that the program writes.
    """
    try:
        return read_regular(path, MOST_BYTES)
    except OSError as error:
        raise RecordError(
            f"{path}: cannot read {what}: {error.strerror or error}; restore it, delete it or "
            "move it away"
        ) from error


def document_name(data: bytes) -> str:
    """File name of a document with these bytes."""
    return f"{hashlib.sha256(data).hexdigest()[:NAME_LENGTH]}.json"


def problems(error: ValidationError) -> str:
    """What is wrong in a document, each with its place."""
    found = [
        f"{'.'.join(map(str, item['loc']))[:200] or 'document'}: {item['msg']}"
        for item in error.errors()
    ]
    more = len(found) - _MOST_PROBLEMS
    return "; ".join(found[:_MOST_PROBLEMS]) + (f"; and {more:,} more" if more > 0 else "")
