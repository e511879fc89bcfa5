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

from spmrl_bench.treebanks.mini.notation import (
    Line,
    Term,
    lines_of,
    parse_bundle,
    parse_references,
)
from spmrl_bench.treebanks.mini.problems import Problems
from spmrl_bench.treebanks.mini.tables import GrammarTable, ParadigmTable

Bundle = tuple[str, ...]
Spelling = Sequence[tuple[re.Pattern[str], str]]

_SLOT = re.compile(r"\{([^{}]*)\}")
_EMPTY_VALUE = "0"


@dataclass(frozen=True)
class Lexicon:
    """Word forms by category and full feature bundle, and how many lexemes made them.

    ``entries[category][bundle]`` maps each form to its weight, in the order of the file;
    ``open_categories`` are those filled from Zipf pools; ``lexemes`` counts by pool.
    """

    entries: Mapping[str, Mapping[Bundle, Mapping[str, float]]]
    open_categories: frozenset[str]
    lexemes: Mapping[str, int]


@dataclass(frozen=True)
class _Cell:
    key: str
    category: str
    terms: Mapping[str, Term]
    template: str


@dataclass(frozen=True)
class _Lexeme:
    line: Line
    stems: tuple[str, ...]
    terms: Mapping[str, Term]
    weight: float
    cells: Sequence[_Cell]


def build_lexicon(
    table: GrammarTable,
    signatures: Mapping[str, Sequence[str]],
    domains: Mapping[str, tuple[str, ...]],
    defaults: Mapping[str, str],
    spelling: Spelling,
    problems: Problems,
) -> Lexicon:
    """All word forms of the grammar; ``signatures`` gives the features of each category."""
    pools: dict[str, list[_Lexeme]] = {}
    for category, block in table.lexicon.items():
        key = f"lexicon.{category}"
        if category not in signatures:
            problems.unknown(key, "category", category, signatures)
            continue
        cell = _Cell(key, category, {}, "{1}")
        scope = signatures[category]
        pools.setdefault(category, []).extend(
            _read_lexemes(key, block, 0, scope, domains, {}, [cell], problems)
        )
    for name, paradigm in table.paradigms.items():
        lexemes, first = _read_paradigm(name, paradigm, signatures, domains, defaults, problems)
        pools.setdefault(paradigm.pool or first, []).extend(lexemes)
    for pool in table.settings.zipf_pools:
        if pool not in pools:
            problems.unknown("settings.zipf_pools", "pool", pool, pools)
    entries: dict[str, dict[Bundle, dict[str, float]]] = {name: {} for name in signatures}
    open_categories: set[str] = set()
    for pool, lexemes in pools.items():
        weights = [1.0] * len(lexemes)
        if pool in table.settings.zipf_pools:
            ranks = list(range(len(lexemes)))
            random.Random(f"{table.language}:{pool}").shuffle(ranks)
            open_categories.update(c.category for lexeme in lexemes for c in lexeme.cells)
            exponent, offset = table.settings.zipf_exponent, table.settings.zipf_offset
            weights = [((offset + 1) / (rank + offset + 1)) ** exponent for rank in ranks]
        for lexeme, weight in zip(lexemes, weights, strict=True):
            for cell in lexeme.cells:
                _inflect(
                    lexeme,
                    cell,
                    weight * lexeme.weight,
                    signatures[cell.category],
                    domains,
                    defaults,
                    spelling,
                    entries[cell.category],
                )
    counts = {pool: len(lexemes) for pool, lexemes in pools.items()}
    return Lexicon(entries, frozenset(open_categories), counts)


def apply_spelling(form: str, spelling: Spelling) -> str:
    """Rewrite a form whose parts are joined by ``+`` and drop the boundaries."""
    if "+" not in form:
        return form
    for pattern, replacement in spelling:
        form = pattern.sub(replacement, form)
    return form.replace("+", "")


def _read_paradigm(
    name: str,
    paradigm: ParadigmTable,
    signatures: Mapping[str, Sequence[str]],
    domains: Mapping[str, tuple[str, ...]],
    defaults: Mapping[str, str],
    problems: Problems,
) -> tuple[list[_Lexeme], str]:
    key = f"paradigms.{name}"
    cells = []
    for line in lines_of(f"{key}.cells", paradigm.cells):
        left, colon, template = (part.strip() for part in line.text.rpartition(" : "))
        references = parse_references(
            line.key, left, signatures, domains, problems, variables=False
        )
        if not colon or references is None or len(references) != 1 or not template:
            if references is not None:
                problems.add(line.key, "expected 'Category[feature=value ...] : form'")
            continue
        before = len(problems.found)
        for slot in _SLOT.findall(template):
            if slot.isdigit():
                if not 1 <= int(slot) <= paradigm.stems:
                    problems.add(line.key, f"stem {{{slot}}} found; stems = {paradigm.stems}")
            elif slot not in domains:
                problems.unknown(line.key, "feature", slot, domains)
        if len(problems.found) == before:
            cells.append(_Cell(line.key, references[0].symbol, references[0].terms, template))
    if not cells:
        problems.add(f"{key}.cells", "has no usable cell")
        return [], name
    scope = list(dict.fromkeys(f for cell in cells for f in _features(cell, signatures)))
    common = parse_bundle(
        f"{key}.features", paradigm.features.split(), list(domains), domains, problems
    )
    _check_coverage(key, paradigm, cells, common, signatures, domains, problems)
    lexemes = _read_lexemes(
        f"{key}.lexemes",
        paradigm.lexemes,
        paradigm.stems,
        [f for f in domains if f in scope],
        domains,
        common,
        cells,
        problems,
    )
    return lexemes, cells[0].category


