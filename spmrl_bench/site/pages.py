"""The pages, each from the template of its kind: what stands in their tables and pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from spmrl_bench import __version__
from spmrl_bench.leaderboard.board import (
    Column,
    Entry,
    Group,
    Results,
    View,
    average,
    brief_columns,
    track_title,
)
from spmrl_bench.leaderboard.identity import resolved_settings
from spmrl_bench.leaderboard.published import PublishedFigure
from spmrl_bench.leaderboard.record import SPLITS, Record, in_order, searched_text, signature_parts
from spmrl_bench.leaderboard.tables import (
    SPEED,
    HeadToHead,
    ours_and_others,
    ours_and_others_table,
    results_csv,
    table_differences,
)
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.site import charts
from spmrl_bench.site.charts import MOST_SERIES, Chart, chart
from spmrl_bench.site.parses import KeptParses, compared, kept_parses, side_by_side
from spmrl_bench.site.reproduce import commands, environment, settings
from spmrl_bench.site.standings import Place, TreebankResults, by_length, system_address
from spmrl_bench.site.tables import CHOICES, Cell, Table, Value, cell

Files = Iterator[tuple[str, bytes]]
"""Addresses, from the root of the site, and contents."""
Kept = Mapping[tuple[Entry, View], KeptParses]

_MOST_LABELS = 14
# Settings by which the runs of a learning curve differ.
_OF_CURVE = ("train.sentences", "train.max_epochs", "train.max_minutes")


def page(template: str, address: str, **content: Any) -> tuple[str, bytes]:
    """A page from the template of a name; links in it lead to the root of the site first."""
    form = _templates().get_template(f"{template}.html.jinja")
    text = form.render(root="../" * address.count("/"), here=address, **content)
    return address, text.encode("utf-8", "replace")


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters["web"] = lambda text: re.fullmatch(r"https?://[^\s\"'<>\\]+", text)
    templates.filters["coded"] = lambda text: Markup(
        re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text)))
    )
    templates.globals |= {"version": __version__, "choices": CHOICES}
    return templates


# ---- The first page ----


def first_page(results: Results, banks: Sequence[TreebankResults]) -> Files:
    """The boards of all tracks, open ones first."""
    sections = []
    for track in dict.fromkeys(bank.track for bank in banks):
        own = [bank for bank in banks if bank.track == track]
        tables = [_scores(track, own, view) for view in _views(own)]
        picture = None
        if rows := head_to_head(own):
            tables.insert(0, _ours_and_others(rows))
            picture = Markup(charts.board(rows))
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


def head_to_head(banks: Iterable[TreebankResults]) -> list[HeadToHead]:
    """Our best and the best of others on each treebank of the track ``open``."""
    return ours_and_others(g for bank in banks if bank.track == "open" for g in bank.groups)[0]


def _ours_and_others(found: Sequence[HeadToHead]) -> Table:
    made = ours_and_others_table(found)
    heads = [head or "figure" for head in made.headings]
    rows = [
        [Cell(text, numeric=head in made.numeric) for head, text in zip(heads, row, strict=True)]
        for row in made.rows
    ]
    return Table("ours", made.title, heads, rows, made.lines())


def _views(banks: Iterable[TreebankResults]) -> list[View]:
    found = {view for bank in banks for group in bank.groups for view in group.views}
    metrics = in_order({name for name, _ in found}, [])
    return [
        (name, split) for name in metrics for split in ("test", "dev") if (name, split) in found
    ]


def _systems(banks: Iterable[TreebankResults]) -> list[list[Place]]:
    """The places of each system; a baseline and a variant are systems too."""
    found: dict[str, list[Place]] = {}
    for bank in banks:
        for place in bank.places:
            found.setdefault(place.entry.text, []).append(place)
    return list(found.values())


def _scores(track: str, banks: Sequence[TreebankResults], view: View) -> Table:
    """Systems by treebank, so that no scores of different treebanks stand in one column.

    The mean is over all treebanks, where they were counted in one way.
    """
    groups = {group: bank for bank in banks for group in bank.groups if view in group.views}
    ways = {tuple(sorted(group.way_of_counting(view[0]).items())) for group in groups}
    languages = {group.language for group in groups}
    has_mean = len(ways) == 1 and len(languages) > 1
    rows = []
    for places in _systems(banks):
        own = {place.group: place for place in places if place.entry.headline(view)}
        if not own:
            continue
        entry = places[0].entry
        found = [
            (group, own[group].entry.headline(view) if group in own else None) for group in groups
        ]
        mean = average([(group.language, {0: one.mean} if one else {}) for group, one in found])
        values = [one.mean for _, one in found if one]
        order = bool(entry.baseline), -len(values), -sum(values) / len(values)
        scores = [_score(own[group], view) if group in own else None for group in groups]
        means = [mean and mean.mean] if has_mean else []
        rows.append((order, [_system(entry), entry.size, *means, *scores]))
    heads = [
        Cell(f"{bank.name}, table {group.number}" if group.several else bank.name, bank.address)
        for group, bank in groups.items()
    ]
    means = [f"mean of {len(languages)} languages"] if has_mean else []
    metric = metric_named(view[0])
    return Table(
        f"{track}-{view[0]}-{view[1]}",
        f"{metric.title(metric.headline)} on {view[1]}, {track_title(track)}",
        ["system", "size", *means, *heads],
        [row for _, row in sorted(rows, key=lambda row: row[0])],
    )


def _treebanks(banks: Iterable[TreebankResults]) -> Table:
    rows = [
        (
            Cell(bank.name, bank.address),
            bank.language,
            bank.track,
            *((None if size is None else f"{size:,}") for size, _ in bank.sizes.values()),
            sum(not place.entry.baseline for place in bank.places),
            bank.manifest.licence if bank.manifest else "no manifest here",
        )
        for bank in banks
    ]
    heads = ["treebank", "language", "track", "train", "dev", "test", "entries", "licence"]
    return Table("treebanks", "Treebanks, with their sentences", heads, rows)


# ---- Figures of entries ----


def _system(entry: Entry) -> Cell:
    tag = "" if entry.origin == "own" else entry.origin
    return Cell(entry.name, system_address(entry), tag=tag)


def _score(place: Place, view: View, *, deviation: bool = False) -> Cell:
    """The headline of an entry with its mark."""
    score, ranked = place.entry.headline(view), place.bank.rankings.get((place.group, view))
    if score is None or ranked is None:
        return Cell()
    best = place.entry is ranked.best
    shown = cell(score if deviation else score.mean)
    return shown._replace(mark=ranked.mark(place.entry), strong=best)


def _figures(place: Place, columns: Iterable[Column]) -> list[Value]:
    return [
        _score(place, (column.metric, column.split), deviation=True)
        if column.is_headline
        else place.entry.figure(column.key)
        for column in columns
    ]


def _runs(entry: Entry) -> str:
    """How many runs an entry stands for, or the seed of the only one."""
    if entry.form in ("mean", "ensemble"):
        return f"{entry.form} of {entry.number}"
    return "" if entry.baseline else _seed(entry.record)


def _seed(record: Record) -> str:
    """The seed that decided what was learnt, if one did."""
    return f"seed {record.seed}" if record.cost is not None and not record.ensemble else ""


# ---- Treebanks ----


def treebank_pages(bank: TreebankResults) -> Files:
    """The page of a treebank, and of each of its entries beside the best."""
    kept = {
        (place.entry, view): found
        for place in bank.places
        for view in place.group.views
        if (found := kept_parses(place.entry, view, bank.manifest))
    }
    data = f"data/{bank.slug}.csv"
    yield data, results_csv(bank.groups, ()).encode()
    sections = [
        {
            "title": group.title,
            "tables": [_entries(bank, group), _records(group)],
            "charts": list(_charts(bank, group, kept)),
            "notes": list(table_differences(group, bank.groups)),
        }
        for group in bank.groups
    ]
    yield page("treebank", bank.address, bank=bank, sections=sections, data=data)
    for place in bank.places:
        contests = [found for view in place.group.views if (found := _contest(place, view, kept))]
        about = {"bank": bank, "entry": place.entry, "signature": place.entry.signature()}
        yield page("compare", place.address, contests=contests, **about)


def _entries(bank: TreebankResults, group: Group) -> Table:
    heads = ["system", *(column.title for column in group.columns.values()), "runs", "size"]
    rows = []
    for place in (place for place in bank.places if place.group is group):
        entry, figures = place.entry, _figures(place, group.columns.values())
        speed = entry.figure(SPEED)
        about = _runs(entry), entry.size, entry.origin, speed and round(speed.mean)
        link = Cell("beside the best", place.address)
        rows.append((_system(entry), *figures, *about, entry.searched, link))
    heads += ["origin", "tokens/s", "settings", "sentence by sentence"]
    notes = [
        "± is the sample standard deviation over seeds. Raised a: the best score, in bold, and "
        "those not significantly different from it (p of at least 0.05)."
    ]
    outputs = [
        f"{entry.name}: {entry.record.system.tested}"
        for entry in group.entries
        if entry.is_system and entry.record.system
    ]
    if outputs:
        notes.append(f"Systems of others, outputs scored on test: {'; '.join(outputs)}.")
    return Table(f"table-{group.number}", group.title, heads, rows, notes)


def _records(group: Group) -> Table:
    headlines = [column for column in group.columns.values() if column.is_headline]
    rows = []
    for entry in group.entries:
        for one in () if entry.baseline else entry.members or [entry]:
            link = Cell(one.stored[0].name[:8], f"runs/{one.stored[0].name}.html", code=True)
            figures = [one.figure(column.key) for column in headlines]
            rows.append((link, entry.text, _seed(one.record), *figures, one.dates[-1]))
    heads = ["record", "system", "seed", *(column.title for column in headlines), "scored"]
    return Table(f"records-{group.number}", f"Records, {group.title}", heads, rows)


def _charts(bank: TreebankResults, group: Group, kept: Kept) -> Iterator[Chart]:
    """Of test or else dev by each metric: scores by length and label, and learning curves."""
    table = f", table {group.number}" if group.several else ""
    views = {view[0]: view for view in reversed(group.views)}
    for view in views.values():
        score, ranked = group.view_title(view), bank.rankings.get((group, view))
        parsers = [one for one in ranked.ordered if not one.baseline] if ranked else []
        classes = {
            one: found for one in parsers if (sums := one.sums(view)) and (found := by_length(sums))
        }
        if best := list(classes)[:MOST_SERIES]:
            names = _names(best)
            points = {
                names[one]: {name: value for name, (_, value) in classes[one].items()}
                for one in best
            }
            sizes = {name: size for name, (size, _) in classes[best[0]].items()}
            note = f"Sentences: {', '.join(f'{name}: {size}' for name, size in sizes.items())}."
            yield chart(
                f"{score} over the length of sentences{table}",
                "words",
                sizes,
                points,
                score=score,
                note=note,
            )
        parts = {
            one: {part.name: part.figures() for part in kept[one, view].labels}
            for one in parsers
            if (one, view) in kept and kept[one, view].labels
        }
        if best := list(parts)[:MOST_SERIES]:
            names = _names(best)
            labels = [name for name, own in parts[best[0]].items() if own["gold"]][:_MOST_LABELS]
            points = {
                names[one]: {name: parts[one].get(name, {}).get("f1") for name in labels}
                for one in best
            }
            yield chart(
                f"{score} by label, the most frequent first{table}",
                "label",
                labels,
                points,
                score=score,
                rows=True,
                note="Of the entries whose parses are at hand.",
            )
        if curves := _learning_curves(bank, group, (view[0], "dev")):
            sizes = sorted({size for points in curves.values() for size in points})
            score = group.view_title((view[0], "dev"))
            yield chart(
                f"{score} over the number of training sentences{table}",
                "training sentences",
                sizes,
                curves,
                score=score,
                logarithmic=True,
            )


def _names(entries: Sequence[Entry]) -> dict[Entry, str]:
    """What entries are called, with more where two have the same name."""
    names = [entry.name for entry in entries]
    return {one: one.name if names.count(one.name) == 1 else one.text for one in entries}


def _learning_curves(
    bank: TreebankResults, group: Group, view: View
) -> dict[str, dict[int, float]]:
    """Scores by the number of training sentences, of runs that differ in little else."""
    curves: dict[str, dict[int, float]] = {}
    for entry in group.entries:
        score, record = entry.headline(view), entry.record
        if score is None or entry.kind not in ("run", "mean"):
            continue
        size = resolved_settings(record.recipe).get("train.sentences") or bank.sizes["train"][0]
        if not isinstance(size, int) or size < 1:  # the recipe of a record may say anything
            continue
        rest = [f"{key}={value}" for key, value in record.settings.items() if key not in _OF_CURVE]
        about = record.variant, record.size, ", ".join(rest), "shipped" if entry.shipped else ""
        curve = curves.setdefault(" ".join(filter(None, about)), {})
        # Of as many sentences, runs may have been given more or less time.
        curve[size] = max(score.mean, curve.get(size, 0.0))
    best = sorted(curves, key=lambda name: -max(curves[name].values()))
    several = [name for name in best if len(curves[name]) > 1][:MOST_SERIES]
    return {name: dict(sorted(curves[name].items())) for name in several}


def _contest(place: Place, view: View, kept: Kept) -> dict[str, Any] | None:
    """An entry beside the best by a figure, or the best beside the one behind it."""
    entry, ranked = place.entry, place.bank.rankings.get((place.group, view))
    other = ranked.rival(entry) if ranked and entry.headline(view) else None
    if ranked is None or other is None:
        return None
    name, both = f"{view[0]}-{view[1]}", [entry, other]
    names = [_names(both)[one] for one in both]
    found: dict[str, Any] = {
        "name": name,
        "title": place.group.view_title(view),
        "other": other,
        "address": next(one.address for one in place.bank.places if one.entry is other),
        "is_best": entry is ranked.best,
        "scores": [cell(one.headline(view)).text for one in both],
        "p": ranked.p.get(other if entry is ranked.best else entry),
        "sides": None,
        "trees": [],
    }
    one, two = entry.sums(view), other.sums(view)
    if one is None or two is None or not one.of_same_sentences(two):
        return found
    sides = found["sides"] = compared(one, two)
    heads = ["sentence", "words", *(f"errors, {each}" for each in names)]
    caption = f"Sentences of {view[1]} on which they differ most"
    found["table"] = Table(f"sentences-{name}", caption, heads, sides.differing)
    hands = [kept[each, view] for each in both if (each, view) in kept]
    if len(hands) == 2 and place.bank.shows_sentences:
        found["seeds"] = [hand.seed for hand in hands]
        found["trees"] = [(at, side_by_side(at.number, names, *hands)) for at in sides.differing]
    return found


# ---- Records ----


def run_pages(bank: TreebankResults) -> Files:
    """The page of each record that is shown, and the record itself."""
    shown = [
        (place, stored)
        for place in bank.places
        if not place.entry.baseline
        for stored in place.entry.stored
    ]
    for place, stored in shown:
        record = stored.record
        results = {split: found for split in SPLITS if (found := record.result(split))}
        metrics = dict.fromkeys(name for one in results.values() for name in one.metrics)
        signatures = {
            f"{split}, {name}": (found.signature, signature_parts(found.signature_long))
            for split, result in results.items()
            for name, found in result.metrics.items()
        }
        yield f"runs/{stored.name}.json", stored.path.read_bytes()
        yield page(
            "run",
            f"runs/{stored.name}.html",
            bank=bank,
            place=place,
            stored=stored,
            title=", ".join(filter(None, (place.entry.name, _seed(record)))),
            scores=[_by_split(name, results) for name in metrics if name in METRICS.names()],
            commands=commands(record),
            outputs=_outputs(record),
            signatures=signatures,
            settings=settings(record),
            searched=searched_text(record.searches),
            searches=list(_searches(record)),
            environment=environment(record),
        )


def _by_split(name: str, results: Mapping[str, Any]) -> Table:
    metric = metric_named(name)
    splits = {split: result for split, result in results.items() if name in result.metrics}
    rows = [
        (metric.title(figure), *(one.figure(name, figure) for one in splits.values()))
        for figure in metric.figures
    ]
    return Table(f"scores-{name}", f"Scores, {name}", ["figure", *splits], rows, fixed=True)


def _outputs(record: Record) -> Table:
    """What a system of somebody else gave."""
    rows = [
        (f"{split}, {layer}", output.policy, _listed(output.handled), Cell(digest, code=True))
        for split, output in (record.system.outputs.items() if record.system else ())
        for layer, digest in output.sha256.items()
    ]
    heads = ("output", "faults are", "answers with faults", "SHA-256")
    return Table("outputs", "What the system gave", heads, rows)


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items()) or "none"


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
        note = f"Searched: {_listed(search.space)}. In bold: the settings of this record."
        caption = f"Trials by {search.sampler}, pruner {search.pruner}, seed {search.seed}"
        heads = ["trial", *search.space, f"dev {search.select}", "state", "minutes"]
        yield Table(f"search-{place}", caption, heads, rows, [note])


# ---- Systems, published figures ----


def system_pages(banks: Iterable[TreebankResults]) -> Files:
    """The page of a variant, a system of others or a baseline, with its scores everywhere."""
    for places in _systems(banks):
        first = places[0].entry
        metrics = dict.fromkeys(name for place in places for name in place.group.metrics)
        headlines = [one for one in brief_columns(in_order(metrics, [])) if one.is_headline]
        rows = []
        for place in places:
            about = place.bank.language, place.bank.track, _runs(place.entry)
            link = Cell(place.group.title.partition(" (")[0], place.address)
            rows.append((link, *about, *_figures(place, headlines)))
        heads = ["treebank", "language", "track", "runs", *(one.title for one in headlines)]
        table = Table("scores", f"{first.name} by treebank", heads, rows)
        details = {"Size": [first.size], "Origin": [first.origin]}
        for record in [] if first.baseline else [r.record for p in places for r in p.entry.runs]:
            if record.system is None:
                about = {"kind of parser": record.kind, "selected by": f"dev {record.select}"}
            else:
                about = record.system.model_dump(exclude={"training", "outputs", "tested"})
            for key, value in about.items():
                details.setdefault(key.replace("_", " ").capitalize(), []).append(value)
        told = {key: "; ".join(dict.fromkeys(values)) for key, values in details.items()}
        yield page("system", system_address(first), entry=first, details=told, table=table)


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
