"""Treebanks by name: is it here, what are its sentences, and which sentences exactly.

Treebanks come with the program, are open, or are licensed and brought by the user; they have
constituents, dependencies or both. A caller should not care: :func:`open_treebank` gives any of
them behind one interface or says what is missing and where to get it. A fingerprint stands for the
exact annotation of a layer, so that scores on different sentences are never compared.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from itertools import repeat
from typing import Any, Self

from spmrl_bench.errors import TreebankError, unknown_name
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.storage.digests import digest
from spmrl_bench.treebanks import catalogue, reading
from spmrl_bench.treebanks.cache import cached
from spmrl_bench.treebanks.manifest import SPLITS, SourceFormat, SplitName
from spmrl_bench.treebanks.patterns import some
from spmrl_bench.treebanks.split_files import TreebankFiles, dependency_layer, same_places
from spmrl_bench.trees.parse import LAYERS, Layer, Parse
from spmrl_bench.trees.transforms import transform_named, word_transforms
from spmrl_bench.trees.tree import Tree

_log = logging.getLogger(__name__)


class ClosedSplitError(TreebankError):
    """The test split was asked for by what must not see it."""


class Treebank:
    """A treebank that is present; get one from :func:`open_treebank`.

    Splits are read when asked for and kept, also for the next process (see
    :mod:`spmrl_bench.treebanks.cache`).

    Nothing may be chosen by what the test split holds. So whatever trains, compares on dev or
    selects (:class:`~spmrl_bench.experiments.score.AnyRun`) has a treebank whose test split is
    closed: asking for its sentences is an error. ``eval`` opens it to score the selected variant.
    The digest of the test files (:meth:`fingerprint_of`) is no sentence.

    ``manifest``, ``name``, ``track``, ``language`` and ``rules`` are as declared; ``layers`` are
    those that are here, constituents first.
    """

    def __init__(self, status: catalogue.TreebankStatus, files: TreebankFiles) -> None:
        self.manifest = status.manifest
        self.name = self.manifest.name
        self.track = self.manifest.track
        self.language = self.manifest.language
        self.rules = self.manifest.rules
        self.layers = status.layers
        self._files = files
        self._layer_missing = status.layer_missing
        self._data: dict[tuple[str, Layer], reading.SplitData] = {}
        self._first: dict[str, reading.FirstLayer] = {}
        self._fingerprints: dict[Layer, str] = {}
        self._test_closed = False

    def __getstate__(self) -> dict[str, Any]:
        """What another process is sent: it reads the sentences from the cache."""
        return self.__dict__ | {"_data": {}, "_first": {}}

    def without_test(self) -> Self:
        """Return the same treebank with the test split closed; it shares what has been read."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _test_closed=True)
        return other

    def with_test(self) -> Self:
        """Return the same treebank with the test split open, for the scores in the end."""
        other = self.without_test()
        other._test_closed = False
        return other

    def examples(self, split: str, layers: Collection[Layer] | None = None) -> list[Parse]:
        """Return the sentences of a split after all transforms, with these layers, else with all.

        Two layers are of the same sentences with the same words. Raise a TreebankError if there is
        no such split, it is closed or not as the manifest declares, the treebank has not these
        layers, or their sentences or words differ; a ReadError if a file is malformed.
        """
        found = {layer: self.data(split, layer).sentences for layer in layers or self.layers}
        sizes = {layer: len(sentences) for layer, sentences in found.items()}
        if len(set(sizes.values())) > 1:
            numbers = ", ".join(f"{number} {layer}" for layer, number in sizes.items())
            raise TreebankError(f"{self.name}, split {split}: sentences differ: {numbers}")
        size = next(iter(sizes.values()))
        columns = (
            [parse.layer(layer) for parse in found[layer]] if layer in found else repeat(None, size)
            for layer in LAYERS
        )
        return [Parse.of(tree, layer) for tree, layer in zip(*columns, strict=True)]

    def split(self, name: str) -> list[Tree]:
        """Return the trees of a split; raises as :meth:`examples` does."""
        sentences = self.data(name, "constituents").sentences
        return [sentence.tree for sentence in sentences if sentence.tree is not None]

    def data(self, split: str, layer: Layer | None = None) -> reading.SplitData:
        """Return all that reading a layer of a split gave, by default the first layer.

        Raises as :meth:`examples` does.
        """
        self._check_open(split)
        return self._load(split, layer or self.layers[0])

    def places(self, split: str) -> Sequence[reading.SentencePlace]:
        """Return where each sentence of a split stands in the files, which are read for it."""
        self._check_open(split)
        return reading.split_data(self._first_layer(_split_name(split))).places

    def _check_open(self, split: str) -> None:
        if self._test_closed and split == "test":
            raise ClosedSplitError(
                f"{self.name}: the test split was asked for where nothing may depend on it, in "
                "training or in a comparison on dev; only the evaluation opens it "
                "(Treebank.with_test)"
            )

    @property
    def fingerprint(self) -> str:
        """That of its first layer, as of :meth:`fingerprint_of`."""
        return self.fingerprint_of(self.layers[0])

    def fingerprint_of(self, layer: Layer) -> str:
        """Return the SHA-256, in hex, of what decides the annotation of a layer.

        That is the content of the files, how they are divided, the settings that change trees, and
        the versions of readers and transforms; of a mini treebank, the sentences themselves. Names
        and places of files do not matter. That of dependencies beside trees holds that of the
        trees, which decide what is left out. Raise a TreebankError if the treebank has not the
        layer, or a file is not the recorded one.
        """
        self._require(layer)
        if layer not in self._fingerprints:
            content: dict[str, Any]
            if self.track == "mini":
                content = {"format": "mini", "transforms": self.manifest.transforms, "version": 1}
                for split in SPLITS:
                    sentences = self._load(split, layer).sentences
                    content[split] = digest([_plain(parse) for parse in sentences])
            else:
                content = self._settings(layer)
                content |= {split: self._division(split, layer) for split in SPLITS}
            if layer != self.layers[0]:
                content["trees"] = self.fingerprint
            self._fingerprints[layer] = digest(content)
        return self._fingerprints[layer]

    def _settings(self, layer: Layer) -> dict[str, Any]:
        """What changes the annotation of a layer besides the files: settings and versions."""
        manifest = self.manifest
        source: SourceFormat = manifest
        transforms, more = manifest.transforms, {}
        if layer != self.layers[0]:
            source = dependency_layer(manifest)
            transforms = [name for name in transforms if word_transforms([name])]
            more = dependency_layer(manifest).alignment
        elif manifest.on_error != "fail":
            more = {"on_error": manifest.on_error}
        return {
            "format": source.format,
            "transforms": transforms,
            "version": _version(source.format, transforms),
            **source.settings,
            **more,
        }

    def _division(self, split: SplitName, layer: Layer) -> list[object]:
        digests = self._files.digests(split, layer)
        if layer != self.layers[0]:  # what is left out is the trees' affair
            return [*digests]
        chosen = self.manifest.splits[split]
        rows = chosen.rows.model_dump(exclude={"table"}) if chosen.rows else None
        return [rows, digests, *([chosen.range] if chosen.range is not None else [])]

    def _require(self, layer: Layer) -> None:
        if layer in self.layers:
            return
        if layer in self.manifest.layers:
            raise TreebankError(
                f"the dependencies of {self.name} are not present: {some(self._layer_missing)} in "
                f"{self._files.layer_folder}"
            )
        raise TreebankError(f"treebank {self.name} has {self.layers[0]} only, no {layer}")

    def _load(self, split: str, layer: Layer) -> reading.SplitData:
        """The data of a layer of a split, read once and compared with the declared numbers."""
        name = _split_name(split)
        self._require(layer)
        if (name, layer) in self._data:
            return self._data[name, layer]
        first = self.layers[0]
        key = self._settings(first) | {"content": self._division(name, first)}
        if layer != first:
            own = self._settings(layer) | {"content": self._division(name, layer)}
            keys = {"trees": key, "layer": own}

            def beside() -> reading.SplitData:
                with self._files.held(name, "dependencies"):
                    return reading.read_layer(self._files, name, self._first_layer(name))

            data = cached(f"{self.name}-{name}-{layer}", keys, beside)
        else:
            data = cached(
                f"{self.name}-{name}", key, lambda: reading.split_data(self._first_layer(name))
            )
            if wrong := reading.count_mistakes(data, name, self.manifest.splits[name]):
                note = f" ({data.dropped} without words left out)" if data.dropped else ""
                raise TreebankError(
                    f"{self.name}, split {name} in {self._files.folder}: {'; '.join(wrong)}{note}. "
                    "The files are not those that the manifest describes: is it another release, "
                    f"or cut? 'spmrl-bench treebanks check {self.name}' lists all that differs; a "
                    f'manifest of your own with base = "{self.name}" may declare other numbers'
                )
            broken, empty = len(data.skipped), data.dropped
            for number, what in ((empty, "without words"), (broken, "that break the format")):
                if number:
                    _log.warning(
                        "%s, split %s: %d sentence(s) %s left out", self.name, name, number, what
                    )
        self._data[name, layer] = data
        return data

    def _first_layer(self, split: SplitName) -> reading.FirstLayer:
        """What is in the files of a split, kept until those of another one are read."""
        if split not in self._first:
            with self._files.held(split, self.layers[0]):
                self._first = {split: reading.read_first_layer(self._files, split)}
        return self._first[split]


