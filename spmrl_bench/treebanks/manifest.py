"""What a treebank is, as data: one validated TOML file for each.

A treebank differs from the next in its files, format, splits and conventions, not in code. A
manifest states them all, with the numbers of sentences that its splits must have, so that a wrong
release is noticed before anything is trained on it. Unknown keys are errors, and all mistakes of a
file are reported together. What lies on the disk is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from spmrl_bench.errors import as_value_error, unknown_name
from spmrl_bench.readers.conll import MultiwordTokens
from spmrl_bench.readers.dialects import check_bracket_options
from spmrl_bench.readers.formats import FORMATS, Format, Yields
from spmrl_bench.readers.text import is_encoding
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.storage.paths import check_name, check_path, data_dir
from spmrl_bench.treebanks.patterns import ALTERNATIVE, check_pattern, check_range
from spmrl_bench.trees.parse import LAYERS, Layer
from spmrl_bench.trees.transforms import Stage, transform_named

SplitName = Literal["train", "dev", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
Track = Literal["spmrl", "ptb", "ctb", "open", "mini"]

_STAGES: tuple[Stage, ...] = ("text", "graph", "tree")
#: The options that are in every fingerprint; one that came later is there where it is set.
_FIRST_OPTIONS = ("encoding", "escapes", "lemmas", "tag_column", "roots")
_OPTIONS = (*_FIRST_OPTIONS, "multiword", "leaf", "wrappers", "drop", "id")


def _check_folders(text: str) -> str:
    for one in text.split(ALTERNATIVE):  # may be absolute: whether it may be read is asked later
        check_path(one.lstrip("/") if one.strip("/") else one)
    return text


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_counts(value: Any) -> tuple[int, ...]:
    found = value if isinstance(value, list) else [value]
    if not found or any(type(number) is not int or number < 1 for number in found):
        raise PydanticCustomError("numbers", "expected a number from 1, or a list of such numbers")
    return tuple(found)


def _check_address(text: str) -> str:
    try:
        found = urlsplit(text)
        _ = found.port  # is checked when it is asked for
    except ValueError as error:
        raise ValueError(f"no address: {error}") from None
    if not found.hostname or not text.isprintable() or " " in text:
        raise ValueError("no address: expected http or https, a server, and a path")
    return text


Text = Annotated[str, Field(min_length=1)]
InFolder = Annotated[Text, AfterValidator(check_path)]  # a path under a folder
Folders = Annotated[Text, AfterValidator(_check_folders)]  # one or several to look for in turn
Pattern = Annotated[Text, AfterValidator(check_pattern)]
Patterns = Annotated[list[Pattern], Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class StrictModel(BaseModel, extra="forbid", frozen=True, strict=True): ...


class SplitTable(StrictModel):
    """The sentences of a split that a table marks, where files hold several splits.

    The table has tab-separated columns, their names in its first line, and a line for each sentence
    of the files, in their order.
    """

    table: InFolder
    """Its file, under the treebank's folder."""
    column: Text
    """Name of the column that marks them."""
    equals: Text
    """What that column has for sentences of this split."""


class Split(StrictModel):
    """The files of one split and what they must hold after the transforms."""

    files: Patterns
    """Patterns of paths under the treebank's folder, read in this order: ``*``, ``{01..09}``,
    ``a | b`` for the first of two that matches."""
    exclude: list[Pattern] = []
    """Patterns of files to leave out."""
    range: Annotated[str, AfterValidator(lambda text: (check_range(text), text)[1])] | None = None
    """``"1..1000"``: only these sentences, counted from 1 before anything is left out; ``"1001.."``
    all from there on."""
    rows: SplitTable | None = None
    """Only the sentences that a table marks."""
    sentences: Annotated[tuple[int, ...], BeforeValidator(_as_counts)] | None = None
    """The number of sentences, or a list of those of different sources, the usual one first;
    without it, nothing is compared."""
    tokens: PositiveInt | None = None
    """The number of words; without it, nothing is compared."""
    skipped: NonNegativeInt = 0
    """How many sentences break the format and are left out (``on_error = "skip"``)."""
    dropped: NonNegativeInt | None = None
    """How many sentences have no word left after the transforms, where that is known."""

    @property
    def numbers(self) -> tuple[int, int]:
        """The first and last sentence of its range, from 1; without an end ``sys.maxsize``."""
        return check_range(self.range or "1..")


