"""From the files of a treebank to the sentences of a split.

Files are read with the reader of their format, and the transforms applied in order. Anything else
than the manifest promises is an error: scores on other sentences would look like any other score.

A second layer comes in files of its own. These may lack sentences that are of no use, have them in
another order under the same names, or cut them into smaller words, as the manifest says. All else
is an error: a tree beside the dependencies of another sentence would be learnt like any other.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from spmrl_bench.errors import ReadError, TreebankError, TreeError
from spmrl_bench.readers.conll import DependencySentence
from spmrl_bench.readers.formats import Format
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.treebanks.manifest import DependencyLayer, SourceFormat, Split, SplitName
from spmrl_bench.treebanks.split_files import TreebankFiles, common_encoding, dependency_layer
from spmrl_bench.trees.dependencies import DependencyTree, merge_words, split_words
from spmrl_bench.trees.graph import to_tree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.transforms import OUTER_BRACKETS, Stage, transform_named, word_transforms
from spmrl_bench.trees.tree import Tree

Step = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SentencePlace:
    """The file of a sentence, and its identifier there, or its number from 1."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class SplitData:
    """What reading a layer of a split gave."""

    sentences: Sequence[Parse]  # with the layer that was read
    dropped: int  # how many sentences the transforms left without words
    skipped: tuple[str, ...]  # the errors of the sentences that break the format and were left out
    places: Sequence[SentencePlace] = ()  # of the sentences of a first layer

    @property
    def counts(self) -> dict[str, int]:
        """What was found of each number that a manifest can declare of a split."""
        found = {"sentences": len(self.sentences), "tokens": sum(map(len, self.sentences))}
        return found | {"skipped": len(self.skipped), "dropped": self.dropped}


@dataclass(frozen=True, slots=True)
class FirstLayer:
    """What became of each sentence in the files of a split, before any is left out."""

    # By number from 0 the sentence, None if it has no word left, or the error if it breaks the
    # format.
    results: Sequence[Parse | ReadError | None]
    places: Sequence[SentencePlace]  # where each of them stands
    chosen: Sequence[int]  # numbers of those that the split's range and table leave, ascending


def split_data(found: FirstLayer) -> SplitData:
    """Return the sentences of a split, not yet compared with their numbers."""
    chosen = [(found.results[number], found.places[number]) for number in found.chosen]
    kept = [(parse, place) for parse, place in chosen if isinstance(parse, Parse)]
    skipped = tuple(str(error) for error, _ in chosen if isinstance(error, ReadError))
    dropped = sum(result is None for result, _ in chosen)
    return SplitData([one for one, _ in kept], dropped, skipped, [place for _, place in kept])


def read_first_layer(
    files: TreebankFiles,
    split: SplitName,
    *,
    on_error: OnError | None = None,
    watch: Callable[[Any], None] | None = None,
) -> FirstLayer:
    """Read all sentences of a split's files, and apply the transforms.

    ``on_error`` is given the error of each sentence that breaks the format, which is left out;
    without it, the manifest says what becomes of it. ``watch`` is given each sentence of the
    split's range (whatever its table says) as the reader yields it, before the transforms. Raise a
    ReadError if a file is malformed or empty, a TreebankError if the manifest's range or table does
    not fit the files.
    """
    manifest = files.manifest
    results: list[Parse | ReadError | None] = []
    places: list[SentencePlace] = []

    def leave_out(error: ReadError) -> None:
        if on_error is not None:
            on_error(error)
        results.append(error)  # so that the sentences after it keep their numbers

    handler = leave_out if on_error is not None or manifest.on_error == "skip" else fail
    paths = files.of(split).paths
    form, options = _reader_of(manifest, paths)
    if text_steps := _steps("text", manifest.transforms):
        options["prepare"] = partial(apply_all, text_steps)
    steps = _steps("tree", manifest.transforms)
    if form.yields == "graphs":
        steps = [*_steps("graph", manifest.transforms), to_tree, *steps]
    first, last = manifest.splits[split].numbers
    for path in paths:
        before = len(results)
        names = {}
        for sentence in form.read(path, on_error=handler, **options):
            names[len(results)] = getattr(sentence, "name", "")
            if watch is not None and first <= len(results) + 1 <= last:
                watch(sentence)
            try:
                if isinstance(sentence, DependencySentence):
                    results.append(Parse.of(dependencies=sentence.tree))
                    continue
                tree = apply_all(steps, sentence)
                results.append(Parse.of(tree) if tree is not None else None)
            except TreeError as error:
                handler(ReadError(str(error), path=path, sentence=names[len(results)]))
        if len(results) == before:
            raise ReadError("found no sentence in the file", path=path)
        numbers = range(before, len(results))
        places += [SentencePlace(path, names.get(n) or str(n - before + 1)) for n in numbers]
    return FirstLayer(results, places, _chosen(files, split, len(results)))


