"""Guess what a folder of treebank files is: formats, encoding, options, splits and transforms.

Nobody should have to read a manual to try a treebank. But nobody would notice a test set that is
pooled into training, or a wrong encoding, whose words look almost right. Splits therefore follow
from names or from the user, never from the order of files, files are UTF-8 or say what they are,
and what cannot be told is refused, with the files and the option that says it.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, product
from pathlib import Path, PurePosixPath
from typing import Any

from spmrl_bench.errors import ReadError, SpmrlError, TreebankError
from spmrl_bench.readers.dialects import looks_like_sisters
from spmrl_bench.readers.formats import FORMATS, Format, guess_format
from spmrl_bench.readers.text import check_encoding
from spmrl_bench.storage.files import read_bounded
from spmrl_bench.treebanks.manifest import SPLITS, SplitName
from spmrl_bench.treebanks.patterns import some
from spmrl_bench.trees.graph import Graph
from spmrl_bench.trees.transforms import strip_markup
from spmrl_bench.trees.tree import Tree

_BEGINNING = 1 << 16  # characters of a file that are looked at
_SAMPLE = 1 << 20  # characters of all files that options are guessed from
_TRIED = 500  # sentences that are read of a file of no known format
_LONGEST_LIST = 1 << 20  # bytes of a list of files
_DOCUMENTATION = re.compile(r"readme|licen[cs]e|changelog|copying", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip

_ZEROS = {b"\1\0\1\0": "utf-16-le", b"\0\1\0\1": "utf-16-be"}  # by which bytes are other ones
# A node of innermost brackets alone in front of a tree; headings of FarPaHC are called META, too.
_METADATA = re.compile(r"\(\s*+\((META\w*+)(?:\s*+\([^()]*+\))++\s*+\)\s*+\((?!ID\s|CODE\s)")
_WORDS: dict[str, SplitName] = {
    **dict.fromkeys(("train", "trn"), "train"),
    **dict.fromkeys(("dev", "devel", "development", "val", "valid", "validation"), "dev"),
    **dict.fromkeys(("tune", "heldout"), "dev"),
    **dict.fromkeys(("test", "tst"), "test"),
}
# Gold trees are what a test set is scored against, but training data are gold too.
_WEAK: dict[str, SplitName] = dict.fromkeys(("gold", "eval", "evaluation"), "test")
# What corpora are called by, behind such a word.
_CALLED = ("", "ing", "set", "data", "corpus", "file", "files", "sents", "part")
_STRONG = {word + called: split for word, split in _WORDS.items() for called in _CALLED}
_TOKEN = re.compile(r"[a-z]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SAY = (
    "say which files are for what with --train, --dev and --test: names, patterns with '*', or "
    "@FILE with a list; --train '*' takes all that are left, and what is missing is cut from their "
    "end"
)


@dataclass(frozen=True, slots=True)
class Source:
    """Files of a format, by path under the treebank's folder, and the options of its reader."""

    form: Format
    paths: tuple[str, ...]
    options: Mapping[str, Any]
    markup: bool = False  # whether lines of markup stand between its trees

    def read(self, path: Path, on_error: Callable[[ReadError], None]) -> Iterator[Any]:
        """Yield the sentences of a file."""
        markup = {"prepare": strip_markup} if self.markup else {}
        return self.form.read(path, on_error=on_error, **self.options, **markup)


@dataclass(frozen=True, slots=True)
class Division:
    """Which files are for what, and what told it, for people.

    The splits in ``cut`` have none: they get the last sentences of the training files.
    """

    files: Mapping[SplitName, tuple[str, ...]]
    cut: tuple[SplitName, ...]
    unused: tuple[str, ...]
    how: str


