"""The closed inventories of a parser: words, characters, tags and labels seen in training.

A label is the chain of nonterminals over one span, top to bottom, so that a unary chain is
one decision; tags are never part of it. Index 0 is the empty label (no constituent). Words
come without a frequency cut-off, with their training counts, from which the probability of
replacing a training word by UNK follows: ``1 / (1 + count)`` (Kitaev & Klein 2018).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spmrl_bench.trees.chains import Label, label_rows
from spmrl_bench.trees.parse import Parse

#: What a root is called where the training trees do not say it.
TOP = "TOP"

EMPTY = 0
UNK, START, STOP = 0, 1, 2
FIRST_WORD = FIRST_TAG = 3  # words and tags both begin with UNK, START and STOP
CHAR_UNK, CHAR_WORD_START, CHAR_WORD_STOP, CHAR_START, CHAR_STOP = 0, 1, 2, 3, 4
FIRST_CHAR = 5
#: START and STOP are spelt by this many copies of a character of their own.
BOUNDARY_CHARACTERS = 3


@dataclass(frozen=True)
class Vocabulary:
    """Words with counts, characters, labels and tags, each in order of first appearance.

    Attributes:
        root: the most frequent highest nonterminal of a whole training sentence.
    """

    words: dict[str, int]
    characters: tuple[str, ...]
    labels: tuple[Label, ...]
    tags: tuple[str, ...] = ()
    root: str = field(default=TOP, compare=False)
    word_ids: dict[str, int] = field(init=False, repr=False)
    character_ids: dict[str, int] = field(init=False, repr=False)
    label_ids: dict[Label, int] = field(init=False, repr=False)
    tag_ids: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "word_ids", {word: k for k, word in enumerate(self.words, FIRST_WORD)}
        )
        object.__setattr__(
            self, "character_ids", {c: k for k, c in enumerate(self.characters, FIRST_CHAR)}
        )
        object.__setattr__(self, "label_ids", {label: k for k, label in enumerate(self.labels)})
        object.__setattr__(self, "tag_ids", {tag: k for k, tag in enumerate(self.tags, FIRST_TAG)})

    @classmethod
    def of(cls, examples: Iterable[Parse]) -> Vocabulary:
        """The inventories of the training sentences; labels are those of their trees."""
        words: Counter[str] = Counter()
        labels: dict[Label, None] = {(): None}
        tags: dict[str, None] = {}
        roots: Counter[str] = Counter()
        for example in examples:
            words.update(example.words)
            tags.update(dict.fromkeys(example.tags))
            tree = example.tree
            if tree is None:
                continue
            if tree.labels and tree.spans[0].tolist() == [0, len(tree)]:
                roots[tree.labels[0]] += 1
            labels.update((label, None) for _, _, label in label_rows(tree))
        characters = dict.fromkeys(character for word in words for character in word)
        root = next((name for name, _ in roots.most_common() if name), TOP)
        return cls(dict(words), tuple(characters), tuple(labels), tuple(tags), root)

    def to_json(self) -> dict[str, Any]:
        """A JSON value that :meth:`from_json` reads back."""
        return {
            "words": list(self.words.items()),
            "characters": list(self.characters),
            "labels": [list(label) for label in self.labels],
            "tags": list(self.tags),
            "root": self.root,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Vocabulary:
        """The inverse of :meth:`to_json`."""
        return cls(
            dict(value["words"]),
            tuple(value["characters"]),
            tuple(tuple(label) for label in value["labels"]),
            tuple(value.get("tags", ())),  # parsers saved before they were recorded have none
            str(value.get("root", TOP)),  # likewise
        )
