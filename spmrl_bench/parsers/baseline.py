"""Parsers that know a treebank's most useful facts and nothing of the sentence.

A baseline says what a score is worth without a parser. It is built, asked, saved and loaded as
any other parser, but has no weights: what it counted in the training sentences fits into its
description.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel

from spmrl_bench.errors import CheckpointError
from spmrl_bench.files import write_text
from spmrl_bench.parsers.base import MAX_TOKENS, Parser, Words, read_description
from spmrl_bench.parsers.parsing import Found, Tags, parse_stream
from spmrl_bench.storage.toml import validated
from spmrl_bench.trees.parse import Parse


class Baseline(Parser):
    """A parser that is described by what it counted.

    Attributes:
        facts: what it counts.
        counted: what it counted, as JSON values.
    """

    facts: ClassVar[type[BaseModel]]

    def __init__(self, counted: dict[str, Any]) -> None:
        self.counted = counted

    @abstractmethod
    def found(self, words: Words, tags: Words | None) -> Found:
        """Its answer to a sentence, which has one word at least."""

    def session(self, max_tokens: int = MAX_TOKENS) -> Self:
        return self

    def parse(
        self,
        sentences: Iterable[Words],
        tags: Iterable[Words] | None = None,
        *,
        max_tokens: int = MAX_TOKENS,
    ) -> Iterator[Parse]:
        return parse_stream(sentences, tags, self._parse_window, self.length_problem)

    def _parse_window(self, window: Sequence[Words], tags: Tags) -> Iterator[Found]:
        for k, words in enumerate(window):
            yield self.found(words, None if tags is None else tags[k]) if words else Found()

    def flat(self, words: Words, tags: Words) -> Parse:
        return self.found(words, tags).parse(words, tags)

    def save(self, folder: Path) -> None:
        text = json.dumps({"kind": self.kind, "counted": self.counted}, ensure_ascii=False)
        write_text(folder / "parser.json", text + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        place = f"{folder / 'parser.json'}: counted"
        counted = read_description(folder).get("counted", {})
        if not isinstance(counted, dict):
            raise CheckpointError(f"{place}: found a {type(counted).__name__}, expected an object")
        return cls(validated(cls.facts, counted, place, CheckpointError).model_dump())


def body_end(words: Words) -> int:
    """End of the sentence without its final punctuation (words without letter or digit).

    A sentence of punctuation alone is all body.
    """
    end = len(words)
    while end and not any(character.isalnum() for character in words[end - 1]):
        end -= 1
    return end or len(words)
