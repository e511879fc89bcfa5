"""The first page: which system is how good on which treebank.

Systems are rows and treebanks are columns, so that no scores of different treebanks stand in one
column; each track has tables of its own, of test and of dev. An average is over treebanks that
were scored in one way, and of systems that have all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spmrl_bench.leaderboard.board import Entry, Group, View, average, track_title
from spmrl_bench.leaderboard.record import in_order
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.site.atlas import Atlas, Bank, SystemKey, system_key
from spmrl_bench.site.downloads import Files, as_files, links
from spmrl_bench.site.forms import page
from spmrl_bench.site.grids import Cell, Grid, Head, number

_SCORES = "data/scores"
_TREEBANKS = "data/treebanks"
Column = tuple[Bank, Group]


def start_pages(atlas: Atlas) -> Iterator[Files]:
    """The first page and its numbers."""
    tracks = dict.fromkeys(bank.track for bank in atlas.banks)
    rows: list[dict[str, object]] = []
    sections = []
    for track in tracks:
        banks = [bank for bank in atlas.banks if bank.track == track]
        grids = []
        for view in _views(banks):
            columns = [
                (bank, group) for bank in banks for group in bank.groups if view in group.views
            ]
            grids.append(_grid(atlas, track, view, columns))
            rows += _numbers(atlas, track, view, columns)
        sections.append({"title": _heading(track), "name": track, "grids": grids})
    yield as_files(_SCORES, rows)
    treebanks, files = _treebanks(atlas)
    yield files
    finished = [one.record.finished for one in atlas.shown]
    yield {
        "index.html": page(
            "start",
            "index.html",
            sections=sections,
            treebanks=treebanks,
            downloads=links(_SCORES),
            runs=len(atlas.shown),
            systems=sum(key[0] != "baseline" for key in atlas.systems),
            banks=len(atlas.banks),
            newest=f"{max(finished):%Y-%m-%d}" if finished else "",
            left_out=len(atlas.gathered.errors),
            older=atlas.older,
        )
    }


def _heading(track: str) -> str:
    """The title of a track; names that are no words are abbreviations."""
    first, _, rest = track_title(track).partition(" ")
    return f"{first.title() if first in ('mini', 'open') else first.upper()} {rest}"


def _views(banks: Sequence[Bank]) -> list[View]:
    groups = [group for bank in banks for group in bank.groups]
    metrics = in_order(dict.fromkeys(name for group in groups for name in group.metrics), [])
    found = {view for group in groups for view in group.views}
    return [
        (name, split) for name in metrics for split in ("test", "dev") if (name, split) in found
    ]


def _grid(atlas: Atlas, track: str, view: View, columns: Sequence[Column]) -> Grid:
    metric, split = view
    systems = _systems(view, columns)
    averages = _averages(view, columns)
    heads = [Head("system"), Head("size")]
    heads += [
        Head(f"mean of {len({bank.language for bank, _ in part})}, {name}", True)
        for name, part in averages
    ]
    heads += [
        Head(
            f"{bank.name}, table {group.number}" if group.several else bank.name,
            True,
            href=bank.address,
        )
        for bank, group in columns
    ]
    rows = []
    for key, found in systems.items():
        _, name, size, origin = key
        label = f"{name}, {key[0]}" if key[0].startswith("ensemble") else name
        first = Cell(label, atlas.system(key), tag="" if origin == "own" else origin)
        cells = [first, Cell(size)]
        cells += [_average(view, part, found) for _, part in averages]
        cells += [_score(atlas, view, group, found.get(id(group))) for _, group in columns]
        rows.append(cells)
    title = metric_named(metric).title(metric_named(metric).headline)
    return Grid(
        name=f"{track}-{metric}-{split}",
        caption=f"{title} on {split}, {track_title(track)}",
        heads=heads,
        rows=rows,
        filtered=len(rows) > 8,
    )


def _systems(view: View, columns: Sequence[Column]) -> dict[SystemKey, dict[int, Entry]]:
    """The systems that have the figure, those with more treebanks and better scores first."""
    found: dict[SystemKey, dict[int, Entry]] = {}
    for _, group in columns:
        for entry in group.entries:
            if entry.headline(view) is not None:
                found.setdefault(system_key(entry), {}).setdefault(id(group), entry)

    def place(key: SystemKey) -> tuple[bool, int, float]:
        scores = [one.mean for entry in found[key].values() if (one := entry.headline(view))]
        return key[0] == "baseline", -len(scores), -sum(scores) / len(scores)

    return {key: found[key] for key in sorted(found, key=place)}


def _score(atlas: Atlas, view: View, group: Group, entry: Entry | None) -> Cell:
    score = entry.headline(view) if entry is not None else None
    order = atlas.standing(group, view)
    if entry is None or score is None or order is None:
        return Cell("")
    mark = order.mark(entry)
    return number(score.mean)._replace(mark=mark, strong=entry is order.best, band=bool(mark))


def _averages(view: View, columns: Sequence[Column]) -> list[tuple[str, list[Column]]]:
    """Treebanks of several languages that were counted in one way, with what that is called."""
    ways: dict[tuple[tuple[str, str], ...], list[Column]] = {}
    for bank, group in columns:
        way = group.way_of_counting(view[0])
        ways.setdefault(tuple(sorted(way.items())), []).append((bank, group))
    return [
        (dict(way).get("prm", view[0]).partition("(")[0], part)
        for way, part in ways.items()
        if len({bank.language for bank, _ in part}) > 1
    ]


def _average(view: View, part: Sequence[Column], found: dict[int, Entry]) -> Cell:
    scores = []
    for bank, group in part:
        entry = found.get(id(group))
        score = entry.headline(view) if entry is not None else None
        scores.append((bank.language, {0: score.mean} if score else {}))
    mean = average(scores)
    return number(mean.mean if mean else None)


def _numbers(
    atlas: Atlas, track: str, view: View, columns: Sequence[Column]
) -> Iterator[dict[str, object]]:
    for bank, group in columns:
        order = atlas.standing(group, view)
        for entry in order.ordered if order else ():
            score = entry.headline(view)
            yield {
                "track": track,
                "treebank": bank.name,
                "language": bank.language,
                "table": group.number,
                "metric": view[0],
                "figure": metric_named(view[0]).headline,
                "split": view[1],
                "system": entry.name,
                "size": entry.size,
                "origin": entry.origin,
                "runs": len(entry.runs),
                "value": score.mean if score else None,
                "sd": score.sd if score else None,
                "best": bool(order and entry is order.best),
                "shares_first": bool(order and order.mark(entry)),
                "p": order.p.get(entry) if order else None,
            }


def _treebanks(atlas: Atlas) -> tuple[Grid, Files]:
    heads = [Head("treebank"), Head("language", choice=True), Head("track", choice=True)]
    heads += [Head(name, True) for name in ("train", "dev", "test", "entries", "runs")]
    heads.append(Head("licence"))
    rows, numbers = [], []
    for bank in atlas.banks:
        sizes = bank.facts.sizes if bank.facts else ()
        entries = sum(entry.kind != "baseline" for group in bank.groups for entry in group.entries)
        licence = bank.facts.manifest.licence if bank.facts else ""
        cells = [Cell("" if one.sentences is None else f"{one.sentences:,}") for one in sizes]
        rows.append(
            [
                Cell(bank.name, bank.address),
                Cell(bank.language),
                Cell(track_title(bank.track)),
                *(cells or [Cell("")] * 3),
                Cell(str(entries)),
                Cell(str(bank.runs)),
                Cell(licence or "no manifest here"),
            ]
        )
        numbers.append(
            {
                "treebank": bank.name,
                "language": bank.language,
                "track": bank.track,
                **{f"{one.split}_sentences": one.sentences for one in sizes},
                **{f"{one.split}_tokens": one.tokens for one in sizes},
                "entries": entries,
                "runs": bank.runs,
                "licence": licence,
            }
        )
    caption = "Treebanks, with their sentences"
    grid = Grid("treebanks", caption, heads, rows, len(rows) > 8, downloads=links(_TREEBANKS))
    return grid, as_files(_TREEBANKS, numbers)
