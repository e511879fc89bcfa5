"""Generate the mini treebanks: sentences sampled from a feature grammar, parsed.

A fresh machine has no treebank; parsers, tests and benchmarks still need one that looks like
one: inflected words, agreement, ambiguity, unseen forms in dev and test. The same grammar
file, sizes and seed give the same trees everywhere.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from spmrl_bench.errors import TreebankError, unknown_name
from spmrl_bench.garbage import no_collection
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.treebanks.mini.grammar import load_grammar
from spmrl_bench.treebanks.mini.ground import GroundGrammar, Node, Option, ground
from spmrl_bench.treebanks.mini.lexicon import apply_spelling
from spmrl_bench.treebanks.mini.links import Links, attach
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree

REPEATABLE_WORDS = 3
"""Sentences of at most this many words may occur more than once, also across splits."""

_ATTEMPTS = 1000
_REDRAWS = 4


def available_grammars() -> list[str]:
    """Names of the grammars that come with the program."""
    return sorted(path.stem for path in (data_dir("treebanks") / "mini").glob("*.toml"))


def grammar_digest(grammar: str | Path) -> str:
    """SHA-256 of a grammar's file, in hex.

    Raises:
        TreebankError: unknown grammar name, or the file cannot be read.
    """
    path = _path(grammar)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise TreebankError(f"{path}: cannot be read: {error.strerror}") from error


def generate(grammar: str | Path, sizes: Mapping[str, int], seed: int) -> dict[str, list[Parse]]:
    """Sample a treebank: sentences with constituents and dependencies.

    Each split has its own random stream, and splits are filled in order of their names: a
    longer sentence stands in the treebank only once.

    Args:
        grammar: name of a grammar that comes with the program, or the path of a TOML file.
        sizes: number of sentences by split.
        seed: any integer.

    Raises:
        TreebankError: unknown grammar name, negative size, or a grammar with too few
            different sentences; :class:`GrammarError` for mistakes in the file.
    """
    source = ground_grammar(grammar)
    for split, size in sizes.items():
        if size < 0:
            raise TreebankError(f"split '{split}' of {grammar}: size {size} found, needs >= 0")
    sampler = Sampler(source)
    seen: set[tuple[str, ...]] = set()
    splits: dict[str, list[Parse]] = {split: [] for split in sizes}
    for split in sorted(sizes):
        rng = random.Random(f"{source.grammar.table.language}/{seed}/{split}")
        for _ in range(sizes[split]):
            splits[split].append(_next_sentence(sampler, rng, seen, str(grammar)))
    return splits


def ground_grammar(grammar: str | Path) -> GroundGrammar:
    """A grammar as it is sampled from; read once, unless its file changes.

    Raises:
        TreebankError: unknown grammar name; :class:`GrammarError` for mistakes in the file.
    """
    path = _path(grammar)
    with no_collection():
        try:
            return _ground_file(str(path), path.stat().st_mtime_ns)
        except OSError:
            return ground(load_grammar(path))


def _path(grammar: str | Path) -> Path:
    if isinstance(grammar, Path) or grammar.endswith(".toml"):
        return Path(grammar)
    if grammar not in available_grammars():
        raise TreebankError(unknown_name("mini grammar", grammar, available_grammars()))
    return data_dir("treebanks") / "mini" / f"{grammar}.toml"


@lru_cache(maxsize=4)
def _ground_file(path: str, changed: int) -> GroundGrammar:
    del changed  # only part of the cache key
    return ground(load_grammar(Path(path)))


def _next_sentence(
    sampler: Sampler, rng: random.Random, seen: set[tuple[str, ...]], name: str
) -> Parse:
    for _ in range(_ATTEMPTS):
        derivation = sampler.sample(rng)
        if derivation is None or derivation.tree.words in seen:
            continue
        if len(derivation.tree) > REPEATABLE_WORDS:
            seen.add(derivation.tree.words)
        return derivation.parse()
    raise TreebankError(
        f"{name}: no new sentence of at most {sampler.max_words} words in {_ATTEMPTS} attempts "
        f"after {len(seen)} different ones; ask for fewer sentences or add rules and words"
    )


@dataclass(frozen=True, slots=True)
class Derivation:
    """A tree and how it came about, for :func:`~spmrl_bench.treebanks.mini.links.attach`.

    Attributes:
        tree: what is visible of it.
        parents: the number of the phrase above each phrase and word, both counted from 0 in the
            order in which they begin; -1 above the first.
        links: of each phrase; None for a word.
        passive: numbers, from 1, of the words that are passive by themselves.
    """

    tree: Tree
    parents: list[int]
    links: list[Links | None]
    passive: list[int]

    def parse(self) -> Parse:
        """The tree with its dependencies."""
        heads, relations = attach(self.parents, self.links, self.passive)
        tree = self.tree
        return Parse.of(tree, DependencyTree.build(tree.words, tree.tags, heads, relations))


class Sampler:
    """Draws derivations from a ground grammar."""

    def __init__(self, source: GroundGrammar) -> None:
        self._nodes = source.nodes
        self._symbols = source.grammar.symbols
        self._table = source.grammar.table
        self._settings = self._table.settings
        self._varied = source.grammar.lexicon.open_categories
        self.max_words = self._settings.max_words

    def sample(self, rng: random.Random) -> Derivation | None:
        """One derivation, or None where the derivation grew longer than the grammar allows."""
        words: list[str] = []
        tags: list[str] = []
        rows: list[list[int]] = []  # [start, end]; end -1 = dropped
        labels: list[str] = []
        depth: dict[str, int] = {}
        daughters = [0]
        used: set[str] = set()
        parents: list[int] = []
        links: list[Links | None] = []
        passive: list[int] = []
        # Open nodes as (number, -1, parent), ends of phrases as (number, row, -1).
        stack = [(0, -1, -1)]
        closing = -2
        while stack:
            number, row, parent = stack.pop()
            node = self._nodes[number]
            symbol = self._symbols[node.symbol]
            if row != -1:
                depth[node.symbol] -= 1
                count = daughters.pop()
                visible = row != closing and count > 0 and (symbol.unary or count > 1)
                daughters[-1] += 1 if visible else count
                if row != closing:
                    rows[row][1] = len(words) if visible else -1
                continue
            unit = len(parents)
            parents.append(parent)
            if symbol.kind != "phrase":
                if len(words) == self.max_words:
                    return None
                words.append(self._word(number, rng, used))
                tags.append(symbol.label)
                links.append(None)
                if node.passive:
                    passive.append(len(words))
                daughters[-1] += 1
                continue
            depth[node.symbol] = depth.get(node.symbol, 0) + 1
            daughters.append(0)
            if symbol.label:
                stack.append((number, len(rows), -1))
                rows.append([len(words), -1])
                labels.append(symbol.label)
            else:
                stack.append((number, closing, -1))
            option = self._option(node, depth, rng)
            drawn = _draw(option.cumulative, rng)
            links.append(option.links[drawn])
            stack.extend((child, -1, unit) for child in reversed(option.rows[drawn]))
        if not words:
            return None
        self._finish(words)
        kept = [
            (start, end, label)
            for (start, end), label in zip(rows, labels, strict=True)
            if end >= 0
        ]
        return Derivation(Tree.build(words, tags, kept), parents, links, passive)

    def _option(self, node: Node, depth: Mapping[str, int], rng: random.Random) -> Option:
        """A rule; the more often a symbol is open already, the less likely it opens again."""
        damping, nesting = self._settings.damping, self._settings.nesting
        weights = []
        total = 0.0
        for option in node.options:
            nested = max((depth.get(name, 0) for name in option.opens), default=0)
            if nested < nesting:
                total += option.rule.weight * damping**nested
            weights.append(total)
        if total > 0:
            return node.options[_draw(weights, rng)]
        return min(node.options, key=lambda option: option.height)

    def _word(self, number: int, rng: random.Random, used: set[str]) -> str:
        """The form of a category, or of a word glued from its parts."""
        form = self._parts(number, rng, used)
        if self._symbols[self._nodes[number].symbol].kind == "category":
            return form
        return apply_spelling(form, self._table.spelling)

    def _parts(self, number: int, rng: random.Random, used: set[str]) -> str:
        """Parts joined by ``+``; words contain no cycle, so the depth is that of the grammar."""
        node = self._nodes[number]
        symbol = self._symbols[node.symbol]
        if symbol.kind == "category":
            form = node.forms[_draw(node.cumulative, rng)]
            if node.symbol in self._varied:
                for _ in range(_REDRAWS):
                    if form not in used:
                        break
                    form = node.forms[_draw(node.cumulative, rng)]
                used.add(form)
            return form
        option = self._option(node, {}, rng)
        children = option.rows[_draw(option.cumulative, rng)]
        parts = [self._parts(child, rng, used) for child in children]
        if symbol.lower_tail:
            parts[1:] = [part.lower() for part in parts[1:]]
        return "+".join(part for part in parts if part)

    def _finish(self, words: list[str]) -> None:
        """Adjust words to their right neighbour; capitalise the first that begins alnum."""
        for adjust in self._table.adjust:
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
