"""The closed inventories of a parser: words, characters, tags, labels and relations of training.

A label is the chain of nonterminals over one span, top to bottom, so that a unary chain is one
decision; tags are never part of it. Index 0 is the empty label (no constituent). A training word
is replaced by UNK with the probability ``1 / (1 + count)`` (Kitaev & Klein 2018).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StrictBool, StrictInt, StrictStr, ValidationError

from spmrl_bench.errors import TreeError
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


class _Saved(BaseModel):
    """A vocabulary in JSON; parsers saved before tags, root and relations were noted lack them."""

    words: list[tuple[StrictStr, Annotated[StrictInt, Field(ge=0)]]]
    characters: tuple[Annotated[StrictStr, Field(min_length=1, max_length=1)], ...]
    labels: tuple[Annotated[tuple[StrictStr, ...], Field(max_length=LONGEST_CHAIN)], ...]
    tags: tuple[StrictStr, ...] = ()
    root: StrictStr = TOP
    relations: list[tuple[StrictStr, StrictBool, StrictBool]] = []
    projective: StrictBool = True


def _numbered(entries: Iterable[Any], first: int = 0) -> dict[Any, int]:
    return {entry: number for number, entry in enumerate(entries, first)}


@dataclass(frozen=True)
class Vocabulary:
    """Words with counts, characters, labels, tags and relations, in order of first appearance."""

    words: dict[str, int]
    characters: tuple[str, ...]
    labels: tuple[Label, ...]
    tags: tuple[str, ...] = ()
    root: str = field(default=TOP, compare=False)
    """The most frequent highest nonterminal of a whole training sentence."""
    relations: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    """Those of words to their heads, each with where it was seen: to the root of a sentence, to
    another word."""
    projective: bool = True
    """Whether no arc of the training sentences crosses another."""

    word_ids = cached_property(lambda self: _numbered(self.words, FIRST_WORD))
    character_ids = cached_property(lambda self: _numbered(self.characters, FIRST_CHAR))
    label_ids = cached_property(lambda self: _numbered(self.labels))
    tag_ids = cached_property(lambda self: _numbered(self.tags, FIRST_TAG))
    relation_ids = cached_property(lambda self: _numbered(self.relations))

    @classmethod
    def of(
        cls, examples: Iterable[Parse], rows: Iterable[Iterable[LabeledSpan]] | None = None
    ) -> Vocabulary:
        """Return the inventories of training sentences; ``rows`` are their spans that are learnt,
        if not those of the trees."""
        examples = list(examples)
        trees = [each.tree for each in examples if each.tree is not None]
        words = Counter(chain.from_iterable(each.words for each in examples))
        spans = chain.from_iterable(rows or map(collapsed_spans, trees))
        labels = tuple(dict.fromkeys(chain([()], (label for _, _, label in spans))))
        if (longest := max(map(len, labels))) > LONGEST_CHAIN:
            raise TreeError(
                f"{longest:,} constituents over the same words, each the only child of the next; "
                f"{LONGEST_CHAIN:,} can be learnt"
            )
        roots = Counter(
            tree.labels[0]
            for tree in trees
            if any(tree.labels[:1]) and tree.spans[0].tolist() == [0, len(tree)]
        )
        layers = [each.dependencies for each in examples if each.dependencies is not None]
        arcs = dict.fromkeys(
            (name, head == 0)
            for layer in layers
            for name, head in zip(layer.relations, layer.heads.tolist(), strict=True)
        )
        return cls(
            dict(words),
            tuple(dict.fromkeys(chain.from_iterable(words))),
            labels,
            tuple(dict.fromkeys(chain.from_iterable(each.tags for each in examples))),
            max(roots, key=roots.__getitem__, default=TOP),  # of equals the first
            {name: ((name, True) in arcs, (name, False) in arcs) for name, _ in arcs},
            all(is_projective(layer.heads.tolist()) for layer in layers),
        )

    def limited(self, words: int | None) -> Self:
        """Return the same with so many words at most, the most frequent ones and of equals the
        first; with None, all. Characters stay, which are read of unknown words too."""
        if words is None or words >= len(self.words):
            return self
        known = dict(Counter(self.words).most_common(words))
        return replace(self, words={word: n for word, n in self.words.items() if word in known})

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value that :meth:`from_json` reads back."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "words": list(self.words.items()),
            "relations": [(name, *where) for name, where in self.relations.items()],
        }

    @classmethod
    def from_json(cls, value: Any) -> Vocabulary:
        """Return the vocabulary that :meth:`to_json` made a value of; raise a ValueError if an
        inventory is missing or holds what no training sentence gives it."""
        try:
            saved = _Saved.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "vocabulary"
            raise ValueError(f"{place}: found {first['input']!r:.40}; {first['msg']}") from None
        if saved.labels[:1] != ((),):
            raise ValueError("labels: the first is not the empty one")
        relations = [name for name, *_ in saved.relations]
        named = {"words": [word for word, _ in saved.words], "relations": relations}
        for key, entries in (dict(saved) | named).items():
            if key not in ("root", "projective") and len({*entries}) < len(entries):
                twice = Counter(entries).most_common(1)[0][0]
                raise ValueError(f"{key}: {twice!r:.80} is there twice")
        for name in filter(UNWRITABLE.search, relations):
            raise ValueError(f"relations: found {name!r:.40}, which no file can hold")
        whole = {name: (root, word) for name, root, word in saved.relations}
        return cls(**{**dict(saved), "words": dict(saved.words), "relations": whole})
