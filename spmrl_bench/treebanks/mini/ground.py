"""Turn a feature grammar into tables that can be sampled without ever failing.

Sampling rule by rule and hoping that a word fits would end in dead ends (no verb takes a
place as subject and a person as object). Instead every *instance*, a symbol with the
feature values its parent has fixed, gets its expansions enumerated beforehand: the values of
variables shared inside a rule come from joining the lexical children's tables, so that
values for which the lexicon has more words are chosen more often, times the priors of the
grammar. Instances that can produce no sentence are cut away bottom-up.

A feature that a parent does not mention stays open, and the child decides it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from spmrl_bench.treebanks.mini.grammar import Grammar, Rule, children_of, reachable
from spmrl_bench.treebanks.mini.lexicon import Bundle
from spmrl_bench.treebanks.mini.links import Linker, Links
from spmrl_bench.treebanks.mini.notation import Reference
from spmrl_bench.treebanks.mini.problems import Problems

Binding = tuple[str | None, ...]
Instance = tuple[str, Binding]


@dataclass
class Option:
    """One rule as an instance may use it: its expansions, each a row of instance numbers."""

    rule: Rule
    opens: tuple[str, ...]
    weights: list[float]
    rows: list[tuple[int, ...]]
    links: list[Links] = field(default_factory=list)  # of each row of a phrase
    cumulative: list[float] = field(default_factory=list)
    height: int = 0


@dataclass
class Node:
    """An instance: options of a phrase or word, weighted forms of a category.

    ``relation`` is what it bears where its rule says nothing else, if anything; ``passive``
    marks verbs that are passive without an auxiliary.
    """

    symbol: str
    relation: str | None = None
    passive: bool = False
    options: list[Option] = field(default_factory=list)
    forms: list[str] = field(default_factory=list)
    cumulative: list[float] = field(default_factory=list)
    height: int = -1  # of the smallest subtree; -1 = no sentence found below


@dataclass(frozen=True)
class GroundGrammar:
    """All instances reachable from the start symbol, which is number 0."""

    grammar: Grammar
    nodes: list[Node]


def ground(grammar: Grammar) -> GroundGrammar:
    """Enumerate the instances of a grammar.

    Raises:
        GrammarError: the start symbol produces nothing, a word refers to itself, or rules
            can never be used because no combination of values fits.
    """
    problems = Problems(grammar.path)
    grounder = _Grounder(grammar, problems)
    grounder.check_words()
    problems.check()
    grounder.enumerate()
    _cut_unproductive(grounder.nodes)
    if grounder.nodes[0].height < 0:
        problems.add("settings.start", f"'{grammar.table.settings.start}' produces no sentence")
    else:
        _note_dead_rules(grammar, grounder.nodes, problems)
        _link_rows(grammar, grounder.nodes, problems)
    problems.check()
    return GroundGrammar(grammar, grounder.nodes)


class _Grounder:
    def __init__(self, grammar: Grammar, problems: Problems) -> None:
        self.grammar = grammar
        self.problems = problems
        self.nodes: list[Node] = []
        self._numbers: dict[Instance, int] = {}
        self._todo: list[Instance] = []
        symbols = grammar.symbols
        categories = {name for name in symbols if symbols[name].kind == "category"}
        # Those without recursion below them, whose mass can be summed.
        self._lexical_symbols = _grown(grammar, categories, all)
        self._masses: dict[str, dict[Bundle, float]] = {}
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[Bundle, list[Bundle]]] = {}
        self._queries: dict[tuple[str, Binding, tuple[int, ...]], dict[Bundle, float]] = {}

    def enumerate(self) -> None:
        self._number((self.grammar.table.settings.start, ()))
        while self._todo:
            instance = self._todo.pop()
            node = self.nodes[self._numbers[instance]]
            symbol, binding = instance
            if self.grammar.symbols[symbol].kind == "category":
                self._fill_forms(node, binding)
                continue
            for rule in self.grammar.rules[symbol]:
                rows: list[tuple[int, ...]] = []
                weights: list[float] = []
                for children, weight in self._expansions(rule, binding):
                    rows.append(tuple(self._number(child) for child in children))
                    weights.append(weight)
                if rows:
                    opens = tuple(
                        child.symbol
                        for child in rule.children
                        if self.grammar.symbols[child.symbol].kind == "phrase"
                    )
                    node.options.append(Option(rule, opens, weights, rows))

    def _number(self, instance: Instance) -> int:
        number = self._numbers.get(instance)
        if number is None:
            number = self._numbers[instance] = len(self.nodes)
            symbol, binding = instance
            values = dict(zip(self.grammar.symbols[symbol].features, binding, strict=True))
            known = self.grammar.dependencies
            relation, passive = known.relation(symbol, values), known.is_passive(symbol, values)
            self.nodes.append(Node(symbol, relation, passive))
            self._todo.append(instance)
        return number

    def _fill_forms(self, node: Node, binding: Binding) -> None:
        weights: dict[str, float] = {}
        entries = self.grammar.lexicon.entries[node.symbol]
        for bundle in self._select(node.symbol, binding):
            for form, weight in entries[bundle].items():
                weights[form] = weights.get(form, 0.0) + weight
        if weights:
            node.forms = list(weights)
            node.cumulative = list(itertools.accumulate(weights.values()))
            node.height = 0

    def _expansions(self, rule: Rule, binding: Binding) -> list[tuple[list[Instance], float]]:
        """Children and weight for each way to set the shared variables of a rule."""
        fixed = self._match(rule, binding)
        if fixed is None:
            return []
        shared = self._shared(rule, fixed)
        partial: list[tuple[dict[str, str], float]] = [(fixed, 1.0)]
        for child in rule.children:
            if child.symbol not in self._lexical_symbols:
                continue
            partial = [
                (values, weight * mass)
                for known, weight in partial
                for values, mass in self._lexical(child, known, shared)
            ]
        for variable, domain in shared.items():
            if variable in fixed:
                continue
            extended = []
            for known, weight in partial:
                for value in (known[variable],) if variable in known else domain:
                    prior = self._prior(rule, variable, value)
                    extended.append(({**known, variable: value}, weight * prior))
            partial = extended
        return [
            ([self._instantiate(child, known) for child in rule.children], weight)
            for known, weight in partial
        ]

    def _match(self, rule: Rule, binding: Binding) -> dict[str, str] | None:
        """Variables fixed by the left side, or None where the binding contradicts it."""
        fixed: dict[str, str] = {}
        features = self.grammar.symbols[rule.symbol].features
        for feature, value in zip(features, binding, strict=True):
            term = rule.terms.get(feature)
            if value is None or term is None:
                continue
            if term.variable is None:
                if value not in term.allowed:
                    return None
            elif (
                value not in rule.domains[term.variable]
                or fixed.setdefault(term.variable, value) != value
            ):
                return None
        return fixed

    def _shared(self, rule: Rule, fixed: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Variables to be set here: used twice among the children, or restricted there."""
        uses: dict[str, int] = {}
        restricted: set[str] = set()
        for child in rule.children:
            for feature, term in child.terms.items():
                if term.variable is not None:
                    uses[term.variable] = uses.get(term.variable, 0) + 1
                    if len(rule.domains[term.variable]) < len(self.grammar.domains[feature]):
                        restricted.add(term.variable)
        return {
            variable: rule.domains[variable]
            for variable, count in uses.items()
            if variable in fixed or count > 1 or variable in restricted
        }

    def _lexical(
        self, child: Reference, known: Mapping[str, str], shared: Mapping[str, tuple[str, ...]]
    ) -> list[tuple[dict[str, str], float]]:
        """Extensions of ``known`` that a lexical child has forms for, with their mass."""
        binding = self._instantiate(child, known)[1]
        places: list[int] = []
        names: list[str] = []
        for place, feature in enumerate(self.grammar.symbols[child.symbol].features):
            term = child.terms.get(feature)
            if term is not None and term.variable in shared and binding[place] is None:
                places.append(place)
                names.append(term.variable or "")
        found = []
        for values, mass in self._query(child.symbol, binding, tuple(places)).items():
            extended = dict(known)
            for name, value in zip(names, values, strict=True):
                if value not in shared[name] or extended.setdefault(name, value) != value:
                    break
            else:
                found.append((extended, mass))
        return found

    def _query(self, symbol: str, binding: Binding, places: tuple[int, ...]) -> dict[Bundle, float]:
        key = (symbol, binding, places)
        found = self._queries.get(key)
        if found is None:
            found = self._queries[key] = {}
            masses = self._mass(symbol)
            for bundle in self._select(symbol, binding):
                values = tuple(bundle[place] for place in places)
                found[values] = found.get(values, 0.0) + masses[bundle]
        return found

    def _select(self, symbol: str, binding: Binding) -> list[Bundle]:
        """The full bundles of a lexical symbol that agree with a binding."""
        bound = tuple(place for place, value in enumerate(binding) if value is not None)
        index = self._indexes.get((symbol, bound))
        if index is None:
            index = self._indexes[symbol, bound] = {}
            for bundle in self._mass(symbol):
                index.setdefault(tuple(bundle[place] for place in bound), []).append(bundle)
        return index.get(tuple(binding[place] or "" for place in bound), [])

    def _mass(self, symbol: str) -> dict[Bundle, float]:
        """Lexical mass of every full bundle of a lexical symbol."""
        masses = self._masses.get(symbol)
        if masses is None:
            masses = self._masses[symbol] = {}
            if self.grammar.symbols[symbol].kind == "category":
                for bundle, forms in self.grammar.lexicon.entries[symbol].items():
                    masses[bundle] = sum(forms.values())
            else:
                for rule in self.grammar.rules[symbol]:
                    self._add_rule_mass(rule, masses)
        return masses

    def _add_rule_mass(self, rule: Rule, masses: dict[Bundle, float]) -> None:
        """The mass of an expansion is that of its parts, a rule's share being its weight."""
        features = self.grammar.symbols[rule.symbol].features
        shared = dict(rule.domains)
        partial: list[tuple[dict[str, str], float]] = [({}, rule.weight)]
        for child in rule.children:
            total = sum(self._mass(child.symbol).values()) or 1.0
            partial = [
                (values, weight * mass / total)
                for known, weight in partial
                for values, mass in self._lexical(child, known, shared)
            ]
        for known, weight in partial:
            choices = []
            for feature in features:
                term = rule.terms.get(feature)
                if term is None:
                    choices.append(self.grammar.domains[feature])
                elif term.variable is not None and term.variable in known:
                    choices.append((known[term.variable],))
                else:
                    choices.append(term.allowed)
            share = weight / math.prod(len(choice) for choice in choices)
            for bundle in itertools.product(*choices):
                masses[bundle] = masses.get(bundle, 0.0) + share

    def _prior(self, rule: Rule, variable: str, value: str) -> float:
        for child in rule.children:
            for feature, term in child.terms.items():
                if term.variable == variable:
                    return self.grammar.priors[feature][value]
        return 1.0

    def _instantiate(self, child: Reference, known: Mapping[str, str]) -> Instance:
        binding: list[str | None] = []
        for feature in self.grammar.symbols[child.symbol].features:
            term = child.terms.get(feature)
            if term is None:
                binding.append(None)
            elif term.variable is None:
                binding.append(term.allowed[0])
            else:
                binding.append(known.get(term.variable))
        return child.symbol, tuple(binding)

    def check_words(self) -> None:
        """No word may contain itself: its mass would have no end."""
        parts = {
            name: children_of(self.grammar.rules[name])
            for name, symbol in self.grammar.symbols.items()
            if symbol.kind == "word"
        }
        for name in parts:
            if name in reachable(parts[name], lambda part: parts.get(part, set())):
                self.problems.add(f"words.{name}", "contains itself through its rules")


