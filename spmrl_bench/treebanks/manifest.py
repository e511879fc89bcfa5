"""What a treebank is, as data: one validated TOML file for each.

A treebank differs from the next in its files, format, splits and conventions, not in code.
A manifest states them all, with the licence, the citation and the numbers of sentences that
its splits must have, so that a wrong release or a half-copied folder is noticed before
anything is trained on it. Unknown keys are errors, and all mistakes of a file are reported
together.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from spmrl_bench.data import data_dir
from spmrl_bench.errors import SpmrlError, TreebankError, unknown_name
from spmrl_bench.toml_files import read_toml, validated
from spmrl_bench.trees.brackets import escapes_named
from spmrl_bench.trees.transforms import Stage, transform_named

Track = Literal["spmrl", "ptb", "ctb", "open", "mini"]
SplitName = Literal["train", "dev", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(gt=0)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Rows(_Closed):
    """The sentences of a split when files hold several: those that a side table marks.

    The table has tab-separated columns with names in its first line, and one line for each
    sentence of the files, in their order.
    """

    table: Text
    column: Text
    equals: Text


class Split(_Closed):
    """The files of one split and what they must hold after the transforms.

    ``files`` are paths under the treebank's folder, read in the order given. ``*`` stands for
    any characters of a name (matches are read in sorted order), ``{0001..0159}`` for each
    number in turn.
    """

    files: Annotated[list[Text], Field(min_length=1)]
    rows: Rows | None = None
    sentences: Count
    tokens: Count | None = None


class MiniSplit(_Closed):
    """The number of sentences to generate."""

    sentences: Count


class FileSplits(_Closed):
    train: Split
    dev: Split
    test: Split


class MiniSplits(_Closed):
    train: MiniSplit
    dev: MiniSplit
    test: MiniSplit


class _Manifest(_Closed):
    """What every treebank declares."""

    stages: ClassVar[tuple[Stage, ...]] = ("tree",)

    name: Text
    #: Human name of the treebank.
    title: Text
    #: English name of the language in small letters, as recipes use it.
    language: Text
    track: Track
    #: Names of transforms, in the order in which they apply.
    transforms: list[str] = []
    #: Where the part-of-speech tags come from.
    tags: Literal["gold", "predicted", "none"]
    #: The evalb parameter set its scores use.
    prm: Text
    licence: Text
    citation: Text
    source: Text

    @field_validator("transforms")
    @classmethod
    def _transforms_are_known_and_in_order(cls, names: list[str]) -> list[str]:
        order = ("text", "graph", "tree")
        last = 0
        for name in names:
            try:
                stage = transform_named(name).stage
            except SpmrlError as error:
                raise ValueError(str(error)) from None
            if stage not in cls.stages:
                raise ValueError(f"{name} applies to a {stage}, which this format does not have")
            if order.index(stage) < last:
                raise ValueError(
                    f"{name} applies to a {stage}: it must stand before those for a {order[last]}"
                )
            last = order.index(stage)
        return names


class _WithFiles(_Manifest):
    """A treebank that lies in files."""

    #: Its folder under the directory of treebanks.
    path: Text
    #: How to get it, for the message when it is absent.
    obtain: Text
    splits: FileSplits


class BracketManifest(_WithFiles):
    """Bracketed trees."""

    stages: ClassVar[tuple[Stage, ...]] = ("text", "tree")

    format: Literal["brackets"]
    encoding: Text = "utf-8"
    #: Name of the escape policy of its words.
    escapes: str

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, name: str) -> str:
        try:
            codecs.lookup(name)
        except LookupError:
            raise ValueError("no such text encoding") from None
        return name

    @field_validator("escapes")
    @classmethod
    def _escapes_are_known(cls, name: str) -> str:
        try:
            escapes_named(name)
        except SpmrlError as error:
            raise ValueError(str(error)) from None
        return name


class TigerManifest(_WithFiles):
    """TIGER-XML, which states its encoding itself."""

    stages: ClassVar[tuple[Stage, ...]] = ("graph", "tree")

    format: Literal["tiger-xml"]


class MiniManifest(_Manifest):
    """A treebank that the program generates."""

    format: Literal["mini"]
    grammar: Text
    seed: int
    splits: MiniSplits


FileManifest = BracketManifest | TigerManifest
Manifest = FileManifest | MiniManifest

_FORMATS: dict[str, type[Manifest]] = {
    "brackets": BracketManifest,
    "tiger-xml": TigerManifest,
    "mini": MiniManifest,
}


def manifest_names() -> list[str]:
    """Names of all treebanks that have a manifest, sorted."""
    return sorted(path.stem for path in data_dir("treebanks").glob("*.toml"))


def load_manifest(name: str) -> Manifest:
    """The manifest of a treebank.

    Raises:
        TreebankError: there is none of that name, or it has mistakes.
    """
    names = manifest_names()
    if name not in names:
        raise TreebankError(unknown_name("treebank", name, names))
    return read_manifest(data_dir("treebanks") / f"{name}.toml")


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file, whose name must be the treebank's with ``.toml``.

    Raises:
        TreebankError: the file is not TOML or has mistakes; all of them are named.
    """
    content = read_toml(path, TreebankError)
    form = content.get("format")
    if not isinstance(form, str) or form not in _FORMATS:
        found = f"; found {form!r}" if form is not None else "; missing"
        raise TreebankError(f"{path}: format: must be one of {', '.join(_FORMATS)}{found}")
    name = content.get("name")
    misnamed = isinstance(name, str) and name != path.stem
    also = [f"name: must be {path.stem!r}, as the file is called; found {name!r}"]
    return validated(_FORMATS[form], content, path, TreebankError, also=also if misnamed else ())
