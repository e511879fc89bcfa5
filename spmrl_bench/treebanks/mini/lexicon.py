"""Inflect the lexemes of a grammar into word forms with features.

A lexeme names its stems and its own features (gender, selection, particle); its paradigm
says, cell by cell, which form a category has under which inflectional features. The result
is one table per category: full feature bundle -> weighted forms.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spmrl_bench.treebanks.mini.notation import Line, Notation, Term, lines_of
from spmrl_bench.treebanks.mini.tables import GrammarTable, ParadigmTable, SpellingTable

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
    key: str
    category: str
    terms: Mapping[str, Term]
    template: str


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
        self.table = table
        self.defaults = defaults
        self.notation = notation
        self.signatures, self.domains = notation.signatures, notation.domains
        self.problems = notation.problems

    def build(self) -> Lexicon:
        """All word forms of the grammar."""
        settings = self.table.settings
        pools = self._pools()
        for pool in settings.zipf_pools:
            if pool not in pools:
                self.problems.unknown("settings.zipf_pools", "pool", pool, pools)
        entries: dict[str, dict[Bundle, dict[str, float]]] = {name: {} for name in self.signatures}
        open_categories: set[str] = set()
        for pool, lexemes in pools.items():
            weights = [1.0] * len(lexemes)
            if pool in settings.zipf_pools:
                ranks = list(range(len(lexemes)))
                random.Random(f"{self.table.language}:{pool}").shuffle(ranks)
                open_categories.update(c.category for lexeme in lexemes for c in lexeme.cells)
                exponent, offset = settings.zipf_exponent, settings.zipf_offset
                weights = [((offset + 1) / (rank + offset + 1)) ** exponent for rank in ranks]
            for lexeme, weight in zip(lexemes, weights, strict=True):
                for cell in lexeme.cells:
                    self._inflect(lexeme, cell, weight * lexeme.weight, entries[cell.category])
        return Lexicon(entries, frozenset(open_categories))

    def _pools(self) -> dict[str, list[_Lexeme]]:
        pools: dict[str, list[_Lexeme]] = {}
        for category, block in self.table.lexicon.items():
            key = f"lexicon.{category}"
            if category not in self.signatures:
                self.problems.unknown(key, "category", category, self.signatures)
                continue
            cells = [_Cell(key, category, {}, "{1}")]
            lexemes = self._lexemes(key, block, 0, self.signatures[category], {}, cells)
            pools.setdefault(category, []).extend(lexemes)
        for name, paradigm in self.table.paradigms.items():
            lexemes, first = self._paradigm(name, paradigm)
            pools.setdefault(paradigm.pool or first, []).extend(lexemes)
        return pools

    def _paradigm(self, name: str, paradigm: ParadigmTable) -> tuple[list[_Lexeme], str]:
        """Its lexemes, and the category of its first cell."""
        key = f"paradigms.{name}"
        read = (
            self._cell(line, paradigm.stems) for line in lines_of(f"{key}.cells", paradigm.cells)
        )
        cells = [cell for cell in read if cell is not None]
        if not cells:
            self.problems.add(f"{key}.cells", "has no usable cell")
            return [], name
        own = {f for cell in cells for f in _features(cell, self.signatures[cell.category])}
        words = paradigm.features.split()
        common = self.notation.bundle(f"{key}.features", words, list(self.domains))
        self._check_coverage(key, paradigm, cells, common)
        scope = [feature for feature in self.domains if feature in own]
        lexemes = self._lexemes(
            f"{key}.lexemes", paradigm.lexemes, paradigm.stems, scope, common, cells
        )
        return lexemes, cells[0].category

    def _cell(self, line: Line, stems: int) -> _Cell | None:
        left, colon, template = (part.strip() for part in line.text.rpartition(" : "))
        references = self.notation.references(line.key, left, variables=False)
        if references is None:
            return None
        if not colon or len(references) != 1 or not template:
            self.problems.add(line.key, "expected 'Category[feature=value ...] : form'")
            return None
        before = len(self.problems.found)
        for slot in _SLOT.findall(template):
            if slot.isdigit():
                if not 1 <= int(slot) <= stems:
                    self.problems.add(line.key, f"stem {{{slot}}} found; stems = {stems}")
            elif slot not in self.domains:
                self.problems.unknown(line.key, "feature", slot, self.domains)
        if len(self.problems.found) > before:
            return None
        return _Cell(line.key, references[0].symbol, references[0].terms, template)

    def _check_coverage(
        self, key: str, paradigm: ParadigmTable, cells: Sequence[_Cell], common: Mapping[str, Term]
    ) -> None:
        """``over`` promises a cell for each combination of the features it names."""
        for category, names in paradigm.over.items():
            where = f"{key}.over.{category}"
            if category not in self.signatures:
                self.problems.unknown(where, "category", category, self.signatures)
                continue
            features = names.split()
            foreign = [name for name in features if name not in self.signatures[category]]
            for name in foreign:
                self.problems.unknown(where, "feature", name, self.signatures[category])
            if foreign:
                continue
            allowed = [common[f].allowed if f in common else self.domains[f] for f in features]
            for bundle in itertools.product(*allowed):
                if not any(
                    cell.category == category
                    and all(
                        value in cell.terms[feature].allowed
                        for feature, value in zip(features, bundle, strict=True)
                        if feature in cell.terms
                    )
                    for cell in cells
                ):
                    missing = f"{category}[{','.join(bundle)}]"
                    self.problems.add(where, f"no cell for {missing}; write ': -' if none")

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
        for line in lines_of(key, block):
            head, *items = line.text.split()
            weight = 1.0
            if items and items[-1].startswith("*"):
                try:
                    weight = float(items.pop()[1:])
                except ValueError:
                    weight = -1.0
                if not weight > 0:
                    self.problems.add(line.key, "the weight after '*' must be a number > 0")
            parts = tuple(head.split("/")) if stems else (head,)
            if stems and len(parts) != stems:
                self.problems.add(line.key, f"{len(parts)} stems found, {stems} expected")
                continue
            own = self.notation.bundle(line.key, items, scope)
            lexemes.append(_Lexeme(parts, {**common, **own}, weight, cells))
        if not lexemes:
            self.problems.add(key, "has no lexeme")
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
        width = len(self.signatures[cell.category])
        features = _features(cell, self.signatures[cell.category])
        choices = []
        for place, feature in enumerate(features):
            stated = feature in cell.terms
            allowed = cell.terms[feature].allowed if stated else self.domains[feature]
            kept: Sequence[str] = allowed
            if feature in lexeme.terms:
                kept = lexeme.terms[feature].allowed
            elif feature in self.defaults and not (stated and place < width):
                kept = [self.defaults[feature]]
            choices.append([value for value in allowed if value in kept])
        varying = [features.index(slot) for slot in _named_slots(cell)]
        forms: dict[Bundle, str] = {}
        for bundle in itertools.product(*choices):
            values = tuple(bundle[i] for i in varying)
            form = forms.get(values)
            if form is None:
                form = _fill(cell.template, lexeme.stems, dict(zip(features, bundle, strict=True)))
                form = forms[values] = apply_spelling(form, self.table.spelling)
            weights = entries.setdefault(bundle[:width], {})
            weights[form] = weights.get(form, 0.0) + weight


def apply_spelling(form: str, spelling: Sequence[SpellingTable]) -> str:
    """Rewrite a form whose parts are joined by ``+`` and drop the boundaries."""
    if "+" not in form:
        return form
    for rewrite in spelling:
        form = rewrite.pattern.sub(rewrite.replace, form)
    return form.replace("+", "")


def _named_slots(cell: _Cell) -> list[str]:
    return [slot for slot in dict.fromkeys(_SLOT.findall(cell.template)) if not slot.isdigit()]


def _features(cell: _Cell, signature: Sequence[str]) -> list[str]:
    """The features that decide the forms of a cell, those of its category first."""
    return list(dict.fromkeys([*signature, *cell.terms, *_named_slots(cell)]))


def _fill(template: str, stems: tuple[str, ...], values: Mapping[str, str]) -> str:
    def part(match: re.Match[str]) -> str:
        slot = match.group(1)
        if slot.isdigit():
            return stems[int(slot) - 1]
        return "" if values[slot] == _EMPTY_VALUE else values[slot]

    return _SLOT.sub(part, template)
