"""What an unknown folder of treebank files is: format, encoding, splits, transforms.

Nobody should have to read a manual to try a treebank. This module looks at the files and
proposes a manifest's settings, each for a reason that it can state; what it proposes is then
read in full, so that a wrong guess shows at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from spmrl_bench.errors import TreebankError
from spmrl_bench.readers.formats import FORMATS, Format, guess_format
from spmrl_bench.treebanks.bracket_proposals import proposed_format, proposed_options
from spmrl_bench.treebanks.nearest_format import nearest_format
from spmrl_bench.treebanks.reading import all_decode
from spmrl_bench.treebanks.sources import SPLITS
from spmrl_bench.trees.graph import Graph
from spmrl_bench.trees.tree import Tree

_BEGINNING = 1 << 17  # bytes of a file that are looked at
_SPLIT_WORDS = {
    "train": re.compile(r"(?<![a-z])(train|trn|training)(?![a-z])|train5k"),
    "dev": re.compile(r"(?<![a-z])(dev|devel|development|val|valid|validation)(?![a-z])"),
    "test": re.compile(r"(?<![a-z])(test|tst|testing)(?![a-z])"),
}
_DOCUMENTATION = re.compile(r"readme|licen[cs]e|changelog|copying", re.IGNORECASE)
# With fewer files than this, whole files make no sensible dev and test sets.
_FILES_TO_DIVIDE = 10
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")


@dataclass(frozen=True, slots=True)
class GuessedFiles:
    """The treebank's files in a folder.

    Attributes:
        form: their format.
        encoding: of their text; None if the format says it itself.
        paths: relative to the folder, in bytewise order.
        others: files of other formats or of none, relative to the folder.
    """

    form: Format
    encoding: str | None
    paths: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GuessedSplit:
    """The files of one split, and the range of their sentences if they are shared."""

    files: tuple[str, ...]
    range: tuple[int, int] | None = None


def guess_files(
    folder: Path, *, format_name: str | None = None, encoding: str | None = None
) -> GuessedFiles:
    """Look at every file of a folder and of those in it.

    The treebank's are those of the format with most bytes; hidden files and documentation are
    passed over. Format and encoding are guessed where they are not given.

    Raises:
        TreebankError: no file is of a known format, or of the one asked for.
    """
    found: dict[str, list[Path]] = {name: [] for name in FORMATS}
    others: list[Path] = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if not path.is_file() or any(part.startswith(".") for part in parts):
            continue
        form = None if _DOCUMENTATION.search(path.name) else _format_of(path, encoding)
        (others if form is None else found[form.name]).append(path)
    sizes = {name: sum(path.stat().st_size for path in paths) for name, paths in found.items()}
    chosen = format_name or max(sizes, key=lambda name: sizes[name])
    if not found[chosen]:
        kind = f"of the format {chosen}" if format_name else "of a known format"
        raise TreebankError(
            f"{folder}: found no file {kind} among {len(others)} files. "
            f"Known formats: {', '.join(FORMATS)}.{nearest_format(_texts(others, format_name))}"
        )
    others += [path for name, paths in found.items() if name != chosen for path in paths]
    paths = found[chosen]
    if encoding is None and "encoding" in FORMATS[chosen].options:
        encoding = _encoding(paths)

    def names(files: Sequence[Path]) -> tuple[str, ...]:
        return tuple(sorted(path.relative_to(folder).as_posix() for path in files))

    return GuessedFiles(FORMATS[chosen], encoding, names(paths), names(others))


def split_by_name(paths: Sequence[str]) -> dict[str, GuessedSplit] | None:
    """The splits that the names of files and folders tell; None unless all three are there."""
    by_split: dict[str, list[str]] = {name: [] for name in SPLITS}
    for path in paths:
        matches = [name for name, word in _SPLIT_WORDS.items() if word.search(path.lower())]
        if len(matches) == 1:
            by_split[matches[0]].append(path)
    if not all(by_split.values()):
        return None
    return {name: GuessedSplit(tuple(files)) for name, files in by_split.items()}


def split_by_position(paths: Sequence[str], sizes: Sequence[int]) -> dict[str, GuessedSplit]:
    """Splits where no name tells them: of ten files the ninth is dev and the tenth test.

    With fewer than ten files, the first 80 % of all sentences are train, the next 10 % dev and
    the rest test; ``sizes`` has the number of sentences of each file.

    Raises:
        TreebankError: there are fewer than three sentences.
    """
    if len(paths) >= _FILES_TO_DIVIDE:
        parts: dict[str, list[str]] = {name: [] for name in SPLITS}
        for index, path in enumerate(paths):
            parts[{8: "dev", 9: "test"}.get(index % 10, "train")].append(path)
        return {name: GuessedSplit(tuple(files)) for name, files in parts.items()}
    total = sum(sizes)
    if total < len(SPLITS):
        raise TreebankError(f"found {total} sentences, expected at least 3 to divide")
    tenth = max(1, total // 10)
    borders = [0, total - 2 * tenth, total - tenth, total]
    ranges = [(first + 1, last) for first, last in pairwise(borders)]
    return {
        name: GuessedSplit(tuple(paths), part) for name, part in zip(SPLITS, ranges, strict=True)
    }


def guess_options(form: Format, folder: Path, guessed: GuessedFiles) -> dict[str, Any]:
    """Options of the reader other than the encoding, by the text of the first file."""
    beginning = (folder / guessed.paths[0]).read_bytes()[:_BEGINNING]
    text = beginning.decode(guessed.encoding or "utf-8", errors="replace")
    options: dict[str, Any] = {}
    if form.name == "brackets":
        options |= proposed_options(text)
    elif "escapes" in form.options:
        options["escapes"] = "ptb" if r"\/" in text or "-LCB-" in text else "brackets"
    if "lemmas" in form.options:
        leaves = re.findall(r"\([^\s()]+ ([^\s()]+)\)", text)
        options["lemmas"] = 2 * sum("-" in leaf[1:] for leaf in leaves) > len(leaves)
    if "tag_column" in form.options:
        rows = [line.split("\t") for line in text.splitlines()]
        xpos = Counter(row[4] for row in rows if len(row) == 10)
        options["tag_column"] = "upos" if 2 * xpos["_"] >= sum(xpos.values()) else "xpos"
    return options


def guess_transforms(form: Format, trees: Sequence[Tree | Graph]) -> list[str]:
    """The transforms that make such trees (or graphs) of a format ready to be trained on."""
    tags = {tag for tree in trees for tag in tree.tags}
    labels = Counter(label for tree in trees for label in tree.labels)
    marked = sum(count for label, count in labels.items() if re.search("[-=]", label[1:-1]))
    graphs = form.yields == "graphs"
    wanted = {
        "add-vroot": graphs,
        "attach-loose-tokens": graphs,
        "raise-crossing-branches": graphs,
        "drop-traces": "-NONE-" in tags,
        "strip-visl-functions": form.name == "visl",
        "strip-roles": form.name == "sinica",
        "coarse-sinica-categories": form.name == "sinica",
        "strip-semantic-marks": any(";" in label for label in labels),
        "strip-functions": 50 * marked > sum(labels.values()),
        "strip-cess-marks": form.name == "tbf",
        "strip-root": not graphs,
    }
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _format_of(path: Path, encoding: str | None) -> Format | None:
    with path.open("rb") as file:
        data = file.read(_BEGINNING)
    if b"\0" in data and encoding is None:
        return None  # an archive or an image
    text = data.decode(encoding or "utf-8", errors="replace")
    text = text[: _BEGINNING // 2]
    return proposed_format(text, guess_format(text))


def _encoding(paths: Sequence[Path]) -> str:
    """UTF-8 if all files are; else GB 18030 if that gives Chinese, else a Western one."""
    if all_decode(paths, "utf-8"):
        return "utf-8"
    # A Chinese character is two bytes that are not ASCII; an accented letter is one of them.
    runs = [run for path in paths for run in _NOT_ASCII.findall(path.read_bytes())]
    chinese = 10 * sum(len(run) % 2 == 0 for run in runs) > 9 * len(runs)
    tried = ("gb18030", "cp1252") if chinese else ("cp1252",)
    return next((name for name in tried if all_decode(paths, name)), "latin-1")


def _texts(paths: Sequence[Path], format_name: str | None) -> list[Path]:
    """The largest files that may be text, where the format was not given."""
    if format_name is not None:
        return []
    texts = [path for path in paths if not _DOCUMENTATION.search(path.name)]
    texts = [path for path in texts if b"\0" not in path.read_bytes()[:_BEGINNING]]
    return sorted(texts, key=lambda path: -path.stat().st_size)[:3]
