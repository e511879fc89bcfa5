"""The page of a system, variant or baseline: what it is, and its scores on every treebank."""

from __future__ import annotations

from collections.abc import Iterator

from spmrl_bench.leaderboard.board import Column, Entry, Group, brief_columns, track_title
from spmrl_bench.leaderboard.record import in_order
from spmrl_bench.site.atlas import Atlas, Bank, SystemKey, runs_text
from spmrl_bench.site.downloads import Files, as_files, links
from spmrl_bench.site.forms import page
from spmrl_bench.site.grids import Cell, Grid, Head, estimated, whole

_LIST = "data/systems"
_KINDS = {"run": "variant", "system": "system of others", "baseline": "baseline"}


def system_pages(atlas: Atlas) -> Iterator[Files]:
    """The list of all systems, and the page of each."""
    for key, found in atlas.systems.items():
        yield _page(atlas, key, found)
    heads = [
        Head("system"),
        Head("kind", choice=True),
        Head("size", choice=True),
        Head("origin", choice=True),
        Head("treebanks", numeric=True),
        Head("records", numeric=True),
    ]
    rows, numbers = [], []
    for key, found in sorted(atlas.systems.items(), key=lambda item: (item[0][0], item[0])):
        kind, name, size, origin = key
        banks = len({id(bank) for bank, _, _ in found})
        records = None if kind == "baseline" else sum(len(entry.stored) for _, _, entry in found)
        rows.append(
            [
                Cell(name, atlas.system(key)),
                Cell(_KINDS.get(kind, kind)),
                Cell(size),
                Cell(origin),
                whole(banks),
                whole(records),
            ]
        )
        numbers.append(
            {
                "system": name,
                "kind": kind,
                "size": size,
                "origin": origin,
                "treebanks": banks,
                "records": records,
            }
        )
    grid = Grid(
        "systems",
        "Systems, variants and baselines",
        heads,
        rows,
        len(rows) > 8,
        downloads=links(_LIST),
    )
    yield as_files(_LIST, numbers)
    yield {"systems.html": page("systems", "systems.html", grid=grid)}


def _page(atlas: Atlas, key: SystemKey, found: list[tuple[Bank, Group, Entry]]) -> Files:
    address = atlas.system(key)
    data = f"data/{address.removesuffix('.html')}"
    metrics = in_order(
        dict.fromkeys(metric for _, group, _ in found for metric in group.metrics), []
    )
    columns = [
        one
        for one in brief_columns(metrics)
        if one.is_headline and any(entry.figure(one.key) for _, _, entry in found)
    ]
    rows, numbers = [], []
    for bank, group, entry in found:
        about = {
            "treebank": bank.name,
            "track": bank.track,
            "language": bank.language,
            "table": group.number,
            "runs": len(entry.stored),
        }
        line = [
            Cell(group.title.partition(" (")[0], atlas.entry(bank, group, entry)),
            Cell(bank.language),
            Cell(track_title(bank.track)),
            Cell(runs_text(entry)),
        ]
        for column in columns:
            line.append(_score(atlas, group, entry, column))
            estimate = entry.figure(column.key)
            about |= {
                f"{column.split}_{column.metric}_{column.figure}": estimate and estimate.mean,
                f"{column.split}_{column.metric}_{column.figure}_sd": estimate and estimate.sd,
            }
        rows.append(line)
        numbers.append(about)
    heads = [Head("treebank"), Head("language"), Head("track", choice=True), Head("runs")]
    heads += [Head(column.title, numeric=True) for column in columns]
    notes = ["Scores of different treebanks do not compare."] if len(found) > 1 else []
    grid = Grid(
        "scores",
        f"{found[0][2].name} by treebank",
        heads,
        rows,
        len(rows) > 8,
        notes=notes,
        downloads=links(data),
    )
    return as_files(data, numbers) | {
        address: page(
            "system",
            address,
            entry=found[0][2],
            told=_told(key, found),
            grid=grid,
        )
    }


def _score(atlas: Atlas, group: Group, entry: Entry, column: Column) -> Cell:
    cell = estimated(entry.figure(column.key))
    order = atlas.standing(group, (column.metric, column.split))
    if not cell.text or order is None or not (mark := order.mark(entry)):
        return cell
    return cell._replace(mark=mark, strong=entry is order.best, band=True)


def _told(key: SystemKey, found: list[tuple[Bank, Group, Entry]]) -> dict[str, str]:
    kind, _, size, origin = key
    records = [one.record for _, _, entry in found for one in entry.stored]
    told = {"What it is": _KINDS.get(kind, kind), "Size": size, "Origin": origin}
    if kind == "baseline":
        return told
    abouts = [record.system for record in records if record.system is not None]
    if not abouts:
        kinds = dict.fromkeys(record.kind for record in records)
        select = dict.fromkeys(f"dev {record.select}" for record in records)
        settings = found[0][2].runs[0].shown
        return told | {
            "Kind of parser": ", ".join(kinds),
            "Selected by": "; ".join(select),
            "Settings changed": settings,
        }
    fields = {
        "Version": "version",
        "Found at": "url",
        "Described in": "paper",
        "Trained on": "training_data",
        "Notes": "notes",
    }
    return told | {
        title: "; ".join(dict.fromkeys(filter(None, (getattr(one, name) for one in abouts))))
        for title, name in fields.items()
    }