class Splits(StrictModel):
    """A table for each split."""

    train: Split
    """Sentences to learn from."""
    dev: Split
    """Sentences to select by."""
    test: Split
    """Sentences to score in the end."""

    def __getitem__(self, name: SplitName) -> Split:
        return {"train": self.train, "dev": self.dev, "test": self.test}[name]


class SourceFormat(StrictModel):
    """A file format and the options of its reader."""

    _yields: ClassVar[tuple[Yields, ...]] = get_args(Yields)

    format: Text
    """Name of the file format."""
    encoding: str | None = None
    """One text encoding, or several to try in turn: ``"utf-8 | gb18030"``."""
    escapes: str | None = Field(None, validate_default=True)
    """What undoes the escapes of words: ``ptb``, ``brackets`` or ``none``."""
    lemmas: Literal[True, False, "punctuation"] | None = None
    """Whether leaves are ``word-lemma``, or those of punctuation alone (``,-,``)."""
    tag_column: Literal["upos", "xpos"] | None = None
    """Which column of a CoNLL file has the tags."""
    roots: Literal["one", "several"] | None = None
    """Whether sentences of a CoNLL file may have several roots."""
    multiword: MultiwordTokens | None = None
    """Whether a multiword token of a CoNLL-U file is its words or one word."""
    leaf: Text | None = None
    """How brackets write a word: a template such as ``{tag} {word} {lemma}``."""
    wrappers: Annotated[list[str], BeforeValidator(_as_list)] | None = None
    """Labels of brackets that hold trees and are no part of them."""
    drop: Annotated[list[Text], BeforeValidator(_as_list)] | None = None
    """Labels of nodes that are left out with all below them."""
    id: Text | None = None
    """The label of the node, left out too, that names a tree."""

    @field_validator("format")
    @classmethod
    def _format_is_known(cls, name: str) -> str:
        if name not in FORMATS.names() or FORMATS.get(name).yields not in cls._yields:
            known = [one for one in FORMATS.names() if FORMATS.get(one).yields in cls._yields]
            raise ValueError(f"must be one of {', '.join(known)}")
        return name

    @field_validator(*_OPTIONS)
    @classmethod
    def _is_option(cls, value: Any, info: ValidationInfo) -> Any:
        form, name = _format_of(info), str(info.field_name)
        if form is None:
            return value
        if value is None:
            if form.options.get(name) is ...:
                raise ValueError("missing")
            return value
        if name not in form.options:
            options = ", ".join(form.options) or "none"
            raise ValueError(f"format {form.name} has no such option; it has {options}")
        with as_value_error():
            check_bracket_options({name: value})
        if name == "encoding" and not all(map(is_encoding, value.split(ALTERNATIVE))):
            raise ValueError("no such text encoding")
        return value

    @property
    def form(self) -> Format:
        return FORMATS.get(self.format)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the reader, with the format's defaults for those not set."""
        given = {name: getattr(self, name, None) for name in self.form.options}
        return {**self.form.options, **{k: v for k, v in given.items() if v is not None}}

    @property
    def settings(self) -> dict[str, Any]:
        """The options as fingerprints have them."""
        usual, options = self.form.options, self.options
        return {k: v for k, v in options.items() if k in _FIRST_OPTIONS or v != usual[k]}


def _format_of(info: ValidationInfo) -> Format | None:
    """The format that a table names in front of a key; None if that is wrong itself."""
    return FORMATS.get(info.data["format"]) if "format" in info.data else None


