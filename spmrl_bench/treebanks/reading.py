"""From a manifest and a folder to the sentences of a split.

The manifest says what should be there; this module finds it, reads it with the reader of its
format, applies the transforms in order and compares the result with the numbers that the
manifest promises. Anything else than what was promised is an error: scores on another set of
sentences would look like any other score.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar

from spmrl_bench.errors import ReadError, TreebankError, TreeError
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.readers.sentences import DependencySentence
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.treebanks.alignment import aligned, by_name, by_number
from spmrl_bench.treebanks.manifest import FileManifest
from spmrl_bench.treebanks.patterns import (
    ALTERNATIVE,
    FoundFiles,
    check_range,
    find_files,
)
from spmrl_bench.treebanks.sources import DependencyLayer, Rows, Split
from spmrl_bench.treebanks.split_files import TAGS_IN_NAMES, split_files
from spmrl_bench.treebanks.tag_files import with_tags
from spmrl_bench.trees.graph import Graph, to_tree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.transforms import Stage, transform_named, word_transforms
from spmrl_bench.trees.tree import Tree

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class SplitContent:
    """What reading a split gave.

    Attributes:
        sentences: with the layers that were read, the same for all.
        dropped: how many sentences the transforms left without words.
        skipped: the errors of the sentences that break the format and were left out.
    """

    sentences: Sequence[Parse]
    dropped: int
    skipped: tuple[str, ...]

    @property
    def left_out(self) -> dict[str, int]:
        """How many sentences were left out, by the reason."""
        return {"without words": self.dropped, "that break the format": len(self.skipped)}


def layer_files(manifest: FileManifest, folder: Path, split_name: str) -> FoundFiles:
    """The files of a split in the manifest's dependency layer; raises as :func:`second_layer`."""
    layer = second_layer(manifest)
    files, exclude = layer.files(split_name, manifest.splits[split_name])
    return find_files(folder, files, exclude=exclude, tags=TAGS_IN_NAMES[manifest.tags])


def read_split(
    manifest: FileManifest,
    folder: Path,
    split: Split,
    *,
    on_error: OnError | None = None,
    watch: Callable[[Any], None] | None = None,
) -> SplitContent:
    """The sentences of a split, after the transforms; not yet compared with their numbers.

    Args:
        manifest, folder, split: of the treebank.
        on_error: what to do with a sentence that breaks the format, besides leaving it out;
            without it, as the manifest says.
        watch: is given each sentence as the reader yields it, before the transforms; those outside
            the split's range are left out, those that a table leaves out are not.

    Raises:
        ReadError: a file is malformed or empty, or the files of tags do not fit the sentences.
        TreebankError: the manifest's range or table does not fit the files.
    """
    chosen = _chosen(_items(manifest, folder, split, on_error, watch), folder, split)
    skipped = tuple(str(item) for item in chosen if isinstance(item, ReadError))
    kept = [item for item in chosen if isinstance(item, Parse)]
    dropped = len(chosen) - len(kept) - len(skipped)
    return SplitContent(_tagged(kept, folder, split), dropped, skipped)


