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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tools.minigen.grammar import Grammar, Rule
from tools.minigen.lexicon import Bundle
from tools.minigen.links import Linker, Links
from tools.minigen.notation import GrammarError, Reference

Binding = tuple[str | None, ...]
Instance = tuple[str, Binding]


@dataclass
class Option:
    """One rule as an instance may use it: its expansions, each a row of instance numbers."""

    rule: Rule
    opens: tuple[str, ...]  # the phrases among the children
    weights: list[float]
    rows: list[tuple[int, ...]]
    links: list[Links] = field(default_factory=list)  # of each row of a phrase
    cumulative: list[float] = field(default_factory=list)
    height: float = math.inf  # of the smallest subtree


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
    height: float = math.inf  # of the smallest subtree; infinite where there is none


@dataclass(frozen=True)
class GroundGrammar:
    """All instances reachable from the start symbol, which is number 0."""

    grammar: Grammar
    nodes: list[Node]


def ground(grammar: Grammar) -> GroundGrammar:
    """Enumerate the instances of a grammar.

    Raises:
        GrammarError: a word contains itself, the start symbol produces nothing, or a rule does not
            tell its head or the relations of the other daughters.
    """
    nodes = _Grounder(grammar).enumerate()
    _cut_unproductive(nodes)
    if nodes[0].height == math.inf:
        start = grammar.table.settings.start
        raise GrammarError("settings.start", f"'{start}' produces no sentence")
    _link_rows(grammar, nodes)
    return GroundGrammar(grammar, nodes)


class _Grounder:
    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._nodes: list[Node] = []
        self._numbers: dict[Instance, int] = {}
        self._todo: list[Instance] = []
        self._lexical_symbols = _lexical(grammar)
        for name in grammar.table.words:
            if name not in self._lexical_symbols:
                raise GrammarError(f"words.{name}", "contains itself through its rules")
        self._masses: dict[str, dict[Bundle, float]] = {}
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[Bundle, list[Bundle]]] = {}
        self._queries: dict[tuple[str, Binding, tuple[int, ...]], dict[Bundle, float]] = {}

    def enumerate(self) -> list[Node]:
        self._number((self._grammar.table.settings.start, ()))
        while self._todo:
            instance = self._todo.pop()
            node = self._nodes[self._numbers[instance]]
            symbol, binding = instance
            if self._grammar.symbols[symbol].kind == "category":
                self._fill_forms(node, binding)
                continue
            for rule in self._grammar.rules[symbol]:
                expansions = list(self._expansions(rule, binding))
                if expansions:
                    names = (child.symbol for child in rule.children)
                    opens = tuple(n for n in names if self._grammar.symbols[n].kind == "phrase")
                    weights = [weight for _, weight in expansions]
                    rows = [tuple(map(self._number, children)) for children, _ in expansions]
                    node.options.append(Option(rule, opens, weights, rows))
        return self._nodes

    def _number(self, instance: Instance) -> int:
        number = self._numbers.get(instance)
        if number is None:
            number = self._numbers[instance] = len(self._nodes)
            symbol, binding = instance
            values = dict(zip(self._grammar.symbols[symbol].features, binding, strict=True))
            known = self._grammar.dependencies
            relation, passive = known.relation(symbol, values), known.is_passive(symbol, values)
            self._nodes.append(Node(symbol, relation, passive))
            self._todo.append(instance)
        return number

    def _fill_forms(self, node: Node, binding: Binding) -> None:
        weights: dict[str, float] = {}
        entries = self._grammar.lexicon.entries[node.symbol]
        for bundle in self._select(node.symbol, binding):
            for form, weight in entries[bundle].items():
                weights[form] = weights.get(form, 0.0) + weight
        if weights:
            node.forms = list(weights)
            node.cumulative = list(itertools.accumulate(weights.values()))
            node.height = 0

    def _expansions(self, rule: Rule, binding: Binding) -> Iterator[tuple[list[Instance], float]]:
        """Children and weight for each way to set the shared variables of a rule."""
        fixed = self._match(rule, binding)
        if fixed is None:
            return
        shared = self._shared(rule, fixed)
        partial: list[tuple[dict[str, str], float]] = [(fixed, 1.0)]
        for child in rule.children:
            if child.symbol in self._lexical_symbols:
                partial = [
                    (values, weight * mass)
                    for known, weight in partial
                    for values, mass in self._extensions(child, known, shared)
                ]
        for variable, domain in shared.items():
            if variable not in fixed:
                partial = [
                    ({**known, variable: value}, weight * self._prior(rule, variable, value))
                    for known, weight in partial
                    for value in ((known[variable],) if variable in known else domain)
                ]
        for known, weight in partial:
            yield [self._instantiate(child, known) for child in rule.children], weight

    def _match(self, rule: Rule, binding: Binding) -> dict[str, str] | None:
        """Variables fixed by the left side, or None where the binding contradicts it."""
        fixed: dict[str, str] = {}
        features = self._grammar.symbols[rule.symbol].features
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
                    if len(rule.domains[term.variable]) < len(self._grammar.domains[feature]):
                        restricted.add(term.variable)
        return {
            variable: rule.domains[variable]
            for variable, count in uses.items()
            if variable in fixed or count > 1 or variable in restricted
        }

    def _extensions(
        self, child: Reference, known: Mapping[str, str], shared: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[dict[str, str], float]]:
        """Extensions of ``known`` that a lexical child has forms for, with their mass."""
        binding = self._instantiate(child, known)[1]
        places: list[int] = []
        names: list[str] = []
        for place, feature in enumerate(self._grammar.symbols[child.symbol].features):
            variable = child.terms[feature].variable if feature in child.terms else None
            if variable is not None and variable in shared and binding[place] is None:
                places.append(place)
                names.append(variable)
        for values, mass in self._query(child.symbol, binding, tuple(places)).items():
            extended = dict(known)
            for name, value in zip(names, values, strict=True):
                if value not in shared[name] or extended.setdefault(name, value) != value:
                    break
            else:
                yield extended, mass

    def _query(self, symbol: str, binding: Binding, places: tuple[int, ...]) -> dict[Bundle, float]:
        """The mass of each combination of values at ``places`` that agrees with a binding."""
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
            if self._grammar.symbols[symbol].kind == "category":
                for bundle, forms in self._grammar.lexicon.entries[symbol].items():
                    masses[bundle] = sum(forms.values())
            else:
                for rule in self._grammar.rules[symbol]:
                    self._add_rule_mass(rule, masses)
        return masses

    def _add_rule_mass(self, rule: Rule, masses: dict[Bundle, float]) -> None:
        """The mass of an expansion is that of its parts, a rule's share being its weight."""
        partial: list[tuple[dict[str, str], float]] = [({}, rule.weight)]
        for child in rule.children:
            total = sum(self._mass(child.symbol).values()) or 1.0
            partial = [
                (values, weight * mass / total)
                for known, weight in partial
                for values, mass in self._extensions(child, known, rule.domains)
            ]
        for known, weight in partial:
            choices = []
            for feature in self._grammar.symbols[rule.symbol].features:
                term = rule.terms.get(feature)
                if term is None:
                    choices.append(self._grammar.domains[feature])
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
                    return self._grammar.priors[feature][value]
        return 1.0

    def _instantiate(self, child: Reference, known: Mapping[str, str]) -> Instance:
        binding: list[str | None] = []
        for feature in self._grammar.symbols[child.symbol].features:
            term = child.terms.get(feature)
            if term is None:
                binding.append(None)
            elif term.variable is None:
                binding.append(term.allowed[0])
            else:
                binding.append(known.get(term.variable))
        return child.symbol, tuple(binding)


