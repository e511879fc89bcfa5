"""The pages, each from the template of its kind, in a folder that a build replaces as a whole."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from spmrl_bench import __version__
from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard import tables as board_tables
from spmrl_bench.leaderboard.board import Column, Entry, Group, Results, View, track_title
from spmrl_bench.leaderboard.frame import records_frame
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.record import GOLD_TAGS, SPLITS, Record, signature_parts
from spmrl_bench.leaderboard.searches import searched_text
from spmrl_bench.leaderboard.writing import templates
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.site.parses import KeptParses, compared, kept_parses, side_by_side
from spmrl_bench.site.parts import MOST_SERIES, Cell, Chart, Table, Value, board, cell, chart
from spmrl_bench.site.reproduce import commands, environment, settings
from spmrl_bench.site.standings import Place, TreebankResults, address_of, by_length, treebanks_of
from spmrl_bench.storage.files import write_folder

Files = Iterator[tuple[str, bytes]]
"""Addresses, from the root of the site, and contents."""
Kept = Mapping[tuple[Entry, View], KeptParses]

_MOST_ROWS = 14  # of a picture
#: Says that a folder is a site, and may be replaced.
MARKER = "site.json"
_CONTENT = b'{"made_by": "spmrl-bench site"}\n'
_TEMPLATES = templates(Path(__file__).parent)
_TEMPLATES.globals["version"] = __version__


def page(template: str, address: str, **content: Any) -> tuple[str, bytes]:
    """A page from the template of a name; links in it lead to the root of the site first."""
    form = _TEMPLATES.get_template(f"{template}.html.jinja")
    text = form.render(root="../" * address.count("/"), here=address, **content)
    return address, text.encode("utf-8", "replace")


def first_page(results: Results, banks: Sequence[TreebankResults]) -> Files:
    """The boards of all tracks, open ones first, and the picture of the first for other pages."""
    sections = []
    for track in dict.fromkeys(bank.track for bank in banks):
        own = [bank for bank in banks if bank.track == track]
        metrics = Counter(name for bank in own for group in bank.groups for name in group.metrics)
        views = [(name, split) for name, _ in metrics.most_common() for split in ("test", "dev")]
        picture = None
        groups = [group for bank in own for group in bank.groups]
        reads = sorted({group.runs.read for group in groups})
        tables = [
            made for read in reads for view in views if (made := _scores(own, view, read)).rows
        ]
        rows = board_tables.ours_and_others(groups)[0] if track == "open" else []
        if rows:
            rows.sort(key=lambda one: one.figure)
            ahead = board_tables.ours_and_others_table(rows)
            flush = [head in ahead.numeric for head in ahead.headings]
            cells = [
                [Cell(text, numeric=one) for text, one in zip(row, flush, strict=True)]
                for row in ahead.rows
            ]
            tables.insert(0, Table("ours", ahead.title, ahead.headings, cells, ahead.notes))
            in_page, *files = board(rows).items()
            words = "Our best parser and the best of the others on open treebanks"
            picture = Chart(words, f"{words}; the table has the numbers", Markup(in_page[1]))
            yield from ((f"board-{ground}.svg", svg.encode()) for ground, svg in files)
        title = track_title(track).replace(" track", " treebanks")
        sections.append({"name": track, "title": title, "tables": tables, "picture": picture})
    shown = sum(run.newest for bank in banks for group in bank.groups for run in group.runs)
    yield page(
        "index",
        "index.html",
        sections=sections,
        treebanks=_treebanks(banks),
        systems=len({place.entry.text for bank in banks for place in bank.places}),
        records=shown,
        newest=max(f"{one.record.finished:%Y-%m-%d}" for one in results.stored),
        older=len(results.stored) - shown,
        left_out=len(results.errors),
    )


def _systems(banks: Iterable[TreebankResults]) -> list[list[Place]]:
    """The places of each system; a baseline and a variant are systems too."""
    found: dict[str, list[Place]] = {}
    for bank in banks:
        for place in bank.places:
            found.setdefault(place.entry.text, []).append(place)
    return list(found.values())


def _scores(banks: Sequence[TreebankResults], view: View, read: str) -> Table:
    """Systems that read one encoder or none, by treebank: what does not compare has its column."""
    groups = {
        group: bank
        for bank in banks
        for group in bank.groups
        if view in group.views and group.runs.read == read
    }
    places = {place.entry: place for bank in banks for place in bank.places}
    rows = []
    for own in board_tables.systems_of(groups, view):
        entry = next(iter(own.values()))
        scores = [_score(places[own[group]], view) if group in own else Cell() for group in groups]
        rows.append([_system(entry), Cell(entry.record.size), *scores])
    titles = zip(board_tables.column_titles(groups), groups.values(), strict=True)
    track, metric = banks[0].track, metric_named(view[0])
    return Table(
        "-".join((track, *view, *read.split()[-1:])),
        f"{metric.title(metric.headline)} on {view[1]}, {track_title(track)}{read}",
        ["system", "size", *(Cell(title, bank.address) for title, bank in titles)],
        rows,
    )


def _treebanks(banks: Iterable[TreebankResults]) -> Table:
    rows = []
    for bank in banks:
        entries = sum(not place.entry.baseline for place in bank.places)
        licence = bank.manifest.licence if bank.manifest else "no manifest here"
        rows.append((Cell(bank.name, bank.address), bank.language, bank.track, entries, licence))
    heads = ["treebank", "language", "track", "entries", "licence"]
    return Table("treebanks", "Treebanks", heads, rows)


def _system(entry: Entry) -> Cell:
    tags = entry.runs[0].shown, "" if entry.origin == "own" else entry.origin
    return Cell(entry.label, address_of(entry), tag="; ".join(filter(None, tags)))


def _score(place: Place, view: View, *, deviation: bool = False) -> Cell:
    """The headline of an entry with its mark."""
    if (score := place.entry.headline(view)) is None:
        return Cell()
    ranked = place.bank.rankings[place.group, view]
    shown = cell(score if deviation else score.mean)
    return shown._replace(mark=ranked.mark(place.entry), strong=place.entry is ranked.ordered[0])


def _figures(place: Place, columns: Iterable[Column]) -> list[Value]:
    return [
        _score(place, (column.metric, column.split), deviation=True)
        if column.is_headline
        else place.entry.figure(column.key)
        for column in columns
    ]


def _runs(entry: Entry) -> str:
    """How many runs an entry stands for, or the seed of the only one if a seed decided it."""
    if entry.form in ("mean", "ensemble"):
        return f"{entry.form} of {entry.number}"
    return f"seed {entry.record.seed}" if entry.record.cost is not None else ""


def _records_of(place: Place) -> list[Entry]:
    """An entry for each record that a page is made of."""
    return [] if place.entry.baseline else place.entry.members or [place.entry]


def treebank_pages(bank: TreebankResults) -> Files:
    """The page of a treebank, and of each of its entries beside the best."""
    kept = {
        (place.entry, view): found
        for place in bank.places
        for view in place.group.views
        if (found := kept_parses(place.entry, view, bank.manifest))
    }
    sections = [
        {
            "title": group.title,
            "tables": [_entries(bank, group), _records(bank, group)],
            "charts": list(_charts(bank, group, kept)),
            "notes": list(board_tables.table_differences(group, bank.groups)),
        }
        for group in bank.groups
    ]
    yield page("treebank", bank.address, bank=bank, sections=sections)
    for place in bank.places:
        contests = [_contest(place, view, kept) for view in place.group.views]
        about = {"bank": bank, "entry": place.entry, "signature": place.entry.signature()}
        yield page("compare", place.address, contests=list(filter(None, contests)), **about)


def _entries(bank: TreebankResults, group: Group) -> Table:
    rows = []
    for place in (place for place in bank.places if place.group is group):
        entry, figures = place.entry, _figures(place, group.columns.values())
        speed = entry.figure(board_tables.SPEED)
        about = _runs(entry), entry.record.size, entry.origin, speed and round(speed.mean)
        tested = entry.record.system.tested if entry.record.system else None
        more = entry.searched, tested, Cell("beside the best", place.address)
        rows.append((_system(entry), *figures, *about, *more))
    heads = ["system", *(column.title for column in group.columns.values()), "runs", "size"]
    heads += ["origin", "tokens/s", "settings", "outputs scored on test", "sentence by sentence"]
    note = "± is the sample standard deviation over seeds. Raised a: the best score, in bold, and "
    note += "those not significantly different from it (p of at least 0.05)."
    return Table(f"table-{group.number}", group.title, heads, rows, [note])


def _records(bank: TreebankResults, group: Group) -> Table:
    headlines = [column for column in group.columns.values() if column.is_headline]
    rows = []
    for place in (place for place in bank.places if place.group is group):
        for one in _records_of(place):
            name = one.runs[0].path.stem
            figures = [one.figure(column.key) for column in headlines]
            link = Cell(name[:8], f"runs/{name}.html")
            rows.append((link, place.entry.text, _runs(one), *figures, one.dates[-1]))
    heads = ["record", "system", "seed", *(column.title for column in headlines), "scored"]
    return Table(f"records-{group.number}", f"Records, {group.title}", heads, rows)


def _charts(bank: TreebankResults, group: Group, kept: Kept) -> Iterator[Chart]:
    """Scores by length and by label, of test or else of dev, for each metric."""
    table = f", table {group.number}" if group.several else ""
    for view in {view[0]: view for view in reversed(group.views)}.values():
        parsers = [entry for entry in bank.rankings[group, view].ordered if not entry.baseline]
        lengths = {one: by_length(sums) for one in parsers if (sums := one.sums(view))}
        labels = {one: kept[one, view].labels for one in parsers if (one, view) in kept}
        for about, parts in (("length of the sentence", lengths), ("label", labels)):
            best = [entry for entry in parsers if parts.get(entry)][:MOST_SERIES]
            if best:
                sizes = list(parts[best[0]].items())[:_MOST_ROWS]
                ticks = {name: f"{name} ({size:,})" for name, (size, _) in sizes}
                points = {
                    one.text: {name: value for name, (_, value) in parts[one].items()}
                    for one in best
                }
                score = group.view_title(view)
                yield chart(f"{score} by {about}{table}", ticks, points, score)


def _contest(place: Place, view: View, kept: Kept) -> dict[str, Any] | None:
    """An entry beside the best by a figure, or the best beside the one behind it."""
    entry, ranked = place.entry, place.bank.rankings[place.group, view]
    other = ranked.rival(entry) if entry in ranked.ordered else None
    if other is None:
        return None
    names = [entry.text, other.text]
    hands = [kept[one, view] for one in (entry, other) if (one, view) in kept]
    drawn = len(hands) == 2 and place.bank.shows_sentences
    one, two = entry.sums(view), other.sums(view)
    sides = compared(one, two) if one and two and one.of_same_sentences(two) else None
    pairs = sides.differing if sides else []
    return {
        "title": place.group.view_title(view),
        "name": "-".join(view),
        "other": next(each for each in place.bank.places if each.entry is other),
        "scores": [cell(each.headline(view)).text for each in (entry, other)],
        "p": ranked.p.get(other if entry is ranked.ordered[0] else entry),
        "sides": sides,
        "pairs": [
            (pair, side_by_side(pair[0], view[1], names, *hands) if drawn else None)
            for pair in pairs
        ],
    }


def run_pages(bank: TreebankResults) -> Files:
    """The page of each record that is shown, and the record itself."""
    for place in bank.places:
        for one in _records_of(place):
            run, record = one.runs[0], one.record
            name = run.path.stem
            yield f"runs/{name}.json", run.path.read_bytes()
            yield page(
                "run",
                f"runs/{name}.html",
                bank=bank,
                place=place,
                run=run,
                title=", ".join(filter(None, (one.name, _runs(one)))),
                scores=[_by_split(metric, record) for metric in place.group.metrics],
                commands=commands(record),
                signatures={
                    f"{split}, {metric}": signature_parts(found.signature_long)
                    for split in SPLITS
                    if (result := record.result(split))
                    for metric, found in result.metrics.items()
                },
                settings=settings(record),
                searched=searched_text(record.searches),
                searches=list(_searches(record)),
                environment=environment(record),
            )


def _by_split(name: str, record: Record) -> Table:
    metric, results = metric_named(name), {split: record.result(split) for split in SPLITS}
    splits = {split: one for split, one in results.items() if one and name in one.metrics}
    rows = [
        (metric.title(figure), *(one.figure(name, figure) for one in splits.values()))
        for figure in metric.figures
        if figure != GOLD_TAGS
    ]
    return Table(f"scores-{name}", f"Scores, {name}", ["figure", *splits], rows, fixed=True)


def _searches(record: Record) -> Iterator[Table]:
    """The trials of each search that its settings come from."""
    for place, search in enumerate(record.searches, start=1):
        rows = [
            (
                Cell(str(trial.number), strong=trial.number == search.found),
                *(json.dumps(trial.settings.get(key), ensure_ascii=False) for key in search.space),
                trial.dev,
                trial.state,
                trial.minutes,
            )
            for trial in search.trials
        ]
        space = ", ".join(f"{key} {values}" for key, values in search.space.items())
        note = f"Searched: {space}. In bold: the settings of this record."
        caption = f"Trials by {search.sampler}, pruner {search.pruner}, seed {search.seed}"
        heads = ["trial", *search.space, f"dev {search.select}", "state", "minutes"]
        yield Table(f"search-{place}", caption, heads, rows, [note])


def system_pages(banks: Iterable[TreebankResults]) -> Files:
    """The page of a variant, a system of others or a baseline, with its scores everywhere."""
    for places in _systems(banks):
        first = places[0].entry
        headlines = {
            one.key: one
            for place in places
            for one in place.group.columns.values()
            if one.is_headline
        }
        rows = []
        for place in places:
            about = place.bank.language, place.bank.track, _runs(place.entry)
            link = Cell(place.group.title.partition(" (")[0], place.address)
            rows.append((link, *about, *_figures(place, headlines.values())))
        titles = [one.title for one in headlines.values()]
        heads = ["treebank", "language", "track", "runs", *titles]
        table = Table("scores", f"{first.name} by treebank", heads, rows)
        details = {"size": first.record.size, "origin": first.origin}
        if system := first.record.system:
            details |= system.model_dump(exclude={"training", "outputs", "tested"})
        yield page("system", address_of(first), entry=first, details=details, table=table)


def published_page(figures: Sequence[PublishedFigure]) -> Files:
    """What others published, apart from all that was measured here."""
    sources = list(dict.fromkeys(one.source for one in figures))
    keys = dict.fromkeys(one.key for one in figures)
    lines: dict[tuple[str, ...], dict[tuple[str, str, str], float]] = {}
    for one in figures:
        about = one.treebank, one.language, one.system, str(one.year), one.variant, one.setting
        line = lines.setdefault((*about, f"[{sources.index(one.source) + 1}]"), {})
        line[one.key] = one.value
    rows = [(*about, *map(line.get, keys)) for about, line in sorted(lines.items())]
    titles = [f"{split} {metric_named(metric).title(figure)}" for split, metric, figure in keys]
    heads = ["treebank", "language", "system", "year", "variant", "setting", "source", *titles]
    table = Table("figures", "Published by others", heads, rows)
    yield page("published", "published.html", table=table, sources=sources)


def site_files(results: Results) -> Files:
    """The files of the site of all results, of which there are some."""
    banks = treebanks_of(results)
    yield MARKER, _CONTENT
    for name in ("site.css", "site.js"):
        yield f"assets/{name}", Path(__file__).with_name(name).read_bytes()
    frame = records_frame(results.stored)
    yield "data/scores.csv", frame.to_csv(index=False, lineterminator="\n").encode()
    yield from first_page(results, banks)
    for bank in banks:
        yield from treebank_pages(bank)
        yield from run_pages(bank)
    yield from system_pages(banks)
    yield from published_page(results.published)
    yield page("reading", "reading.html")


def build_site(results: Results, folder: Path, extra: Path | None = None) -> int:
    """Write the site in place of an earlier one, with copies of ``extra`` files that belong to it,
    such as a logo; return the number of its files. A RecordError where the folder holds something
    else or cannot be written, a SpmrlError where Matplotlib is not installed."""

    def fill(new: Path) -> None:
        for address, data in files.items():
            path = new / address
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if extra is not None:
            shutil.copytree(extra, new, dirs_exist_ok=True)

    try:
        marker = folder / MARKER
        is_site = marker.is_file() and marker.read_bytes() == _CONTENT
        if not is_site and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise RecordError(
                f"{folder}: holds other files than a site of this version, which is replaced as a "
                "whole; remove it, or name a new or an empty folder (--to)"
            )
        files = dict(site_files(results))
        write_folder(folder, fill)
    except OSError as error:
        place, reason = error.filename or folder, error.strerror or error
        raise RecordError(f"{place}: no site can be made: {reason}") from None
    return len(files)
