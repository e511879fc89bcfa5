"""Is a treebank what its manifest says, down to the last sentence, and what is in it?

Opening a treebank stops at the first thing that is wrong, as a training should. Whoever prepares or
receives one wants the complete list instead. Beside it stand the figures that builders publish:
most mistakes of a conversion show in one of them, as hundreds of labels, or a depth of a thousand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import indent

import numpy as np

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.conll import UNSPECIFIED
from spmrl_bench.storage.files import open_unpacked
from spmrl_bench.treebanks import reading
from spmrl_bench.treebanks.catalogue import Root, treebank_status
from spmrl_bench.treebanks.manifest import SPLITS, Manifest, SplitName
from spmrl_bench.treebanks.patterns import some
from spmrl_bench.treebanks.split_files import ALLOW_SHARED, TreebankFiles, same_places
from spmrl_bench.trees.dependencies import DependencyTree, depths
from spmrl_bench.trees.graph import Graph
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.projective import nonprojective_words
from spmrl_bench.trees.tree import Tree, collapsed_spans

#: Sentences of at most this many words may well occur in two splits.
SHORT = 3
#: Share of a split's sentences that an earlier split may have too, and a number that is chance.
MOST_SHARED = 0.1
BY_CHANCE = 2
#: Sentences, or words, that tell how a treebank writes its leaves.
SAMPLE = 500

_BUNDLE = re.compile(r"\{[^{}]*=")

#: Headings of the rows of a :class:`Validation`.
VALIDATED = (
    "treebank", "split", "sentences", "tokens", "broken", "no words", "relations",
    "not projective", "arcs not projective", "state",
)  # fmt: skip
#: A sentence of two splits: split, number from 1, earlier split, number there.
Shared = tuple[str, int, str, int]


@dataclass
class Validation:
    """What was found of one treebank."""

    name: str
    present: bool  # whether its files are there; if not, nothing else was looked at
    # Of the first layer of each split that could be read.
    statistics: dict[str, TreebankStatistics] = field(default_factory=dict)
    # Those of its dependencies; where these are its only layer, the same.
    dependencies: dict[str, TreebankStatistics] = field(default_factory=dict)
    # How many sentences of each split break the format and how many have no words.
    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)
    shared: list[Shared] = field(default_factory=list)  # as of `find_overlaps`
    aligned: int | None = None  # number of words that are the same in two layers
    # Of each split with other numbers than declared, the lines that declare them.
    deviating: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)  # all that is wrong, each with its place

    @property
    def sound(self) -> bool:
        """The treebank is here, and nothing is wrong with it."""
        return self.present and not self.problems

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each split, or one if nothing was read."""
        state = f"{len(self.problems)} problem(s)" if self.present else "absent"
        if self.sound:
            state = "sound"
            if self.aligned is not None:
                state += f"; {self.aligned:,} tokens aligned with the dependencies"
        rows: list[tuple[str, ...]] = []
        for split, one in self.statistics.items():
            counts = [f"{one.sentences:,}", f"{one.tokens:,}"]
            counts += map(str, self.left_out.get(split, (0, 0)))
            arcs = self.dependencies.get(split)
            counts += ["", "", ""] if arcs is None else [
                str(len(arcs.labels.keys() - {UNSPECIFIED})),
                _share(arcs.discontinuous_sentences, arcs.sentences),
                _share(arcs.discontinuous, arcs.tokens),
            ]  # fmt: skip
            rows.append((self.name, split, *counts, "" if rows else state))
        return rows or [(self.name, *[""] * (len(VALIDATED) - 2), state)]

    def figures(self) -> str:
        """The figures of each layer, and the sentences that two splits have."""
        layers = {", constituents": self.statistics, ", dependencies": self.dependencies}
        if self.dependencies in ({}, self.statistics):
            layers = {"": self.statistics}
        lines = []
        for title, one in layers.items():
            lines += [f"{self.name}{title}\n\n{statistics_table(one)}\n", *inventories(one), ""]
        return "\n".join(lines + [f"{line}\n" for line in shared_note(self.shared)])

    def own_manifest(self) -> str:
        """What to write into a manifest for a release with other numbers."""
        lines = [f'name = "{self.name}-own"', f'base = "{self.name}"', *self.deviating.values()]
        return (
            "If this is another release that you want to use as it is, treebanks/"
            f"{self.name}-own.toml in your own folder ($SPMRL_BENCH_HOME) says so:\n"
            + indent("\n".join(lines), "    ")
        )


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({100 * count / whole:.1f} %)" if count else "0"


