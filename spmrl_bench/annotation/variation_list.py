"""Places whose annotation others with the same words do not have: as text, page and table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spmrl_bench.annotation.listing import Heading, csv_text
from spmrl_bench.annotation.page import escaped, page, sentence_line, table
from spmrl_bench.annotation.treebank_variation import Suspect
from spmrl_bench.annotation.variation import Place, Suspicion

_COLUMNS = (
    "rank", "treebank", "split", "sentence", "place", "start", "end", "words", "found", "others",
    "same", "differing", "shared", "length", "score", "witnesses", "text",
)  # fmt: skip

#: The words of each sentence of a split.
Sentences = Sequence[Sequence[str]]

_AROUND = 6  # words shown on either side of a place


def as_text(heading: Heading, found: Sequence[Suspect], sentences: Sentences) -> str:
    """A list for reading: each suspicious place, and places that speak against it."""
    lines = [heading.title, *heading.notes]
    for rank, each in enumerate(found, start=1):
        lines += ["", f"{rank}. {heading.sentence(each.number)}"]
        for one in each.suspicions:
            lines.append(f"  {_summary(one)}")
            lines.append(f"    {_in_context(one.place, sentences)}")
            for place in one.witnesses:
                where = f"sentence {place.sentence}, {place.start}:{place.end}"
                lines.append(f"    {_in_context(place, sentences)}   {where}")
    return "\n".join(lines) + "\n"


def as_page(heading: Heading, found: Sequence[Suspect], sentences: Sentences) -> str:
    return page(
        heading, (_section(heading, rank, each, sentences) for rank, each in enumerate(found, 1))
    )


def as_table(heading: Heading, found: Sequence[Suspect], sentences: Sentences) -> str:
    """Comma-separated values, a row for each suspicious place."""
    return csv_text(_COLUMNS, _rows(heading, found, sentences))


def _rows(
    heading: Heading, found: Sequence[Suspect], sentences: Sentences
) -> Iterator[Sequence[object]]:
    for rank, each in enumerate(found, start=1):
        words = sentences[each.number - 1]
        for one in each.suspicions:
            witnesses = " ".join(f"{w.sentence}:{w.start}:{w.end}" for w in one.witnesses)
            yield (
                rank, heading.treebank, heading.split, each.number, heading.place(each.number),
                one.place.start, one.place.end, " ".join(words[one.place.start : one.place.end]),
                one.found, one.others, one.same, one.differing, one.shared, one.length, one.score,
                witnesses, " ".join(words),
            )  # fmt: skip


def _section(heading: Heading, rank: int, each: Suspect, sentences: Sentences) -> str:
    words = sentences[each.number - 1]
    spans = [(one.place.start, one.place.end) for one in each.suspicions]
    parts = [
        f"<h2>{rank}. {escaped(heading.sentence(each.number))}</h2>",
        sentence_line(words, spans),
    ]
    for one in each.suspicions:
        parts.append(f"<p>{escaped(_summary(one))}</p>")
        places = [(one.place, one.found), *((place, one.others) for place in one.witnesses)]
        rows = [
            (
                place == one.place,
                (
                    str(place.sentence),
                    f"{place.start}:{place.end}",
                    *_cut(place, sentences[place.sentence - 1]),
                    _label(label),
                ),
            )
            for place, label in places
        ]
        parts.append(table(("sentence", "span", "before", "words", "behind", "annotated"), rows))
    return "\n".join(parts)


def _summary(one: Suspicion) -> str:
    place = one.place
    here = f"{place.start}:{place.end} is {_label(one.found)}"
    others = "other place is" if one.differing == 1 else "other places are"
    alone = f" ({one.same} are like this one)" if one.same > 1 else ""
    shared = f"{one.shared} word{'s' * (one.shared != 1)} around it the same"
    return f"{here}; with {shared}, {one.differing} {others} {_label(one.others)}{alone}"


def _label(label: str) -> str:
    return label or "not annotated"


def _cut(place: Place, words: Sequence[str]) -> tuple[str, str, str]:
    """The words before, in and behind a place."""
    low = max(0, place.start - _AROUND)
    high = place.end + _AROUND
    before = "... " * bool(low) + " ".join(words[low : place.start])
    behind = " ".join(words[place.end : high]) + " ..." * (high < len(words))
    return before, " ".join(words[place.start : place.end]), behind


def _in_context(place: Place, sentences: Sentences) -> str:
    """A place in brackets among its neighbours."""
    before, inside, behind = _cut(place, sentences[place.sentence - 1])
    return " ".join(part for part in (before, f"[{inside}]", behind) if part)
