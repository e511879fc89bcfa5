"""Parsers that know a treebank's most useful facts and nothing of the sentence.

What they counted in the training sentences fits into their description. All leave final
punctuation to the root, as treebanks have it; the rest of a sentence is its body. Of what is
counted the most frequent is taken, and of several the first seen. What is drawn is a function of
the words.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, Field

from spmrl_bench.errors import CheckpointError
from spmrl_bench.nn.vocabulary import LONGEST_CHAIN
from spmrl_bench.parsers.base import MAX_TOKENS, Description, Parser, Prediction, Words
from spmrl_bench.parsers.session import with_tags
from spmrl_bench.storage.files import write_text
from spmrl_bench.storage.toml import validated
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Label, collapsed_spans

Chain = Annotated[list[str], Field(max_length=LONGEST_CHAIN)]
#: What a column of CoNLL can hold.
Relation = Annotated[str, Field(pattern=r"^[^\t\r\n]+$")]


class Baseline(Parser):
    """A parser that is described by what it counted, ``Counts`` as JSON values."""

    Counts: ClassVar[type[BaseModel]]

    def __init__(self, counted: dict[str, Any]) -> None:
        self.counted = counted

    @abstractmethod
    def predict(self, words: Words, tags: Words | None) -> Prediction:
        """Return the annotation of a sentence with one word at least."""

    def session(self, max_tokens: int = MAX_TOKENS) -> Self:
        return self

    def parse(
        self,
        sentences: Iterable[Words],
        tags: Iterable[Words] | None = None,
        given: object = None,
        **_: Any,
    ) -> Iterator[Parse]:
        if given is not None:
            self.check_exact()
        for words, own in with_tags(sentences, tags):
            found = self.predict(words, own) if words else Prediction()
            yield found.parse(words, own)

    def flat(self, words: Words, tags: Words) -> Parse:
        return self.predict(words, tags).parse(words, tags)

    def save(self, folder: Path) -> None:
        text = json.dumps({"kind": self.kind, "counted": self.counted}, ensure_ascii=False)
        write_text(folder / "parser.json", text + "\n")

    @classmethod
    def load(cls, folder: Path, description: Description | None = None) -> Self:
        place = f"{folder / 'parser.json'}: counted"
        counted = (description or Description.read(folder)).content.get("counted", {})
        if not isinstance(counted, dict):
            raise CheckpointError(f"{place}: found a {type(counted).__name__}, expected an object")
        return cls(validated(cls.Counts, counted, place, CheckpointError).model_dump())


class RightBranching(Baseline):
    """Every suffix of the body, of two words or more, is a constituent.

    Sentence, body and shorter suffixes have the labels that such spans have most often in training,
    which may be none.
    """

    kind = "right-branching"

    class Counts(BaseModel):
        whole: Chain
        body: Chain
        inner: Chain

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        counts: dict[str, Counter[Label]] = {name: Counter() for name in cls.Counts.model_fields}
        for tree in (example.tree for example in examples if example.tree is not None):
            end = body_end(tree.words)
            label_of_body: Label = ()
            for *span, label in collapsed_spans(tree):
                if span == [0, len(tree)]:
                    counts["whole"][label] += 1
                elif span == [0, end]:
                    label_of_body = label
                else:
                    counts["inner"][label] += 1
            if end < len(tree):
                counts["body"][label_of_body] += 1
        return cls({name: list(_most_frequent(own, ())) for name, own in counts.items()})

    def predict(self, words: Words, tags: Words | None) -> Prediction:
        n, end = len(words), body_end(words)
        spans = [(0, n, "whole"), *([(0, end, "body")] if end < n else [])]
        spans += [(start, end, "inner") for start in range(1, end - 1)]
        return Prediction([(i, j, name) for i, j, of in spans for name in self.counted[of]])


class AttachNeighbour(Baseline):
    """Every word hangs from its neighbour, and final punctuation from the root.

    The neighbour is on the side on which more words of training have their head, and the root at
    that end of the body. A word's relation is the one that words with its tag have most often.
    """

    kind = "attach-neighbour"
    reads_tags = True

    class Counts(BaseModel):
        side: Literal["left", "right"]
        root: Relation
        any: Relation
        by_tag: dict[str, Relation]

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        roots, every, sides = Counter[str](), Counter[str](), Counter[int]()
        by_tag: dict[str, Counter[str]] = defaultdict(Counter)
        for example in examples:
            if (tree := example.dependencies) is None:
                continue
            rows = zip(tree.heads.tolist(), tree.relations, example.tags, strict=True)
            for word, (head, relation, tag) in enumerate(rows, 1):
                own = by_tag[tag] if head else roots
                own[relation] += 1
                if head:
                    sides[head - word] += 1
                    every[relation] += 1
        return cls(
            {
                "side": "left" if sides[-1] > sides[1] else "right",
                "root": _most_frequent(roots, "root"),
                "any": _most_frequent(every, "root"),
                "by_tag": {tag: _most_frequent(own, "root") for tag, own in by_tag.items()},
            }
        )

    def body_heads(self, body: Words) -> list[int]:
        """Return the heads of the words of a body, numbers from 1, and 0 for its root."""
        n = len(body)
        return [*range(n)] if self.counted["side"] == "left" else [*range(2, n + 1), 0]

    def predict(self, words: Words, tags: Words | None) -> Prediction:
        n, end = len(words), body_end(words)
        heads = self.body_heads(words[:end])
        root = heads.index(0) + 1
        by_tag, usual = self.counted["by_tag"], self.counted["any"]
        relations = [by_tag.get(tag, usual) for tag in tags or [""] * n]
        relations[root - 1] = self.counted["root"]
        return Prediction(heads=heads + [root] * (n - end), relations=relations)


class RandomProjective(AttachNeighbour):
    """Every projective tree of the body is as likely as every other."""

    kind = "random-projective"

    def body_heads(self, body: Words) -> list[int]:
        seed = int.from_bytes(hashlib.sha256("\0".join(body).encode()).digest()[:8], "big")
        sides = random_shape(len(body), np.random.default_rng(seed))
        return _heads(self.arranged(_dependents(sides)))

    def arranged(self, tree: Sides) -> Sides:
        """Return a tree with its dependents in another order, or on other sides."""
        return tree


class RandomShortest(RandomProjective):
    """Such a tree with its words in the projective order in which its arcs are shortest.

    The dependents of a head stand at its sides in turn, the heavier the further out, and the
    heaviest where the head of the head is not (Gildea & Temperley 2007, section 3).
    """

    kind = "random-shortest"

    def arranged(self, tree: Sides) -> Sides:
        weights = [1] * len(tree)
        for node in reversed(range(len(tree))):  # dependents have higher numbers
            weights[node] += sum(weights[one] for side in tree[node] for one in side)
        found: Sides = []
        on_left = dict[int, bool]()  # of their heads
        for node, sides in enumerate(tree):
            heavy = sorted((*sides[0], *sides[1]), key=lambda one: -weights[one])
            outer, inner = heavy[::2], heavy[1::2]
            left, right = (outer, inner) if on_left.get(node, True) else (inner, outer)
            found.append((left, right[::-1]))
            on_left |= {**dict.fromkeys(left, True), **dict.fromkeys(right, False)}
        return found


#: Of each node, its dependents to the left and to the right, from left to right. The root is 0, and
#: nodes have lower numbers than their dependents.
Sides = list[tuple[list[int], list[int]]]


def random_shape(n: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Draw the numbers of dependents to the left and right of each node of a projective tree of
    ``n`` words, heads before their dependents; every tree is as likely as every other."""
    # n - 1 dependents in 2 n places, each way alike. Of the n rotations of what is drawn, one is a
    # tree (Dvoretzky & Motzkin 1947): that after the first point at which fewest nodes wait.
    bars = np.sort(random.choice(3 * n - 2, 2 * n - 1, replace=False))
    counts = np.diff(bars, prepend=-1, append=3 * n - 2) - 1
    pairs = list(zip(counts[::2].tolist(), counts[1::2].tolist(), strict=True))
    waiting = list(accumulate(left + right - 1 for left, right in pairs))
    start = waiting.index(min(waiting)) + 1
    return pairs[start:] + pairs[:start]


