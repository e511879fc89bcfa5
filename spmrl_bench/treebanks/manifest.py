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

import codecs
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.readers.conll import MultiwordTokens
from spmrl_bench.readers.formats import FORMATS, Format
from spmrl_bench.scoring.attachment import AttachmentRules, Relations
from spmrl_bench.scoring.punctuation import PUNCTUATION_RULES
from spmrl_bench.treebanks.patterns import ALTERNATIVE, check_range
from spmrl_bench.trees.brackets import escapes_named
from spmrl_bench.trees.parse import LAYERS, Layer
from spmrl_bench.trees.transforms import Stage, transform_named

Track = Literal["spmrl", "ptb", "ctb", "open", "mini"]
SplitName = Literal["train", "dev", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
SplitT = TypeVar("SplitT", bound=BaseModel)

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(gt=0)]
Some = Annotated[int, Field(ge=0)]
Patterns = Annotated[list[Text], Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _numbers(value: Any) -> tuple[int, ...]:
    """One number or a list of them, as a tuple."""
    found = value if isinstance(value, list) else [value]
    if not found or any(type(number) is not int or number < 1 for number in found):
        raise ValueError("expected a number from 1, or a list of such numbers")
    return tuple(found)


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

    ``files`` are patterns of paths under the treebank's folder, read in the order given; see
    :mod:`spmrl_bench.treebanks.patterns`.
    """

    files: Patterns
    #: Patterns of files to leave out.
    exclude: list[Text] = []
    #: Patterns of files with a line of tags for each sentence, in place of the trees' own tags.
    tag_files: Patterns | None = None
    #: ``"1..1000"``: only these sentences of the files, counted from 1 before anything is left out.
    range: str | None = None
    rows: Rows | None = None
    #: The number of sentences, or those of sources that differ; the first is the usual one.
    sentences: Annotated[tuple[int, ...], BeforeValidator(_numbers)]
    tokens: Count | None = None
    #: How many sentences break the format and are left out (``on_error = "skip"``).
    skipped: Some = 0
    #: How many sentences have no word left after the transforms, where that is known.
    dropped: Some | None = None

    @field_validator("range")
    @classmethod
    def _range_is_one(cls, text: str | None) -> str | None:
        if text is not None:
            check_range(text)
        return text


class MiniSplit(_Closed):
    """The number of sentences to generate."""

    sentences: Count


class Splits(_Closed, Generic[SplitT]):
    """A table for each split."""

    train: SplitT
    dev: SplitT
    test: SplitT

    def __getitem__(self, name: str) -> SplitT:
        found: SplitT = getattr(self, name)
        return found


# With names of their own, by which other processes find them.
class FileSplits(Splits[Split]):
    """Which files each split has."""


class MiniSplits(Splits[MiniSplit]):
    """How many sentences of each split are generated."""


class _Manifest(_Closed):
    """What every treebank declares."""

    name: Text
    #: Human name of the treebank.
    title: Text
    #: English name of the language in small letters, as recipes use it.
    language: Text
    track: Track
    #: Where the part-of-speech tags come from.
    tags: Literal["gold", "predicted", "none"]
    licence: Text
    citation: Text
    source: Text


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


def _format(info: ValidationInfo) -> Format | None:
    """The format that a table names in front of a key; None if that is wrong itself."""
    return FORMATS.get(info.data.get("format", ""))


#: Options of readers that fingerprints of before do not know.
_LATER_OPTIONS = ("multiword",)


class _InFormat(_Closed):
    """A file format and the options of its reader."""

    format: Text
    #: One text encoding, or several to try in turn: ``"utf-8 | gb18030"``.
    encoding: str | None = None
    #: Name of the escape policy of the words.
    escapes: str | None = None
    #: Whether leaves are ``word-lemma``.
    lemmas: bool | None = None
    #: Which column of a CoNLL file has the tags.
    tag_column: Literal["upos", "xpos"] | None = None
    #: Whether sentences of a CoNLL file may have several roots.
    roots: Literal["one", "several"] | None = None
    #: Whether a multiword token of a CoNLL-U file is its words or one word.
    multiword: MultiwordTokens | None = None

    @field_validator("format")
    @classmethod
    def _format_is_known(cls, name: str) -> str:
        known = [form.name for form in FORMATS.values() if cls._may_be(form)]
        if name not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return name

    @classmethod
    def _may_be(cls, form: Format) -> bool:
        return True

    @field_validator("encoding", "escapes", "lemmas", "tag_column", "roots", "multiword")
    @classmethod
    def _is_option(cls, value: Any, info: ValidationInfo) -> Any:
        form = _format(info)
        if form is None or value is None:
            return value
        if info.field_name not in form.options:
            options = ", ".join(form.options) or "none"
            raise ValueError(f"format {form.name} has no such option; it has {options}")
        return value

    @field_validator("escapes", mode="before")
    @classmethod
    def _escapes_are_known(cls, name: Any, info: ValidationInfo) -> Any:
        form = _format(info)
        if form is not None and form.options.get("escapes") is ... and name is None:
            raise ValueError("missing")
        if isinstance(name, str):
            try:
                escapes_named(name)
            except SpmrlError as error:
                raise ValueError(str(error)) from None
        return name

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, names: str | None) -> str | None:
        for name in names.split(ALTERNATIVE) if names is not None else ():
            try:
                codecs.lookup(name)
            except LookupError:
                raise ValueError("no such text encoding") from None
        return names

    @property
    def options(self) -> dict[str, Any]:
        """The options of the reader, with the format's defaults for those not set."""
        defaults = FORMATS[self.format].options
        given = {name: getattr(self, name) for name in defaults}
        return {name: defaults[name] if value is None else value for name, value in given.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """The options as fingerprints have them: one that came later only where it is set."""
        return {
            name: value
            for name, value in self.options.items()
            if name not in _LATER_OPTIONS or value != FORMATS[self.format].options[name]
        }


class DependencyLayer(_InFormat):
    """The sentences of a constituency treebank a second time, as dependencies.

    Their words must be those of the trees, at least after merging.
    """

    #: Its folder under the directory of treebanks, if not that of the trees.
    path: Text | None = None
    #: Patterns of its files; or the ending by which they are called otherwise than those of the
    #: trees, such as ``".conllx"``.
    train: Patterns | None = None
    dev: Patterns | None = None
    test: Patterns | None = None
    ending: Annotated[str, Field(pattern=r"^\.\w+$")] | None = Field(None, validate_default=True)
    #: The column of the table of each split's ``rows`` that has the names of the sentences, where
    #: they stand in another order than the trees.
    ids: Text | None = None
    #: Whether words that make up one of the trees' are merged into it.
    words: Literal["same", "merged"] = "same"
    #: Where words are merged, the relation by which the parts of a word that the trees cut into
    #: several hang from the last of them; without it there can be none.
    parts: Text | None = None
    #: Words that the trees spell otherwise, and how, where words are merged.
    respelt: dict[Text, Text] = {}

    @classmethod
    def _may_be(cls, form: Format) -> bool:
        return form.yields == "dependencies"

    @field_validator("ending")
    @classmethod
    def _has_files(cls, value: str | None, info: ValidationInfo) -> str | None:
        named = [name for name in SPLITS if info.data.get(name) is not None]
        if (value is None and len(named) < len(SPLITS)) or (value is not None and named):
            raise ValueError("needs the files of train, dev and test, or else their ending")
        return value

    def files(self, split_name: str, split: Split) -> tuple[list[str], list[str]]:
        """Patterns of its files for a split of the trees, and of those to leave out."""
        if self.ending is None:
            return getattr(self, split_name), []
        files, exclude = (
            [_with_ending(pattern, self.ending) for pattern in patterns]
            for patterns in (split.files, split.exclude)
        )
        return files, exclude

    @field_validator("parts", "respelt")
    @classmethod
    def _only_merged_words_have_others(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("words") != "merged":
            raise ValueError("is for words that are merged (words = 'merged'): leave it out")
        return value

    @property
    def alignment(self) -> dict[str, Any]:
        """What decides which of its sentences and words stand beside those of the trees."""
        return self.model_dump(include={"ids", "words", "parts", "respelt"}, exclude_defaults=True)


def _with_ending(pattern: str, ending: str) -> str:
    """A pattern, or each of its alternatives, with another ending."""
    alternatives = pattern.split(ALTERNATIVE)
    return ALTERNATIVE.join(f"{one.rpartition('.')[0] or one}{ending}" for one in alternatives)


class Attachment(_Closed):
    """What decides its attachment scores besides the format, by the names of the scorer's rules."""

    punctuation: Text = "none"
    relations: Relations = "whole"

    @field_validator("punctuation")
    @classmethod
    def _punctuation_is_known(cls, name: str) -> str:
        if name not in PUNCTUATION_RULES:
            raise ValueError(unknown_name("punctuation rule", name, PUNCTUATION_RULES))
        return name


class Fetch(_Closed):
    """Where files of a treebank can be downloaded.

    Either an archive, of which some members are taken, or a folder of single files: those whose
    SHA-256 the manifest records.
    """

    #: Of the archive (zip or tar), or of the folder, then with a slash at its end.
    url: Annotated[str, Field(pattern="^https?://")]
    #: The folder under the directory of treebanks, if not that of the treebank.
    path: Text | None = None
    #: Of the archive.
    sha256: Sha256 | None = None
    #: Members of the archive, or folders of it with a slash at their end, and what they become
    #: under the treebank's folder.
    members: dict[Text, Text] = Field(default={}, validate_default=True)

    @field_validator("members")
    @classmethod
    def _an_archive_has_members(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        is_folder = str(info.data.get("url", "")).endswith("/")
        if is_folder == bool(value) or is_folder == bool(info.data.get("sha256")):
            raise ValueError(
                "an archive needs sha256 and members; a folder, a URL with / at its end, has "
                "neither"
            )
        return value


class FileManifest(_Manifest, _InFormat):
    """A treebank that lies in files."""

    #: Its folder under the directory of treebanks, or several to look for in turn; or absolute.
    path: Text
    #: Names of transforms, in the order in which they apply.
    transforms: list[str] = []
    #: Whether a sentence that breaks the format stops the reading or is left out and counted.
    on_error: Literal["fail", "skip"] = "fail"
    #: The evalb parameter set of its scores; a dependency treebank has none.
    prm: Text | None = None
    #: The revision of the source, where that is a repository.
    commit: Text | None = None
    #: How to get it, for the message when it is absent.
    obtain: Text
    #: Where it can be downloaded, if it can.
    fetch: list[Fetch] = []
    splits: FileSplits
    dependencies: DependencyLayer | None = None
    #: The rules of its attachment scores, if not the usual ones.
    attachment: Attachment | None = None
    #: SHA-256 of files by their path under the folder.
    sha256: Mapping[str, Sha256] = {}

    @field_validator("transforms")
    @classmethod
    def _transforms_are_known_and_in_order(
        cls, names: list[str], info: ValidationInfo
    ) -> list[str]:
        form = _format(info)
        return names if form is None else _check_transforms(names, _stages(form))

    @field_validator("prm", mode="before")
    @classmethod
    def _only_trees_have_brackets(cls, value: Any, info: ValidationInfo) -> Any:
        form = _format(info)
        if form is not None and (value is None) != (form.yields == "dependencies"):
            needs = "has no brackets to score: leave it out" if value is not None else "missing"
            raise ValueError(needs)
        return value

    @field_validator("dependencies", "attachment")
    @classmethod
    def _fits_the_layers(cls, value: Any, info: ValidationInfo) -> Any:
        form = _format(info)
        if form is None or value is None:
            return value
        first = form.yields == "dependencies"
        if info.field_name == "dependencies" and first:
            raise ValueError(f"{form.name} has dependencies, and they are the first layer")
        if info.field_name == "attachment" and not first and not info.data.get("dependencies"):
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
    grammar: Text
    seed: int
    transforms: list[str] = []
    prm: Text
    splits: MiniSplits

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