def validate(manifest: Manifest, root: Root = None) -> Validation:
    """Read all of a treebank, not from the cache; TreebankError if its folder may not be read."""
    status = treebank_status(manifest, root)
    result = Validation(manifest.name, status.present)
    if not status.present or status.files is None:
        return result
    files = status.files
    sentences: dict[str, Sequence[Parse]] = {}
    for split in SPLITS:
        found = _check_split(result, files, split)
        if found is not None:
            sentences[split] = reading.split_data(found).sentences
            if len(manifest.layers) > 1:
                _check_layer(result, files, split, found)
    if manifest.layers[0] == "dependencies":
        result.dependencies = result.statistics
    result.shared, overlaps = find_overlaps(files, sentences)
    result.problems += overlaps
    return result


def read_and_count(
    files: TreebankFiles, split: SplitName, broken: list[str]
) -> tuple[reading.FirstLayer, TreebankStatistics]:
    """Return what is in the files of a split, and the figures of its first layer.

    The error of each sentence that breaks the format is added to ``broken``; raises as
    :func:`~spmrl_bench.treebanks.reading.read_first_layer`.
    """
    statistics = TreebankStatistics()
    found = reading.read_first_layer(
        files, split, on_error=lambda error: broken.append(str(error)), watch=statistics.add_raw
    )
    statistics.add_all(reading.split_data(found).sentences, files.manifest.layers[0])
    return found, statistics


def _check_split(
    result: Validation, files: TreebankFiles, split: SplitName
) -> reading.FirstLayer | None:
    """What was read of a split, whose mistakes go into the result; None if nothing could be."""
    manifest = files.manifest
    declared = manifest.splits[split]
    broken: list[str] = []
    try:
        result.problems += _changed(files, split, manifest.layers[0])
        found, statistics = read_and_count(files, split, broken)
    except SpmrlError as error:
        result.problems += [*broken, str(error)]
        return None
    data = reading.split_data(found)
    if manifest.on_error == "fail":
        result.problems += broken
        data = replace(data, skipped=())
    result.statistics[split] = statistics
    result.left_out[split] = (len(data.skipped), data.dropped)
    if statistics.several_roots:
        result.problems.append(
            f"{split}: {statistics.several_roots} trees have no single constituent over all words: "
            "add a root transform to the manifest"
        )
    names = Counter((place.path, place.name) for place in found.places)
    if label := "ID" if manifest.format == "psd" else manifest.id:
        name_of = re.compile(rf"\(\s*{re.escape(label)}\s+([^()]*?)\s*\)")
        names = Counter()
        for path in files.of(split).paths:
            with open_unpacked(path) as file:
                text = file.read().decode(errors="replace")
            names.update((path, name) for name in name_of.findall(text))
    if twice := [place for place, count in names.items() if count > 1]:
        problem = f"{len(twice)} identifier(s) name several sentences, first {twice[0][1]}"
        result.problems.append(f"{split}: {problem} in {twice[0][0]}")
    trees = [one.tree for one in data.sentences[:SAMPLE] if one.tree is not None]
    if manifest.tags != "none" and (odd := leaf_problem(trees)):
        result.problems.append(f"{split}: {odd}")
    if wrong := reading.count_mistakes(data, split, declared):
        result.problems += [f"{split}: {mistake}" for mistake in wrong]
        result.deviating[split] = "\n".join(
            f"splits.{split}.{key} = {number}"
            for key, number in data.counts.items()
            if number or getattr(declared, key)
        )
    return found


