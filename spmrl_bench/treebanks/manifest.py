"""What a treebank is, as data: one validated TOML file for each.

A treebank differs from the next in its files, format, splits and conventions, not in code.
A manifest states them all, with the licence, the citation and the numbers of sentences that
its splits must have, so that a wrong release or a half-copied folder is noticed before
anything is trained on it. Unknown keys are errors, and all mistakes of a file are reported
together.

One release may be used in several ways: with gold tags instead of predicted ones, or divided
for constituency or for dependencies. Each such edition is a table of a few keys that replace
those of the manifest, and a treebank of its own, ``NAME-EDITION``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.readers.formats import FORMATS, Format
from spmrl_bench.scoring.attachment import AttachmentRules, Relations
from spmrl_bench.scoring.punctuation import PUNCTUATION_RULES
from spmrl_bench.storage.paths import check_name, data_dir
from spmrl_bench.treebanks.mini.generate import available_grammars
from spmrl_bench.treebanks.patterns import ALTERNATIVE
from spmrl_bench.treebanks.sources import (
    SPLITS,
    Closed,
    DependencyLayer,
    FileSplits,
    Folders,
    InFolder,
    InFormat,
    MiniSplits,
    Sha256,
    Text,
    format_of,
)
from spmrl_bench.trees.parse import LAYERS, Layer
from spmrl_bench.trees.transforms import Stage, transform_named

Track = Literal["spmrl", "ptb", "ctb", "open", "mini"]


def _known_parameters(name: str) -> str:
    known = [path.stem for path in data_dir("evalb").glob("*.prm")]
    if name not in known:
        raise ValueError(unknown_name("parameter set", name, known))
    return name


Parameters = Annotated[Text, AfterValidator(_known_parameters)]


class _Manifest(Closed):
    """What every treebank declares."""

    name: Annotated[Text, AfterValidator(check_name)]
    """Name of the treebank, that of the file."""
    title: Text
    """Human name of the treebank."""
    language: Text
    """English name of the language in small letters, as recipes use it."""
    track: Track
    """The track that it belongs to; scores of different tracks never share a table."""
    tags: Literal["gold", "predicted", "none"]
    """Where the part-of-speech tags come from."""
    licence: Text
    """Under which licence it is, in words."""
    citation: Text
    """The publication to cite with it."""
    source: Text
    """Where it comes from: an address, or who distributes it."""


def _check_transforms(names: list[str], stages: tuple[Stage, ...]) -> list[str]:
    order = ("text", "graph", "tree")
    last = 0
    for name in names:
        try:
            stage = transform_named(name).stage
        except SpmrlError as error:
            raise ValueError(str(error)) from None
        if stage not in stages:
            raise ValueError(f"{name} applies to a {stage}, which this format does not have")
        if order.index(stage) < last:
            raise ValueError(
                f"{name} applies to a {stage}: it must stand before those for a {order[last]}"
            )
        last = order.index(stage)
    return names


class Attachment(Closed):
    """What decides its attachment scores besides the format, by the names of the scorer's rules."""

    punctuation: Text = "none"
    """The rule by which words are punctuation: ``none``, ``ptb-ctb`` or ``unicode``."""
    relations: Relations = "whole"
    """How relations are compared: ``whole``, the part before a colon (``universal``), or not at
    all."""

    @field_validator("punctuation")
    @classmethod
    def _punctuation_is_known(cls, name: str) -> str:
        if name not in PUNCTUATION_RULES:
            raise ValueError(unknown_name("punctuation rule", name, PUNCTUATION_RULES))
        return name


def _address(text: str) -> str:
    try:
        found = urlsplit(text)
        _ = found.port  # is checked when it is asked for
    except ValueError as error:
        raise ValueError(f"no address: {error}") from None
    if not found.hostname or not text.isprintable() or " " in text:
        raise ValueError("no address: expected http or https, a server, and a path")
    return text