def _grown(grammar: Grammar, found: set[str], which: Callable[[Iterable[bool]], bool]) -> set[str]:
    """With every symbol of which all rules, or any, have only children that were found."""
    while True:
        new = {
            name
            for name, rules in grammar.rules.items()
            if name not in found and which(children_of([rule]) <= found for rule in rules)
        }
        if not new:
            return found
        found = found | new


def _cut_unproductive(nodes: list[Node]) -> None:
    """Set heights bottom-up, then drop rows with a child that has none."""
    open_nodes = [node for node in nodes if node.height < 0]
    height = 0
    while open_nodes:
        height += 1
        grown = [
            node
            for node in open_nodes
            if any(
                all(nodes[child].height >= 0 for child in row)
                for option in node.options
                for row in option.rows
            )
        ]
        if not grown:
            break
        for node in grown:
            node.height = height
        open_nodes = [node for node in open_nodes if node.height < 0]
    for node in nodes:
        for option in node.options:
            alive = [
                (row, weight)
                for row, weight in zip(option.rows, option.weights, strict=True)
                if all(nodes[child].height >= 0 for child in row)
            ]
            option.rows = [row for row, _ in alive]
            option.weights = [weight for _, weight in alive]
            option.cumulative = list(itertools.accumulate(option.weights))
            option.height = 1 + min(
                (max((nodes[child].height for child in row), default=0) for row in option.rows),
                default=0,
            )
        node.options = [option for option in node.options if option.rows]


