"""What a parser would rather have than the annotation: single decisions, and a sentence of them.

A parse differs from gold in some decisions: the label of a span, or that it is no constituent; the
head and the relation of a word. Each has a *margin*, what the parser would give up to decide it as
gold does. An error of annotation is one decision, or a few that follow from each other (a phrase
that is attached higher is in one constituent less and in another more), so that decisions are
what is looked at: the margin of a whole tree over the gold tree grows with the length of the
sentence, and with all the small doubts of the parser.

They are written as text for reading, as a page for going through them, and as a table; so are the
places that vary (:mod:`spmrl_bench.analysis.variation`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd
from markupsafe import Markup
from tabulate import tabulate

from spmrl_bench.analysis.variation import Place, Suspicion
from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsers.base import Margin, Parser
from spmrl_bench.treebanks.reading import SentencePlace
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.draw import boxes, head_text
from spmrl_bench.trees.parse import Layer, Parse

#: With so many differences in a sentence, a margin counts half: the parser has not understood it.
CONFUSING = 10
_AROUND = 6  # words shown on either side of a place


class Disagreement(NamedTuple):
    """A sentence, by its number in the split from 1, on which gold and parser differ.

    There is a difference at least; those of constituents come first, in the order of the sentence.
    """

    number: int
    gold: Parse
    parser: Parse
    differences: list[Margin]


def disagreements(
    parser: Parser, gold: Sequence[Parse], layer: Layer | None = None
) -> list[Disagreement]:
    """The sentences on which a parser and gold differ, the most suspicious first.

    They are ordered by their largest margin, which counts less the more decisions differ. Scores
    of trees and logarithms of odds are not the same, so the margins of each layer are in units of
    their mean. With ``layer`` only its differences count. Errors are those of
    :meth:`~spmrl_bench.parsers.base.Parser.margins`.
    """
    return ranked(
        [
            Disagreement(place + 1, gold[place], predicted, own)
            for place, predicted, margins in parser.margins(gold)
            if (own := [one for one in margins if layer in (None, one.layer)])
        ]
    )


def ranked(found: Sequence[Disagreement]) -> list[Disagreement]:
    """The most suspicious sentences first; of equal ones that which comes first."""
    margins: dict[Layer, list[float]] = {}
    for each in found:
        for one in each.differences:
            margins.setdefault(one.layer, []).append(one.margin)
    # All may be 0, or the least likely ones negative; then there is nothing to compare.
    means = {layer: sum(own) / len(own) for layer, own in margins.items()}
    units = {layer: mean if mean > 0 else 1.0 for layer, mean in means.items()}

    def suspicion(each: Disagreement) -> float:
        largest = max(one.margin / units[one.layer] for one in each.differences)
        return largest / (1 + len(each.differences) / CONFUSING)

    return sorted(found, key=lambda each: (-suspicion(each), each.number))


class Table(NamedTuple):
    """Suspicious places, or one and those that speak against it."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Item(NamedTuple):
    """A sentence of a list."""

    number: int
    words: Sequence[str]
    summary: str
    marked: set[int]  # words of what is suspicious, from 0
    tables: Sequence[Table]
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
            for caption, headings, rows in item.tables:
                cells = tabulate(rows, headings, tablefmt="plain", disable_numparse=True)
                lines += [f"  {caption}"] if caption else []
                lines += [f"    {line}" for line in cells.splitlines()]
        return "\n".join(lines) + "\n"

    def page(self) -> str:
        """HTML that needs nothing but itself; what is from files is escaped."""
        forms = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).parent),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        return forms.get_template("suspects.html.jinja").render(listed=self)

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
    largest = max(one.margin for one in differences)
    summary = f"margin {largest:.2f}, {' and '.join(counts)} other than gold"
    sides = (("gold", gold.tree), ("parser", parser.tree))
    table = Table(
        "",
        ("place", "words", "gold", "parser", "margin"),
        [
            (
                f"{one.start}:{one.end}",
                " ".join(words[one.start : one.end]),
                _decision(one.gold, one, gold),
                _decision(one.predicted, one, parser),
                f"{one.margin:.2f}" + ("" if one.known else " or more (label unknown)"),
            )
            for one in differences
        ],
    )
    rows = [one._asdict() | {"words": " ".join(words[one.start : one.end])} for one in differences]
    trees = [Markup(boxes(tree, spans, side)) for side, tree in sides if spans and tree is not None]
    marked = {word for one in differences for word in range(one.start, one.end)}
    return Item(number, words, summary, marked, [table], rows, trees)


def _decision(label: str, one: Margin, parse: Parse) -> str:
    tree: DependencyTree | None = parse.dependencies
    if one.layer == "dependencies" and tree is not None:
        return f"{label} {head_text(tree, one.start)}"
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
