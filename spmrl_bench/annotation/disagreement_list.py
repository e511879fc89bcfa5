"""Sentences on which gold and parser differ, as text, as a page and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spmrl_bench.annotation.differences import Disagreement
from spmrl_bench.annotation.listing import Heading, csv_text
from spmrl_bench.annotation.page import escaped, page, sentence_line, table, tree_boxes
from spmrl_bench.annotation.tree_text import arcs_side_by_side, head_text, side_by_side
from spmrl_bench.parsers.base import Margin

_COLUMNS = (
    "rank", "treebank", "split", "sentence", "place", "layer", "start", "end", "words", "gold",
    "parser", "gold_head", "parser_head", "margin", "known", "text",
)  # fmt: skip


def as_text(heading: Heading, found: Sequence[Disagreement], width: int = 100) -> str:
    """Return a list for reading, on lines of a width where words allow it."""
    lines = [heading.title, *heading.notes]
    for rank, each in enumerate(found, start=1):
        lines += ["", f"{rank}. {heading.sentence(each.number)}: {_summary(each)}"]
        lines.append(" ".join(each.gold.words))
        spans = _of(each, "constituents")
        if spans and each.gold.tree is not None and each.parser.tree is not None:
            marked = {(one.start, one.end) for one in spans}
            lines += side_by_side(each.gold.tree, each.parser.tree, marked, width)
            for one in spans:
                decided = f"{_label(one.gold)}, parser {_label(one.predicted)}, {_margin(one)}"
                lines.append(f"  {one.start}:{one.end} {decided}: {_words(each, one)}")
        arcs = _of(each, "dependencies")
        if arcs and each.gold.dependencies is not None and each.parser.dependencies is not None:
            lines += arcs_side_by_side(each.gold.dependencies, each.parser.dependencies, arcs)
    return "\n".join(lines) + "\n"


def as_page(heading: Heading, found: Sequence[Disagreement]) -> str:
    return page(heading, (_section(heading, rank, one) for rank, one in enumerate(found, 1)))


def as_table(heading: Heading, found: Sequence[Disagreement]) -> str:
    """Comma-separated values, a row for each span or word that differs."""
    return csv_text(_COLUMNS, _rows(heading, found))


def _rows(heading: Heading, found: Sequence[Disagreement]) -> Iterator[Sequence[object]]:
    for rank, each in enumerate(found, start=1):
        text = " ".join(each.gold.words)
        for one in each.differences:
            yield (
                rank, heading.treebank, heading.split, each.number, heading.place(each.number),
                one.layer, one.start, one.end, _words(each, one), one.gold, one.predicted,
                "" if one.gold_head is None else one.gold_head,
                "" if one.predicted_head is None else one.predicted_head,
                one.margin, "yes" if one.known else "no", text,
            )  # fmt: skip


def _section(heading: Heading, rank: int, each: Disagreement) -> str:
    parts = [
        f"<h2>{rank}. {escaped(heading.sentence(each.number))}</h2>",
        f'<p class="soft">{escaped(_summary(each))}</p>',
    ]
    spans, arcs = _of(each, "constituents"), _of(each, "dependencies")
    if spans and each.gold.tree is not None and each.parser.tree is not None:
        marked = {(one.start, one.end) for one in spans}
        left = tree_boxes(each.gold.tree, marked, "gold")
        right = tree_boxes(each.parser.tree, marked, "parser")
        parts.append(f'<div class="sides">{left}{right}</div>')
        rows = [
            (False, (_words(each, one), _label(one.gold), _label(one.predicted), _margin(one)))
            for one in spans
        ]
        parts.append(table(("words", "gold", "parser", "margin"), rows))
    else:
        parts.append(sentence_line(each.gold.words, [(one.start, one.end) for one in arcs]))
    gold, parser = each.gold.dependencies, each.parser.dependencies
    if arcs and gold is not None and parser is not None:
        at = {one.start: one for one in arcs}
        words = [
            (
                k in at,
                (
                    f"{k + 1} {word}",
                    f"{gold.relations[k]} {head_text(gold, k)}",
                    f"{parser.relations[k]} {head_text(parser, k)}" if k in at else "",
                    _margin(at[k]) if k in at else "",
                ),
            )
            for k, word in enumerate(gold.words)
        ]
        parts.append(table(("word", "gold", "parser", "margin"), words))
    return "\n".join(parts)


def _summary(each: Disagreement) -> str:
    counts = [
        f"{number} {what}{'s' * (number != 1)}"
        for what, layer in (("span", "constituents"), ("word", "dependencies"))
        if (number := len(_of(each, layer)))
    ]
    verb = "differs" if len(each.differences) == 1 else "differ"
    return f"margin {each.margin:.2f}, {' and '.join(counts)} {verb}"


def _label(label: str) -> str:
    return label or "no constituent"


def _margin(one: Margin) -> str:
    return f"{one.margin:.2f}" if one.known else f"{one.margin:.2f} or more (label unknown)"


def _words(each: Disagreement, one: Margin) -> str:
    return " ".join(each.gold.words[one.start : one.end])


def _of(each: Disagreement, layer: str) -> list[Margin]:
    return [one for one in each.differences if one.layer == layer]
