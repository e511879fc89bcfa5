"""Results that any number of processes write into one folder, of which none is lost.

A result is a JSON document in a file of its own, named by the hash of its bytes: ``sha256sum FILE``
begins with the name of the file. It is written whole under another name, then renamed, and never
changed. So writers need not wait for each other, the same result written twice is one file, and a
reader sees a document whole or not yet.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from spmrl_bench.bounded_files import read_regular
from spmrl_bench.errors import RecordError
from spmrl_bench.files import write_text
from spmrl_bench.json_files import parsed_json

NAME_LENGTH = 16  # hexadecimal digits of the SHA-256 that name a file


class Part(BaseModel):
    """Base of a document and its parts: no unknown key, no NaN, no change once it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


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
            RecordError: the folder or the file cannot be written.
        """
        text = json.dumps(
            content.model_dump(mode="json"),
            ensure_ascii=False,
            allow_nan=False,
            sort_keys=True,
            separators=(",", ":"),
        )
        path = folder / document_name(f"{text}\n".encode())
        try:
            write_text(path, f"{text}\n")
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
        try:
            data = read_regular(path)
        except OSError as error:
            raise RecordError(
                f"{path}: cannot read the {self.what}: {error.strerror or error}"
            ) from error
        try:
            found = parsed_json(data)
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
        try:
            content = self.content.model_validate(self.upgraded(found))
        except ValidationError as error:
            raise RecordError(f"{path}: not a {self.what}: {problems(error)}") from error
        if path.name != document_name(data):
            raise RecordError(
                f"{path}: the content has the name {document_name(data)}: the file was changed or "
                "renamed after it was written; restore it or delete it"
            )
        return content

    def read_all(self, folder: Path) -> list[Content]:
        """All documents of a folder in the order of their names; an absent folder has none.

        Raises:
            RecordError: at least one document is wrong; names every wrong file.
        """
        found: list[Content] = []
        mistakes: list[str] = []
        for path in sorted(folder.glob("*.json")):
            try:
                found.append(self.read(path))
            except RecordError as error:
                mistakes.append(str(error))
        if mistakes:
            raise RecordError("\n".join(mistakes))
        return found


def document_name(data: bytes) -> str:
    """File name of a document with these bytes."""
    return f"{hashlib.sha256(data).hexdigest()[:NAME_LENGTH]}.json"


def problems(error: ValidationError) -> str:
    """What is wrong in a document, each with its place."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc'])) or 'document'}: {item['msg']}" for item in error.errors()
    )
