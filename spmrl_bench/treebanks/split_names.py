"""Which files are for training, development and test, as far as their names say it.

A test set that was pooled into training is the worst thing that can happen to a new treebank, and
nobody would notice. So names decide wherever they say something, and what they leave open is
decided in one direction only: files that no name claims become training data only if none is
claimed for training, and what is missing is cut from the end of the training data, never from a
development or test set. Where no such reading is left, the names are refused, with what they
lack.

Names are looked at from the inside out: the name of the file first, then the folders around it
but for those around all files. A word counts alone (``x.train``), with what corpora are called by
(``devset``, ``train-data``), or beside what the names of all files begin or end with (``hebtrain``,
``hebdev``). ``gold`` and ``eval`` mean test, unless a stronger word stands in the path:
``train/train.German.gold.ptb`` is for training.
"""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath

from spmrl_bench.bounded_files import read_within
from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.manifest import SPLITS, SplitName

LONGEST_LIST = 1 << 20

_WORDS: dict[str, SplitName] = {
    **dict.fromkeys(("train", "trn", "training"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "tune", "tuning", "heldout"), "dev"),
    **dict.fromkeys(("val", "valid", "validation"), "dev"),
    **dict.fromkeys(("test", "tst", "testing"), "test"),
}
# Gold trees are what a test set is scored against, but training data are gold too.
_WEAK: dict[str, SplitName] = dict.fromkeys(("gold", "eval", "evaluation"), "test")
_CALLED = "(?:set|data|corpus|file|files|sents|sentences|split|part|docs|list|ids)?"
_LETTERS = re.compile(r"[a-z]+")
_DIGITS = re.compile(r"[0-9]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")

#: The usual division of the Wall Street Journal, by its sections (Collins 1999).
_SECTIONS: dict[str, SplitName] = {
    **{f"{number:02d}": "train" for number in range(2, 22)},
    **{"00": "dev", "01": "dev", "22": "dev", "24": "dev", "23": "test"},
}
_SECTION = re.compile(r"(?<![0-9])([0-9]{2})(?:(?:-|\.\.|_to_)([0-9]{2}))?(?![0-9])")
_RANGE = re.compile(r"(?<![0-9])0?2(?:-|\.\.|_to_)21(?![0-9])")

Files = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedSplits:
    """What names say of some files.

    Attributes:
        files: of each split that names tell of, at least one.
        unnamed: files of which they say nothing.
        by: what said it, for people.
    """

    files: Mapping[SplitName, Files]
    unnamed: Files
    by: str = "by the names of the files"


def named_splits(paths: Sequence[str]) -> NamedSplits | None:
    """What the names of files say, or None if they say nothing of any.

    Args:
        paths: of all files of the treebank, relative to its folder, with ``/``.

    Raises:
        TreebankError: a name says two things at once (``train-dev.mrg``), or several treebanks
            lie in the folder, each with splits of its own.
    """
    around = _Around.of(paths)
    told: dict[str, SplitName] = {}
    places: dict[str, str] = {}  # what is left of a path without the part that tells
    for words in (_WORDS, _WEAK):
        for path in paths:
            if path not in told and (found := _told(path, words, around)) is not None:
                told[path], places[path] = found
        if set(told.values()) == set(SPLITS):
            break  # nothing is left for words that may mean another thing
    if not told:
        return _by_sections(paths)
    _refuse_several(told, places)
    files: dict[SplitName, Files] = {
        name: chosen
        for name in SPLITS
        if (chosen := tuple(path for path in paths if told.get(path) == name))
    }
    return NamedSplits(files, tuple(path for path in paths if path not in told))


def split_of_list(name: str) -> SplitName | None:
    """The split whose documents a file lists, by its name, such as ``ids-train.txt``."""
    found = _told(PurePosixPath(name).name, _WORDS, _Around())
    return None if found is None else found[0]


@dataclass(frozen=True, slots=True)
class _Around:
    """What the paths of all files have in common, which tells nothing."""

    folders: int = 0
    beginning: str = ""
    ending: str = ""

    @classmethod
    def of(cls, paths: Sequence[str]) -> _Around:
        parents = [PurePosixPath(path).parent.parts for path in paths]
        stems = sorted({PurePosixPath(path).name.partition(".")[0] for path in paths})
        if len(stems) < 2:
            return cls(_common(parents))
        first = stems[0]
        ending = _common([stem[::-1] for stem in stems])
        return cls(_common(parents), first[: _common(stems)], first[len(first) - ending :])

    def without(self, name: str) -> str:
        """The name of a file without it."""
        stem, dot, rest = name.partition(".")
        return stem.removeprefix(self.beginning).removesuffix(self.ending) + dot + rest