def read_layer(files: TreebankFiles, split: SplitName, found: FirstLayer) -> SplitData:
    """Return the dependencies of the sentences of a split whose trees were found.

    What a range, a table, the transforms or broken brackets leave out there is left out here. The
    layer's files have a sentence for each one of the trees' files, or lack those without words, or
    those outside the range and table too, or all that were left out; their number tells which.
    Where a column of the table names them, they are found by their names instead. Raise a ReadError
    if a file is malformed or empty, a TreebankError if the manifest has no such layer, or its
    sentences or words are others.
    """
    manifest, rules = files.manifest, dependency_layer(files.manifest)
    paths = files.of(split, "dependencies").paths
    form, options = _reader_of(rules, paths)
    layer = [sentence for path in paths for sentence in form.read(path, on_error=fail, **options)]
    if changes := word_transforms(manifest.transforms):  # the words must be those of the trees
        layer = [replace(one, tree=apply_all(changes, one.tree)) for one in layer]
    every = range(len(found.results))
    worded = [number for number in every if found.results[number] is not None]
    within = [number for number in found.chosen if found.results[number] is not None]
    parses = {number: found.results[number] for number in within}
    trees = {number: one.tree for number, one in parses.items() if isinstance(one, Parse)}
    left = list(trees)
    rows = manifest.splits[split].rows
    try:
        if rules.ids is not None and rows is not None:
            names = _column(files, split, rows.table, rules.ids, len(every))
            beside = _match_by_name(layer, [names[number] for number in left])
        else:
            beside = _match_by_count(layer, [every, worded, within, left])
        pairs = zip(trees.values(), beside, strict=True)
        aligned = [
            _align(number, tree, sentence.tree, rules)
            for number, (tree, sentence) in enumerate(pairs, start=1)
            if tree is not None
        ]
    except TreebankError as error:
        raise TreebankError(
            f"{manifest.name}, split {split}: the trees and the dependencies differ: {error}"
        ) from None
    dropped = len(found.chosen) - len(within)
    return SplitData([Parse.of(dependencies=tree) for tree in aligned], dropped, ())


def count_mistakes(data: SplitData, name: SplitName, split: Split) -> list[str]:
    """Return in words where a split has other numbers than the manifest declares, or nothing can be
    learnt from its trees."""
    declared = (split.sentences, (split.tokens,), (split.skipped,), (split.dropped,))
    what = ("sentences", "tokens", "broken sentences", "sentences without words")
    trees = [one.tree for one in data.sentences if one.tree is not None]
    if name == "train" and trees and {*chain(*(tree.labels for tree in trees))} <= OUTER_BRACKETS:
        return ["no constituent in any tree but the bracket around it"]
    return [
        f"expected {' or '.join(map(str, expected))} {things}, found {found}"
        for things, found, expected in zip(what, data.counts.values(), declared, strict=True)
        if expected and found not in expected and expected[0] is not None  # None: not declared
    ]


def transform_parse(transforms: Sequence[str], parse: Parse) -> Parse | None:
    """Return a parse after the tree transforms among those named; None if no word is left."""
    tree = apply_all(_steps("tree", transforms), parse.tree)
    dependencies = apply_all(word_transforms(transforms), parse.dependencies)
    return Parse.of(tree, dependencies) if tree is not None else None


def apply_all(steps: Iterable[Step], value: Any) -> Any:
    """Return what a value becomes by some steps in turn; None as soon as one gives None."""
    for step in steps:
        if value is None:
            return None
        value = step(value)
    return value


def _steps(stage: Stage, names: Iterable[str]) -> list[Step]:
    found = map(transform_named, names)
    return [transform.apply for transform in found if transform.stage == stage]


def _reader_of(source: SourceFormat, paths: Sequence[Path]) -> tuple[Format, dict[str, Any]]:
    """A format and its options, with the first encoding that all these files decode in."""
    options = source.options
    if "encoding" in options:
        options["encoding"] = common_encoding(paths, options["encoding"])
    return source.form, options


def _in_range(files: TreebankFiles, split: SplitName, total: int) -> Sequence[int]:
    """Numbers of the sentences, from 0, that the manifest's range leaves of so many."""
    chosen = files.manifest.splits[split]
    first, last = chosen.numbers
    if chosen.range is not None and (first > total or total < last < sys.maxsize):
        raise TreebankError(
            f"{files.folder}: the range {chosen.range} of {', '.join(chosen.files)} "
            f"{'ends' if last < sys.maxsize else 'begins'} beyond the last of {total} sentences"
        )
    return range(total)[first - 1 : last]