class DependencyLayer(SourceFormat):
    """The sentences of trees a second time, as dependencies of the same words, at least if merged.

    They need not be in the trees' order.
    """

    _yields = ("dependencies",)
    path: Folders | None = None
    """Its folder under the directory of treebanks, if not that of the trees."""
    train: Patterns | None = None
    """Patterns of the files of training."""
    dev: Patterns | None = None
    """Patterns of the files of dev."""
    test: Patterns | None = None
    """Patterns of the files of test."""
    ending: Annotated[str, Field(pattern=r"^\.\w+$")] | None = None
    """In place of patterns: the ending of the files, which are called as those of the trees but for
    it, such as ``".conllx"``."""
    ids: Text | None = None
    """The column with their names in the tables of ``rows``, if their order is not the trees'."""
    words: Literal["same", "merged"] = "same"
    """Whether words that make up one of the trees' are merged into it."""
    parts: Text | None = None
    """Where words are merged, the relation by which the parts of a word that the trees cut hang
    from the last; without it, none may be cut."""
    respelt: dict[Text, Text] = {}
    """Words that the trees spell otherwise, and how, where words are merged."""

    @model_validator(mode="after")
    def _keys_fit_together(self) -> Self:
        named = [getattr(self, name) is not None for name in SPLITS]
        if any(named) if self.ending is not None else not all(named):
            raise ValueError("needs the files of train, dev and test, or else their ending")
        if self.words != "merged" and (self.parts or self.respelt):
            raise ValueError("parts and respelt are for words = 'merged': leave them out")
        return self

    def files(self, name: SplitName, split: Split) -> tuple[list[str], list[str]]:
        """Return the patterns of its files for a split of the trees, and of those to leave out."""
        if (ending := self.ending) is None:
            return getattr(self, name), []

        def called(pattern: str) -> str:
            ones = pattern.split(ALTERNATIVE)
            return ALTERNATIVE.join(f"{one.rpartition('.')[0] or one}{ending}" for one in ones)

        return [*map(called, split.files)], [*map(called, split.exclude)]

    @property
    def alignment(self) -> dict[str, Any]:
        """What decides which of its sentences and words stand beside those of the trees."""
        return self.model_dump(include={"ids", "words", "parts", "respelt"}, exclude_defaults=True)


class Attachment(StrictModel):
    """The rules of its attachment scores besides the format, as the scorer calls them."""

    punctuation: Text = "none"
    """The rule by which words are punctuation: ``none``, ``ptb-ctb`` or ``unicode``."""
    relations: Text = "whole"
    """How relations are compared: ``whole``, the part before a colon (``universal``), or not at
    all (``none``)."""

    @field_validator("punctuation", "relations")
    @classmethod
    def _is_rule(cls, value: str, info: ValidationInfo) -> str:
        with as_value_error():
            metric_named("attachment").rules({str(info.field_name): value})
        return value


class Fetch(StrictModel):
    """Where to download: members of an archive, or the files of a folder with a SHA-256 here."""

    url: Annotated[str, Field(pattern="^https?://"), AfterValidator(_check_address)]
    """Address of the archive, or of the folder, then with a slash at its end."""
    path: InFolder | None = None
    """The folder under the directory of treebanks, if not that of the treebank."""
    sha256: Sha256 | None = None
    """SHA-256 of the archive."""
    members: dict[InFolder, InFolder] = {}
    """Members of the archive, or folders with a slash at their end, and what they become under the
    treebank's folder."""

    @model_validator(mode="after")
    def _an_archive_has_members(self) -> Self:
        is_folder = self.url.endswith("/")
        if is_folder == bool(self.members) or is_folder == bool(self.sha256):
            raise ValueError(
                "an archive needs sha256 and members; a folder, a URL with / at its end, has "
                "neither"
            )
        for member, target in self.members.items():
            if member.endswith("/") != target.endswith("/"):
                raise ValueError(
                    f"'{member}' becomes '{target}': a folder, with a slash at its end, becomes a "
                    "folder, and a file a file"
                )
        return self


