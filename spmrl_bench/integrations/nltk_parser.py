"""A trained parser as a parser of NLTK: trees and dependency graphs as its other parsers give them.

The best parse of each sentence comes, or several. It is an extra: ``spmrl-bench[nltk]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, tee
from operator import itemgetter
from pathlib import Path
from typing import Any

from spmrl_bench.errors import SpmrlError, TokensError
from spmrl_bench.integrations import MissingExtraError
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.readers.conll import UNSPECIFIED, check_writable
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import NO_TAG

try:
    from nltk.parse.api import ParserI
    from nltk.parse.dependencygraph import DependencyGraph
    from nltk.tree import ProbabilisticTree
except ImportError:
    raise MissingExtraError("NLTK") from None

#: A sentence: words, or pairs of word and tag, as NLTK's taggers give them.
Sentence = Sequence[str] | Sequence[tuple[str, str]]


class NltkParser(ParserI):
    """Parses as ``nltk.parse`` does, with a parser that was trained here."""

    #: What ``nltk.sem.glue`` asks a parser of dependencies before it would train it.
    _trained = True

    def __init__(
        self,
        parser: Parser | str | Path,
        *,
        layer: Layer | None = None,
        device: str = "auto",
        scores: bool = False,
        best: int = 1,
    ) -> None:
        """A parser of NLTK.

        Args:
            parser: a parser, or a model as :func:`~spmrl_bench.load` takes it, for a device.
            layer: ``constituents`` come as ``nltk.Tree``, ``dependencies`` as
                ``nltk.DependencyGraph``; by default constituents, if the parser finds them.
            scores: whether trees come as ``nltk.ProbabilisticTree``, with their probabilities.
            best: how many parses come of each sentence, the best first.

        Raises:
            SpmrlError: the folder holds no parser, or the parser does not find the layer.
        """
        self.parser = load_parser(parser, device) if isinstance(parser, (str, Path)) else parser
        self.scores, self.best = scores, best
        found = kind_named(self.parser.kind).layers
        self.layer: Layer = layer or found[0]
        if self.layer not in found:
            raise SpmrlError(f"this parser finds {' and '.join(found)}, not {self.layer}")

    def parse(self, sent: Sentence, *_: Any, **__: Any) -> Iterator[Any]:
        """The best parses of one sentence, best first. A TokensError for a text, whose letters
        would be taken for words; a SpmrlError if it is too long, or lacks tags that are read."""
        return next(self.parse_sents([sent]))

    def parse_sents(self, sents: Iterable[Sentence], *_: Any, **__: Any) -> Iterator[Iterator[Any]]:
        """The parses of many sentences, which is faster than one by one; lazily, in their order.
        Errors are those of :meth:`parse`; all sentences have tags, or none has."""
        if isinstance(sents, (str, bytes)):
            raise TokensError(f"expected sentences, found the text {sents[:40]!r}")
        pairs = _words_and_tags(sents)
        if (first := next(pairs, None)) is None:
            return
        for_words, for_tags = tee(chain([first], pairs))
        tags = None if first[1] is None else map(itemgetter(1), for_tags)
        words, scored = map(itemgetter(0), for_words), self.scores
        for parse in self.parser.parse(words, tags, scored=scored, best=self.best):
            yield map(self._shown, [one for _, one in parse.best] or [parse])

    def _shown(self, parse: Parse) -> Any:
        if self.layer == "dependencies" or parse.tree is None:
            return to_graph(parse.dependencies)
        tree = parse.tree.to_nltk()
        if parse.probabilities is None:
            return tree
        chance = parse.probabilities.log_tree / math.log(2)
        return ProbabilisticTree(tree.label(), tree, logprob=chance)


def _words_and_tags(sents: Iterable[Sentence]) -> Iterator[tuple[Sequence[str], list[str] | None]]:
    """Words of each sentence with its tags, if the first has any; all have, or none has."""
    tagged: bool | None = None
    for sentence in sents:
        if isinstance(sentence, (str, bytes)):
            yield sentence, None  # which the parser refuses
            continue
        items: list[Any] = list(sentence)
        pairs = bool(items) and all(
            isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
            for item in items
        )
        for item in () if pairs else items:
            if not isinstance(item, str):
                raise TokensError(
                    f"expected words, or pairs of word and tag, found {item!r} in {items[:5]!r}"
                )
        words = [word for word, _ in items] if pairs else items
        tagged = pairs if tagged is None else tagged
        if items and pairs != tagged:
            first, here = ("some", "none") if tagged else ("none", "some")
            raise TokensError(
                f"expected tags with every sentence or with none: the first has {first}, "
                f"{words[:5]!r} has {here}"
            )
        # NLTK's taggers give words that they do not know no tag.
        yield words, [NO_TAG if tag is None else str(tag) for _, tag in items] if tagged else None


def to_graph(tree: DependencyTree | None) -> DependencyGraph:
    """A dependency tree as a graph of NLTK, None as one without words; words without a tag have
    ``_``. Raise a TreeError if a word, tag or relation has a tab or an end of line in it."""
    if tree is None:
        return DependencyGraph()
    tags = [UNSPECIFIED if tag == NO_TAG else tag for tag in tree.tags]
    heads = list(map(str, tree.heads.tolist()))
    top, lines = "ROOT", []
    for number, row in enumerate(zip(tree.words, tags, heads, tree.relations, strict=True), 1):
        for cell in row:
            check_writable(number, cell)
        word, tag, head, relation = row
        top = relation if head == "0" else top
        # All ten columns: NLTK would leave those that are missing empty, which no reader takes.
        lines.append("\t".join((str(number), word, word, tag, tag, "_", head, relation, "_", "_")))
    return DependencyGraph("\n".join(lines), cell_separator="\t", top_relation_label=top)