def leaf_problem(trees: Sequence[Tree | Graph]) -> str:
    """Return what is wrong if words and tags were read where something else stands; else nothing.

    Leaves of another shape than the reader expects come out with one tag, or with tags as labels,
    or as bundles ``{turkish=...}``.
    """
    tags = Counter(tag for tree in trees for tag in tree.tags)
    words = [word for tree in trees for word in tree.words]
    bundles = sum(map(bool, map(_BUNDLE.search, words)))
    labels = {label for tree in trees for label in tree.labels}
    several = len(tags) > 1 and 10 * len(tags) >= len(labels)  # else tags are read as labels
    if 2 * bundles <= len(words) and (several or len(words) < SAMPLE):
        return ""
    pairs = (pair for tree in trees for pair in zip(tree.tags, tree.words, strict=True))
    shapes = list(dict.fromkeys(f"({tag} {word})" for tag, word in pairs))
    return (
        f"its leaves are read as {some(shapes, most=3)}, with {len(tags)} tag(s): a word is "
        "written otherwise here. Write a manifest with the format brackets and the keys leaf and "
        "drop (docs/treebanks.md, Bracket dialects)"
    )


def _check_layer(
    result: Validation, files: TreebankFiles, split: SplitName, found: reading.FirstLayer
) -> None:
    result.aligned = result.aligned or 0
    if missing := files.of(split, "dependencies").missing:
        result.problems.append(
            f"{split}: the dependencies lack {some(missing)} in {files.layer_folder}"
        )
        return
    try:
        result.problems += _changed(files, split, "dependencies")
        data = reading.read_layer(files, split, found)
    except SpmrlError as error:
        result.problems.append(str(error))
        return
    result.dependencies[split] = statistics = TreebankStatistics()
    statistics.add_all(data.sentences, "dependencies")
    result.aligned += statistics.tokens


def _changed(files: TreebankFiles, split: SplitName, layer: Layer) -> list[str]:
    return [
        f"{split}: {changed} is not the file that the manifest was written for (SHA-256)"
        for changed in files.changed(split, layer)
    ]


def find_overlaps(
    files: TreebankFiles, splits: Mapping[str, Sequence[Parse]]
) -> tuple[list[Shared], list[str]]:
    """Return each sentence of more than :data:`SHORT` words that an earlier split has too, and in
    words what of that the manifest does not allow."""
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    shared: list[Shared] = []
    for split, sentences in splits.items():
        for number, sentence in enumerate(sentences, start=1):
            place = first.setdefault(sentence.words, (split, number))
            if len(sentence) > SHORT and place[0] != split:
                shared.append((split, number, *place))
    if files.manifest.shared == "allowed":
        return shared, []
    counts = Counter((split, earlier) for split, _, earlier, _ in shared)
    examples = {(split, earlier): (n, m) for split, n, earlier, m in reversed(shared)}
    return shared, same_places(files) + [
        f"{count} of the {len(splits[split])} sentences of {split} are in {earlier} too, such as "
        f"{split} {examples[split, earlier][0]} = {earlier} {examples[split, earlier][1]}. "
        f"{ALLOW_SHARED}"
        for (split, earlier), count in counts.items()
        if count > max(BY_CHANCE, MOST_SHARED * len(splits[split]))
    ]


def shared_note(shared: list[Shared]) -> list[str]:
    """Return what to say about sentences that stand in two splits."""
    if not shared:
        return []
    pairs = Counter((later, earlier) for later, _, earlier, _ in shared)
    counts = ", ".join(f"{n} of {later} in {earlier}" for (later, earlier), n in pairs.items())
    split, number, other, there = shared[0]
    return [
        f"sentences of more than {SHORT} words in two splits: {counts} "
        f"(the first: {split} {number} is {other} {there})"
    ]


