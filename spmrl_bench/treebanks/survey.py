"""What is in a treebank: sizes, inventories, extremes, and sentences that splits share.

These are the figures that a treebank's builders publish and that its users need first, and
most mistakes of a conversion show in one of them: a label set of hundreds, a depth of a
thousand, a test sentence that was trained on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from spmrl_bench.treebanks.projectivity import Projectivity
from spmrl_bench.trees.dependencies import DependencyTree, depths
from spmrl_bench.trees.graph import Graph
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import Tree

#: Sentences of at most this many words may well occur in two splits.
SHORT = 3

_SHOWN = 12  # labels, tags and chains of an inventory


@dataclass
class Survey:
    """Figures of some sentences; :meth:`add` takes them one by one.

    Attributes:
        sentences, tokens: how many.
        forms, tags: how often each word form and each tag occurs.
        labels: how often each label of a constituent occurs; of dependencies, each relation.
        longest: number of words of the longest sentence, and its number from 1.
        deepest: number of constituents around a word, at most; of dependencies, of arcs above it.
        chains: how often each chain of constituents over the same words occurs, top-down.
        one_word: sentences of one word.
        several_roots: trees without a single constituent over all words.
        discontinuous: constituents whose words have a gap between them, in the sentences given to
            :meth:`add_raw`; of dependencies, words that dominate such a set of words.
        discontinuous_sentences: sentences with at least one (non-projective, of dependencies).
        projectivity: of dependencies, the arcs that cross others, and what encodings keep of them.
    """

    sentences: int = 0
    tokens: int = 0
    forms: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    longest: tuple[int, int] = (0, 0)
    deepest: int = 0
    chains: Counter[tuple[str, ...]] = field(default_factory=Counter)
    one_word: int = 0
    several_roots: int = 0
    discontinuous: int = 0
    discontinuous_sentences: int = 0
    projectivity: Projectivity = field(default_factory=Projectivity)

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
            graph = _as_graph(sentence)
            self.deepest = max(self.deepest, max(depths(sentence.heads.tolist())))
            self.add_raw(graph)
            self.projectivity.add(sentence)
            return
        self.labels.update(sentence.labels)
        rows = list(sentence.constituents())
        self.several_roots += not rows or rows[0][:2] != (0, n)
        self.deepest = max(self.deepest, _depth(rows))
        self.chains.update(_chains(rows))

    def add_all(self, sentences: Iterable[Parse], layer: Layer) -> None:
        """Count one layer of all sentences."""
        for sentence in sentences:
            found = sentence.layer(layer)
            if found is not None:
                self.add(found)

    def add_raw(self, sentence: object) -> None:
        """Count the crossing branches of a sentence as its file has it, before any transform."""
        if isinstance(sentence, Graph):
            number = sum(extent.has_gap for extent in sentence.extents())
            self.discontinuous += number
            self.discontinuous_sentences += number > 0

    def unseen(self, known: Survey) -> float:
        """Percentage of tokens whose form does not occur in another survey's sentences."""
        new = sum(count for form, count in self.forms.items() if form not in known.forms)
        return 100 * new / max(1, self.tokens)


def shared_sentences(splits: Mapping[str, Sequence[Parse]]) -> list[tuple[str, int, str, int]]:
    """Sentences of more than :data:`SHORT` words that occur in two splits.

    Returns:
        ``(split, number, earlier split, number there)`` for each sentence of a later split that
        an earlier one has too, numbers from 1.
    """
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    found = []
    for split, sentences in splits.items():
        here: dict[tuple[str, ...], tuple[str, int]] = {}
        for number, sentence in enumerate(sentences, start=1):
            if len(sentence) <= SHORT:
                continue
            if sentence.words in first:
                found.append((split, number, *first[sentence.words]))
            else:
                here.setdefault(sentence.words, (split, number))
        first |= here
    return found


def survey_table(surveys: Mapping[str, Survey]) -> str:
    """One column for each split, one row for each figure; unseen forms are not in the first."""
    from tabulate import tabulate

    train = next(iter(surveys.values()))
    figures: list[tuple[str, Callable[[Survey], object]]] = [
        ("sentences", lambda s: f"{s.sentences:,}"),
        ("tokens", lambda s: f"{s.tokens:,}"),
        ("word forms", lambda s: f"{len(s.forms):,}"),
        ("unseen tokens", lambda s: "" if s is train else f"{s.unseen(train):.1f} %"),
        ("tags", lambda s: len(s.tags)),
        ("labels", lambda s: len(s.labels)),
        ("longest sentence", lambda s: f"{s.longest[0]} (no. {s.longest[1]})"),
        ("deepest", lambda s: s.deepest),
        ("sentences of one word", lambda s: s.one_word),
        ("unary chains", lambda s: sum(s.chains.values())),
        ("discontinuous", lambda s: f"{s.discontinuous} in {s.discontinuous_sentences}"),
    ]
    rows = [[name, *(figure(survey) for survey in surveys.values())] for name, figure in figures]
    return tabulate(
        rows, headers=["", *surveys], tablefmt="simple", disable_numparse=True,
        colalign=["left", *["right"] * len(surveys)],
    )  # fmt: skip


def inventories(surveys: Mapping[str, Survey]) -> list[str]:
    """The most frequent labels, tags and unary chains of all splits, a line for each kind."""
    together: dict[str, Counter[str]] = {kind: Counter() for kind in ("labels", "tags", "chains")}
    for survey in surveys.values():
        together["labels"].update(survey.labels)
        together["tags"].update(survey.tags)
        together["chains"].update({" over ".join(c): n for c, n in survey.chains.items()})
    return [
        f"{kind} ({len(counts)}): {_most_frequent(counts)}"
        for kind, counts in together.items()
        if counts
    ]


def shared_note(shared: list[tuple[str, int, str, int]]) -> list[str]:
    """What to say about sentences that stand in two splits."""
    if not shared:
        return []
    pairs = Counter((later, earlier) for later, _, earlier, _ in shared)
    counts = ", ".join(f"{n} of {later} in {earlier}" for (later, earlier), n in pairs.items())
    split, number, other, there = shared[0]
    return [
        f"sentences of more than {SHORT} words in two splits: {counts} "
        f"(the first: {split} {number} is {other} {there})"
    ]


def _most_frequent(counts: Counter[str]) -> str:
    shown = ", ".join(name or "(none)" for name, _ in counts.most_common(_SHOWN))
    return shown + (", ..." if len(counts) > _SHOWN else "")


def _depth(rows: Sequence[tuple[int, int, str]]) -> int:
    """The number of constituents around the word that has most."""
    ends: list[int] = []
    depth = 0
    for start, end, _ in rows:
        while ends and ends[-1] <= start:
            ends.pop()
        ends.append(end)
        depth = max(depth, len(ends))
    return depth


def _chains(rows: Sequence[tuple[int, int, str]]) -> list[tuple[str, ...]]:
    """Each chain of two or more constituents over the same words."""
    runs = groupby(rows, key=lambda row: row[:2])
    chains = [tuple(label for _, _, label in run) for _, run in runs]
    return [chain for chain in chains if len(chain) > 1]


def _as_graph(tree: DependencyTree) -> Graph:
    """A node for each word, with that word and the nodes of those that depend on it."""
    nodes, parents = tuple(range(len(tree))), tuple((tree.heads - 1).tolist())
    relations = tree.relations
    return Graph("", tree.words, tree.tags, nodes, relations, tree.words, parents, relations)
