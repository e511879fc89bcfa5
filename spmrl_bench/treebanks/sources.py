"""Where the sentences of a treebank lie, as a manifest states it: formats, splits, second layer.

What is read is the same for a treebank of any kind: files of a format with its options, divided
into splits by patterns, ranges or a table. A treebank of trees may have its dependencies in files
of another format, whose sentences and words need not be in the order and shape of the trees'.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.conll import MultiwordTokens
from spmrl_bench.readers.dialects import BRACKET_OPTIONS, check_bracket_options
from spmrl_bench.readers.formats import FORMATS, Format
from spmrl_bench.readers.text import is_encoding
from spmrl_bench.storage.paths import check_folder, check_path
from spmrl_bench.treebanks.patterns import ALTERNATIVE, check_pattern, check_range
from spmrl_bench.trees.escapes import escapes_named

SplitName = Literal["train", "dev", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
SplitT = TypeVar("SplitT", bound=BaseModel)

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(gt=0)]
Some = Annotated[int, Field(ge=0)]
InFolder = Annotated[Text, AfterValidator(check_path)]  # a path under a folder
Pattern = Annotated[Text, AfterValidator(check_pattern)]
Patterns = Annotated[list[Pattern], Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def _folders(text: str) -> str:
    """One folder or several to look for in turn."""
    for one in text.split(ALTERNATIVE):
        check_folder(one)
    return text


Folders = Annotated[Text, AfterValidator(_folders)]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _numbers(value: Any) -> tuple[int, ...]:
    """One number or a list of them, as a tuple."""
    found = value if isinstance(value, list) else [value]
    if not found or any(type(number) is not int or number < 1 for number in found):
        raise PydanticCustomError("numbers", "expected a number from 1, or a list of such numbers")
    return tuple(found)


class Rows(Closed):
    """The sentences of a split when files hold several: those that a side table marks.

    The table has tab-separated columns with names in its first line, and one line for each
    sentence of the files, in their order.
    """

    table: InFolder
    """The file with the table, under the treebank's folder."""
    column: Text
    """Name of the column that marks them."""
    equals: Text
    """What stands in that column for sentences of this split."""


class Split(Closed):
    """The files of one split and what they must hold after the transforms."""

    files: Patterns
    """Patterns of paths under the treebank's folder, read in the order given: ``*``, ``{01..09}``,
    ``a | b`` for the first of two that matches."""
    exclude: list[Pattern] = []
    """Patterns of files to leave out."""
    tag_files: Patterns | None = None
    """Patterns of files with a line of tags for each sentence, in place of the trees' own tags."""
    ids: InFolder | None = None
    """A file that lists documents, one in a line: of the files only those."""
    rest: bool = False
    """Whether the files are only those that no other split has."""
    range: str | None = None
    """``"1..1000"``: only these sentences of the files, counted from 1 before anything is left
    out; ``"1001.."`` all from there on."""
    rows: Rows | None = None
    """Only the sentences that a table marks."""
    sentences: Annotated[tuple[int, ...], BeforeValidator(_numbers)] | None = None
    """The number of sentences, or a list of those of sources that differ; the first is the usual
    one. Nothing is compared where nothing is declared."""
    tokens: Count | None = None
    """The number of words; nothing is compared where none is declared."""
    skipped: Some = 0
    """How many sentences break the format and are left out (``on_error = "skip"``)."""
    dropped: Some | None = None
    """How many sentences have no word left after the transforms, where that is known."""

    @field_validator("range")
    @classmethod
    def _range_is_one(cls, text: str | None) -> str | None:
        if text is not None:
            check_range(text)
        return text


class MiniSplit(Closed):
    """The number of sentences to generate."""

    sentences: Annotated[Count, Field(le=1_000_000)]
    """The number of sentences to generate."""


class Splits(Closed, Generic[SplitT]):
    """A table for each split."""

    train: SplitT
    """Sentences to learn from."""
    dev: SplitT
    """Sentences to select by."""
    test: SplitT
    """Sentences to score in the end."""

    def __getitem__(self, name: str) -> SplitT:
        found: SplitT = getattr(self, name)
        return found


# With names of their own, by which other processes find them.
class FileSplits(Splits[Split]):
    """Which files each split has."""

    @field_validator("dev", "test")
    @classmethod
    def _only_one_has_the_rest(cls, split: Split, info: ValidationInfo) -> Split:
        before = [name for name, other in info.data.items() if isinstance(other, Split)]
        if split.rest and (also := [name for name in before if info.data[name].rest]):
            raise ValueError(f"rest is true in split {also[0]} too; one split has what is left")
        return split


class MiniSplits(Splits[MiniSplit]):
    """How many sentences of each split are generated."""


def format_of(info: ValidationInfo) -> Format | None:
    """The format that a table names in front of a key; None if that is wrong itself."""
    name = info.data.get("format", "")
    return FORMATS.get(name) if name in FORMATS.names() else None