def read_layer(
    manifest: FileManifest,
    folder: Path,
    layer_folder: Path,
    split_name: str,
    *,
    on_error: OnError | None = None,
) -> SplitContent:
    """The dependencies of a split in the manifest's second layer, sentence by sentence.

    They are those of the sentences that :func:`read_split` gives: what a range, a table, the
    transforms or broken brackets leave out there is left out here. The layer's files have a
    sentence for each one of the trees' files, or lack those that have no words, or those
    outside the range and table too, or all that were left out; their number tells which. Where
    the manifest says that the table names them, they are found by their names instead.

    Args:
        manifest, folder, split_name: of the treebank and its trees.
        layer_folder: of the dependencies.
        on_error: as for :func:`read_split`, of sentences in the trees' files.

    Raises:
        ReadError: a file is malformed or empty.
        TreebankError: the manifest has no such layer, or its sentences or words are not those
            of the trees.
    """
    split = manifest.splits[split_name]
    items = _items(manifest, folder, split, on_error)
    layer = _layer_sentences(manifest, layer_folder, split_name)
    trees = {
        number: item.tree
        for number, item in enumerate(items)
        if isinstance(item, Parse) and item.tree is not None
    }
    every = range(len(items))
    worded = [number for number in every if items[number] is not None]
    chosen = set(_chosen(every, folder, split))
    within = [number for number in worded if number in chosen]
    left = [number for number in within if number in trees]
    rules = second_layer(manifest)
    try:
        if rules.ids is not None and split.rows is not None:
            listed = _in_range(every, folder, split)
            column = _column(folder / split.rows.table, rules.ids, len(listed))
            names = dict(zip(listed, column, strict=True))
            found = by_name(layer, [names[number] for number in left])
        else:
            found = by_number(layer, [every, worded, within, left])
        beside = [
            aligned(
                place,
                trees[number],
                sentence.tree,
                merge=rules.words == "merged",
                parts=rules.parts,
                respelt=rules.respelt,
            )
            for place, (number, sentence) in enumerate(zip(left, found, strict=True), start=1)
        ]
    except TreebankError as error:
        raise TreebankError(
            f"{manifest.name}, split {split_name}: the trees and the dependencies differ: {error}"
        ) from None
    kept = _tagged([Parse.of(dependencies=tree) for tree in beside], folder, split)
    return SplitContent(kept, sum(items[number] is None for number in chosen), ())


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a sentence stands.

    Attributes:
        path: of the file.
        name: its identifier in the file, or its number there, from 1.
    """

    path: Path
    name: str


def sentence_origins(manifest: FileManifest, folder: Path, split: Split) -> list[Origin]:
    """Where each of the sentences stands that :func:`read_split` gives; raises as it does."""
    origins: list[Origin] = []
    items = _items(manifest, folder, split, None, origins=origins)
    pairs = _chosen(list(zip(items, origins, strict=True)), folder, split)
    return [origin for item, origin in pairs if isinstance(item, Parse)]


def count_mistakes(content: SplitContent, split: Split) -> list[str]:
    """Where a split has other numbers than the manifest declares, in words."""
    tokens = sum(map(len, content.sentences))
    rows: list[tuple[str, int, Sequence[int | None]]] = [
        ("sentences", len(content.sentences), split.sentences or [None]),
        ("tokens", tokens, [split.tokens]),
        ("broken sentences", len(content.skipped), [split.skipped]),
        ("sentences without words", content.dropped, [split.dropped]),
    ]
    return [
        f"expected {' or '.join(map(str, expected))} {what}, found {found}"
        for what, found, expected in rows
        if found not in expected and expected[0] is not None  # None: not declared
    ]


def _items(
    manifest: FileManifest,
    folder: Path,
    split: Split,
    on_error: OnError | None,
    watch: Callable[[Any], None] | None = None,
    origins: list[Origin] | None = None,
) -> list[Parse | ReadError | None]:
    """What becomes of each sentence in the files of a split, before any is left out.

    None stands for one without words, an error for one that breaks the format. ``origins`` gets
    where each of them stands.
    """
    items: list[Parse | ReadError | None] = []

    def leave_out(error: ReadError) -> None:
        if on_error is not None:
            on_error(error)
        items.append(error)  # so that the sentences after it keep their numbers

    lenient = on_error is not None or manifest.on_error == "skip"
    handler = leave_out if lenient else fail
    paths = split_files(manifest, folder, split).paths
    form = FORMATS[manifest.format]
    options = _with_encoding(manifest.options, paths)
    if steps := _of_stage("text", manifest.transforms):
        options["prepare"] = partial(_through, steps)
    finish = _finisher(manifest)
    first, last = check_range(split.range) if split.range is not None else (1, None)
    last = last or sys.maxsize
    for path in paths:
        before, names = len(items), {}
        for sentence in form.read(path, on_error=handler, **options):
            names[len(items)] = getattr(sentence, "name", "")
            if watch is not None and first <= len(items) + 1 <= last:
                watch(sentence)
            try:
                items.append(finish(sentence, path))
            except ReadError as error:
                handler(error)
        if len(items) == before:
            raise ReadError("found no sentence in the file", path=path)
        if origins is not None:
            origins += [
                Origin(path, names.get(place) or str(place - before + 1))
                for place in range(before, len(items))
            ]
    return items


def _layer_sentences(
    manifest: FileManifest, folder: Path, split_name: str
) -> list[DependencySentence]:
    """All sentences in the layer's files of a split."""
    layer = second_layer(manifest)
    paths = layer_files(manifest, folder, split_name).paths
    options = _with_encoding(layer.options, paths)
    read = FORMATS[layer.format].read
    changes = word_transforms(manifest.transforms)  # the words must be those of the trees
    return [
        replace(sentence, tree=_through(changes, sentence.tree))
        for path in paths
        for sentence in read(path, on_error=fail, **options)
    ]


