"""Is a treebank what its manifest says, down to the last sentence?

Opening a treebank stops at the first thing that is wrong, as a training should. Whoever
prepares or receives one wants the complete list instead: every file that is missing or
changed, every sentence that breaks the format, every number that differs from the declared
one, every place where two layers disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spmrl_bench.errors import SpmrlError
from spmrl_bench.treebanks.accepted import AcceptedCounts, accepted_counts, expected
from spmrl_bench.treebanks.checksums import changed_files, file_digest
from spmrl_bench.treebanks.manifest import FileManifest, Manifest, MiniManifest
from spmrl_bench.treebanks.overlap import many_shared, same_places
from spmrl_bench.treebanks.presence import Root, find_folder, status_of
from spmrl_bench.treebanks.reading import (
    SplitContent,
    count_mistakes,
    layer_files,
    read_layer,
    read_split,
    second_layer,
)
from spmrl_bench.treebanks.sources import SPLITS, Split
from spmrl_bench.treebanks.split_files import split_files
from spmrl_bench.treebanks.survey import Survey, shared_sentences
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.parse import Parse


@dataclass
class Validation:
    """What was found of one treebank.

    Attributes:
        name: of the treebank.
        present: whether its files are there; if not, nothing else was looked at.
        surveys: the figures of each split that could be read, of its first layer.
        dependencies: those of its dependencies; where these are its only layer, the same.
        left_out: sentences of each split that were left out, as the manifest declares: those
            that break the format and those without words.
        shared: sentences that occur in two splits; see
            :func:`~spmrl_bench.treebanks.survey.shared_sentences`.
        aligned: number of words that are the same in two layers read from files.
        counts: numbers of each split that could be read from files.
        deviating: where they are not those that the manifest declares or the user accepted.
        problems: all that is wrong, each with its place.
    """

    name: str
    present: bool
    surveys: dict[str, Survey] = field(default_factory=dict)
    dependencies: dict[str, Survey] = field(default_factory=dict)
    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)
    shared: list[tuple[str, int, str, int]] = field(default_factory=list)
    aligned: int | None = None
    counts: dict[str, AcceptedCounts] = field(default_factory=dict)
    deviating: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """The treebank is here, and nothing is wrong with it."""
        return self.present and not self.problems


def validate(manifest: Manifest, root: Root = None) -> Validation:
    """Read all of a treebank, from its files and not from the cache, and list what is wrong.

    Raises:
        TreebankError: a mini treebank's grammar has mistakes.
    """
    status = status_of(manifest, root)
    result = Validation(manifest.name, status.present)
    sentences: dict[str, Sequence[Parse]] = {}
    if isinstance(manifest, MiniManifest):
        bank = open_treebank(manifest.name)
        for name in SPLITS:
            content = bank.content(name)
            sentences[name] = content.sentences
            for layer in manifest.layers:
                surveys = result.surveys if layer == "constituents" else result.dependencies
                surveys[name] = Survey()
                surveys[name].add_all(content.sentences, layer)
            result.left_out[name] = (0, content.dropped)
    elif status.present:
        folder = find_folder(manifest.path, root)
        assert folder is not None  # it is present
        result.problems += same_places(manifest, folder)
        accepted = accepted_counts(manifest.name)
        for name in SPLITS:
            split = manifest.splits[name]
            read = _read(result, manifest, folder, name, split)
            if read is not None:
                sentences[name] = read.sentences
                result.left_out[name] = (len(read.skipped), read.dropped)
                result.counts[name] = AcceptedCounts(
                    sentences=len(read.sentences),
                    tokens=sum(map(len, read.sentences)),
                    skipped=len(read.skipped),
                    dropped=read.dropped,
                )
                wrong = count_mistakes(read, expected(split, accepted.get(name)))
                result.deviating += [f"{name}: {mistake}" for mistake in wrong]
                result.problems += [f"{name}: {mistake}" for mistake in wrong]
        if manifest.layers[0] == "dependencies":
            result.dependencies = result.surveys
        elif "dependencies" in manifest.layers:
            _check_layer(result, manifest, folder, root)
    result.shared = shared_sentences(sentences)
    if isinstance(manifest, FileManifest) and manifest.shared == "refused":
        sizes = {name: len(found) for name, found in sentences.items()}
        result.problems += many_shared(result.shared, sizes)
    return result


def _read(
    result: Validation, manifest: FileManifest, folder: Path, name: str, split: Split
) -> SplitContent | None:
    """The content of a split; its mistakes go into the result."""
    broken: list[str] = []
    try:
        paths = split_files(manifest, folder, split).paths
        result.problems += _changed(manifest, folder, paths, name)
        content, survey = read_surveyed(manifest, folder, split, broken)
    except SpmrlError as error:
        result.problems += [*broken, str(error)]
        return None
    if manifest.on_error == "fail":
        result.problems += broken
        content = SplitContent(content.sentences, content.dropped, ())
    result.surveys[name] = survey
    if survey.several_roots:
        result.problems.append(
            f"{name}: {survey.several_roots} trees have no single constituent over all words: "
            "add a root transform to the manifest"
        )
    return content


def read_surveyed(
    manifest: FileManifest, folder: Path, split: Split, broken: list[str]
) -> tuple[SplitContent, Survey]:
    """The content of a split and the figures of its first layer.

    Every sentence that breaks the format is left out, and its error added to ``broken``; raises
    as :func:`~spmrl_bench.treebanks.reading.read_split`.
    """
    survey = Survey()
    content = read_split(
        manifest,
        folder,
        split,
        on_error=lambda error: broken.append(str(error)),
        watch=survey.add_raw,
    )
    survey.add_all(content.sentences, manifest.layers[0])
    return content, survey


def _changed(manifest: FileManifest, folder: Path, paths: Sequence[Path], split: str) -> list[str]:
    """A problem for each file that is not the recorded one."""
    digests = [file_digest(path) for path in paths]
    return [
        f"{split}: {changed} is not the file that the manifest was written for (SHA-256)"
        for changed in changed_files(manifest, folder, paths, digests)
    ]


def _check_layer(result: Validation, manifest: FileManifest, trees: Path, root: Root) -> None:
    """Read the dependencies beside the trees, if they are there, and compare the words."""
    folder = find_folder(second_layer(manifest).path or manifest.path, root)
    if folder is None:
        return
    result.aligned = 0
    for name in result.surveys:
        found = layer_files(manifest, folder, name)
        if found.missing:
            result.problems.append(
                f"{name}: the dependencies lack {', '.join(found.missing[:5])} in {folder}"
            )
            continue
        result.problems += _changed(manifest, folder, found.paths, name)
        try:
            # What is broken in the trees was said when they were read.
            content = read_layer(manifest, trees, folder, name, on_error=lambda error: None)
        except SpmrlError as error:
            result.problems.append(str(error))
            continue
        result.dependencies[name] = survey = Survey()
        survey.add_all(content.sentences, "dependencies")
        result.aligned += survey.tokens