def guess_sources(
    folder: Path, *, format_name: str | None = None, encoding: str | None = None
) -> tuple[Source, Source | None, dict[str, str]]:
    """Return the treebank's files, those of the dependencies beside its trees, and all others, with
    the reason where their ending is that of the treebank's.

    The treebank's are those of the format with most bytes, or trees if each of their files has one
    of dependencies that is called alike; these are in the order of the trees. Hidden files and
    documentation are passed over. Raise a TreebankError if no file is of a known format, or of the
    one asked for, or a file is not UTF-8 and no encoding is given; a SpmrlError if there is no such
    encoding, or a file cannot be read.
    """
    if encoding is not None:
        check_encoding(encoding)
    names = FORMATS.names() if format_name is None else [format_name]
    formats = [FORMATS.get(name, TreebankError) for name in names]
    found: dict[str, list[str]] = defaultdict(list)
    sizes: Counter[str] = Counter()
    others: list[str] = []
    for path in sorted(folder.rglob("*"), key=lambda path: path.as_posix()):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or any(part.startswith(".") for part in PurePosixPath(name).parts):
            continue
        text = "" if _DOCUMENTATION.search(path.name) else _begin(path, encoding)
        form = guess_format(text, formats) or guess_format(strip_markup(text), formats)
        if form is None:
            others.append(name)
            if not path.stat().st_size and _WORDS.keys() & _TOKEN.findall(name.lower()):
                raise TreebankError(
                    f"{path}: is empty, but its name says what it is for: remove it"
                )
        else:
            found[form.name].append(name)
            sizes[form.name] += path.stat().st_size
    if not found:
        kind = f"of the format {format_name}" if format_name else "of a known format"
        nearest = _nearest([folder / name for name in others], formats)
        raise TreebankError(f"{folder}: found no file {kind} among {len(others)} files.{nearest}")
    ordered = [FORMATS.get(name) for name, _ in sizes.most_common()]
    best, beside = ordered[0], None
    trees = next((form for form in ordered if form.yields != "dependencies"), None)
    arcs = next((form for form in ordered if form.yields == "dependencies"), None)
    if trees and arcs and (alike := _partners(found[trees.name], found[arcs.name])):
        best, beside = trees, Source(arcs, alike, _options(arcs, folder, alike, encoding))
    paths = tuple(found.pop(best.name))
    begin = "".join(_begin(folder / path, encoding) for path in paths[:1])
    markup = best.name == "brackets" and begin.lstrip().startswith("<")
    source = Source(best, paths, _options(best, folder, paths, encoding), markup)
    kin = {PurePosixPath(path).suffix for path in paths}
    unused = dict.fromkeys([*others, *chain(*found.values())], "")
    taken = set[str]() if beside is None else {*beside.paths}
    # Those that begin in another way, or as brackets do, which others look like, too.
    for name in [*others, *found["brackets"]] if format_name is None and beside is None else []:
        its = PurePosixPath(name)
        if its.suffix in kin and not _DOCUMENTATION.search(its.name):
            count, errors = _tried(source.read, folder / name)
            unused[name] = str(errors[0]) if errors else "it has no sentence"
            taken |= {name} if count and not errors else set()
    if beside is None:
        source = replace(source, paths=tuple(sorted({*paths, *taken})))
    return source, beside, {name: unused[name] for name in sorted(unused.keys() - taken)}


def _tried(read: Callable[..., Iterator[Any]], path: Path) -> tuple[int, list[SpmrlError]]:
    """How many of the first sentences of a file can be read, and what is wrong with others."""
    count, errors = 0, list[SpmrlError]()
    try:
        for _ in islice(read(path, on_error=errors.append), _TRIED):
            count += 1
    except SpmrlError as error:
        errors.append(error)
    return count, errors


def _partners(paths: Sequence[str], others: Sequence[str]) -> tuple[str, ...] | None:
    """The file of the same name but for the ending, of each; None if one has none. Where names
    alone are not unique, those of their folders must be the same too."""
    for parts in (1, 2):
        keys = [PurePosixPath(path).with_suffix("").parts[-parts:] for path in paths]
        by_key = {PurePosixPath(other).with_suffix("").parts[-parts:]: other for other in others}
        if len(by_key) == len(others) and len(set(keys) & by_key.keys()) == len(paths):
            return tuple(by_key[key] for key in keys)
    return None


def _begin(path: Path, encoding: str | None) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(2 * _BEGINNING)
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error
    encoding = encoding or _marked(data)
    if b"\0" in data and encoding is None:
        return ""  # an archive or an image
    return data.decode(encoding or "utf-8", errors="replace").removeprefix("\ufeff")[:_BEGINNING]


def _nearest(paths: Sequence[Path], forms: Sequence[Format]) -> str:
    """Say which format reads most of the largest files, and where it fails."""
    best, said = -1.0, ""
    texts = [path for path in paths if not _DOCUMENTATION.search(path.name) and _begin(path, None)]
    largest = sorted(texts, key=lambda path: -path.stat().st_size)[:3]
    for path, form in product(largest, forms):
        required = {"escapes": "brackets"} if form.options.get("escapes") is ... else {}
        count, errors = _tried(partial(form.read, **required), path)
        share = count / (1 + len(errors))
        if errors and share > best:
            best, said = share, f" The nearest is {form.name}, which fails: {errors[0]}"
    return said


def _marked(data: bytes) -> str | None:
    """The encoding that the first bytes of a file name or, by their zeros, are in, if not UTF-8."""
    named = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    return named or _ZEROS.get(bytes(map(bool, data[:4])))  # a format begins with ASCII