def open_treebank(name: str, root: str | os.PathLike[str] | None = None) -> Treebank:
    """Return the treebank of a name, such as ``german-squoia``.

    ``root`` is the directory with treebanks; without it, the one that the environment variable
    ``TREEBANKS`` names. Mini treebanks need none. Raise a TreebankError if the name is unknown, the
    manifest has mistakes, files are missing, or two splits have the same sentences.
    """
    status = catalogue.treebank_status(catalogue.load_manifest(name), root)
    if not status.present or status.files is None:
        raise TreebankError(catalogue.missing_message(status, root))
    if mistakes := same_places(status.files):
        raise TreebankError("\n".join(f"treebank {name}: {mistake}" for mistake in mistakes))
    return Treebank(status, status.files)


def _split_name(name: str) -> SplitName:
    for split in SPLITS:
        if split == name:
            return split
    raise TreebankError(unknown_name("split", name, SPLITS))


def _version(form: str, transforms: Sequence[str]) -> int | dict[str, int]:
    """1, or the versions of the reader and the transforms that are not 1. Whoever changes what one
    of them gives for the same files raises its version, so that scores on the sentences of before
    stand in no table with new ones."""
    versions = {name: transform_named(name).version for name in transforms}
    versions = {form: FORMATS.get(form).version} | versions
    return {name: version for name, version in versions.items() if version != 1} or 1


def _plain(parse: Parse) -> object:
    """A sentence with one layer as JSON can hold it."""
    tree = parse.dependencies
    if tree is None:
        return str(parse)
    return [tree.words, tree.tags, tree.heads.tolist(), tree.relations]
