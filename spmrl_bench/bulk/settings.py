"""How a folder was parsed: what may not change between one command and the next.

Outputs of two parsers in one folder would be taken for those of one. So the first command notes in
the folder of the outputs which parser it is and with which options, and others are refused.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from spmrl_bench.bulk.inputs import Compression
from spmrl_bench.bulk.state import SETTINGS
from spmrl_bench.errors import SpmrlError, remedy
from spmrl_bench.parsing.answers import Output
from spmrl_bench.parsing.bulk import OnLong
from spmrl_bench.parsing.streams import Form
from spmrl_bench.readers.conll import TagColumn
from spmrl_bench.storage.files import create, read_regular


class Settings(BaseModel):
    """What all outputs of a folder have in common.

    Attributes:
        inputs: the folder of what was parsed.
        model: the folder of the parser; its place does not matter.
        kind, sha256: of the parser, see :func:`spmrl_bench.parsing.models.identity`.
        input: what the files hold; None where their names say so.
        output, tags, on_long, compression: as the options of the command.
        transforms: of trees that are read.
        shard_sentences, shard_bytes: see :mod:`spmrl_bench.bulk.shards`.
    """

    inputs: str
    model: str
    kind: str
    sha256: str
    input: Form | None
    output: Output
    tags: TagColumn
    on_long: OnLong
    compression: Compression | None
    transforms: tuple[str, ...] | None
    shard_sentences: int
    shard_bytes: int


def settle(outputs: Path, settings: Settings) -> None:
    """Note the settings in the folder of the outputs, or find them there.

    Raises:
        SpmrlError: there are others, the folder holds something else, or it cannot be written.
    """
    path = outputs / SETTINGS
    try:
        outputs.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            held = sorted(place.name for place in outputs.iterdir() if place.name[0] != ".")
            if held and not path.exists():  # another may have begun meanwhile
                raise SpmrlError(
                    f"{outputs}: holds other files ({held[0]}), but no {SETTINGS} of an earlier "
                    "parse. Give a new folder, or an empty one"
                )
            create(path, (settings.model_dump_json(indent=1) + "\n").encode())
    except FileExistsError:
        if not outputs.is_dir():
            raise SpmrlError(f"{outputs}: is a file; expected a folder") from None
    except OSError as error:
        raise SpmrlError(
            f"{outputs}: cannot be written: {error.strerror}. {remedy(error)}"
        ) from None
    _check_same(path, settings)


def _check_same(path: Path, settings: Settings) -> None:
    try:
        found = Settings.model_validate_json(read_regular(path))
    except (OSError, ValidationError):
        raise SpmrlError(
            f"{path}: cannot be read as an account of what was parsed. Give another folder"
        ) from None
    then, now = found.model_dump(), settings.model_dump()
    others = [key for key in then if key != "model" and then[key] != now[key]]
    if not others:
        return
    differences = ", ".join(f"{key} is {_said(then[key])} there" for key in others)
    wanted = ", ".join(f"{key} {_said(now[key])}" for key in others)
    raise SpmrlError(
        f"{path.parent}: was begun with other settings: {differences}; asked for now: {wanted}. "
        "Give another folder for these, or the same settings to go on"
    )


def _said(value: object) -> str:
    return "as the names say" if value is None else str(value)