def _encoding(folder: Path, paths: Iterable[str]) -> str:
    """The encoding of files that are UTF-8, or all have the same mark at their beginning."""
    found = set()
    for name in paths:
        data = (folder / name).read_bytes()
        found.add(encoding := _marked(data) or "utf-8")
        try:
            data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise TreebankError(
                f"{folder / name}:{line}: byte 0x{data[error.start]:02x} is not {error.encoding}. "
                f"Name the encoding with --encoding{_likely(data, error.start)}"
            ) from None
    if len(found) > 1:
        raise TreebankError(
            f"{folder}: files in {' and '.join(sorted(found))}: convert them to one encoding"
        )
    return found.pop()


def _likely(data: bytes, place: int) -> str:
    """Say in which encodings a text may be, and how its first word that tells reads in each."""
    from charset_normalizer import from_bytes  # which comes with requests

    start = max(data.rfind(byte, 0, place) for byte in (b" ", b"\n", b"\t", b"(")) + 1
    word = (data[start:].split() or [b""])[0].strip(b"()")
    guesses = [match.encoding for match in from_bytes(data[: 1 << 16])][:3]
    shown = ", ".join(f"{name} ({word.decode(name, errors='replace')})" for name in guesses)
    return f"; it may be {shown}" if shown else ""


