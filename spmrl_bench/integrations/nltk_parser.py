"""A trained parser as a parser of NLTK: trees and dependency graphs as its other parsers give them.

NLTK's trees are nested lists and its graphs are dicts; whoever works with them gets them from here
and need not know ours. One parse comes for each sentence, the best. NLTK is an extra
(``pip install 'spmrl-bench[nltk]'``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, tee
from pathlib import Path
from typing import Any, cast

from spmrl_bench.errors import SpmrlError, TokensError
from spmrl_bench.integrations import MissingExtraError
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.readers.conll import UNSPECIFIED, check_writable
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import NO_TAG, Tree

try:
    from nltk.parse.api import ParserI
    from nltk.parse.dependencygraph import DependencyGraph
except ImportError:
    raise MissingExtraError.of("NLTK", "nltk") from None

#: A sentence: words, or pairs of word and tag, as NLTK's taggers give them.
Sentence = Sequence[str] | Sequence[tuple[str, str]]


class NltkParser(ParserI):
    """Parses as ``nltk.parse`` does, with a parser that was trained here.

    Attributes:
        parser: that does the work.
        layer: what comes out: ``constituents`` as ``nltk.Tree``, ``dependencies`` as
            ``nltk.DependencyGraph``.
    """

    #: What ``nltk.sem.glue`` asks a parser of dependencies before it would train it.
    _trained = True

    def __init__(
        self, parser: Parser | str | Path, *, layer: Layer | None = None, device: str = "auto"
    ) -> None:
        """A parser of NLTK.

        Args:
            parser: a loaded parser, or a model as :func:`~spmrl_bench.load` takes
                it, such as the folder of a run.
            layer: of those that the parser finds; by default constituents, if it finds them.
            device: of a parser that is loaded.

        Raises:
            SpmrlError: the folder holds no parser, or the parser does not find the layer.
        """
        self.parser = load_parser(parser, device) if isinstance(parser, (str, Path)) else parser
        found = kind_named(self.parser.kind).layers
        self.layer: Layer = layer or found[0]
        if self.layer not in found:
            raise SpmrlError(f"this parser finds {' and '.join(found)}, not {self.layer}")

    def grammar(self) -> None:
        """None: the parser has no grammar."""
        return

    def parse(self, sent: Sentence, *_: Any, **__: Any) -> Iterator[Any]:
        """The parse of one sentence, in an iterator.

        Args:
            sent: words, or pairs of word and tag.

        Raises:
            TokensError: a text, whose letters would be taken for words.
            SpmrlError: the parser reads tags and there are none, or the sentence is too long.
        """
        return next(self.parse_sents([sent]))

    def parse_sents(self, sents: Iterable[Sentence], *_: Any, **__: Any) -> Iterator[Iterator[Any]]:
        """The parses of many sentences, which is faster than one by one; lazily, in their order.

        Raises:
            TokensError, SpmrlError: as :meth:`parse`; or some sentences have tags and some not.
        """
        if isinstance(sents, (str, bytes)):
            raise TokensError(f"expected sentences, found the text {sents[:40]!r}")
        for parse in self._parses(sents):
            yield iter([self._shown(parse)])

    def _parses(self, sents: Iterable[Sentence]) -> Iterator[Parse]:
        pairs = map(_words_and_tags, sents)
        first = next(pairs, None)
        if first is None:
            return iter(())
        tagged = first[1] is not None
        for_words, for_tags = tee(_all_alike(chain([first], pairs), tagged))
        words = (words for words, _ in for_words)
        return self.parser.parse(words, (tags or [] for _, tags in for_tags) if tagged else None)

    def _shown(self, parse: Parse) -> Any:
        if self.layer == "constituents":
            return cast("Tree", parse.tree).to_nltk()
        return to_graph(parse.dependencies)


def _words_and_tags(sentence: Sentence) -> tuple[list[str], list[str] | None]:
    if isinstance(sentence, (str, bytes)):
        raise TokensError(
            f"expected a list of words, found the text {sentence[:40]!r}: split it into words first"
        )
    items = list(sentence)
    if items and all(isinstance(item, tuple) and len(item) == 2 for item in items):
        return [str(item[0]) for item in items], [str(item[1]) for item in items]
    for item in items:
        if not isinstance(item, str):
            raise TokensError(
                f"expected words, or pairs of word and tag, found {item!r} in {items[:5]!r}"
            )
    return [str(item) for item in items], None


def _all_alike(
    pairs: Iterable[tuple[list[str], list[str] | None]], tagged: bool
) -> Iterator[tuple[list[str], list[str] | None]]:
    """The same, if all sentences with words have tags, or none has."""
    for words, tags in pairs:
        if words and (tags is not None) != tagged:
            raise TokensError(
                f"expected tags with every sentence or with none: the first has "
                f"{'some' if tagged else 'none'}, {words[:5]!r} has {'none' if tagged else 'some'}"
            )
        yield words, tags


def to_graph(tree: DependencyTree | None) -> DependencyGraph:
    """A dependency tree as a graph of NLTK; words without a tag have ``_``.

    Args:
        tree: None for a sentence without words, whose graph has none.

    Raises:
        TreeError: a word, tag or relation has a tab or an end of line in it.
    """
    if tree is None:
        return DependencyGraph()
    tags = (UNSPECIFIED if tag == NO_TAG else tag for tag in tree.tags)
    heads = tree.heads.tolist()
    lines = []
    for number, row in enumerate(
        zip(tree.words, tags, heads, tree.relations, strict=True), start=1
    ):
        cells = [str(cell) for cell in row]
        for cell in cells:
            check_writable(number, cell)
        lines.append("\t".join(cells))
    top = next((tree.relations[k] for k, head in enumerate(heads) if head == 0), "ROOT")
    return DependencyGraph("\n".join(lines), cell_separator="\t", top_relation_label=top)