@dataclass
class TreebankStatistics:
    """Figures of some sentences; :meth:`add` takes them one by one."""

    sentences: int = 0
    tokens: int = 0
    forms: Counter[str] = field(default_factory=Counter)  # of words
    tags: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)  # of constituents, or relations
    longest: tuple[int, int] = (0, 0)  # words of the longest sentence, and its number from 1
    deepest: int = 0  # constituents around a word, or arcs above it, at most
    chains: Counter[str] = field(default_factory=Counter)  # constituents over the same words
    one_word: int = 0  # sentences of one word
    several_roots: int = 0  # trees without a single constituent over all words
    discontinuous: int = 0  # constituents with a gap in the files, or arcs that are not projective
    discontinuous_sentences: int = 0  # sentences with at least one

    def add(self, sentence: Tree | DependencyTree) -> None:
        """Count a sentence as it is trained on."""
        self.sentences += 1
        n = len(sentence)
        self.tokens += n
        self.one_word += n == 1
        self.longest = max(self.longest, (n, self.sentences), key=lambda pair: pair[0])
        self.forms.update(sentence.words)
        self.tags.update(sentence.tags)
        if isinstance(sentence, DependencyTree):
            self.labels.update(sentence.relations)
            self.deepest = max(self.deepest, max(depths(sentence.heads.tolist())))
            self._add_discontinuous(len(nonprojective_words(sentence.heads.tolist())))
            return
        self.labels.update(sentence.labels)
        starts, ends = sentence.spans.T
        self.several_roots += sentence.spans[:1].tolist() != [[0, n]]
        opened = np.bincount(starts, minlength=n + 1) - np.bincount(ends, minlength=n + 1)
        self.deepest = max(self.deepest, int(opened.cumsum().max()))
        chains = (label for *_, label in collapsed_spans(sentence) if len(label) > 1)
        self.chains.update(map(" over ".join, chains))

    def add_all(self, sentences: Iterable[Parse], layer: Layer) -> None:
        for found in (sentence.layer(layer) for sentence in sentences):
            if found is not None:
                self.add(found)

    def add_raw(self, sentence: object) -> None:
        """Count the crossing branches of a sentence as its file has it, before any transform."""
        if isinstance(sentence, Graph):
            self._add_discontinuous(sum(extent.has_gap for extent in sentence.extents()))

    def _add_discontinuous(self, number: int) -> None:
        self.discontinuous += number
        self.discontinuous_sentences += number > 0

    def unseen(self, known: TreebankStatistics) -> float:
        """Return the percentage of tokens whose form does not occur in other sentences."""
        new = sum(count for form, count in self.forms.items() if form not in known.forms)
        return 100 * new / max(1, self.tokens)


def statistics_table(splits: Mapping[str, TreebankStatistics]) -> str:
    """Return a column for each split, a row for each figure; the first has no unseen forms."""
    from tabulate import tabulate

    first = next(iter(splits.values()))
    figures: list[tuple[str, Callable[[TreebankStatistics], object]]] = [
        ("sentences", lambda s: f"{s.sentences:,}"),
        ("tokens", lambda s: f"{s.tokens:,}"),
        ("word forms", lambda s: f"{len(s.forms):,}"),
        ("unseen tokens", lambda s: "" if s is first else f"{s.unseen(first):.1f} %"),
        ("tags", lambda s: len(s.tags)),
        ("labels", lambda s: len(s.labels)),
        ("longest sentence", lambda s: f"{s.longest[0]} (no. {s.longest[1]})"),
        ("deepest", lambda s: s.deepest),
        ("sentences of one word", lambda s: s.one_word),
        ("unary chains", lambda s: sum(s.chains.values())),
        ("discontinuous", lambda s: f"{s.discontinuous} in {s.discontinuous_sentences}"),
    ]
    rows = [[name, *(figure(one) for one in splits.values())] for name, figure in figures]
    return tabulate(
        rows, headers=["", *splits], tablefmt="simple", disable_numparse=True,
        colalign=["left", *["right"] * len(splits)],
    )  # fmt: skip


def inventories(splits: Mapping[str, TreebankStatistics]) -> list[str]:
    """Return lines with the most frequent labels, tags and unary chains of all splits."""
    found = []
    for kind in ("labels", "tags", "chains"):
        counts = sum((getattr(one, kind) for one in splits.values()), Counter[str]())
        names = [name or "(none)" for name, _ in counts.most_common()]
        found += [f"{kind} ({len(names)}): {some(names, most=12)}"] if names else []
    return found