def _options(
    form: Format, folder: Path, paths: Sequence[str], encoding: str | None
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "encoding" in form.options:
        options["encoding"] = encoding or _encoding(folder, paths)
    text = ""
    for name in paths:
        text += _begin(folder / name, options.get("encoding"))
        if len(text) > _SAMPLE:
            break
    if "escapes" in form.options:
        penn = r"\/" in text or "-LCB-" in text
        if form.options["escapes"] is ... or re.search("-[LR][RSC]B-", text):
            options["escapes"] = "ptb" if penn else "brackets"
    if "leaf" in form.options and looks_like_sisters(text):
        options["leaf"] = "{tag} {word...} (...)"
    if "drop" in form.options and (metadata := _METADATA.findall(text)):
        options["drop"] = sorted(set(metadata))
    if "lemmas" in form.options:
        leaves = re.findall(r"\([^\s()]+ ([^\s()]+)\)", text)
        options["lemmas"] = 2 * sum("-" in leaf[1:] for leaf in leaves) > len(leaves)
        if not options["lemmas"] and re.search(r"\((\W) \1-\1\)", text):
            options["lemmas"] = "punctuation"
    if "tag_column" in form.options:
        rows = [line.split("\t") for line in text.splitlines()]
        xpos = Counter(row[4] for row in rows if len(row) == 10)
        options["tag_column"] = "upos" if 2 * xpos["_"] >= sum(xpos.values()) else "xpos"
    return options


def guess_transforms(form: Format, trees: Sequence[Tree | Graph], *, markup: bool) -> list[str]:
    """Return the transforms that make such trees (or graphs) of a format ready to be trained on,
    between which there may be ``markup``."""
    tags = {tag for tree in trees for tag in tree.tags}
    labels = Counter(label for tree in trees for label in tree.labels)
    marked = sum(count for label, count in labels.items() if re.search("[-=]", label[1:-1]))
    graphs = form.yields == "graphs"
    wanted = {
        "strip-markup": markup,
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


def divide(
    paths: Sequence[str], given: Mapping[SplitName, Sequence[str]], folder: Path
) -> Division:
    """Divide the files of a treebank, by their ``paths`` in its folder, among the splits.

    The user may have given for a split: a path or a name, with or without its ending; a pattern of
    these with ``*``; a folder; ``@FILE`` with one of these a line, which is looked for in the
    working directory and in the folder. A pattern takes no file that names claim for a split of
    which nothing is said, and for train none that is taken for another. Raise a TreebankError if it
    is open what is for training, or what a file is for, something given matches no file, or several
    treebanks lie in the folder.
    """
    starred = {split: [one for one in given[split] if "*" in one] for split in given}
    chosen = {
        split: _matching(paths, split, [one for one in given[split] if "*" not in one], folder)
        for split in given
    }
    left = _without(paths, chosen.values())
    named = _named_splits(left) if len(given) < len(SPLITS) else {}
    files = {split: its for split, its in named.items() if split not in given}
    left = _without(left, files.values())
    for split in (split for split in reversed(SPLITS) if split in given):  # train has what is left
        wanted = chosen[split] | _matching(left, split, starred[split], folder)
        left = _without(left, [wanted])
        files[split] = tuple(path for path in paths if path in wanted)
    how = "as you said" if given else "by the names of the files"
    if not files and len(paths) == 1:
        files, how = {"train": tuple(paths)}, "one file, divided: 80 % train, 10 % dev, 10 % test"
    unused = tuple(_without(paths, files.values()))
    cut = tuple(split for split in SPLITS if split not in files)
    if not files.get("train") or (cut and unused and "train" not in given):
        told = "; ".join(f"{split}: {some(files[split])}" for split in SPLITS if files.get(split))
        raise TreebankError(
            f"{folder}: {told or 'no name says train, dev or test'}; "
            f"not known: {some(unused) or 'what is for train'}. Please {_SAY}"
        )
    return Division({split: files[split] for split in SPLITS if split in files}, cut, unused, how)


def _named_splits(paths: Sequence[str]) -> dict[SplitName, tuple[str, ...]]:
    """The files of each split that names tell of. The innermost part of a path tells that has words
    of exactly one split: alone (``x.train``), or with what corpora are called by (``devset``).
    ``gold`` and ``eval`` mean test in a path without another word. Where all three splits are
    called alike but for the word, files that are called otherwise (``train5k``, ``train-small``)
    are none of them. Several such threes or pairs are an error."""
    around = posixpath.commonpath([posixpath.dirname(path) for path in paths] or [""])
    names = {path: _CAMEL.sub(" ", path[len(around) :]).lower() for path in paths}
    told = _told(names, _STRONG)
    if {split for split, _ in told.values()} != set(SPLITS):
        words = _STRONG.keys()
        others = {path: name for path, name in names.items() if not words & _TOKEN.findall(name)}
        told |= _told(others, _WEAK)
    splits_of: dict[str, set[SplitName]] = defaultdict(set)
    for split, alike in told.values():
        splits_of[alike].add(split)
    several = [alike for alike, splits in splits_of.items() if len(splits) > 1]
    if len(several) > 1:
        examples = [next(path for path in told if told[path][1] == alike) for alike in several]
        raise TreebankError(
            f"found {len(several)} treebanks or editions, each with splits of its own, such as "
            f"{some(examples)}. Name the folder of one of them, or {_SAY}"
        )
    whole = [alike for alike in several if splits_of[alike] == set(SPLITS)]
    kept = {path: told[path][0] for path in sorted(told) if not whole or told[path][1] in whole}
    return {
        split: tuple(path for path in kept if kept[path] == split)
        for split in SPLITS
        if split in kept.values()
    }


def _told(
    names: Mapping[str, str], meanings: Mapping[str, SplitName]
) -> dict[str, tuple[SplitName, str]]:
    """The split that a path tells of, and the part that tells without word and numbers."""
    told = {}
    for path, name in names.items():
        parts = name.split("/")
        for depth in range(len(parts), 0, -1):
            words = meanings.keys() & _TOKEN.findall(parts[depth - 1])
            found = {meanings[word] for word in words}
            if len(found) == 1:
                alike = _TOKEN.sub(
                    lambda match: "" if match[0] in meanings else match[0], "/".join(parts[:depth])
                )
                told[path] = found.pop(), re.sub("[0-9]+", "#", alike)
                break
    return told


def _without(paths: Iterable[str], taken: Iterable[Collection[str]]) -> list[str]:
    every = set().union(*taken)
    return [path for path in paths if path not in every]


def _matching(
    paths: Sequence[str], split: SplitName, wanted: Sequence[str], folder: Path
) -> set[str]:
    forms: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        name = PurePosixPath(path)
        for form in {path, str(name.with_suffix("")), name.name, name.stem}:
            forms[form].append(path)
    chosen: set[str] = set()
    for given in wanted:
        for line in _listed(given[1:], folder) if given.startswith("@") else [given]:
            below = f"{line.rstrip('/')}/"
            pattern = re.compile("[^/]*".join(map(re.escape, line.split("*"))))
            found = forms.get(line) or [path for path in paths if path.startswith(below)]
            if not found and "*" in line:
                found = [path for form in forms if pattern.fullmatch(form) for path in forms[form]]
            if not found:
                raise TreebankError(
                    f"--{split} {given}: '{line}' is none of the files that are left: "
                    f"{some(paths) or 'none'}"
                )
            chosen.update(found)
    return chosen


def _listed(name: str, folder: Path) -> list[str]:
    """The lines of a list of files, without comments (``#``) and blank ones."""
    path = Path(name) if Path(name).exists() else folder / name
    text = read_bounded(path, TreebankError, _LONGEST_LIST).decode("utf-8-sig", errors="replace")
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
