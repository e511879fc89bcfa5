"""Sample sentences with constituents and dependencies from a feature grammar.

Tests, benchmarks and lessons need a treebank that everybody has and that looks like one: inflected
words, agreement, ambiguity, unseen forms in dev and test. The same grammar file, sizes and seed
give the same sentences everywhere.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from spmrl_bench.errors import TreebankError
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tools.minigen.grammar import load_grammar
from tools.minigen.ground import GroundGrammar, Node, Option, ground
from tools.minigen.lexicon import apply_spelling
from tools.minigen.links import Part, join, mark_passive
from tools.minigen.notation import GrammarError, Settings

#: Sentences of at most so many words may occur more than once, also across splits.
REPEATABLE_WORDS = 3

_ATTEMPTS = 1000
_REDRAWS = 4


def read_grammar(path: Path) -> GroundGrammar:
    """A grammar file as it is sampled from.

    Raises:
        TreebankError: the file cannot be read; the first mistake in it, with its key and line.
    """
    try:
        return ground(load_grammar(path))
    except GrammarError as error:
        raise TreebankError(f"{path}: {error}") from error


def generate(source: GroundGrammar, sizes: Mapping[str, int], seed: int) -> dict[str, list[Parse]]:
    """So many sentences for each split.

    Each split has its own random stream, and splits are filled in order of their names: a
    longer sentence stands in the treebank only once.

    Raises:
        TreebankError: the grammar has too few different sentences.
    """
    seen: set[tuple[str, ...]] = set()
    splits: dict[str, list[Parse]] = {split: [] for split in sizes}
    for split in sorted(sizes):
        rng = random.Random(f"{source.grammar.table.language}/{seed}/{split}")
        splits[split] = [_next_sentence(source, rng, seen) for _ in range(sizes[split])]
    return splits


def _next_sentence(source: GroundGrammar, rng: random.Random, seen: set[tuple[str, ...]]) -> Parse:
    for _ in range(_ATTEMPTS):
        try:
            derivation = Derivation(source, rng)
        except _TooLongError:
            continue
        words = tuple(derivation.words)
        if words and words not in seen:
            if len(words) > REPEATABLE_WORDS:
                seen.add(words)
            return derivation.parse()
    raise TreebankError(
        f"{source.grammar.table.language}: no new sentence of at most"
        f" {source.grammar.table.settings.max_words} words in {_ATTEMPTS} attempts after"
        f" {len(seen)} different ones; ask for fewer sentences or add rules and words"
    )


class _TooLongError(Exception):
    """A derivation has more words than the grammar allows."""


class Derivation:
    """One sentence drawn from a grammar, top-down and from left to right."""

    def __init__(self, source: GroundGrammar, rng: random.Random) -> None:
        self.words: list[str] = []
        self._source = source
        self._settings: Settings = source.grammar.table.settings
        self._rng = rng
        self._tags: list[str] = []
        self._constituents: list[tuple[int, int, str] | None] = []  # None = not visible
        self._heads: list[int] = []
        self._relations: list[str] = []
        self._passive: list[int] = []  # the words that are passive by themselves, from 1
        self._open: Counter[str] = Counter()  # the phrases around the place reached
        self._used: set[str] = set()
        self._expand(0)
        self._finish()

    def parse(self) -> Parse:
        """The visible tree with its dependencies."""
        kept = [constituent for constituent in self._constituents if constituent is not None]
        tree = Tree.build(self.words, self._tags, kept)
        mark_passive(self._heads, self._relations, self._passive)
        layer = DependencyTree.build(tree.words, tree.tags, self._heads, self._relations)
        return Parse.of(tree, layer)

    def _expand(self, number: int) -> tuple[int, Part]:
        """Draw what is below a node.

        Returns how many daughters it gives to what is above it, and what of it depends on that.
        """
        node = self._source.nodes[number]
        symbol = self._source.grammar.symbols[node.symbol]
        start = len(self.words)
        if symbol.kind != "phrase":
            if start == self._settings.max_words:
                raise _TooLongError
            self.words.append(self._word(number))
            self._tags.append(symbol.label)
            self._heads.append(0)
            self._relations.append("root")
            if node.passive:
                self._passive.append(start + 1)
            return 1, Part(start + 1)
        place = len(self._constituents)
        self._constituents.append(None)
        self._open[node.symbol] += 1
        option = self._option(node, self._open)
        drawn = _draw(option.cumulative, self._rng)
        below = [self._expand(child) for child in option.rows[drawn]]
        self._open[node.symbol] -= 1
        parts = [part for _, part in below]
        part = join(option.links[drawn], parts, self._heads, self._relations)
        count = sum(daughters for daughters, _ in below)
        if not symbol.label or count == 0 or (count == 1 and not symbol.unary):
            return count, part
        self._constituents[place] = (start, len(self.words), symbol.label)
        return 1, part

    def _option(self, node: Node, opened: Mapping[str, int]) -> Option:
        """A rule; the more often a symbol is open already, the less likely it opens again."""
        damping, nesting = self._settings.damping, self._settings.nesting
        weights = []
        total = 0.0
        for option in node.options:
            nested = max((opened.get(name, 0) for name in option.opens), default=0)
            if nested < nesting:
                total += option.rule.weight * damping**nested
            weights.append(total)
        if total > 0:
            return node.options[_draw(weights, self._rng)]
        return min(node.options, key=lambda option: option.height)

    def _word(self, number: int) -> str:
        """The form of a category, or of a word glued from its parts."""
        form = self._parts(number)
        if self._source.nodes[number].forms:
            return form
        return apply_spelling(form, self._source.grammar.table.spelling)

    def _parts(self, number: int) -> str:
        """Parts joined by ``+``; a word of an open category is drawn again where it was used."""
        node = self._source.nodes[number]
        if node.forms:
            form = node.forms[_draw(node.cumulative, self._rng)]
            if node.symbol in self._source.grammar.lexicon.open_categories:
                for _ in range(_REDRAWS):
                    if form not in self._used:
                        break
                    form = node.forms[_draw(node.cumulative, self._rng)]
                self._used.add(form)
            return form
        option = self._option(node, {})
        children = option.rows[_draw(option.cumulative, self._rng)]
        parts = [self._parts(child) for child in children]
        if self._source.grammar.symbols[node.symbol].lower_tail:
            parts[1:] = [part.lower() for part in parts[1:]]
        return "+".join(part for part in parts if part)

    def _finish(self) -> None:
        """Adjust words to their right neighbour; capitalise the first that begins alnum."""
        words = self.words
        for adjust in self._source.grammar.table.adjust:
            for position in range(len(words) - 1):
                if adjust.next.search(words[position + 1]):
                    words[position] = adjust.word.sub(adjust.replace, words[position])
        if self._settings.capitalise:
            for position, word in enumerate(words):
                if word[0].isalnum():
                    words[position] = word[0].upper() + word[1:]
                    break


def _draw(cumulative: list[float], rng: random.Random) -> int:
    place = bisect_right(cumulative, rng.random() * cumulative[-1])
    return min(place, len(cumulative) - 1)