def _note_dead_rules(grammar: Grammar, nodes: list[Node], problems: Problems) -> None:
    """Report rules that no instance with a sentence below it can use."""

    def below(number: int) -> set[int]:
        return {child for option in nodes[number].options for row in option.rows for child in row}

    alive = {
        option.rule.key for number in reachable([0], below) for option in nodes[number].options
    }
    for rules in grammar.rules.values():
        for rule in rules:
            if rule.key not in alive:
                problems.add(rule.key, "can never be used: no words or rules fit its features")


def _link_rows(grammar: Grammar, nodes: list[Node], problems: Problems) -> None:
    """Head and relations of every row of every phrase; rows that do not differ share them."""
    empty = _grown(grammar, set(), any)  # the phrases that may turn out to have no words
    known: dict[tuple[int, tuple[str | None, ...]], Links] = {}
    for node in nodes:
        if grammar.symbols[node.symbol].kind != "phrase":
            continue
        for option in node.options:
            for row in option.rows:
                relations = tuple(nodes[child].relation for child in row)
                key = (id(option.rule), relations)
                if key not in known:
                    rule, headless = option.rule, grammar.dependencies.headless
                    linker = Linker(rule.key, rule.children, relations, headless, empty, problems)
                    known[key] = linker.links(node.symbol)
                option.links.append(known[key])
