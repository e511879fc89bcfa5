"""Load a feature grammar from its TOML file and check it.

The engine knows no language: everything that makes sentences German or Korean stands in the
file. ``FORMAT.md`` beside the grammars describes the format for people who write one. This
module holds the declarations (settings, features, symbols, rules); ``lexicon`` fills the
categories with word forms and ``ground`` turns both into something to sample from.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from spmrl_bench.errors import TreebankError
from spmrl_bench.storage.toml import describe_mistake, read_toml
from spmrl_bench.treebanks.mini.lexicon import Lexicon, LexiconBuilder
from spmrl_bench.treebanks.mini.links import Defaults, check_relation, read_defaults
from spmrl_bench.treebanks.mini.notation import (
    Line,
    Notation,
    Reference,
    Term,
    lines_of,
    split_weight,
)
from spmrl_bench.treebanks.mini.problems import GrammarError, Problems
from spmrl_bench.treebanks.mini.tables import GrammarTable

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Symbol:
    """A nonterminal (``phrase``), a word glued from parts (``word``) or a ``category``."""

    name: str
    kind: Literal["phrase", "word", "category"]
    features: tuple[str, ...]
    label: str  # of a phrase ("" invisible); the tag of a word or category
    unary: bool = True
    lower_tail: bool = False

    @property
    def key(self) -> str:
        """Where the file declares it, for messages."""
        places = {"phrase": "phrases", "word": "words", "category": "categories"}
        return f"{places[self.kind]}.{self.name}"


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
    """A checked grammar, ready to be grounded."""

    path: str
    table: GrammarTable
    domains: Mapping[str, tuple[str, ...]]
    priors: Mapping[str, Mapping[str, float]]
    symbols: Mapping[str, Symbol]
    rules: Mapping[str, tuple[Rule, ...]]
    dependencies: Defaults
    lexicon: Lexicon


def load_grammar(path: Path) -> Grammar:
    """The grammar in ``path``.

    Raises:
        TreebankError: the file is absent or is not TOML.
        GrammarError: it breaks the format; all mistakes of a loading step (declarations, then
            rules and lexicon) are reported together.
    """
    table = _read(path)
    problems = Problems(str(path))
    domains, priors, defaults = _declare_features(table, problems)
    symbols = _declare_symbols(table, problems)
    problems.check()
    signatures = {name: symbol.features for name, symbol in symbols.items()}
    kinds = {name: symbol.kind for name, symbol in symbols.items()}
    notation = Notation(signatures, domains, problems)
    rules = _read_rules(table, symbols, notation)
    invisible = {name for name in symbols if kinds[name] == "phrase" and not symbols[name].label}
    dependencies = read_defaults(table.dependencies, invisible, notation)
    categories = {name: known for name, known in signatures.items() if kinds[name] == "category"}
    of_words = replace(notation, signatures=categories)
    lexicon = LexiconBuilder(table, defaults, of_words).build()
    _check_reach(table.settings.start, rules, symbols, lexicon, problems)
    problems.check()
    return Grammar(str(path), table, domains, priors, symbols, rules, dependencies, lexicon)


def _read(path: Path) -> GrammarTable:
    content = read_toml(path, TreebankError)
    try:
        return GrammarTable.model_validate(content)
    except ValidationError as error:
        found = [describe_mistake(GrammarTable, mistake) for mistake in error.errors()]
        raise GrammarError(str(path), found) from error


def _declare_features(
    table: GrammarTable, problems: Problems
) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, float]], dict[str, str]]:
    """The values of each feature, their weights, and the features' defaults where they have one."""
    domains: dict[str, tuple[str, ...]] = {}
    priors: dict[str, dict[str, float]] = {}
    defaults: dict[str, str] = {}
    tables = table.features
    for name, entry in tables.items():
        key = f"features.{name}"
        source = entry
        if entry.like is not None:
            if entry.like not in tables or tables[entry.like].values is None:
                with_values = [n for n, e in tables.items() if e.values is not None]
                problems.unknown(f"{key}.like", "feature", entry.like, with_values)
                continue
            source = tables[entry.like]
        values = tuple((source.values or "").split())
        weights = entry.weights or source.weights or [1.0] * len(values)
        if not values:
            problems.add(key, "has no values")
        if any(count > 1 for count in Counter(values).values()):
            problems.add(key, f"a value stands twice in '{source.values}'")
        for value in values:
            if value in tables or re.search(r"[\[\],|=!?:]", value):
                problems.add(key, f"value '{value}' is a feature name or holds one of [],|=!?:")
        if len(weights) != len(values) or min(weights, default=1) <= 0:
            problems.add(key, f"{len(values)} values but weights {weights}; one > 0 for each")
        if entry.default is not None and entry.default not in values:
            problems.unknown(f"{key}.default", "value", entry.default, values)
        domains[name] = values
        priors[name] = dict(zip(values, weights, strict=False))
        if entry.default is not None:
            defaults[name] = entry.default
    return domains, priors, defaults


