"""Tables as pure functions of the records.

A table invites comparison, so it has to keep apart what does not compare. Runs are grouped
by treebank, and within a treebank by everything in the signature of their scores that
changes what is measured (scorer, parameter file, fingerprint of the treebank, transforms,
tags, sentences left out); variant, size, precision, seed and version say which run it was.
Each group is a table of its own; where one treebank has several, a note says which keys differ. A
published figure stands in a column of its own whose heading says whether it is of the same
treebank.

Of several records of one run (same group, size, variant, precision and seed) the newest is
shown, and a note says how many older ones there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from spmrl_bench.leaderboard.comparison import comparison_key, signature_parts
from spmrl_bench.leaderboard.published import Figure, find_figure
from spmrl_bench.leaderboard.record import Record, SplitResult

BASELINE = "right-branching"

_HEADINGS = {
    "variant": "variant",
    "size": "size",
    "seed": "seed",
    "dev_f1": "dev F1",
    "test_recall": "test recall",
    "test_precision": "test precision",
    "test_f1": "test F1",
    "test_complete_match": "complete match",
    "test_sentences": "sentences",
    "tokens_per_second": "tokens/s",
    "signature": "signature",
}
_COLUMNS = (
    "track",
    "treebank",
    "group",
    *_HEADINGS,
    "published_system",
    "published_treebank",
    "published_dev_f1",
    "published_test_f1",
)
_PERCENT = ("dev_f1", "test_recall", "test_precision", "test_f1", "test_complete_match")
_COUNT = ("test_sentences", "tokens_per_second", "seed")


@dataclass(frozen=True, slots=True)
class Group:
    """Runs whose scores compare.

    Attributes:
        track: track of the treebank.
        treebank: its name.
        language: its language.
        number: 1 for the first group of the treebank, 2 for the second, ...
        rows: the newest record of each run; best dev F1 first.
        older: records of the same runs that are not shown.
        key: what the members have in common, as sorted ``(name, value)`` pairs.
    """

    track: str
    treebank: str
    language: str
    number: int
    rows: tuple[Record, ...]
    older: int
    key: tuple[tuple[str, str], ...]


def group_records(records: Iterable[Record]) -> list[Group]:
    """Records in groups that compare, ordered by track, treebank and age of the group."""
    members: dict[tuple[Hashable, ...], list[Record]] = {}
    for record in sorted(records, key=lambda record: record.finished):
        bank = record.treebank
        members.setdefault((bank.track, bank.name, comparison_key(record)), []).append(record)
    groups: list[Group] = []
    for found in sorted(members.values(), key=lambda found: _place(found[0])):
        bank = found[0].treebank
        newest = {_run(record): record for record in found}
        rows = sorted(newest.values(), key=lambda record: -(record.dev.f1 or 0.0))
        number = 1 + sum(group.treebank == bank.name for group in groups)
        groups.append(
            Group(
                track=bank.track,
                treebank=bank.name,
                language=bank.language,
                number=number,
                rows=tuple(rows),
                older=len(found) - len(rows),
                key=comparison_key(found[0]),
            )
        )
    return groups


def _run(record: Record) -> tuple[Hashable, ...]:
    """What tells the runs of a group apart."""
    precision = signature_parts(record.dev.signature_long).get("precision")
    return record.size, record.variant, precision, record.seed


def _place(record: Record) -> tuple[str, str]:
    return record.treebank.track, record.treebank.name


def table_frame(groups: Sequence[Group], figures: Sequence[Figure]) -> pd.DataFrame:
    """One row per run and one per baseline, with unrounded numbers; empty cells are missing.

    Only rows of the same ``treebank`` and ``group`` compare. ``published_*`` columns hold the
    published figures for the row's language and variant and the treebank they are of.
    """
    rows = [row for group in groups for row in _group_rows(group, figures)]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS))
    # Without this, one missing cell would turn the whole column of integers into floats.
    return frame.astype({"seed": "Int64", "test_sentences": "Int64"})


def _group_rows(group: Group, figures: Sequence[Figure]) -> list[dict[str, object]]:
    place = {"track": group.track, "treebank": group.treebank, "group": group.number}
    rows: list[dict[str, object]] = []
    for record in group.rows:
        row: dict[str, object] = {
            **place,
            "variant": record.variant,
            "size": record.size,
            "seed": record.seed,
            "dev_f1": record.dev.f1,
            "tokens_per_second": record.training.tokens_per_second,
            "signature": record.dev.signature,
            **_test_columns(record.test),
        }
        for split in ("dev", "test"):
            figure = find_figure(
                figures, language=group.language, variant=record.variant, split=split
            )
            if figure is not None:
                row["published_system"] = figure.system
                row["published_treebank"] = figure.treebank
                row[f"published_{split}_f1"] = figure.value
        rows.append(row)
    baselines = [record.baseline for record in group.rows if record.baseline]
    if baselines:
        rows.append({**place, "variant": BASELINE, **_test_columns(baselines[0])})
    return rows


def _test_columns(result: SplitResult | None) -> dict[str, object]:
    if result is None:
        return {}
    return {
        "test_recall": result.recall,
        "test_precision": result.precision,
        "test_f1": result.f1,
        "test_complete_match": result.complete_match,
        "test_sentences": result.sentences - result.skipped,
        "signature": result.signature,
    }


def to_csv(frame: pd.DataFrame) -> str:
    """The frame as CSV with a heading line."""
    return frame.to_csv(index=False, lineterminator="\n")


def to_markdown(groups: Sequence[Group], figures: Sequence[Figure]) -> str:
    """One Markdown table per group, each with its notes."""
    frame = table_frame(groups, figures)
    sections = []
    for group in groups:
        mine = (frame["treebank"] == group.treebank) & (frame["group"] == group.number)
        own = frame[mine].reset_index(drop=True)
        siblings = [other for other in groups if other.treebank == group.treebank]
        sections.append(_section(group, own, siblings, figures))
    return "\n".join(sections)


def _section(
    group: Group, frame: pd.DataFrame, siblings: Sequence[Group], figures: Sequence[Figure]
) -> str:
    suffix = f", table {group.number}" if len(siblings) > 1 else ""
    lines = [f"## {group.treebank} ({group.track} track{suffix})", ""]
    shown = pd.DataFrame({_HEADINGS[name]: _cells(frame, name) for name in _HEADINGS})
    # Signatures are longer than all the rest of a row: number them and write them below.
    signatures = list(shown["signature"])
    shown["signature"] = [f"[{number}]" for number in range(1, len(signatures) + 1)]
    published = _published_column(group, frame)
    if published is not None:
        shown[published.name] = published
    numeric = {_HEADINGS[name] for name in (*_PERCENT, *_COUNT)}
    align = ["right" if heading in numeric else "left" for heading in shown.columns]
    lines.append(shown.to_markdown(index=False, disable_numparse=True, colalign=align))
    lines.append("")
    for number, signature in enumerate(signatures, start=1):
        lines.append(f"- [{number}] `{signature}`")
    lines.append("")
    lines.extend(_notes(group, siblings, figures))
    return "\n".join(lines) + "\n"


def _cells(frame: pd.DataFrame, name: str) -> list[str]:
    if name in _PERCENT:
        return ["" if pd.isna(value) else f"{value:.2f}" for value in frame[name]]
    if name in _COUNT:
        return ["" if pd.isna(value) else f"{value:.0f}" for value in frame[name]]
    return ["" if pd.isna(value) else str(value) for value in frame[name]]


def _published_column(group: Group, frame: pd.DataFrame) -> pd.Series[str] | None:
    known = frame.dropna(subset=["published_treebank"])
    if known.empty:
        return None
    system, name = known.iloc[0][["published_system", "published_treebank"]]
    relation = "this treebank" if name == group.treebank else f"another treebank: {name}"
    cells = []
    for dev, test in zip(frame["published_dev_f1"], frame["published_test_f1"], strict=True):
        scores = [
            f"{split} {value:.2f}"
            for split, value in (("dev", dev), ("test", test))
            if not pd.isna(value)
        ]
        cells.append(", ".join(scores))
    return pd.Series(cells, index=frame.index, name=f"{system} F1 ({relation})")


def _notes(group: Group, siblings: Sequence[Group], figures: Sequence[Figure]) -> list[str]:
    notes = []
    variants = {record.variant for record in group.rows}
    sources: dict[str, list[str]] = {}
    for figure in figures:
        if figure.language == group.language and figure.variant in variants:
            sources.setdefault(figure.system, []).append(figure.source)
    for system, found in sources.items():
        # One source may be another with a remark: the longer one says both.
        whole = [one for one in dict.fromkeys(found) if not _continued(one, found)]
        notes.append(f"{system}: {'; '.join(whole)}.")
    if group.older:
        records = "record is" if group.older == 1 else "records are"
        notes.append(f"Newest record of each run; {group.older} older {records} not shown.")
    for other in siblings:
        if other.number == group.number:
            continue
        mine, theirs = dict(group.key), dict(other.key)
        differing = [
            f"{key} is {mine.get(key, 'absent')} here, {theirs.get(key, 'absent')} there"
            for key in sorted(mine.keys() | theirs.keys())
            if mine.get(key) != theirs.get(key)
        ]
        notes.append(
            f"Does not compare with table {other.number} of {group.treebank}: "
            f"{'; '.join(differing)}."
        )
    return [line for note in notes for line in (note, "")]


def _continued(source: str, sources: Sequence[str]) -> bool:
    return any(other != source and other.startswith(source) for other in sources)
