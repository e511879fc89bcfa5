"""The files of a parser that is handed on, without what is of its treebank or of this machine.

A saved parser has the words of its training sentences as they first occur, and the folders from
which it took what others have trained. A packaged one has been prepared for sharing
(:meth:`~spmrl_bench.parsers.base.Parser.prepare_for_sharing`). It parses as the saved one does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spmrl_bench.errors import PackageError
from spmrl_bench.packages.description import PARSER, StoredFile, is_model_file
from spmrl_bench.parsers.base import Parser, ParserConfig
from spmrl_bench.parsers.legacy import short
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import read_regular, write_text
from spmrl_bench.storage.json import parse_json

# Where an encoder's settings and tokenizer were read from, as its library notes it.
_PLACES = ("_name_or_path", "name_or_path")
_LARGEST_NOTES = 1 << 20  # bytes; a whole vocabulary is larger, and has no notes


def check_outside(run: Path, config: ParserConfig) -> None:
    """Raise PackageError where weights of a run's parser are neither its own, nor on the hub."""
    if outside := config.outside():
        places = ", ".join(f"model.{key} = {place}" for key, place in short(outside).items())
        raise PackageError(
            f"{run}: its parser reads weights that are not its own, and not packaged ({places}). "
            "Only a parser whose weights are all its own can be shared: one that fine-tunes an "
            "encoder, has one of the hub, or begins with word vectors (model.word_vectors)"
        )


def write_parser(parser: Parser, folder: Path) -> dict[str, StoredFile]:
    """Write a parser, which changes, into an empty folder; return the files as packages list them.

    Raises:
        PackageError: it has a file that no package can have.
        OSError: it cannot be written.
    """
    parser.prepare_for_sharing()
    parser.save(folder)
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not is_model_file(name):
            raise PackageError(
                f"the kind {parser.kind} saves the file {name}, which nobody could load without a "
                "risk: only weights (safetensors) and text are packaged"
            )
        if path.suffix == ".json" and name != PARSER and path.stat().st_size < _LARGEST_NOTES:
            _forget_places(path)
        found[name] = StoredFile(sha256=file_digest(path), size=path.stat().st_size)
    return found


def without_folder(value: Any) -> Any:
    """A setting, of which the folder is left out if it is a path of this machine."""
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _forget_places(path: Path) -> None:
    """Leave out of a file of an encoder where it was read from."""
    content = parse_json(read_regular(path), wide=True)
    if isinstance(content, dict) and any(key in content for key in _PLACES):
        kept = {key: value for key, value in content.items() if key not in _PLACES}
        write_text(path, json.dumps(kept, ensure_ascii=False, indent=2) + "\n")