def _declare_symbols(table: GrammarTable, problems: Problems) -> dict[str, Symbol]:
    symbols: dict[str, Symbol] = {}

    def add(symbol: Symbol) -> None:
        for feature in symbol.features:
            if feature not in table.features:
                problems.unknown(f"{symbol.key}.features", "feature", feature, table.features)
        if symbol.name in symbols:
            problems.add(symbol.key, f"'{symbol.name}' is already a {symbols[symbol.name].kind}")
        symbols[symbol.name] = symbol

    for name, phrase in table.phrases.items():
        label = name if phrase.label is None else phrase.label
        add(Symbol(name, "phrase", tuple(phrase.features.split()), label, unary=phrase.unary))
    for name, word in table.words.items():
        features, tag = tuple(word.features.split()), word.tag or name
        add(Symbol(name, "word", features, tag, lower_tail=word.tail == "lower"))
    for name, category in table.categories.items():
        features, tag = tuple(category.features.split()), category.tag or name
        add(Symbol(name, "category", features, tag))
    start = table.settings.start
    if start not in table.phrases:
        problems.unknown("settings.start", "phrase", start, table.phrases)
    elif symbols[start].features or not symbols[start].label:
        problems.add("settings.start", f"'{start}' must have a label and no features")
    return symbols


def _read_rules(
    table: GrammarTable, symbols: Mapping[str, Symbol], notation: Notation
) -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, list[Rule]] = {}
    for group, block in table.rules.items():
        for line in lines_of(f"rules.{group}", block):
            for rule in _read_rule(line, symbols, notation):
                rules.setdefault(rule.symbol, []).append(rule)
    return {name: tuple(found) for name, found in rules.items()}


def _read_rule(line: Line, symbols: Mapping[str, Symbol], notation: Notation) -> list[Rule]:
    """The rule of a line, with each choice of its optional symbols; none if it is wrong."""
    key, problems = line.key, notation.problems
    left, arrow, right = line.text.partition("->")
    if not arrow:
        problems.add(key, "has no '->'")
        return []
    weight, left = split_weight(left)
    heads = notation.references(key, left)
    empty = right.strip() == "()"
    children = notation.references(key, "" if empty else right, relations=True)
    if heads is None or children is None:
        return []
    if len(heads) != 1 or symbols[heads[0].symbol].kind == "category":
        problems.add(key, "expected one phrase or word before '->'")
        return []
    if not children and not empty:
        problems.add(key, "nothing after '->'; write '()' for an empty expansion")
        return []
    is_word = symbols[heads[0].symbol].kind == "word"
    if is_word and any(symbols[child.symbol].kind == "phrase" for child in children):
        problems.add(key, "a word is glued from words and categories, not phrases")
        return []
    written = _relations(children)
    if written and is_word:
        problems.add(key, "the parts of a word bear no relations")
    for relation in written:
        check_relation(key, relation, problems)
    return _variants(key, heads[0], children, weight, problems)


def _relations(children: Sequence[Reference]) -> list[str]:
    """The relations written before symbols and parentheses."""
    written = [child.relation for child in children]
    written += [relation for child in children for _, relation in child.groups]
    return [relation for relation in written if relation is not None]


def _variants(
    key: str, head: Reference, children: list[Reference], weight: float, problems: Problems
) -> list[Rule]:
    """The rule with each choice of its optional symbols; weights multiply."""
    domains: dict[str, tuple[str, ...]] = {}
    for reference in (head, *children):
        for term in reference.terms.values():
            if term.variable is not None:
                known = domains.get(term.variable, term.allowed)
                domains[term.variable] = tuple(v for v in known if v in term.allowed)
    for variable, domain in domains.items():
        if not domain:
            problems.add(key, f"no value fits every place of variable '?{variable}'")
    choices = [(True,) if child.chance == 1 else (True, False) for child in children]
    variants = []
    for choice in itertools.product(*choices):
        share = weight
        kept = []
        for child, present in zip(children, choice, strict=True):
            share *= child.chance if present else 1 - child.chance
            if present:
                kept.append(child)
        variants.append(Rule(key, head.symbol, head.terms, tuple(kept), share, domains))
    return variants


def reachable(start: Iterable[_Item], following: Callable[[_Item], Iterable[_Item]]) -> set[_Item]:
    """What one gets to from the start, which is part of it."""
    found = set(start)
    todo = list(found)
    while todo:
        new = set(following(todo.pop())) - found
        found |= new
        todo += new
    return found


def children_of(rules: Iterable[Rule]) -> set[str]:
    """The symbols to the right of the arrow in any of the rules."""
    return {child.symbol for rule in rules for child in rule.children}


def _check_reach(
    start: str,
    rules: Mapping[str, tuple[Rule, ...]],
    symbols: Mapping[str, Symbol],
    lexicon: Lexicon,
    problems: Problems,
) -> None:
    """Every symbol is reachable from the start and has a rule or a word."""
    reached = reachable([start], lambda name: children_of(rules.get(name, ())))
    for name, symbol in symbols.items():
        if symbol.kind == "category":
            if not lexicon.entries.get(name):
                problems.add(symbol.key, "has no word in lexicon or paradigms")
        elif name not in rules:
            problems.add(symbol.key, "has no rule")
        if name not in reached:
            problems.add(symbol.key, f"is not reachable from '{start}'")
