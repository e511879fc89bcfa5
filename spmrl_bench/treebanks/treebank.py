"""Treebanks by name: is it here, what are its sentences, and which sentences exactly.

Some treebanks are generated, some are open, some are licensed and brought by the user; some
have constituents, some dependencies, some both. A caller should not care: :func:`open_treebank`
gives any of them behind one interface or says what is missing and where to get it. A fingerprint
stands for the exact annotation of a layer, so that a score can be traced to it and is never
compared with one on other sentences.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable
from itertools import repeat
from pathlib import Path
from typing import Any, Self

from spmrl_bench.errors import TreebankError, unknown_name
from spmrl_bench.treebanks.accepted import accepted_counts, expected
from spmrl_bench.treebanks.cache import cached, digest
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.checksums import verified_digests
from spmrl_bench.treebanks.golden import reading_version
from spmrl_bench.treebanks.manifest import FileManifest, Manifest, MiniManifest
from spmrl_bench.treebanks.mini.generate import generate, grammar_digest
from spmrl_bench.treebanks.overlap import same_places
from spmrl_bench.treebanks.patterns import find_files
from spmrl_bench.treebanks.presence import absence, find_folder, status_of
from spmrl_bench.treebanks.reading import (
    Origin,
    SplitContent,
    count_mistakes,
    layer_files,
    read_layer,
    read_split,
    second_layer,
    sentence_origins,
    transform_parse,
)
from spmrl_bench.treebanks.sources import SPLITS
from spmrl_bench.treebanks.split_files import side_files, split_files
from spmrl_bench.trees.parse import LAYERS, Layer, Parse
from spmrl_bench.trees.transforms import word_transforms
from spmrl_bench.trees.tree import Tree

_log = logging.getLogger(__name__)


class ClosedSplitError(TreebankError):
    """The test split was asked for by what must not see it."""


class Treebank:
    """A treebank that is present; get one from :func:`open_treebank`.

    Splits are read when asked for and kept, also for the next process (see
    :mod:`spmrl_bench.treebanks.cache`).

    Nothing may be chosen by what the test split holds. So whatever trains, compares on dev or
    selects (``train``, ``study``, ``multilingual``, all that is given a
    :class:`~spmrl_bench.experiments.plan.Plan`) has a treebank whose test split is closed: asking
    for its sentences is an error. ``eval`` opens it to score the selected variant. Commands that
    choose nothing read all splits: ``validate`` and ``new-treebank``, which look for mistakes in
    files, and the listings; and so does a program that opens a treebank by its name. The digest
    of the test files is part of what a treebank is (:meth:`fingerprint_of`) and no sentence.

    Attributes:
        manifest: what it declares.
        name, track, language: as in the manifest.
        layers: the layers of annotation that are here, constituents first.
    """

    def __init__(
        self,
        manifest: Manifest,
        folder: Path | None = None,
        layer_folder: Path | None = None,
        layer_missing: tuple[str, ...] = (),
    ) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self.track = manifest.track
        self.language = manifest.language
        self.layers: tuple[Layer, ...] = manifest.layers[: 1 if layer_missing else None]
        self._folder = folder
        self._layer_folder = layer_folder or folder
        self._layer_missing = layer_missing
        self._contents: dict[tuple[str, Layer], SplitContent] = {}
        self._digests: dict[tuple[str, Layer], list[str]] = {}
        self._fingerprints: dict[Layer, str] = {}
        self._made: dict[str, SplitContent] = {}
        self._test_closed = False

    def __getstate__(self) -> dict[str, Any]:
        """What another process is sent: it reads the sentences anew, from the cache."""
        return self.__dict__ | {"_contents": {}, "_made": {}}

    def without_test(self) -> Self:
        """The same treebank with the test split closed; it shares what has been read."""
        return self._like_this(test_closed=True)

    def with_test(self) -> Self:
        """The same treebank with the test split open, for what scores a parser in the end."""
        return self._like_this(test_closed=False)

    def _like_this(self, *, test_closed: bool) -> Self:
        if self._test_closed == test_closed:
            return self
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _test_closed=test_closed)
        return other

    def examples(self, split: str, layers: Collection[Layer] | None = None) -> list[Parse]:
        """The sentences of ``"train"``, ``"dev"`` or ``"test"`` after all transforms.

        Args:
            split: its name.
            layers: what each sentence is to have; if none are named, all that the treebank has.
                Two layers are of the same sentences with the same words.

        Raises:
            TreebankError: no such split, it is not as the manifest declares, the treebank has
                not these layers, or their sentences or words differ.
            ClosedSplitError: the test split is closed.
            ReadError: a file is malformed.
        """
        self._check_open(split)
        return self._examples(split, layers)

    def _examples(self, split: str, layers: Collection[Layer] | None) -> list[Parse]:
        found: dict[Layer, Iterable[Any]] = {}
        for layer in layers or self.layers:
            found[layer] = [parse.layer(layer) for parse in self._content(split, layer).sentences]
        nothing = repeat(None)
        pairs = zip(*(found.get(layer, nothing) for layer in LAYERS), strict=False)
        return [Parse.of(tree, dependencies) for tree, dependencies in pairs]

    def split(self, name: str) -> list[Tree]:
        """The trees of a split; raises as :meth:`examples` does."""
        sentences = self.content(name, "constituents").sentences
        return [sentence.tree for sentence in sentences if sentence.tree is not None]

    def content(self, split: str, layer: Layer | None = None) -> SplitContent:
        """All that reading a layer of a split gave, what was left out among it.

        Args:
            split: its name.
            layer: that its sentences have at least; the first of the treebank without it.

        Raises:
            TreebankError, ReadError: as :meth:`examples` says.
        """
        self._check_open(split)
        return self._content(split, layer)

    def origins(self, split: str) -> list[Origin] | None:
        """Where each sentence of a split stands in the files; None of a generated treebank.

        The files are read anew; what is kept of a split does not say it.

        Raises:
            TreebankError, ReadError: as :meth:`examples` says.
        """
        self._check_open(split)
        if isinstance(self.manifest, MiniManifest):
            return None
        folder = self._folder_of(self.layers[0])
        return sentence_origins(self.manifest, folder, self.manifest.splits[split])

    def _check_open(self, split: str) -> None:
        if self._test_closed and split == "test":
            raise ClosedSplitError(
                f"{self.name}: the test split was asked for where nothing may depend on it, in "
                "training or in a comparison on dev; only the evaluation opens it "
                "(Treebank.with_test)"
            )

    def _content(self, split: str, layer: Layer | None = None) -> SplitContent:
        if split not in SPLITS:
            raise TreebankError(unknown_name("split", split, SPLITS))
        layer = layer or self.layers[0]
        self._require(layer)
        if isinstance(self.manifest, MiniManifest):
            layer = self.layers[0]  # one content has both
        if (split, layer) not in self._contents:
            content = self._contents[split, layer] = self._read(split, layer)
            for what, number in content.left_out.items() if layer == self.layers[0] else ():
                if number:
                    _log.warning(
                        "%s, split %s: %d sentence(s) %s left out", self.name, split, number, what
                    )
        return self._contents[split, layer]

    @property
    def rules(self) -> dict[str, dict[str, str]]:
        """The rules by which each layer is scored, by the name of its metric.

        Those of ``brackets`` are ``prm``, the evalb parameter set; those of ``attachment`` the
        fields of :class:`~spmrl_bench.scoring.attachment.AttachmentRules`.
        """
        return self.manifest.rules

    @property
    def counts_accepted(self) -> bool:
        """Whether the user has accepted other numbers of sentences than the manifest declares."""
        return bool(accepted_counts(self.name))

    @property
    def fingerprint(self) -> str:
        """That of its first layer; see :meth:`fingerprint_of`."""
        return self.fingerprint_of(self.layers[0])

    def fingerprint_of(self, layer: Layer) -> str:
        """SHA-256, in hex, of what decides the annotation of a layer.

        That is the content of the files, how they are divided, the settings of the manifest that
        change trees, and what the readers and transforms do; of a generated treebank, the
        sentences themselves. Names and places of files do not matter. That of the dependencies
        of a treebank with trees holds that of the trees, which decide what is left out: it
        stands for both layers.

        Raises:
            TreebankError: the treebank has not the layer, or a file is not the recorded one.
        """
        self._require(layer)
        if layer not in self._fingerprints:
            content = self._settings(layer) | {"version": self._version(layer)}
            if layer != self.layers[0]:
                content["trees"] = self.fingerprint
            for name in SPLITS:
                if isinstance(self.manifest, MiniManifest):
                    content[name] = digest([_plain(s) for s in self._examples(name, [layer])])
                else:
                    content[name] = self._division(self.manifest, name, layer)
            self._fingerprints[layer] = digest(content)
        return self._fingerprints[layer]

    def _require(self, layer: Layer) -> None:
        """Raise what tells that a layer is not here."""
        if layer in self.layers:
            return
        if self._layer_missing and layer in self.manifest.layers:
            raise TreebankError(
                f"the dependencies of {self.name} are not present: "
                f"{', '.join(self._layer_missing[:5])} in {self._layer_folder}"
            )
        message = f"treebank {self.name} has {self.layers[0]} only, no {layer}"
        if layer == "constituents":
            message += (
                ": it cannot train or score a constituency parser. 'spmrl-bench validate' and "
                "'spmrl-bench score-dependencies' work on it"
            )
        raise TreebankError(message)

    def _read(self, name: str, layer: Layer) -> SplitContent:
        manifest = self.manifest
        if isinstance(manifest, MiniManifest):
            return cached(
                f"{self.name}-{name}",
                self._settings(layer)
                | {
                    "split": name,
                    "grammar": grammar_digest(manifest.grammar),
                    "seed": manifest.seed,
                    "splits": manifest.splits.model_dump(),
                },
                lambda: self._generated(manifest)[name],
            )
        split, first = manifest.splits[name], self.layers[0]
        folder, layer_folder = self._folder_of(first), self._folder_of(layer)
        key = self._settings(first) | {"content": self._division(manifest, name, first)}
        if layer != first:
            own = self._settings(layer) | {"content": self._division(manifest, name, layer)}
            return cached(
                f"{self.name}-{name}-{layer}",
                {"trees": key, "layer": own},
                lambda: read_layer(manifest, folder, layer_folder, name),
            )
        content = cached(f"{self.name}-{name}", key, lambda: read_split(manifest, folder, split))
        wrong = count_mistakes(content, expected(split, accepted_counts(self.name).get(name)))
        if wrong:
            note = f" ({content.dropped} without words left out)" if content.dropped else ""
            raise TreebankError(
                f"{manifest.name}, split {name} in {folder}: {'; '.join(wrong)}{note}. "
                "The files are not those that the manifest describes: is it another release, or "
                f"cut? 'spmrl-bench validate {manifest.name}' lists all that differs; with "
                "--accept-counts it is used as it is"
            )
        return content

    def _settings(self, layer: Layer) -> dict[str, Any]:
        """The settings of the manifest that change the annotation of a layer."""
        manifest = self.manifest
        if isinstance(manifest, FileManifest) and layer != self.layers[0]:
            second = second_layer(manifest)
            words = [name for name in manifest.transforms if word_transforms([name])]
            own = second.settings | second.alignment
            return {"format": second.format, "transforms": words} | own
        settings: dict[str, Any] = {"format": manifest.format, "transforms": manifest.transforms}
        if isinstance(manifest, FileManifest):
            settings |= manifest.settings
            if manifest.on_error != "fail":
                settings["on_error"] = manifest.on_error
        return settings

    def _version(self, layer: Layer) -> int | str:
        """What stands for the readers and transforms of a layer in its fingerprint."""
        if isinstance(self.manifest, MiniManifest):
            return 1  # the sentences themselves are in the fingerprint
        settings = self._settings(layer)
        parts = [settings["format"], *settings["transforms"]]
        return reading_version(parts)

    def _division(self, manifest: FileManifest, name: str, layer: Layer) -> list[object]:
        """What is read for a split: which of the sentences of which bytes."""
        split, folder = manifest.splits[name], self._folder_of(layer)
        first = layer == self.layers[0]
        if (name, layer) not in self._digests:
            paths = (
                [*split_files(manifest, folder, split).paths, *side_files(folder, split)]
                if first
                else layer_files(manifest, folder, name).paths
            )
            self._digests[name, layer] = verified_digests(manifest, folder, paths)
        digests = self._digests[name, layer]
        if not first:  # what is left out is the trees' affair
            return [*digests]
        rows = split.rows.model_dump(exclude={"table"}) if split.rows else None
        division: list[object] = [rows, digests]
        if split.range is not None:
            division.append(split.range)
        if split.tag_files is not None:
            division.append({"tag_files": len(find_files(folder, split.tag_files).paths)})
        return division

    def _generated(self, manifest: MiniManifest) -> dict[str, SplitContent]:
        """All splits at once, because no sentence may occur in two of them."""
        if not self._made:
            sizes: dict[str, int] = {name: manifest.splits[name].sentences for name in SPLITS}
            for name, sentences in generate(manifest.grammar, sizes, manifest.seed).items():
                changed = [transform_parse(manifest.transforms, parse) for parse in sentences]
                kept = [parse for parse in changed if parse is not None]
                self._made[name] = SplitContent(kept, len(changed) - len(kept), ())
        return self._made

    def _folder_of(self, layer: Layer) -> Path:
        folder = self._folder if layer == self.layers[0] else self._layer_folder
        if folder is None:
            raise ValueError(f"{self.name} is read from files and needs a folder")
        return folder


def open_treebank(name: str, root: str | os.PathLike[str] | None = None) -> Treebank:
    """The treebank of a name.

    Args:
        name: of a manifest, such as ``german-squoia``.
        root: the directory with treebanks; without it, the one that the environment variable
            ``TREEBANKS`` names. Generated treebanks need none.

    Raises:
        TreebankError: the name is unknown, the manifest has mistakes, or files are missing;
            the message says where they were looked for and what else there is; or two splits
            have the same sentences.
    """
    manifest = load_manifest(name)
    if isinstance(manifest, MiniManifest):
        return Treebank(manifest)
    status = status_of(manifest, root)
    if not status.present:
        raise TreebankError(absence(manifest, root))
    folder = find_folder(manifest.path, root)
    if folder is not None and (mistakes := same_places(manifest, folder)):
        raise TreebankError("\n".join(f"treebank {name}: {mistake}" for mistake in mistakes))
    layer = manifest.dependencies
    other = find_folder(layer.path, root) if layer is not None and layer.path else None
    return Treebank(manifest, folder, other, status.layer_missing)


def _plain(parse: Parse) -> object:
    """A sentence with one layer as JSON can hold it."""
    tree = parse.dependencies
    if tree is None:
        return str(parse)
    return [tree.words, tree.tags, tree.heads.tolist(), tree.relations]
