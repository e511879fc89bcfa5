"""The closed inventories of a parser: words, characters, tags and labels seen in training.

A label is the chain of nonterminals over one span, top to bottom, so that a unary chain is
one decision; tags are never part of it. Index 0 is the empty label (no constituent). Words
come with their training counts, from which the probability of replacing a training word by UNK
follows: ``1 / (1 + count)`` (Kitaev & Klein 2018). They come without a frequency cut-off, unless
a parser asks for the most frequent ones alone; all others are UNK to it, wherever they occur.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

from spmrl_bench.readers.conll import UNWRITABLE
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.projective import is_projective
from spmrl_bench.trees.tree import Label, LabeledSpan, collapsed_spans

#: What a root is called where the training trees do not say it.
TOP = "TOP"

EMPTY = 0
UNK, START, STOP = 0, 1, 2
FIRST_WORD = FIRST_TAG = 3  # words and tags both begin with UNK, START and STOP
CHAR_UNK, CHAR_WORD_START, CHAR_WORD_STOP, CHAR_START, CHAR_STOP = 0, 1, 2, 3, 4
FIRST_CHAR = 5
#: Nonterminals over one span that a saved parser may know; treebanks have five or so.
LONGEST_CHAIN = 1000
#: START and STOP are spelt by this many copies of a character of their own.
BOUNDARY_CHARACTERS = 3


@dataclass(frozen=True)
class Vocabulary:
    """Words with counts, characters, labels, tags and relations, in order of first appearance.

    Attributes:
        root: the most frequent highest nonterminal of a whole training sentence.
        relations: those of words to their heads, each with where it was seen: to the root of a
            sentence, to another word.
        projective: whether no arc of the training sentences crosses another.
    """

    words: dict[str, int]
    characters: tuple[str, ...]
    labels: tuple[Label, ...]
    tags: tuple[str, ...] = ()
    root: str = field(default=TOP, compare=False)
    relations: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    projective: bool = True
    word_ids: dict[str, int] = field(init=False, repr=False)
    character_ids: dict[str, int] = field(init=False, repr=False)
    label_ids: dict[Label, int] = field(init=False, repr=False)
    tag_ids: dict[str, int] = field(init=False, repr=False)
    relation_ids: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "word_ids", {word: k for k, word in enumerate(self.words, FIRST_WORD)}
        )
        object.__setattr__(
            self, "character_ids", {c: k for k, c in enumerate(self.characters, FIRST_CHAR)}
        )
        object.__setattr__(self, "label_ids", {label: k for k, label in enumerate(self.labels)})
        object.__setattr__(self, "tag_ids", {tag: k for k, tag in enumerate(self.tags, FIRST_TAG)})
        object.__setattr__(self, "relation_ids", {name: k for k, name in enumerate(self.relations)})

    @classmethod
    def of(
        cls, examples: Iterable[Parse], rows: Iterable[Iterable[LabeledSpan]] | None = None
    ) -> Vocabulary:
        """The inventories of the training sentences, of those layers that they have.

        Args:
            examples: the sentences.
            rows: the labelled spans of each that are learnt, if not those of its tree.
        """
        examples = list(examples)
        words: Counter[str] = Counter()
        labels: dict[Label, None] = {(): None}
        tags: dict[str, None] = {}
        roots: Counter[str] = Counter()
        relations: dict[str, tuple[bool, bool]] = {}
        projective = True
        learnt = rows or (
            () if each.tree is None else collapsed_spans(each.tree) for each in examples
        )
        for example, spans in zip(examples, learnt, strict=True):
            words.update(example.words)
            labels.update((label, None) for _, _, label in spans)
            tags.update(dict.fromkeys(example.tags))
            if (dependencies := example.dependencies) is not None:
                projective = projective and is_projective(dependencies.heads.tolist())
                for name, head in zip(
                    dependencies.relations, dependencies.heads.tolist(), strict=True
                ):
                    to_root, to_word = relations.get(name, (False, False))
                    relations[name] = (to_root or head == 0, to_word or head != 0)
            tree = example.tree
            if tree is not None and tree.labels and tree.spans[0].tolist() == [0, len(tree)]:
                roots[tree.labels[0]] += 1
        characters = dict.fromkeys(character for word in words for character in word)
        root = next((name for name, _ in roots.most_common() if name), TOP)
        return cls(
            dict(words), tuple(characters), tuple(labels), tuple(tags), root, relations, projective
        )

    def limited(self, words: int | None) -> Self:
        """The same with the most frequent words alone, so many of them at most; with None all.

        Of words that are as frequent, those that appeared first. Their counts and their order
        stay, and so do the characters, which are read of unknown words too.
        """
        if words is None or words >= len(self.words):
            return self
        # Sorting is stable, and words are in order of first appearance.
        known = set(sorted(self.words, key=lambda word: -self.words[word])[:words])
        kept = {word: count for word, count in self.words.items() if word in known}
        return replace(self, words=kept)

    def to_json(self) -> dict[str, Any]:
        """A JSON value that :meth:`from_json` reads back."""
        return {
            "words": list(self.words.items()),
            "characters": list(self.characters),
            "labels": [list(label) for label in self.labels],
            "tags": list(self.tags),
            "root": self.root,
            "relations": [[name, *where] for name, where in self.relations.items()],
            "projective": self.projective,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Vocabulary:
        """The inverse of :meth:`to_json`.

        Raises:
            ValueError: an inventory has something twice, or what no training sentence gives it;
                KeyError, TypeError, AttributeError: one is missing or no list.
        """
        for part in ("words", "characters", "labels", "tags", "relations"):
            if not isinstance(value.get(part, []), list):
                raise ValueError(f"{part}: found {value[part]!r:.40}, expected a list")
        # Parsers saved before tags, the root and relations were recorded have none.
        words, counts = _columns("words", value["words"], (str, int))
        relations, *places = _columns("relations", value.get("relations", []), (str, bool, bool))
        projective, root = value.get("projective", True), value.get("root", TOP)
        found = cls(
            dict(zip(words, counts, strict=True)),
            _distinct("characters", value["characters"], str),
            _distinct("labels", [*map(tuple, value["labels"])], tuple),
            _distinct("tags", value.get("tags", ()), str),
            root,
            dict(zip(relations, zip(*places, strict=True), strict=True)),
            projective,
        )
        if type(projective) is not bool or type(root) is not str:
            raise ValueError(f"projective is {projective!r:.40} and root is {root!r:.40}")
        if min(counts, default=0) < 0:
            raise ValueError("words: a count is negative")
        if not {*map(len, found.characters)} <= {1}:
            raise ValueError("characters: one is no single character")
        _check_labels(found.labels)
        for name in found.relations:
            if UNWRITABLE.search(name):
                raise ValueError(f"relations: found {name!r:.40}, which no file can hold")
        return found


def _columns(
    what: str, rows: list[Sequence[Any]], types: tuple[type, ...]
) -> tuple[tuple[Any, ...], ...]:
    """The columns of an inventory, each of one type; the values of the first are different."""
    if not rows:
        return ((),) * len(types)
    wanted = ", ".join(each.__name__ for each in types)
    if not {*map(type, rows)} <= {list, tuple} or {*map(len, rows)} != {len(types)}:
        raise ValueError(f"{what}: expected rows of {wanted}")
    columns = tuple(zip(*rows, strict=True))
    for column, kind in zip(columns, types, strict=True):
        if {*map(type, column)} != {kind}:
            odd = next(value for value in column if type(value) is not kind)
            raise ValueError(f"{what}: found {odd!r:.40}, expected rows of {wanted}")
    _distinct(what, columns[0], types[0])
    return columns


def _distinct(what: str, values: Iterable[Any], kind: type) -> tuple[Any, ...]:
    """The values of an inventory, which are of one type and different."""
    found = tuple(values)
    if not {*map(type, found)} <= {kind}:
        raise ValueError(f"{what}: found something else than a list of {kind.__name__}")
    if len({*found}) < len(found):
        twice = next(value for value, count in Counter(found).items() if count > 1)
        raise ValueError(f"{what}: {twice!r:.80} is there twice")
    return found


def _check_labels(labels: tuple[Label, ...]) -> None:
    """Make sure that the first label is the empty one, and that all are short chains of texts."""
    if labels[:1] != ((),):
        raise ValueError("labels: the first is not the empty one")
    if not {*map(type, chain.from_iterable(labels))} <= {str}:
        raise ValueError("labels: found something else than a chain of texts")
    if max(map(len, labels)) > LONGEST_CHAIN:
        raise ValueError(f"labels: a chain of more than {LONGEST_CHAIN} nonterminals")