class Manifest(SourceFormat):
    """What a treebank declares."""

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
    redistributable: bool = False
    """Whether its licence lets anybody show its sentences; else pages have its scores alone."""
    citation: Text
    """The publication to cite with it."""
    source: Text
    """Where it comes from: an address, or who distributes it."""
    path: Folders
    """Its folder under the directory of treebanks, or absolute, or several to look for in turn; of
    the track ``mini``, under the program's own folder."""
    transforms: list[str] = Field(default_factory=list)
    """Names of transforms, in the order in which they apply."""
    on_error: Literal["fail", "skip"] = "fail"
    """Whether a sentence that breaks the format stops the reading or is left out and counted."""
    prm: Text | None = Field(None, validate_default=True)
    """The evalb parameter set of its scores; a dependency treebank has none."""
    commit: Text | None = None
    """The revision of the source, where that is a repository."""
    obtain: Text
    """How to get it, for the message when it is absent."""
    fetch: list[Fetch] = Field(default_factory=list)
    """Where it can be downloaded, if it can."""
    splits: Splits
    """Which files are for training, dev and test: a table each."""
    shared: Literal["refused", "allowed"] = "refused"
    """Whether splits may have the same sentences."""
    dependencies: DependencyLayer | None = None
    """The same sentences as dependencies, in files of their own."""
    attachment: Attachment | None = None
    """The rules of its attachment scores, if not the usual ones."""
    sha256: Mapping[InFolder, Sha256] = {}
    """SHA-256 of files by their path under the folder."""
    _origin: tuple[str, str] = PrivateAttr(("", ""))

    @property
    def origin(self) -> tuple[str, str]:
        """The user's file that it was read from, empty if it is the program's, and the SHA-256 of
        all that is declared there, in hex."""
        return self._origin

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
    def _transforms_are_in_order(cls, names: list[str], info: ValidationInfo) -> list[str]:
        form = _format_of(info)
        if form is None:
            return names
        has = {"dependencies": (), "graphs": ("graph", "tree"), "trees": ("tree",)}[form.yields]
        before = 0
        for name in names:
            with as_value_error():
                stage = transform_named(name).stage
            if stage not in has and (stage, form.name) != ("text", "brackets"):
                raise ValueError(f"{name} applies to a {stage}, which this format does not have")
            if (place := _STAGES.index(stage)) < before:
                raise ValueError(
                    f"{name} applies to a {stage}: it must stand before those for a "
                    f"{_STAGES[before]}"
                )
            before = place
        return names

    @field_validator("prm")
    @classmethod
    def _only_trees_have_brackets(cls, name: str | None, info: ValidationInfo) -> str | None:
        form = _format_of(info)
        if form is not None and (name is None) != (form.yields == "dependencies"):
            raise ValueError("has no brackets to score: leave it out" if name else "missing")
        known = [path.stem for path in data_dir("evalb").glob("*.prm")]
        if name is not None and name not in known:
            raise ValueError(unknown_name("parameter set", name, known))
        return name

    @field_validator("dependencies")
    @classmethod
    def _stands_beside_trees(
        cls, layer: DependencyLayer | None, info: ValidationInfo
    ) -> DependencyLayer | None:
        form = _format_of(info)
        if form is None or layer is None:
            return layer
        if form.yields == "dependencies":
            raise ValueError(f"{form.name} has dependencies, and they are the first layer")
        for name in SPLITS if layer.ids and "splits" in info.data else ():
            if info.data["splits"][name].rows is None:
                raise ValueError(
                    f"ids names a column of the table of rows, which split {name} has not"
                )
        return layer

    @field_validator("attachment")
    @classmethod
    def _is_of_dependencies(cls, own: Attachment | None, info: ValidationInfo) -> Attachment | None:
        form = _format_of(info)
        trees = form is not None and form.yields != "dependencies"
        if own is not None and trees and not info.data.get("dependencies", True):
            raise ValueError("has no dependencies to score: leave it out")
        return own

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers of annotation, constituents first."""
        if self.form.yields == "dependencies":
            return ("dependencies",)
        return LAYERS if self.dependencies is not None else ("constituents",)

    @property
    def rules(self) -> dict[str, dict[str, str]]:
        """The rules by which each of its layers is scored, by the name of the metric.

        Those of ``brackets`` are ``prm``, the evalb parameter set; those of ``attachment`` the
        fields of :class:`~spmrl_bench.scoring.attachment.AttachmentRules`.
        """
        rules = {} if self.prm is None else {"brackets": {"prm": self.prm}}
        if "dependencies" in self.layers:
            options = (self.dependencies or self).options
            tags, roots = options.get("tag_column", "xpos"), options.get("roots", "one")
            own = (self.attachment or Attachment()).model_dump()
            rules["attachment"] = {"tags": tags, "roots": roots} | own
        return rules