def _lexical(grammar: Grammar) -> set[str]:
    """The symbols without recursion below them, whose mass can be summed."""
    found = set(grammar.table.categories)
    while True:
        new = {
            name
            for name, rules in grammar.rules.items()
            if name not in found
            and all(child.symbol in found for rule in rules for child in rule.children)
        }
        if not new:
            return found
        found |= new


def _cut_unproductive(nodes: list[Node]) -> None:
    """Find the heights, then drop rows with a child that produces nothing."""
    shrinking = True
    while shrinking:
        shrinking = False
        for node in reversed(nodes):  # children mostly come after their parents
            for option in node.options:
                option.height = 1 + min(
                    max((nodes[child].height for child in row), default=0) for row in option.rows
                )
                if option.height < node.height:
                    node.height, shrinking = option.height, True
    for node in nodes:
        node.options = [option for option in node.options if option.height < math.inf]
        for option in node.options:
            alive = [all(nodes[child].height < math.inf for child in row) for row in option.rows]
            option.rows = list(itertools.compress(option.rows, alive))
            option.cumulative = list(
                itertools.accumulate(itertools.compress(option.weights, alive))
            )


def _link_rows(grammar: Grammar, nodes: list[Node]) -> None:
    """Head and relations of every row of every phrase; rows that do not differ share them."""
    headless = grammar.dependencies.headless
    known: dict[tuple[int, tuple[str | None, ...]], Links] = {}
    for node in nodes:
        for option in node.options if grammar.symbols[node.symbol].kind == "phrase" else ():
            rule = option.rule
            for row in option.rows:
                relations = tuple(nodes[child].relation for child in row)
                key = (id(rule), relations)
                if key not in known:
                    linker = Linker(rule.key, rule.children, relations, headless)
                    known[key] = linker.links(node.symbol)
                option.links.append(known[key])