#: Options of readers that fingerprints of before do not know.
_LATER_OPTIONS = ("multiword", *BRACKET_OPTIONS)


def _one_or_several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[Text], BeforeValidator(_one_or_several)]


class InFormat(Closed):
    """A file format and the options of its reader."""

    format: Text
    """Name of the file format."""
    encoding: str | None = None
    """One text encoding, or several to try in turn: ``"utf-8 | gb18030"``."""
    escapes: str | None = None
    """What undoes the escapes of words: ``ptb``, ``brackets`` or ``none``."""
    lemmas: bool | None = None
    """Whether leaves are ``word-lemma``."""
    tag_column: Literal["upos", "xpos"] | None = None
    """Which column of a CoNLL file has the tags."""
    roots: Literal["one", "several"] | None = None
    """Whether sentences of a CoNLL file may have several roots."""
    multiword: MultiwordTokens | None = None
    """Whether a multiword token of a CoNLL-U file is its words or one word."""
    leaf: Text | None = None
    """How a bracket dialect writes a leaf: ``{tag} {word}`` and the like."""
    wrappers: Annotated[list[str], BeforeValidator(_one_or_several)] | None = None
    """Labels of brackets that hold trees and are no part of them."""
    drop: Texts | None = None
    """Labels of nodes that are left out with all below them."""
    id: Text | None = None
    """The label of the node, left out too, that names a tree."""

    @field_validator("format")
    @classmethod
    def _format_is_known(cls, name: str) -> str:
        known = [name for name in FORMATS.names() if cls._may_be(FORMATS.get(name))]
        if name not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return name

    @classmethod
    def _may_be(cls, form: Format) -> bool:
        return True

    @field_validator(
        "encoding", "escapes", "lemmas", "tag_column", "roots", "multiword", *BRACKET_OPTIONS
    )
    @classmethod
    def _is_option(cls, value: Any, info: ValidationInfo) -> Any:
        form = format_of(info)
        if form is None or value is None:
            return value
        if info.field_name not in form.options:
            options = ", ".join(form.options) or "none"
            raise ValueError(f"format {form.name} has no such option; it has {options}")
        if form.name == "brackets":
            check_bracket_options({str(info.field_name): value})
        return value

    @field_validator("escapes", mode="before")
    @classmethod
    def _escapes_are_known(cls, name: Any, info: ValidationInfo) -> Any:
        form = format_of(info)
        if form is not None and form.options.get("escapes") is ... and name is None:
            raise ValueError("missing")
        if isinstance(name, str) and (form is None or form.name != "brackets"):
            try:
                escapes_named(name)
            except SpmrlError as error:
                raise ValueError(str(error)) from None
        return name

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, names: str | None) -> str | None:
        for name in names.split(ALTERNATIVE) if names is not None else ():
            if not is_encoding(name):
                raise ValueError("no such text encoding")
        return names

    @property
    def options(self) -> dict[str, Any]:
        """The options of the reader, with the format's defaults for those not set."""
        defaults = FORMATS.get(self.format).options
        given = {name: getattr(self, name) for name in defaults}
        return {name: defaults[name] if value is None else value for name, value in given.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """The options as fingerprints have them: one that came later only where it is set."""
        return {
            name: value
            for name, value in self.options.items()
            if name not in _LATER_OPTIONS or value != FORMATS.get(self.format).options[name]
        }


class DependencyLayer(InFormat):
    """The sentences of a constituency treebank a second time, as dependencies.

    Their words must be those of the trees, at least after merging.
    """

    path: Folders | None = None
    """Its folder under the directory of treebanks, if not that of the trees."""
    train: Patterns | None = None
    """Patterns of the files of training."""
    dev: Patterns | None = None
    """Patterns of the files of dev."""
    test: Patterns | None = None
    """Patterns of the files of test."""
    ending: Annotated[str, Field(pattern=r"^\.\w+$")] | None = Field(None, validate_default=True)
    """In place of patterns: the ending by which the files are called otherwise than those of the
    trees, such as ``".conllx"``."""
    ids: Text | None = None
    """The column of the table of each split's ``rows`` that has the names of the sentences, where
    they stand in another order than the trees."""
    words: Literal["same", "merged"] = "same"
    """Whether words that make up one of the trees' are merged into it."""
    parts: Text | None = None
    """Where words are merged, the relation by which the parts of a word that the trees cut into
    several hang from the last of them; without it there can be none."""
    respelt: dict[Text, Text] = {}
    """Words that the trees spell otherwise, and how, where words are merged."""

    @classmethod
    def _may_be(cls, form: Format) -> bool:
        return form.yields == "dependencies"

    @field_validator("ending")
    @classmethod
    def _has_files(cls, value: str | None, info: ValidationInfo) -> str | None:
        if not set(SPLITS) <= info.data.keys():
            return value  # one of them has a mistake of its own
        named = [name for name in SPLITS if info.data[name] is not None]
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