def _common(sequences: Sequence[Sequence[str]]) -> int:
    """How many items all sequences begin with."""
    columns = zip(*sequences, strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def _told(
    path: str, words: Mapping[str, SplitName], around: _Around
) -> tuple[SplitName, str] | None:
    """The split that a path tells of, and the path without the part that says so."""
    *folders, name = PurePosixPath(path).parts
    for depth in range(len(folders), around.folders - 1, -1):
        inner = name if depth == len(folders) else folders[depth]
        found = _meanings(inner, words)
        if not found and inner is name:
            found = _meanings(around.without(name), words)
        if len(set(found.values())) > 1:
            raise TreebankError(
                f"{path}: its name says {' and '.join(found)}, which are different splits; say "
                "which files are for what with --train, --dev and --test"
            )
        if found:
            (word, split), *_ = found.items()
            # Numbers tell parts of one treebank apart, and so does what lies in a split's folder.
            left = _DIGITS.sub("#", inner.lower().replace(word, "", 1)) if inner is name else ""
            above = [
                part for part in folders[:depth] if split not in _meanings(part, words).values()
            ]
            return split, "/".join([*above, left])
    return None


def _meanings(name: str, words: Mapping[str, SplitName]) -> dict[str, SplitName]:
    """The words of a name that tell of splits."""
    found: dict[str, SplitName] = {}
    for token in _LETTERS.findall(_CAMEL.sub(" ", name).lower()):
        for word, split in words.items():
            if re.fullmatch(word + _CALLED, token):
                found[word] = split
                break
    return found


def _refuse_several(told: Mapping[str, SplitName], places: Mapping[str, str]) -> None:
    """Make sure that the files are of one treebank; else an error with the list of them."""
    splits: dict[str, set[str]] = defaultdict(set)
    for path, split in told.items():
        splits[places[path]].add(split)
    whole = [place for place, found in splits.items() if len(found) > 1]
    if len(whole) < 2:
        return
    listed = ", ".join(
        sorted({next(path for path in told if places[path] == place) for place in whole})[:8]
    )
    raise TreebankError(
        f"found {len(whole)} treebanks or editions, each with splits of its own; one file of each: "
        f"{listed}. Name the folder of one of them, or say which files are for what with --train, "
        "--dev and --test"
    )


def _by_sections(paths: Sequence[str]) -> NamedSplits | None:
    """The splits that numbers of sections of the Wall Street Journal tell; None unless all do."""
    if not any("wsj" in path.lower() or _RANGE.search(path) for path in paths):
        return None  # other numbers
    told: dict[str, SplitName] = {}
    for path in paths:
        found = _sections(path)
        if len(found) == 1:
            told[path] = found.pop()
    files: dict[SplitName, Files] = {
        name: tuple(path for path in paths if told.get(path) == name) for name in SPLITS
    }
    training = {match for path in files["train"] for match in _numbers(path)}
    if not all(files.values()) or not {f"{n:02d}" for n in range(2, 22)} <= training:
        return None
    # Of the sections that are dev for some, 22 is that of the papers.
    if any("22" in _numbers(path) for path in files["dev"]):
        files["dev"] = tuple(path for path in files["dev"] if "22" in _numbers(path))
    chosen = {path for split in files.values() for path in split}
    return NamedSplits(
        files,
        tuple(path for path in paths if path not in chosen),
        "by the sections of the Wall Street Journal: 2 to 21, 22 and 23",
    )


def _numbers(path: str) -> set[str]:
    """The sections that the innermost name with such numbers names."""
    for part in reversed(PurePosixPath(path).parts):
        if found := _SECTION.findall(part):
            return {
                f"{number:02d}"
                for first, last in found
                for number in range(int(first), int(last or first) + 1)
            }
    return set()


def _sections(path: str) -> set[SplitName]:
    """The splits of the sections that a path names."""
    return {_SECTIONS[number] for number in _numbers(path) if number in _SECTIONS}


def documents(paths: Sequence[str], ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """The documents that a list names, in the order of the files, and its lines that name none.

    A line is the path of a file, its name, or its name without the ending (all endings, or the
    last); or a pattern of these with ``*``, ``?`` and ``[...]``.
    """
    places: dict[str, list[str]] = {}
    for path in paths:
        name = PurePosixPath(path)
        bare = name.name.partition(".")[0]
        for form in {path, str(name.with_suffix("")), name.name, name.stem, bare}:
            places.setdefault(form, []).append(path)
    chosen: set[str] = set()
    unknown: list[str] = []
    for line in ids:
        forms = [line] if line in places else fnmatch.filter(places, line)
        chosen.update(path for form in forms for path in places[form])
        if not forms:
            unknown.append(line)
    return [path for path in paths if path in chosen], unknown


def listed_documents(path: Path) -> tuple[str, ...]:
    """The lines of a list of documents, without comments (``#``) and blank ones.

    Raises:
        TreebankError: the file cannot be read, or is too large for a list.
    """
    text = read_within(path, TreebankError, LONGEST_LIST).decode("utf-8-sig", errors="replace")
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))