def _dependents(shape: Sequence[tuple[int, int]]) -> Sides:
    tree: Sides = [([], []) for _ in shape]
    open_places: list[list[int]] = []  # of nodes that are still to come, the next last
    for node, (left, right) in enumerate(shape):
        if open_places:
            open_places.pop().append(node)
        open_places += [tree[node][1]] * right + [tree[node][0]] * left
    return tree


def _heads(tree: Sides) -> list[int]:
    """Return the heads of the words in their order, from 1, with 0 for the root."""
    order, head_of, agenda = list[int](), {0: -1}, [(0, False)]
    while agenda:
        node, ready = agenda.pop()
        left, right = tree[node]
        if ready:
            order.append(node)
            continue
        head_of |= dict.fromkeys((*left, *right), node)
        agenda += [(one, False) for one in reversed(right)]
        agenda += [(node, True), *((one, False) for one in reversed(left))]
    place = {node: word for word, node in enumerate(order, 1)}
    return [place.get(head_of[node], 0) for node in order]


def body_end(words: Words) -> int:
    """Return where final words of no letter or digit begin; the end, if there are no others."""
    end = len(words)
    while end and not any(character.isalnum() for character in words[end - 1]):
        end -= 1
    return end or len(words)


def _most_frequent(counter: Counter[Any], default: Any) -> Any:
    return max(counter, key=lambda each: counter[each], default=default)
