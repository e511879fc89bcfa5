"""The line notation inside the text blocks of a grammar file.

A grammar has hundreds of rules, cells and lexemes; one line each, in a notation as close as
possible to the linguist's, keeps them readable. This module turns lines into terms and knows
nothing of what the names mean beyond the declared features.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spmrl_bench.treebanks.mini.problems import Problems

Domains = Mapping[str, tuple[str, ...]]

_REFERENCE = re.compile(
    r"(?:([a-z]+(?::[a-z]+)*):)?([^\W\d][\w$.'-]*)(?:\[([^\]]*)\])?(?:\?([0-9.]+))?"
)
_GROUP = re.compile(r"(?:([a-z]+(?::[a-z]+)*):)?\(")
_WEIGHT = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Term:
    """What a rule or cell says of one feature: the values allowed, perhaps shared by name."""

    allowed: tuple[str, ...]
    variable: str | None = None


@dataclass(frozen=True)
class Reference:
    """A symbol with its feature terms; ``chance`` < 1 marks an optional symbol.

    ``relation`` is what was written before it; ``groups`` are the parentheses around it from the
    outermost to the innermost, each with its number in the row and the relation before it.
    """

    symbol: str
    terms: Mapping[str, Term]
    chance: float = 1.0
    relation: str | None = None
    groups: tuple[tuple[int, str | None], ...] = ()


@dataclass(frozen=True)
class Line:
    """One non-empty line of a text block and the key that names it in messages."""

    key: str
    text: str


def lines_of(key: str, block: str) -> Iterator[Line]:
    """The lines of a block without comments (``#`` at the start or after a space)."""
    for number, raw in enumerate(block.split("\n"), start=1):
        text = re.sub(r"(^|\s)#.*", "", raw).strip()
        if text:
            yield Line(f"{key} line {number} '{text}'", text)


def parse_values(key: str, text: str, domain: tuple[str, ...], problems: Problems) -> Term | None:
    """``a|b`` or ``!a|b`` (all but these) as a term over ``domain``."""
    negated = text.startswith("!")
    names = text.removeprefix("!").split("|")
    for name in names:
        if name not in domain:
            problems.unknown(key, "value", name, domain)
            return None
    allowed = tuple(value for value in domain if (value in names) != negated)
    if not allowed:
        problems.add(key, f"'{text}' leaves no value; allowed: {', '.join(domain)}")
        return None
    return Term(allowed)


def parse_item(
    key: str,
    item: str,
    scope: Sequence[str],
    domains: Domains,
    problems: Problems,
    *,
    variables: bool,
    guards: bool,
) -> tuple[str, Term] | None:
    """One item of a feature bundle: ``f=v``, ``f=?x``, ``f=?x:v|w``, ``f`` or a bare value.

    ``guards`` lets ``f=v`` name any feature, not only those in ``scope``.
    """
    name, equals, value = item.partition("=")
    if equals:
        nameable = domains if guards else scope
        if name not in nameable:
            problems.unknown(key, "feature", name, nameable)
            return None
    elif variables and item in scope:
        return item, Term(domains[item], item)
    else:
        names = item.removeprefix("!").split("|")
        owners = [feature for feature in scope if all(v in domains[feature] for v in names)]
        if len(owners) > 1:
            problems.add(key, f"'{item}' is a value of {' and '.join(owners)}; write feature=value")
            return None
        if not owners:
            known = [*scope, *(value for feature in scope for value in domains[feature])]
            problems.unknown(key, "feature or value", item, known)
            return None
        name, value = owners[0], item
    variable = None
    if equals and value.startswith("?"):
        if not variables:
            problems.add(key, f"variable '{value}' found where only values are allowed")
            return None
        variable, colon, value = value[1:].partition(":")
        if not colon:
            return name, Term(domains[name], variable)
    term = parse_values(key, value, domains[name], problems)
    if term is None:
        return None
    if variables and variable is None and len(term.allowed) > 1:
        variable = name  # several values in a rule leave a choice, that of the variable ?feature
    return name, Term(term.allowed, variable)


def parse_bundle(
    key: str,
    items: Sequence[str],
    scope: Sequence[str],
    domains: Domains,
    problems: Problems,
    *,
    variables: bool = False,
    guards: bool = False,
) -> dict[str, Term]:
    """Feature terms of a bundle; a feature named twice is a mistake."""
    terms: dict[str, Term] = {}
    for item in items:
        parsed = parse_item(key, item, scope, domains, problems, variables=variables, guards=guards)
        if parsed is None:
            continue
        feature, term = parsed
        if feature in terms:
            problems.add(key, f"feature '{feature}' given twice")
        terms[feature] = term
    return terms


def parse_references(
    key: str,
    text: str,
    signatures: Mapping[str, Sequence[str]],
    domains: Domains,
    problems: Problems,
    *,
    variables: bool = True,
    relations: bool = False,
) -> list[Reference] | None:
    """A row of symbol references such as ``Art[case,num] Noun[case,num,gen=m] PP?0.2``.

    Without ``variables`` the row is a cell: values only, and any feature may be a guard. With
    ``relations``, symbols and parentheses around them may bear one: ``obl:(P[case] NX[case])``.
    """
    references: list[Reference] = []
    groups: list[tuple[int, str | None]] = []
    opened = position = 0
    text = text.strip()
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        if groups and text[position] == ")":
            groups.pop()
            position += 1
            continue
        opening = _GROUP.match(text, position) if relations else None
        if opening is not None:
            groups.append((opened, opening.group(1)))
            opened += 1
            position = opening.end()
            continue
        match = _REFERENCE.match(text, position)
        if match is None:
            problems.add(key, f"cannot read '{text[position:]}'; expected Symbol[feature=value]")
            return None
        relation, symbol, bundle, chance = match.groups()
        if symbol not in signatures:
            problems.unknown(key, "symbol", symbol, signatures)
            return None
        if relation and not relations:
            problems.add(key, f"'{relation}:' found where no symbol bears a relation")
        items = [item for item in re.split(r"[,\s]+", bundle or "") if item]
        terms = parse_bundle(
            key,
            items,
            signatures[symbol],
            domains,
            problems,
            variables=variables,
            guards=not variables,
        )
        share = _chance(key, chance, problems)
        references.append(Reference(symbol, terms, share, relation, tuple(groups)))
        position = match.end()
    if groups:
        problems.add(key, "a '(' has no ')'")
    return references


def _chance(key: str, text: str | None, problems: Problems) -> float:
    if text is None:
        return 1.0
    try:
        chance = float(text)
    except ValueError:
        chance = -1.0
    if not 0 < chance < 1:
        problems.add(key, f"chance '?{text}' found; allowed: a number between 0 and 1")
        return 1.0
    return chance


def split_weight(text: str) -> tuple[float, str]:
    """A leading rule weight (1 when absent) and the rest of the line."""
    match = _WEIGHT.match(text)
    if match is None:
        return 1.0, text
    return float(match.group()), text[match.end() :].strip()
