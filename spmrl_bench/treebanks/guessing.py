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
from pathlib import Path
from typing import Any

from spmrl_bench.errors import TreebankError
from spmrl_bench.readers.formats import FORMATS, Format, guess_format
from spmrl_bench.readers.text import check_encoding
from spmrl_bench.treebanks.encodings import guess_encoding, marked_encoding
from spmrl_bench.treebanks.manifest import SplitName
from spmrl_bench.treebanks.nearest_format import nearest_format
from spmrl_bench.treebanks.split_names import (
    LONGEST_LIST,
    documents,
    listed_documents,
    split_of_list,
)
from spmrl_bench.trees.graph import Graph
from spmrl_bench.trees.tree import Tree

_BEGINNING = 1 << 17  # bytes of a file that are looked at
_DOCUMENTATION = re.compile(r"readme|licen[cs]e|changelog|copying", re.IGNORECASE)


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


def guess_files(
    folder: Path, *, format_name: str | None = None, encoding: str | None = None
) -> GuessedFiles:
    """Look at every file of a folder and of those in it.

    The treebank's are those of the format with most bytes; hidden files and documentation are
    passed over. Format and encoding are guessed where they are not given.

    Raises:
        TreebankError: no file is of a known format, or of the one asked for; the encoding is
            unknown, or two are mixed.
    """
    if encoding is not None:
        check_encoding(encoding)
    found: dict[str, list[Path]] = {name: [] for name in FORMATS.names()}
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
            f"Known formats: {', '.join(FORMATS.names())}."
            f"{nearest_format(_texts(others, format_name))}"
        )
    others += [path for name, paths in found.items() if name != chosen for path in paths]
    paths = found[chosen]
    if encoding is None and "encoding" in FORMATS.get(chosen).options:
        encoding = guess_encoding(paths)

    def names(files: Sequence[Path]) -> tuple[str, ...]:
        return tuple(sorted(path.relative_to(folder).as_posix() for path in files))

    return GuessedFiles(FORMATS.get(chosen), encoding, names(paths), names(others))


def guess_lists(
    folder: Path, guessed: GuessedFiles
) -> dict[SplitName, tuple[str, tuple[str, ...]]]:
    """The lists of documents beside a treebank's files, by the split that their names tell of.

    Returns:
        The path of a list and its lines; every line names a file of the treebank.
    """
    found: dict[SplitName, tuple[str, tuple[str, ...]]] = {}
    for name in guessed.others:
        split, path = split_of_list(name), folder / name
        if split is None or split in found or path.stat().st_size > LONGEST_LIST:
            continue
        try:
            ids = listed_documents(path)
        except TreebankError:
            continue
        if ids and not documents(guessed.paths, ids)[1]:
            found[split] = (name, ids)
    return found


def guess_options(form: Format, folder: Path, guessed: GuessedFiles) -> dict[str, Any]:
    """Options of the reader other than the encoding, by the text of the first file."""
    beginning = (folder / guessed.paths[0]).read_bytes()[:_BEGINNING]
    text = beginning.decode(guessed.encoding or "utf-8", errors="replace")
    options: dict[str, Any] = {}
    if "escapes" in form.options:
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
        "strip-features": form.name == "brackets" and any("##" in tag for tag in tags),
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
    encoding = encoding or marked_encoding(data)
    if b"\0" in data and encoding is None:
        return None  # an archive or an image
    text = data.decode(encoding or "utf-8", errors="replace").removeprefix("\ufeff")
    text = text[: _BEGINNING // 2]
    return guess_format(text)


def _texts(paths: Sequence[Path], format_name: str | None) -> list[Path]:
    """The largest files that may be text, where the format was not given."""
    if format_name is not None:
        return []
    texts = [path for path in paths if not _DOCUMENTATION.search(path.name)]
    texts = [path for path in texts if b"\0" not in path.read_bytes()[:_BEGINNING]]
    return sorted(texts, key=lambda path: -path.stat().st_size)[:3]
