"""Parsers that know a treebank's most useful facts and nothing of the sentence.

What they counted in the training sentences fits into their description. Both leave final
punctuation to the root, as treebanks have it; the rest of a sentence is its body. Of what is
counted the most frequent is taken, and of several the first seen.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

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
        self, sentences: Iterable[Words], tags: Iterable[Words] | None = None, **_: Any
    ) -> Iterator[Parse]:
        for words, given in with_tags(sentences, tags):
            found = self.predict(words, given) if words else Prediction()
            yield found.parse(words, given)

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

    def predict(self, words: Words, tags: Words | None) -> Prediction:
        n, end = len(words), body_end(words)
        root, step = (1, -1) if self.counted["side"] == "left" else (end, 1)
        heads = [root if word > end else word + step for word in range(1, n + 1)]
        by_tag, usual = self.counted["by_tag"], self.counted["any"]
        relations = [by_tag.get(tag, usual) for tag in tags or [""] * n]
        heads[root - 1], relations[root - 1] = 0, self.counted["root"]
        return Prediction(heads=heads, relations=relations)


def body_end(words: Words) -> int:
    """Return where final words of no letter or digit begin; the end, if there are no others."""
    end = len(words)
    while end and not any(character.isalnum() for character in words[end - 1]):
        end -= 1
    return end or len(words)


def _most_frequent(counter: Counter[Any], default: Any) -> Any:
    return max(counter, key=lambda each: counter[each], default=default)