def _chosen(files: TreebankFiles, split: SplitName, total: int) -> Sequence[int]:
    """Numbers of the sentences, from 0, that the manifest's range and side table leave."""
    rows = files.manifest.splits[split].rows
    if rows is None:
        return _in_range(files, split, total)
    marks = _column(files, split, rows.table, rows.column, total)
    return [number for number, mark in marks.items() if mark == rows.equals]


def _column(
    files: TreebankFiles, split: SplitName, table: str, column: str, total: int
) -> dict[int, str]:
    """What a column of a table says of each sentence in the range, by number from 0."""
    numbers, path = _in_range(files, split, total), files.folder / table
    rows = csv.DictReader(read_text(path).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    if column not in (rows.fieldnames or ()):
        raise ReadError(f"found no column '{column}' in the first line", path=path, line=1)
    values = [row[column] for row in rows]
    if len(values) != len(numbers):
        raise ReadError(
            f"found {len(values)} lines below the first, expected {len(numbers)}: "
            "one for each sentence of the files",
            path=path,
        )
    return dict(zip(numbers, values, strict=True))


def _match_by_count(
    layer: Sequence[DependencySentence], kinds: Sequence[Sequence[int]]
) -> list[DependencySentence]:
    """The sentences of the last kind; the layer has those of the first kind of as many. Kinds are
    numbers of sentences in the trees' files, each holding the next."""
    numbers = next((numbers for numbers in kinds if len(numbers) == len(layer)), None)
    if numbers is None:
        expected = " or ".join(map(str, dict.fromkeys(map(len, kinds))))
        raise TreebankError(f"there are {expected} and {len(layer)} sentences")
    found = dict(zip(numbers, layer, strict=True))
    return [found[number] for number in kinds[-1]]


def _match_by_name(
    layer: Sequence[DependencySentence], names: Sequence[str]
) -> list[DependencySentence]:
    found: dict[str, DependencySentence] = {}
    for sentence in layer:
        if sentence.name in found:
            raise TreebankError(f"two sentences of the dependencies are called '{sentence.name}'")
        found[sentence.name] = sentence
    missing = [name for name in names if name not in found]
    if missing:
        raise TreebankError(
            f"{len(missing)} of {len(names)} sentences are not among the {len(layer)} of the "
            f"dependencies, '{missing[0]}' first"
        )
    return [found[name] for name in names]


def _align(
    number: int, tree: Tree, dependencies: DependencyTree, rules: DependencyLayer
) -> DependencyTree:
    """The dependencies of a sentence, over the words of its tree. Where the rules let words be
    merged, spaces and underscores, which join the parts of a word, do not count."""
    if tree.words == dependencies.words:
        return dependencies
    if rules.words == "same":
        raise TreebankError(_difference(number, tree.words, dependencies.words))
    spellings = {_joined(word): _joined(other) for word, other in rules.respelt.items()}
    blocks: list[tuple[int, int]] = []  # words of the tree and of the dependencies, side by side
    place = at = 0
    while place < len(tree) and at < len(dependencies):
        coarse, fine = 1, 1
        while True:
            wanted = "".join(map(_joined, tree.words[place : place + coarse]))
            found = "".join(map(_joined, dependencies.words[at : at + fine]))
            if wanted == found or spellings.get(found) == wanted:
                break
            coarse, fine = (coarse, fine + 1) if len(found) < len(wanted) else (coarse + 1, fine)
            if (coarse > 1 and (fine > 1 or rules.parts is None)) or (
                place + coarse > len(tree) or at + fine > len(dependencies)
            ):
                pieces = " ".join(dependencies.words[at : at + fine])
                raise TreebankError(
                    f"word {place + 1} of sentence {number} is '{tree.words[place]}' and '{pieces}'"
                )
        blocks.append((coarse, fine))
        place, at = place + coarse, at + fine
    if place < len(tree) or at < len(dependencies):
        raise TreebankError(_difference(number, tree.words, dependencies.words))
    coarse_sizes, fine_sizes = zip(*blocks, strict=True)
    whole = merge_words(dependencies, fine_sizes, [""] * len(blocks))
    return split_words(whole, coarse_sizes, tree.words, rules.parts or "")


def _joined(word: str) -> str:
    return word.replace("_", "").replace(" ", "") or word


def _difference(number: int, words: Sequence[str], others: Sequence[str]) -> str:
    """The first place where a sentence has not the same words in two layers."""
    for place, (word, other) in enumerate(zip(words, others, strict=False), start=1):
        if word != other:
            return f"word {place} of sentence {number} is '{word}' and '{other}'"
    return f"sentence {number} has {len(words)} and {len(others)} words"
