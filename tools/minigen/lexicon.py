"""Inflect the lexemes of a grammar into word forms with features.

A lexeme names its stems and its own features (gender, selection, particle); its paradigm
says, cell by cell, which form a category has under which inflectional features. The result
is one table per category: full feature bundle -> weighted forms.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tools.minigen.notation import (
    GrammarError,
    GrammarTable,
    Notation,
    ParadigmTable,
    SpellingTable,
    Term,
    lines_of,
    look_up,
)

Bundle = tuple[str, ...]

_SLOT = re.compile(r"\{([^{}]*)\}")
_EMPTY_VALUE = "0"


@dataclass(frozen=True)
class Lexicon:
    """Word forms by category and full feature bundle.

    ``entries[category][bundle]`` maps each form to its weight, in the order of the file;
    ``open_categories`` are those filled from Zipf pools.
    """

    entries: Mapping[str, Mapping[Bundle, Mapping[str, float]]]
    open_categories: frozenset[str]


@dataclass(frozen=True)
class _Cell:
    """A form of a category; ``features`` decide it, those of the category (``width``) first."""

    category: str
    terms: Mapping[str, Term]
    template: str
    features: Sequence[str]
    width: int
    slots: Sequence[int]  # the places of the features that the form shows


@dataclass(frozen=True)
class _Lexeme:
    stems: tuple[str, ...]
    terms: Mapping[str, Term]
    weight: float
    cells: Sequence[_Cell]


class LexiconBuilder:
    """Makes the lexicon of a grammar.

    ``notation`` knows the categories only; ``defaults`` gives the value that a lexeme has where it
    is silent.
    """

    def __init__(
        self, table: GrammarTable, defaults: Mapping[str, str], notation: Notation
    ) -> None:
        self._table = table
        self._defaults = defaults
        self._notation = notation

    def build(self) -> Lexicon:
        """All word forms of the grammar.

        Raises:
            GrammarError: a line of the lexicon or of a paradigm cannot be read.
        """
        settings = self._table.settings
        pools = self._pools()
        for pool in settings.zipf_pools:
            look_up("settings.zipf_pools", "pool", pool, pools)
        signatures = self._notation.signatures
        entries: dict[str, dict[Bundle, dict[str, float]]] = {name: {} for name in signatures}
        open_categories: set[str] = set()
        for pool, lexemes in pools.items():
            weights = [1.0] * len(lexemes)
            if pool in settings.zipf_pools:
                ranks = list(range(len(lexemes)))
                random.Random(f"{self._table.language}:{pool}").shuffle(ranks)
                open_categories.update(c.category for lexeme in lexemes for c in lexeme.cells)
                exponent, offset = settings.zipf_exponent, settings.zipf_offset
                weights = [((offset + 1) / (rank + offset + 1)) ** exponent for rank in ranks]
            for lexeme, weight in zip(lexemes, weights, strict=True):
                for cell in lexeme.cells:
                    self._inflect(lexeme, cell, weight * lexeme.weight, entries[cell.category])
        return Lexicon(entries, frozenset(open_categories))

    def _pools(self) -> dict[str, list[_Lexeme]]:
        pools: dict[str, list[_Lexeme]] = {}
        for category, block in self._table.lexicon.items():
            key = f"lexicon.{category}"
            look_up(key, "category", category, self._notation.signatures)
            cells = [self._cell(key, f"{category} : {{1}}", 1)]
            lexemes = self._lexemes(key, block, 0, cells[0].features, {}, cells)
            pools.setdefault(category, []).extend(lexemes)
        for name, paradigm in self._table.paradigms.items():
            lexemes = self._paradigm(f"paradigms.{name}", paradigm)
            first = lexemes[0].cells[0].category
            pools.setdefault(paradigm.pool or first, []).extend(lexemes)
        return pools

    def _paradigm(self, key: str, paradigm: ParadigmTable) -> list[_Lexeme]:
        cells = [
            self._cell(where, text, paradigm.stems)
            for where, text in lines_of(f"{key}.cells", paradigm.cells)
        ]
        domains, own = self._notation.domains, {f for cell in cells for f in cell.features}
        common = self._notation.bundle(f"{key}.features", paradigm.features.split(), list(domains))
        scope = [feature for feature in domains if feature in own]
        return self._lexemes(
            f"{key}.lexemes", paradigm.lexemes, paradigm.stems, scope, common, cells
        )

    def _cell(self, key: str, text: str, stems: int) -> _Cell:
        left, _, template = (part.strip() for part in text.rpartition(" : "))
        references = self._notation.references(key, left, variables=False)
        if len(references) != 1 or not template:
            raise GrammarError(key, "expected 'Category[feature=value ...] : form'")
        slots = list(dict.fromkeys(_SLOT.findall(template)))
        named = [slot for slot in slots if not slot.isdigit()]
        for slot in named:
            look_up(key, "feature", slot, self._notation.domains)
        if any(not 1 <= int(slot) <= stems for slot in slots if slot.isdigit()):
            raise GrammarError(key, f"the form has a stem beyond the last; stems = {stems}")
        category, terms = references[0].symbol, references[0].terms
        signature = self._notation.signatures[category]
        features = list(dict.fromkeys([*signature, *terms, *named]))
        places = [features.index(slot) for slot in named]
        return _Cell(category, terms, template, features, len(signature), places)

    def _lexemes(
        self,
        key: str,
        block: str,
        stems: int,
        scope: Sequence[str],
        common: Mapping[str, Term],
        cells: Sequence[_Cell],
    ) -> list[_Lexeme]:
        """One lexeme per line; ``stems`` = 0 takes the first item whole as an invariable word."""
        lexemes = []
        for where, text in lines_of(key, block):
            head, *items = text.split()
            weight = 1.0
            if items and items[-1].startswith("*"):
                try:
                    weight = float(items.pop()[1:])
                except ValueError:
                    weight = 0.0
            if not 0 < weight < math.inf:
                raise GrammarError(where, "the weight after '*' must be a number > 0")
            parts = tuple(head.split("/")) if stems else (head,)
            if stems and len(parts) != stems:
                raise GrammarError(where, f"{len(parts)} stems found, {stems} expected")
            own = self._notation.bundle(where, items, scope)
            lexemes.append(_Lexeme(parts, {**common, **own}, weight, cells))
        if not lexemes or not cells:
            raise GrammarError(key, "has no lexeme or no cell")
        return lexemes

    def _inflect(
        self, lexeme: _Lexeme, cell: _Cell, weight: float, entries: dict[Bundle, dict[str, float]]
    ) -> None:
        """Add the forms of one lexeme in one cell; one that contradicts the lexeme is skipped.

        Where the lexeme is silent, what the cell says of a feature of its category is inflection
        and holds; a guard on any other feature meets the default.
        """
        if cell.template == "-":
            return
        choices = []
        for place, feature in enumerate(cell.features):
            stated = feature in cell.terms
            allowed = cell.terms[feature].allowed if stated else self._notation.domains[feature]
            kept: Sequence[str] = allowed
            if feature in lexeme.terms:
                kept = lexeme.terms[feature].allowed
            elif feature in self._defaults and not (stated and place < cell.width):
                kept = [self._defaults[feature]]
            choices.append([value for value in allowed if value in kept])
        forms: dict[Bundle, str] = {}
        for bundle in itertools.product(*choices):
            shown = tuple(bundle[place] for place in cell.slots)
            form = forms.get(shown)
            if form is None:
                form = _fill(
                    cell.template, lexeme.stems, dict(zip(cell.features, bundle, strict=True))
                )
                form = forms[shown] = apply_spelling(form, self._table.spelling)
            weights = entries.setdefault(bundle[: cell.width], {})
            weights[form] = weights.get(form, 0.0) + weight


def apply_spelling(form: str, spelling: Sequence[SpellingTable]) -> str:
    """Rewrite a form whose parts are joined by ``+`` and drop the boundaries."""
    if "+" not in form:
        return form
    for rewrite in spelling:
        form = rewrite.pattern.sub(rewrite.replace, form)
    return form.replace("+", "")


def _fill(template: str, stems: tuple[str, ...], values: Mapping[str, str]) -> str:
    def part(match: re.Match[str]) -> str:
        slot = match.group(1)
        if slot.isdigit():
            return stems[int(slot) - 1]
        return "" if values[slot] == _EMPTY_VALUE else values[slot]

    return _SLOT.sub(part, template)
