"""The page of an entry: its runs, and how it compares with the best of its treebank."""

from __future__ import annotations

from collections.abc import Iterator

from spmrl_bench.leaderboard.board import Entry, Group, View
from spmrl_bench.site.atlas import Atlas, Bank, has_seed, runs_text, system_key
from spmrl_bench.site.downloads import Files, links
from spmrl_bench.site.forms import page
from spmrl_bench.site.grids import Cell, Grid, Head, estimated, number
from spmrl_bench.site.parses import parses_of
from spmrl_bench.site.sentences import drawn, sides

_BASELINE = "A baseline, scored beside the parsers; it learns nothing."


def entry_pages(atlas: Atlas) -> Iterator[Files]:
    """The page of each entry of each treebank."""
    for bank in atlas.banks:
        for group in bank.groups:
            for entry in group.entries:
                address = atlas.entry(bank, group, entry)
                yield {address: _page(atlas, bank, group, entry, address)}


def _page(atlas: Atlas, bank: Bank, group: Group, entry: Entry, address: str) -> bytes:
    views = [view for view in group.views if entry.headline(view) is not None]
    contests = [found for view in views if (found := _contest(atlas, bank, group, entry, view))]
    return page(
        "entry",
        address,
        bank=bank,
        group=group,
        entry=entry,
        system=atlas.system(system_key(entry)),
        runs=_runs(atlas, bank, group, entry),
        contests=contests,
        told=_told(entry),
        signature=entry.signature(),
    )


def _told(entry: Entry) -> dict[str, str]:
    record = entry.stored[0].record
    told = {"Variant or system": entry.name, "Size": entry.size}
    if entry.kind == "baseline":
        return told | {"What it is": _BASELINE}
    if record.system is not None:
        about = record.system
        return told | {
            "Version": about.version,
            "Found at": about.url,
            "Described in": about.paper,
            "Trained on": about.training_data,
            "Notes": about.notes,
            "Runs": runs_text(entry),
        }
    return told | {
        "Kind of parser": record.kind,
        "Selected by": f"dev {record.select}",
        "Settings": entry.searched,
        "Runs": runs_text(entry),
    }


def _runs(atlas: Atlas, bank: Bank, group: Group, entry: Entry) -> Grid | None:
    """A row for each of its records."""
    if entry.kind == "baseline":
        return None
    columns = [column for column in group.columns.values() if entry.figure(column.key)]
    heads = [Head("record"), Head("seed", numeric=True)]
    heads += [Head(column.title, numeric=True) for column in columns]
    heads.append(Head("scored"))
    rows = []
    for one in entry.members or [entry]:
        stored = one.stored[0]
        seed = str(stored.record.seed) if has_seed(stored.record) else ""
        rows.append(
            [
                Cell(stored.name[:8], atlas.run(stored), code=True),
                Cell(seed),
                *(estimated(one.figure(column.key)) for column in columns),
                Cell(f"{stored.record.finished:%Y-%m-%d}"),
            ]
        )
    if len(rows) > 1:
        mean = [estimated(entry.figure(column.key)) for column in columns]
        rows.append([Cell("mean"), Cell(""), *mean, Cell("")])
    data = links(bank.data("rows", group))
    return Grid(
        "runs",
        f"Records of {entry.name} on {bank.title}",
        heads,
        rows,
        sorted=False,
        downloads=data,
    )


def _contest(
    atlas: Atlas, bank: Bank, group: Group, entry: Entry, view: View
) -> dict[str, object] | None:
    """How it compares with the best entry by a figure, or the best with the one behind it."""
    order = atlas.standing(group, view)
    if order is None:
        return None
    other = order.rival if entry is order.best else order.best
    if other is None:
        return None
    title = group.view_title(view)
    name = f"{view[0]}-{view[1]}"
    found: dict[str, object] = {
        "title": title,
        "name": name,
        "is_best": entry is order.best,
        "other": other,
        "other_address": atlas.entry(bank, group, other),
        "scores": [
            number(score.mean).text for one in (entry, other) if (score := one.headline(view))
        ],
        "p": order.p.get(other if entry is order.best else entry),
        "sides": None,
        "grid": None,
        "drawn": (),
        "drawn_runs": (),
    }
    one, two = entry.sums(view), other.sums(view)
    if one is None or two is None or not one.of_same_sentences(two):
        return found
    both = sides(one, two)
    found["sides"] = both
    if not both.rows:
        return found
    heads = [Head("sentence", numeric=True), Head("words", numeric=True)]
    heads += [Head(f"errors, {each.name}", numeric=True) for each in (entry, other)]
    heads.append(Head("difference", numeric=True))
    rows = [
        [
            Cell(str(row.number)),
            Cell("" if row.words is None else str(row.words)),
            Cell(f"{row.one:g}" if one.runs == 1 else f"{row.one:.2f}"),
            Cell(f"{row.other:g}" if two.runs == 1 else f"{row.other:.2f}"),
            number(row.difference, signed=True),
        ]
        for row in both.most()
    ]
    found["grid"] = Grid(
        f"sentences-{name}",
        f"Sentences of {view[1]} on which they differ most",
        heads,
        rows,
        downloads=links(bank.data(f"sentences-{name}", group)),
    )
    if bank.shows_sentences:
        hands = [parses_of(each, view, bank.facts) for each in (entry, other)]
        if hands[0] is not None and hands[1] is not None:
            found["drawn"] = list(drawn(both.most(), hands[0], hands[1], (entry.name, other.name)))
            found["drawn_runs"] = [
                f"{each.name}: {hand.run}"
                for each, hand in zip((entry, other), hands, strict=True)
                if hand is not None and hand.run
            ]
    return found
