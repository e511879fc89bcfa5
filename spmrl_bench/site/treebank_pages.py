"""The page of a treebank: what it is, all its entries, and what their scores depend on.

Pictures show scores over the length of sentences, by label and over the number of training
sentences: of a few entries each, as more cannot be told apart, while the files have all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spmrl_bench.leaderboard.board import Entry, Group, View
from spmrl_bench.leaderboard.frame import resolved_settings
from spmrl_bench.leaderboard.tables import SPEED, results_frame, table_differences
from spmrl_bench.site.atlas import Atlas, Bank, runs_text
from spmrl_bench.site.downloads import Files, as_files, links
from spmrl_bench.site.forms import page
from spmrl_bench.site.grids import Cell, Grid, Head, estimated, whole
from spmrl_bench.site.lengths import by_length
from spmrl_bench.site.parses import label_parts, parses_of
from spmrl_bench.site.pictures import (
    MOST_SERIES,
    Picture,
    Series,
    logarithmic,
    places,
)

_MOST_LABELS = 14
#: Settings by which the runs of a learning curve differ.
_OF_CURVE = ("train.sentences", "train.max_epochs", "train.max_minutes")


def treebank_pages(atlas: Atlas) -> Iterator[Files]:
    """The page of each treebank and its numbers."""
    for bank in atlas.banks:
        files: Files = {}
        sections = [_section(atlas, bank, group, files) for group in bank.groups]
        published = [
            (name, atlas.published(name)) for name in atlas.published_of_language(bank.language)
        ]
        files[bank.address] = page(
            "treebank",
            bank.address,
            bank=bank,
            sections=sections,
            published=published,
        )
        yield files


def _section(atlas: Atlas, bank: Bank, group: Group, files: Files) -> dict[str, object]:
    rows = bank.data("rows", group)
    table = results_frame([group])
    files |= as_files(rows, table.astype(object).where(table.notna(), None).to_dict("records"))
    pictures = [
        picture
        for make in (_over_length, _by_label, _learning)
        for view in group.views
        if (picture := make(atlas, bank, group, view, files)) is not None
    ]
    notes = list(table_differences(group, bank.groups))
    return {
        "grid": _grid(atlas, bank, group, rows),
        "pictures": pictures,
        "notes": notes,
        "title": group.title,
        "number": group.number,
    }


def _grid(atlas: Atlas, bank: Bank, group: Group, rows: str) -> Grid:
    columns = group.columns
    heads = [
        Head("system"),
        *(Head(column.title, numeric=True) for column in columns.values()),
        Head("runs"),
        Head("size", choice=True),
        Head("origin", choice=True),
        Head("tokens/s", numeric=True),
        Head("scored"),
    ]
    searched = any(entry.searched for entry in group.entries)
    if searched:
        heads.append(Head("settings"))
    cells = []
    for entry in group.entries:
        line = [
            Cell(
                entry.name,
                atlas.entry(bank, group, entry),
                tag="" if entry.origin == "own" else entry.origin,
            )
        ]
        for column in columns.values():
            cell = estimated(entry.figure(column.key))
            order = atlas.standing(group, (column.metric, column.split)) if column.metric else None
            if column.is_headline and cell.text and order and (mark := order.mark(entry)):
                cell = cell._replace(mark=mark, strong=entry is order.best, band=True)
            line.append(cell)
        cells.append(
            [
                *line,
                Cell(runs_text(entry)),
                Cell(entry.size),
                Cell(entry.origin),
                whole(speed.mean if (speed := entry.figure(SPEED)) else None),
                Cell(entry.dates[-1]),
                *([Cell(entry.searched)] if searched else []),
            ]
        )
    notes = []
    if any(entry.kind == "mean" for entry in group.entries):
        notes.append("±: sample standard deviation over the seeds of a mean.")
    if any(cell.mark for line in cells for cell in line):
        notes.append(
            "Raised a: the best score, in bold, and those not significantly different from it "
            "(p of at least 0.05, not corrected for the number of entries)."
        )
    tested = [
        f"{entry.name}: {system.tested} output{'' if system.tested == 1 else 's'}"
        for entry in group.entries
        if (system := entry.stored[0].record.system) is not None and entry.is_system
    ]
    if tested:
        notes.append(f"Entered systems, outputs scored on test: {'; '.join(tested)}.")
    return Grid(
        name=f"table-{group.number}",
        caption=group.title,
        heads=heads,
        rows=cells,
        filtered=len(cells) > 4,
        notes=notes,
        downloads=links(rows),
    )


# ---- Pictures ----


def _chosen(atlas: Atlas, group: Group, view: View) -> list[Entry]:
    """The best entries of a view that are no baselines, few enough to be told apart."""
    order = atlas.standing(group, view)
    found = [entry for entry in order.ordered if entry.kind != "baseline"] if order else []
    return found[:MOST_SERIES]


def labels_of(entries: Sequence[Entry]) -> Mapping[Entry, str]:
    """What entries are called in a picture: as briefly as tells them apart."""
    names = [entry.name for entry in entries]
    return {entry: entry.name if names.count(entry.name) == 1 else entry.text for entry in entries}


def _over_length(
    atlas: Atlas, bank: Bank, group: Group, view: View, files: Files
) -> Picture | None:
    classes = {
        entry: found
        for entry in group.entries
        if (sums := entry.sums(view)) is not None and (found := by_length(sums))
    }
    if not classes:
        return None
    metric, split = view
    address = bank.data(f"length-{metric}-{split}", group)
    files |= as_files(
        address,
        [
            {
                "system": entry.text,
                "metric": metric,
                "split": split,
                "words": one.name,
                "sentences": one.sentences,
                "score": one.score,
            }
            for entry, found in classes.items()
            for one in found
        ],
    )
    chosen = [entry for entry in _chosen(atlas, group, view) if entry in classes]
    if not chosen:
        return None
    sizes = {one.name: one.sentences for one in classes[chosen[0]]}
    ticks = places([f"{name} ({number})" for name, number in sizes.items()])
    place = {name: at for name, (at, _) in zip(sizes, ticks, strict=True)}
    names = labels_of(chosen)
    series = [
        Series(
            names[entry],
            [
                (place[one.name], one.score)
                for one in classes[entry]
                if one.score is not None and one.name in place
            ],
        )
        for entry in chosen
    ]
    title = group.view_title(view)
    return Picture(
        name=f"length-{group.number}-{metric}-{split}",
        title=f"{title} over the length of sentences",
        x_title="words (sentences of this length)",
        y_title=title,
        ticks=ticks,
        series=[one for one in series if one.points],
        notes=_few(group, chosen, view),
        downloads=links(address),
    )


def _few(group: Group, chosen: Sequence[Entry], view: View) -> list[str]:
    whole_number = sum(
        entry.kind != "baseline" and entry.headline(view) is not None for entry in group.entries
    )
    if len(chosen) == whole_number:
        return []
    return [f"The best {len(chosen)} of {whole_number}; the files have all."]


def _by_label(atlas: Atlas, bank: Bank, group: Group, view: View, files: Files) -> Picture | None:
    if bank.facts is None:
        return None
    parts = {}
    for entry in group.entries:
        at_hand = parses_of(entry, view, bank.facts)
        found = label_parts(at_hand, view, bank.facts) if at_hand is not None else []
        if found:
            parts[entry] = {part.name: part.figures() for part in found}
    if not parts:
        return None
    metric, split = view
    address = bank.data(f"label-{metric}-{split}", group)
    files |= as_files(
        address,
        [
            {"system": entry.text, "split": split, "label": name, **figures}
            for entry, found in parts.items()
            for name, figures in found.items()
        ],
    )
    order = atlas.standing(group, view)
    chosen = [entry for entry in (order.ordered if order else ()) if entry in parts][:MOST_SERIES]
    labels = [name for name, one in parts[chosen[0]].items() if one["gold"]][:_MOST_LABELS]
    ticks = places(labels)
    names = labels_of(chosen)
    series = [
        Series(
            names[entry],
            [
                (at, float(score))
                for at, name in ticks
                if (score := parts[entry].get(name, {}).get("f1")) is not None
            ],
        )
        for entry in chosen
    ]
    title = group.view_title(view)
    return Picture(
        name=f"label-{group.number}-{metric}-{split}",
        title=f"{title} by label, the most frequent first",
        x_title="label",
        y_title=title,
        ticks=ticks,
        series=[one for one in series if one.points],
        joined=False,
        notes=["Of the entries whose parses are at hand; of a mean, its first run that has them."],
        downloads=links(address),
    )


def _learning(atlas: Atlas, bank: Bank, group: Group, view: View, files: Files) -> Picture | None:
    """Scores over the number of training sentences, of runs that differ in little else."""
    if view[1] != "dev":  # test has the variant that dev selected
        return None
    curves: dict[str, dict[int, float]] = {}
    for entry in group.entries:
        score, sentences = entry.headline(view), _learnt_from(bank, entry)
        if score is None or sentences is None or entry.kind not in ("run", "mean"):
            continue
        record = entry.stored[0].record
        rest = [(key, value) for key, value in record.settings.items() if key not in _OF_CURVE]
        told = ", ".join(f"{key}={value}" for key, value in rest)
        name = " ".join(filter(None, (record.variant, record.size, told)))
        if entry.origin == "shipped":
            name += " shipped"
        curve = curves.setdefault(name, {})
        # Of as many sentences, runs may have been given more or less time.
        curve[sentences] = max(score.mean, curve.get(sentences, 0.0))
    curves = {name: found for name, found in curves.items() if len(found) > 1}
    if not curves:
        return None
    metric, split = view
    address = bank.data(f"learning-{metric}-{split}", group)
    files |= as_files(
        address,
        [
            {
                "system": name,
                "metric": metric,
                "split": split,
                "training_sentences": number,
                "score": curve[number],
            }
            for name, curve in curves.items()
            for number in sorted(curve)
        ],
    )
    chosen = sorted(curves, key=lambda name: -max(curves[name].values()))[:MOST_SERIES]
    numbers = sorted({number for name in chosen for number in curves[name]})
    ticks = logarithmic(numbers)
    place = {number: at for number, (at, _) in zip(numbers, ticks, strict=True)}
    title = group.view_title(view)
    return Picture(
        name=f"learning-{group.number}-{metric}",
        title=f"{title} over the number of training sentences",
        x_title="training sentences",
        y_title=title,
        ticks=ticks,
        series=[
            Series(name, [(place[n], curves[name][n]) for n in sorted(curves[name])])
            for name in chosen
        ],
        notes=["Of runs that differ in `train.sentences` and in the length of training only."],
        downloads=links(address),
    )


def _learnt_from(bank: Bank, entry: Entry) -> int | None:
    """Training sentences of an entry; None where nothing says how many."""
    record = entry.stored[0].record
    if record.system is not None:
        return None
    own = resolved_settings(record.recipe).get("train.sentences")
    sentences = own if own else bank.facts.sizes[0].sentences if bank.facts else None
    return int(sentences) if sentences else None
