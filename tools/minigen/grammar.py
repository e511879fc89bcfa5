"""Load a feature grammar from its TOML file.

The engine knows no language: everything that makes sentences German or Korean stands in the
file, whose format ``README.md`` describes. This module holds the declarations (features, symbols)
and the rules; ``lexicon`` fills the categories with word forms, ``links`` finds heads and
relations, and ``ground`` turns all of it into something to sample from.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from spmrl_bench.errors import TreebankError
from spmrl_bench.storage.toml import read_toml, validated
from tools.minigen.lexicon import Lexicon, LexiconBuilder
from tools.minigen.links import Defaults, check_relation, read_defaults
from tools.minigen.notation import (
    FeatureTable,
    GrammarError,
    GrammarTable,
    Notation,
    Reference,
    Term,
    WordTable,
    lines_of,
    look_up,
)

Kind = Literal["phrase", "word", "category"]

_WEIGHT = re.compile(r"\d+(?:\.\d+)?\s")


@dataclass(frozen=True)
class Symbol:
    """A nonterminal (``phrase``), a word glued from parts (``word``) or a ``category``."""

    name: str
    kind: Kind
    features: tuple[str, ...]
    label: str  # of a phrase ("" invisible); the tag of a word or category
    unary: bool = True
    lower_tail: bool = False


@dataclass(frozen=True)
class Rule:
    """One expansion; ``domains`` gives the values left to each variable of the rule."""

    key: str
    symbol: str
    terms: Mapping[str, Term]
    children: tuple[Reference, ...]
    weight: float
    domains: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Grammar:
    """A grammar, ready to be grounded."""

    table: GrammarTable
    domains: Mapping[str, tuple[str, ...]]
    priors: Mapping[str, Mapping[str, float]]
    symbols: Mapping[str, Symbol]
    rules: Mapping[str, Sequence[Rule]]
    dependencies: Defaults
    lexicon: Lexicon


def load_grammar(path: Path) -> Grammar:
    """The grammar in ``path``.

    Raises:
        TreebankError: the file is absent, is not TOML, or has wrong keys.
        GrammarError: the first line or key that breaks the format.
    """
    content = read_toml(path, TreebankError)
    table = validated(GrammarTable, content, path, TreebankError)
    domains, priors = _read_features(table.features)
    symbols = _read_symbols(table)
    notation = Notation({name: each.features for name, each in symbols.items()}, domains)
    rules = _read_rules(table, symbols, notation)
    categories = {name: symbols[name].features for name in table.categories}
    defaults = {
        name: entry.default for name, entry in table.features.items() if entry.default is not None
    }
    lexicon = LexiconBuilder(table, defaults, replace(notation, signatures=categories)).build()
    for name in symbols:
        if not rules.get(name) and not lexicon.entries.get(name):
            raise GrammarError(name, "has no rule and no word")
    invisible = {name for name in table.phrases if not symbols[name].label}
    dependencies = read_defaults(table.dependencies, invisible, notation)
    return Grammar(table, domains, priors, symbols, rules, dependencies, lexicon)


def _read_features(
    tables: Mapping[str, FeatureTable],
) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, float]]]:
    """The values of each feature and their weights."""
    domains: dict[str, tuple[str, ...]] = {}
    priors: dict[str, dict[str, float]] = {}
    for name, entry in tables.items():
        key = f"features.{name}"
        source = entry
        if entry.like is not None:
            look_up(f"{key}.like", "feature", entry.like, tables)
            source = tables[entry.like]
        values = tuple(source.values.split())
        weights = entry.weights or source.weights or [1.0] * len(values)
        if not values or len(weights) != len(values):
            raise GrammarError(key, f"{len(values)} values and {len(weights)} weights found")
        if entry.default is not None:
            look_up(f"{key}.default", "value", entry.default, values)
        domains[name] = values
        priors[name] = dict(zip(values, weights, strict=True))
    return domains, priors


def _read_symbols(table: GrammarTable) -> dict[str, Symbol]:
    found: list[Symbol] = []
    for name, phrase in table.phrases.items():
        label = name if phrase.label is None else phrase.label
        features = tuple(phrase.features.split())
        found.append(Symbol(name, "phrase", features, label, unary=phrase.unary))
    kinds: tuple[tuple[Kind, Mapping[str, WordTable]], ...]
    kinds = (("word", table.words), ("category", table.categories))
    for kind, tables in kinds:
        for name, word in tables.items():
            features, tag = tuple(word.features.split()), word.tag or name
            found.append(Symbol(name, kind, features, tag, lower_tail=word.tail == "lower"))
    symbols = {symbol.name: symbol for symbol in found}
    for symbol in found:
        if symbols[symbol.name] is not symbol:
            raise GrammarError(symbol.name, "is declared twice")
        for feature in symbol.features:
            look_up(symbol.name, "feature", feature, table.features)
    start = table.settings.start
    look_up("settings.start", "phrase", start, table.phrases)
    if symbols[start].features or not symbols[start].label:
        raise GrammarError("settings.start", f"'{start}' must have a label and no features")
    return symbols


def _read_rules(
    table: GrammarTable, symbols: Mapping[str, Symbol], notation: Notation
) -> dict[str, list[Rule]]:
    rules: dict[str, list[Rule]] = {}
    for group, block in table.rules.items():
        for key, text in lines_of(f"rules.{group}", block):
            for rule in _read_rule(key, text, notation):
                rules.setdefault(rule.symbol, []).append(rule)
                kinds = {symbols[child.symbol].kind for child in rule.children}
                kind = symbols[rule.symbol].kind
                if kind == "category" or (kind == "word" and "phrase" in kinds):
                    raise GrammarError(key, f"a {kind} cannot be made of this")
    return rules


def _read_rule(key: str, text: str, notation: Notation) -> list[Rule]:
    """The rule of a line, with each choice of its optional symbols; weights multiply."""
    left, _, right = (part.strip() for part in text.partition("->"))
    weight = _WEIGHT.match(left)
    heads = notation.references(key, left[weight.end() :] if weight else left)
    children = notation.references(key, "" if right == "()" else right)
    if len(heads) != 1 or not right:
        raise GrammarError(key, "expected 'Symbol -> Symbols', or '()' after '->' for nothing")
    for child in children:
        for relation in (child.relation, *(written for _, written in child.groups)):
            check_relation(key, relation or "head")
    domains: dict[str, tuple[str, ...]] = {}
    for reference in (heads[0], *children):
        for term in reference.terms.values():
            if term.variable is not None:
                known = domains.get(term.variable, term.allowed)
                domains[term.variable] = tuple(v for v in known if v in term.allowed)
    variants = []
    for choice in itertools.product(
        *((True,) if child.chance == 1 else (True, False) for child in children)
    ):
        share = float(weight.group()) if weight else 1.0
        for child, present in zip(children, choice, strict=True):
            share *= child.chance if present else 1 - child.chance
        kept = tuple(itertools.compress(children, choice))
        variants.append(Rule(key, heads[0].symbol, heads[0].terms, kept, share, domains))
    return variants