def _tagged(sentences: list[Parse], folder: Path, split: Split) -> list[Parse]:
    """The sentences with the tags of the split's own files, if it has some."""
    if split.tag_files is None:
        return sentences
    return with_tags(sentences, find_files(folder, split.tag_files).paths)


def transform_parse(transforms: Sequence[str], parse: Parse) -> Parse | None:
    """A generated sentence after the tree transforms among those named; None if no word is left."""
    tree = _through(_of_stage("tree", transforms), parse.tree)
    if tree is None:
        return None
    return Parse.of(tree, _through(word_transforms(transforms), parse.dependencies))


def second_layer(manifest: FileManifest) -> DependencyLayer:
    """The dependency layer beside the trees of a manifest.

    Raises:
        TreebankError: the manifest has no such layer.
    """
    if manifest.dependencies is None:
        raise TreebankError(f"treebank {manifest.name} has no dependencies, only constituents")
    return manifest.dependencies


def _of_stage(stage: Stage, names: Iterable[str]) -> list[Callable[..., Any]]:
    """What the transforms of a stage among those named do, in their order."""
    found = map(transform_named, names)
    return [transform.apply for transform in found if transform.stage == stage]


def _finisher(manifest: FileManifest) -> Callable[[Any, Path], Parse | None]:
    """What makes the result of a reader a sentence of the split, or None if no word is left."""
    tree_steps = _of_stage("tree", manifest.transforms)
    graph_steps = _of_stage("graph", manifest.transforms)

    def finish(sentence: Any, path: Path) -> Parse | None:
        if isinstance(sentence, DependencySentence):
            return Parse.of(dependencies=sentence.tree)
        if isinstance(sentence, Graph):
            try:
                sentence = to_tree(_through(graph_steps, sentence))
            except TreeError as error:
                raise ReadError(str(error), path=path, sentence=sentence.name) from error
        tree: Tree | None = _through(tree_steps, sentence)
        return Parse.of(tree) if tree is not None else None

    return finish


def _through(steps: Iterable[Callable[..., Any]], value: Any) -> Any:
    """What a value becomes by some steps, one after the other; None as soon as one gives None."""
    for step in steps:
        if value is None:
            return None
        value = step(value)
    return value


def _with_encoding(options: Mapping[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """The options with the first encoding that all files of the split decode in."""
    result = dict(options)
    names = str(result.get("encoding", "")).split(ALTERNATIVE)
    if len(names) > 1:
        fitting = (name for name in names[:-1] if all_decode(paths, name))
        result["encoding"] = next(fitting, names[-1])
    return result


def all_decode(paths: Sequence[Path], encoding: str) -> bool:
    """Whether all files can be read and are text in an encoding."""
    try:
        for path in paths:
            path.read_bytes().decode(encoding)
    except (OSError, UnicodeDecodeError):
        return False
    return True


def _chosen(items: Sequence[_Item], folder: Path, split: Split) -> Sequence[_Item]:
    """The sentences that the manifest's range and side table leave."""
    items = _in_range(items, folder, split)
    return items if split.rows is None else list(_marked(items, folder, split.rows))


def _in_range(items: Sequence[_Item], folder: Path, split: Split) -> Sequence[_Item]:
    """The sentences that the manifest's range leaves."""
    if split.range is None:
        return items
    first, last = check_range(split.range)
    if max(first, last or 1) > len(items):
        where = ", ".join(split.files)
        raise TreebankError(
            f"{folder}: the range {split.range} of {where} {'ends' if last else 'begins'} beyond "
            f"the last of {len(items)} sentences"
        )
    return items[first - 1 : last]


def _marked(sentences: Sequence[_Item], folder: Path, rows: Rows) -> Iterable[_Item]:
    """The sentences whose line in the side table has the value wanted."""
    marks = _column(folder / rows.table, rows.column, len(sentences))
    return compress(sentences, [mark == rows.equals for mark in marks])


def _column(path: Path, column: str, sentences: int) -> list[str]:
    """What a side table says in one column of each of so many sentences."""
    table = csv.DictReader(read_text(path).splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    if column not in (table.fieldnames or ()):
        found = ", ".join(table.fieldnames or ()) or "none"
        raise ReadError(f"found the columns {found}, expected '{column}'", path=path, line=1)
    values = [line[column] for line in table]
    if len(values) != sentences:
        raise ReadError(
            f"found {len(values)} lines below the first, expected {sentences}: "
            "one for each sentence of the files",
            path=path,
        )
    return values