class Fetch(Closed):
    """Where files of a treebank can be downloaded.

    Either an archive, of which some members are taken, or a folder of single files: those whose
    SHA-256 the manifest records.
    """

    url: Annotated[str, Field(pattern="^https?://"), AfterValidator(_address)]
    """Address of the zip archive, or of the folder, then with a slash at its end."""
    path: InFolder | None = None
    """The folder under the directory of treebanks, if not that of the treebank."""
    sha256: Sha256 | None = None
    """SHA-256 of the archive."""
    members: dict[InFolder, InFolder] = Field(default={}, validate_default=True)
    """Members of the archive, or folders of it with a slash at their end, and what they become
    under the treebank's folder."""

    @field_validator("members")
    @classmethod
    def _an_archive_has_members(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        if not {"url", "sha256"} <= info.data.keys():
            return value  # one of them has a mistake of its own
        is_folder = info.data["url"].endswith("/")
        if is_folder == bool(value) or is_folder == bool(info.data.get("sha256")):
            raise ValueError(
                "an archive needs sha256 and members; a folder, a URL with / at its end, has "
                "neither"
            )
        for member, target in value.items():
            if member.endswith("/") != target.endswith("/"):
                raise ValueError(
                    f"'{member}' becomes '{target}': a folder, with a slash at its end, becomes a "
                    "folder, and a file a file"
                )
        return value


class FileManifest(_Manifest, InFormat):
    """A treebank that lies in files."""

    path: Folders
    """Its folder under the directory of treebanks, or several to look for in turn; or absolute."""
    transforms: list[str] = Field(default_factory=list)
    """Names of transforms, in the order in which they apply."""
    on_error: Literal["fail", "skip"] = "fail"
    """Whether a sentence that breaks the format stops the reading or is left out and counted."""
    prm: Parameters | None = None
    """The evalb parameter set of its scores; a dependency treebank has none."""
    commit: Text | None = None
    """The revision of the source, where that is a repository."""
    obtain: Text
    """How to get it, for the message when it is absent."""
    fetch: list[Fetch] = Field(default_factory=list)
    """Where it can be downloaded, if it can."""
    splits: FileSplits
    """Which files are for training, dev and test: a table each."""
    shared: Literal["refused", "allowed"] = "refused"
    """Whether splits may have the same sentences."""
    dependencies: DependencyLayer | None = None
    """The same sentences as dependencies, in files of their own."""
    attachment: Attachment | None = None
    """The rules of its attachment scores, if not the usual ones."""
    sha256: Mapping[InFolder, Sha256] = {}
    """SHA-256 of files by their path under the folder."""

    @field_validator("fetch")
    @classmethod
    def _downloads_have_a_folder(cls, value: list[Fetch], info: ValidationInfo) -> list[Fetch]:
        first = str(info.data.get("path", "")).split(ALTERNATIVE)[0]
        if first.startswith("/") and any(source.path is None for source in value):
            raise ValueError(
                f"what is downloaded goes under the directory of treebanks, but path is '{first}'"
            )
        return value

    @field_validator("transforms")
    @classmethod
    def _transforms_are_known_and_in_order(
        cls, names: list[str], info: ValidationInfo
    ) -> list[str]:
        form = format_of(info)
        return names if form is None else _check_transforms(names, _stages(form))

    @field_validator("prm", mode="before")
    @classmethod
    def _only_trees_have_brackets(cls, value: Any, info: ValidationInfo) -> Any:
        form = format_of(info)
        if form is not None and (value is None) != (form.yields == "dependencies"):
            needs = "has no brackets to score: leave it out" if value is not None else "missing"
            raise ValueError(needs)
        return value

    @field_validator("dependencies", "attachment")
    @classmethod
    def _fits_the_layers(cls, value: Any, info: ValidationInfo) -> Any:
        form = format_of(info)
        if form is None or value is None:
            return value
        first = form.yields == "dependencies"
        if info.field_name == "dependencies" and first:
            raise ValueError(f"{form.name} has dependencies, and they are the first layer")
        if (
            info.field_name == "attachment"
            and not first
            and not info.data.get("dependencies", True)
        ):
            raise ValueError("has no dependencies to score: leave it out")
        splits = info.data.get("splits")
        if isinstance(value, DependencyLayer) and value.ids and splits is not None:
            without = [name for name in SPLITS if splits[name].rows is None]
            if without:
                raise ValueError(
                    f"ids names a column of the table of rows, which split {without[0]} has not"
                )
        return value

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers of annotation, constituents first."""
        if FORMATS[self.format].yields == "dependencies":
            return ("dependencies",)
        return LAYERS if self.dependencies is not None else ("constituents",)

    @property
    def rules(self) -> dict[str, dict[str, str]]:
        """The rules by which each of its layers is scored, by the name of the metric."""
        rules = {} if self.prm is None else {"brackets": {"prm": self.prm}}
        if "dependencies" in self.layers:
            options = (self.dependencies or self).options
            tags, roots = options.get("tag_column", "xpos"), options.get("roots", "one")
            own = (self.attachment or Attachment()).model_dump()
            rules["attachment"] = {"tags": tags, "roots": roots} | own
        return rules


def _stages(form: Format) -> tuple[Stage, ...]:
    """What the transforms of a format's treebanks can apply to."""
    if form.yields == "dependencies":
        return ()
    if form.yields == "graphs":
        return ("graph", "tree")
    return ("text", "tree") if form.name == "brackets" else ("tree",)


class MiniManifest(_Manifest):
    """A treebank that the program generates."""

    format: Literal["mini"]
    """The format of treebanks that are not read but generated."""
    grammar: Text
    """Name of the grammar, a file of ``treebanks/mini/``."""
    seed: int
    """Where the random numbers of the sentences come from."""
    transforms: list[str] = Field(default_factory=list)
    """Names of transforms, in the order in which they apply."""
    prm: Parameters
    """The evalb parameter set of its scores."""
    splits: MiniSplits
    """How many sentences each split has: a table each."""

    @field_validator("grammar")
    @classmethod
    def _grammar_is_known(cls, name: str) -> str:
        if name not in available_grammars():
            raise ValueError(unknown_name("mini grammar", name, available_grammars()))
        return name

    @field_validator("transforms")
    @classmethod
    def _transforms_are_known(cls, names: list[str]) -> list[str]:
        return _check_transforms(names, ("tree",))

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers of annotation, constituents first."""
        return LAYERS

    @property
    def rules(self) -> dict[str, dict[str, str]]:
        """The rules by which each of its layers is scored, by the name of the metric."""
        return {"brackets": {"prm": self.prm}, "attachment": asdict(AttachmentRules())}


Manifest = FileManifest | MiniManifest