def _features(cell: _Cell, signatures: Mapping[str, Sequence[str]]) -> list[str]:
    named = [slot for slot in _SLOT.findall(cell.template) if not slot.isdigit()]
    return list(dict.fromkeys([*signatures[cell.category], *cell.terms, *named]))


def _check_coverage(
    key: str,
    paradigm: ParadigmTable,
    cells: Sequence[_Cell],
    common: Mapping[str, Term],
    signatures: Mapping[str, Sequence[str]],
    domains: Mapping[str, tuple[str, ...]],
    problems: Problems,
) -> None:
    """``over`` promises a cell for each combination of the features it names."""
    for category, names in paradigm.over.items():
        where = f"{key}.over.{category}"
        if category not in signatures:
            problems.unknown(where, "category", category, signatures)
            continue
        features = names.split()
        for feature in features:
            if feature not in signatures[category]:
                problems.unknown(where, "feature", feature, signatures[category])
        if any(feature not in signatures[category] for feature in features):
            continue
        allowed = [common[f].allowed if f in common else domains[f] for f in features]
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
                missing = ",".join(bundle)
                problems.add(where, f"no cell for {category}[{missing}]; write ': -' if none")


def _read_lexemes(
    key: str,
    block: str,
    stems: int,
    scope: Sequence[str],
    domains: Mapping[str, tuple[str, ...]],
    common: Mapping[str, Term],
    cells: Sequence[_Cell],
    problems: Problems,
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
                problems.add(line.key, "the weight after '*' must be a number > 0")
        parts = tuple(head.split("/")) if stems else (head,)
        if stems and len(parts) != stems:
            problems.add(line.key, f"{len(parts)} stems found, {stems} expected")
            continue
        terms = dict(common)
        terms.update(parse_bundle(line.key, items, scope, domains, problems))
        lexemes.append(_Lexeme(line, parts, terms, weight, cells))
    if not lexemes:
        problems.add(key, "has no lexeme")
    return lexemes


def _inflect(
    lexeme: _Lexeme,
    cell: _Cell,
    weight: float,
    signature: Sequence[str],
    domains: Mapping[str, tuple[str, ...]],
    defaults: Mapping[str, str],
    spelling: Spelling,
    entries: dict[Bundle, dict[str, float]],
) -> None:
    """Add the forms of one lexeme in one cell; a cell that contradicts the lexeme is skipped.

    Where the lexeme is silent, what the cell says of a feature of its category is inflection
    and holds; a guard on any other feature meets the default.
    """
    if cell.template == "-":
        return
    slots = _SLOT.findall(cell.template)
    named = [slot for slot in slots if not slot.isdigit()]
    features = list(dict.fromkeys([*signature, *cell.terms, *named]))
    width = len(signature)
    choices = []
    for place, feature in enumerate(features):
        allowed = list(cell.terms[feature].allowed if feature in cell.terms else domains[feature])
        inflected = feature in cell.terms and place < width
        if feature in lexeme.terms:
            allowed = [value for value in allowed if value in lexeme.terms[feature].allowed]
        elif feature in defaults and not inflected:
            allowed = [value for value in allowed if value == defaults[feature]]
        choices.append(allowed)
    varying = [features.index(slot) for slot in dict.fromkeys(named)]
    forms: dict[Bundle, str] = {}
    for bundle in itertools.product(*choices):
        values = tuple(bundle[i] for i in varying)
        form = forms.get(values)
        if form is None:
            form = _fill(cell.template, lexeme.stems, dict(zip(features, bundle, strict=True)))
            form = apply_spelling(form, spelling)
            forms[values] = form
        cellforms = entries.setdefault(bundle[:width], {})
        cellforms[form] = cellforms.get(form, 0.0) + weight


def _fill(template: str, stems: tuple[str, ...], values: Mapping[str, str]) -> str:
    def part(match: re.Match[str]) -> str:
        slot = match.group(1)
        if slot.isdigit():
            return stems[int(slot) - 1]
        return "" if values[slot] == _EMPTY_VALUE else values[slot]

    return _SLOT.sub(part, template)
