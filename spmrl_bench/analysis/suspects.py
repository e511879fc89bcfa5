"""What a parser would rather have than the annotation: single decisions, and a sentence of them.

A parse differs from gold in some decisions: the label of a span, or that it is no constituent; the
head and the relation of a word. What tells an error of annotation is that the parser is sure: the
odds of its decision against gold's. An error of annotation is one decision, or a few that follow
from each other (a phrase that is attached higher is in one constituent less and in another more),
so that decisions are what is looked at: the odds of a whole tree against the gold tree grow with
the length of the sentence, and with all the small doubts of the parser.

They are written as text for reading, as a page for going through them, and as a table; so are the
places that vary (:mod:`spmrl_bench.analysis.variation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup
from tabulate import tabulate

from spmrl_bench.analysis.variation import Place, Suspicion
from spmrl_bench.errors import SpmrlError, UnsupportedError
from spmrl_bench.leaderboard.writing import Table, templates
from spmrl_bench.parsers.base import Parser
from spmrl_bench.treebanks.reading import SentencePlace
from spmrl_bench.trees.draw import boxes, head_text
from spmrl_bench.trees.parse import LEAST, Layer, Parse
from spmrl_bench.trees.tree import collapsed_spans

#: With so many differences in a sentence, odds count half: the parser has not understood it.
CONFUSING = 10
_AROUND = 6  # words shown on either side of a place


class Difference(NamedTuple):
    """One decision on which a parser and an annotation differ, about a span or a dependency."""

    layer: Layer
    start: int
    end: int
    """Fenceposts of the span; of a dependency those of the word."""
    gold: str
    predicted: str
    """Labels of the span, unary chains joined by ``+``, empty for none; of words, relations."""
    gold_probability: float
    predicted_probability: float
    """How likely either decision is, 0 below :data:`~spmrl_bench.trees.parse.LEAST`."""
    gold_head: int | None = None
    predicted_head: int | None = None
    """Of a dependency, from 1; 0 for the root."""

    @property
    def odds(self) -> float:
        """The natural logarithm of those of the parser's decision against gold's."""
        own, other, least = self.predicted_probability, self.gold_probability, LEAST[self.layer]
        return math.log(max(own, least) / max(other, least))


class Disagreement(NamedTuple):
    """A sentence, by its number in the split from 1, on which gold and parser differ. There is a
    difference at least; those of constituents come first, in the order of the sentence."""

    number: int
    gold: Parse
    parser: Parse
    differences: list[Difference]

    @property
    def suspicion(self) -> float:
        return max(one.odds for one in self.differences) / (1 + len(self.differences) / CONFUSING)


def disagreements(
    parser: Parser, gold: Sequence[Parse], layer: Layer | None = None
) -> list[Disagreement]:
    """The sentences on which a parser and gold differ, the most suspicious first. They are ordered
    by their largest odds, which count less the more decisions differ; of equal ones that which
    comes first. With ``layer`` only its differences count. Errors are those of
    :meth:`~spmrl_bench.parsers.base.Parser.parse`."""
    parses = parser.parse([one.words for one in gold], [one.tags for one in gold], scored=True)
    found = []
    for number, (right, parse) in enumerate(zip(gold, parses, strict=True), start=1):
        known = parse.probabilities
        if known and known.relations is None and parse.dependencies and layer != "constituents":
            raise UnsupportedError(
                "this parser says nothing of how likely heads are, which follow from the labels of "
                "its spans: look at constituents alone ('--of constituents')"
            )
        if own := [one for one in differences(right, parse) if layer in (None, one.layer)]:
            found.append(Disagreement(number, right, parse, own))
    return sorted(found, key=lambda each: (-each.suspicion, each.number))


def differences(gold: Parse, found: Parse) -> Iterator[Difference]:
    """What differs in a parse with probabilities; of spans by the left end, wider ones first."""
    known = found.probabilities
    if known is not None and known.constituents is not None and gold.tree and found.tree:
        right, own = (
            {(i, j): label for i, j, label in collapsed_spans(tree)}
            for tree in (gold.tree, found.tree)
        )
        for span in sorted(right.keys() | own.keys(), key=lambda span: (span[0], -span[1])):
            sides = right.get(span, ()), own.get(span, ())
            if sides[0] != sides[1]:
                chances = [
                    [known.constituents.get((*span, name), 0.0) for name in {*one} - {*other}]
                    for one, other in (sides, sides[::-1])
                ]
                # A side is as likely as the least likely of what tells it from the other.
                gold_p, own_p = (
                    min([*one, *(1 - chance for chance in other)], default=0.0)
                    for one, other in (chances, chances[::-1])
                )
                gold_label, own_label = map("+".join, sides)
                yield Difference("constituents", *span, gold_label, own_label, gold_p, own_p)
    right_tree, own_tree = gold.dependencies, found.dependencies
    if known is not None and known.relations is not None and right_tree and own_tree:
        columns = (
            zip(tree.heads.tolist(), tree.relations, strict=True) for tree in (right_tree, own_tree)
        )
        for word, ((head, name), (other, found_name)) in enumerate(zip(*columns, strict=True), 1):
            if (head, name) != (other, found_name):
                gold_p = known.relations.get((word, head, name), 0.0)
                own_p = known.relations.get((word, other, found_name), 0.0)
                yield Difference(
                    "dependencies", word - 1, word, name, found_name, gold_p, own_p, head, other
                )


class Item(NamedTuple):
    """A sentence of a list."""

    number: int
    words: Sequence[str]
    summary: str
    marked: set[int]  # words of what is suspicious, from 0
    tables: Sequence[Table]  # of suspicious places, or of one and those that speak against it
    rows: Sequence[dict[str, Any]]  # cells of the file of values, for each place
    trees: Sequence[Markup] = ()


@dataclass(frozen=True, slots=True)
class SuspectList:
    """Sentences of a split, with a title, paragraphs of how they were found, and where they are."""

    title: str
    notes: Sequence[str]
    treebank: str
    split: str
    places: Sequence[SentencePlace]
    items: Sequence[Item]

    def place(self, item: Item) -> str:
        """File of a sentence, and its number or name there."""
        place = self.places[item.number - 1]
        return f"{place.path.name}, sentence {place.name}"

    def text(self) -> str:
        lines = [self.title, *self.notes]
        for rank, item in enumerate(self.items, start=1):
            where = f"{self.treebank} {self.split}, sentence {item.number} ({self.place(item)})"
            lines += ["", f"{rank}. {where}: {item.summary}", " ".join(item.words)]
            for table in item.tables:
                cells = tabulate(
                    table.rows, table.headings, tablefmt="plain", disable_numparse=True
                )
                lines += [f"  {table.title}"] if table.title else []
                lines += [f"    {line}" for line in cells.splitlines()]
        return "\n".join(lines) + "\n"

    def page(self) -> str:
        """HTML that needs nothing but itself; what is from files is escaped."""
        form = templates(Path(__file__).parent).get_template("suspects.html.jinja")
        return form.render(listed=self)

    def table(self) -> str:
        """Comma-separated values, a row for each suspicious place."""
        rows = [
            {
                "rank": rank,
                "treebank": self.treebank,
                "split": self.split,
                "sentence": item.number,
                **row,
                "place": self.place(item),
                "text": " ".join(item.words),
            }
            for rank, item in enumerate(self.items, start=1)
            for row in item.rows
        ]
        return pd.DataFrame(rows).to_csv(index=False, float_format="%.6g", lineterminator="\n")


_FORMS = {".txt": SuspectList.text, ".html": SuspectList.page, ".csv": SuspectList.table}


def check_ending(path: Path) -> Callable[[SuspectList], str]:
    """What a file of this name has in it; a SpmrlError if its name ends otherwise."""
    if (form := _FORMS.get(path.suffix.lower())) is None:
        raise SpmrlError(
            f"{path}: what is written follows from the ending of the name: .txt is a list for "
            "reading, .html a page and .csv a table"
        )
    return form


def disagreement_item(found: Disagreement) -> Item:
    """A sentence on which a parser and gold differ, with both trees."""
    number, gold, parser, differences = found
    words = gold.words
    spans = {(one.start, one.end) for one in differences if one.layer == "constituents"}
    spans_and_words = {"span": len(spans), "word": len(differences) - len(spans)}
    counts = [f"{n} {what}{'s' * (n > 1)}" for what, n in spans_and_words.items() if n]
    surest = max(differences, key=lambda one: one.odds)
    summary = (
        f"gold {surest.gold_probability:.3f}, parser {surest.predicted_probability:.3f}, "
        f"{' and '.join(counts)} other than gold"
    )
    sides = (("gold", gold.tree), ("parser", parser.tree))
    table = Table(
        "",
        ("place", "words", "gold", "probability", "parser", "probability"),
        [
            (
                f"{one.start}:{one.end}",
                " ".join(words[one.start : one.end]),
                _decision(one.gold, one, gold),
                f"{one.gold_probability:.3f}",
                _decision(one.predicted, one, parser),
                f"{one.predicted_probability:.3f}",
            )
            for one in differences
        ],
    )
    rows = [one._asdict() | {"words": " ".join(words[one.start : one.end])} for one in differences]
    trees = [Markup(boxes(tree, spans, side)) for side, tree in sides if spans and tree is not None]
    marked = {word for one in differences for word in range(one.start, one.end)}
    return Item(number, words, summary, marked, [table], rows, trees)


def _decision(label: str, one: Difference, parse: Parse) -> str:
    if one.layer == "dependencies" and parse.dependencies is not None:
        return f"{label} {head_text(parse.dependencies, one.start)}"
    return label or "no constituent"


def variation_item(found: Sequence[Suspicion], sentences: Sequence[Sequence[str]]) -> Item:
    """A sentence with the suspicious places in it, each above places that speak against it."""
    number = found[0].place.sentence
    words = sentences[number - 1]
    tables, rows = [], []
    for one in found:
        places = [(one.place, one.found), *((place, one.others) for place in one.counterexamples)]
        tables.append(
            Table(
                _told(one),
                ("sentence", "span", "before", "words", "behind", "annotated"),
                [(*_in_context(at, sentences), label or "not annotated") for at, label in places],
            )
        )
        against = " ".join(f"{s}:{i}:{j}" for s, i, j in one.counterexamples)
        _, start, end = one.place
        rows.append(
            {"start": start, "end": end, "words": " ".join(words[start:end])}
            | {**one._asdict(), "counterexamples": against, "length": one.length}
        )
    marked = {word for one in found for word in range(one.place.start, one.place.end)}
    summary = f"{len(found)} place{'s' * (len(found) != 1)}, suspicion {found[0].score:.2f}"
    return Item(number, words, summary, marked, tables, rows)


def _told(one: Suspicion) -> str:
    others = "other place is" if one.differing == 1 else "other places are"
    alike = f" ({one.same} are like this one)" if one.same > 1 else ""
    return (
        f"{one.place.start}:{one.place.end} is {one.found or 'not annotated'}; with {one.shared} "
        f"words around it the same, {one.differing} {others} {one.others or 'not annotated'}{alike}"
    )


def _in_context(place: Place, sentences: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Sentence and span of a place, and the words before, in and behind it."""
    words = sentences[place.sentence - 1]
    low, high = max(0, place.start - _AROUND), place.end + _AROUND
    return (
        str(place.sentence),
        f"{place.start}:{place.end}",
        "... " * bool(low) + " ".join(words[low : place.start]),
        " ".join(words[place.start : place.end]),
        " ".join(words[place.end : high]) + " ..." * (high < len(words)),
    )
