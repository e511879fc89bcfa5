"""Every number of the records in one long frame, from which all tables are made.

A row is one figure of one split of one record, with what says which run it is of (its identity:
:mod:`~spmrl_bench.leaderboard.identity`) and how it was counted. What a table must not get wrong
is decided here, once: which records compare (*groups*), which are of the same run (the newest
counts), and which runs differ in their seed only (*series*).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.compare import Difference, differences, score_key
from spmrl_bench.leaderboard.identity import differing_settings, digest, resolved_settings
from spmrl_bench.leaderboard.record import Record, SplitResult, searched_text, signature_parts
from spmrl_bench.scoring.metric import METRICS, SelectionMetric, metric_named
from spmrl_bench.scoring.settings_text import settings_text, variant_text

#: Columns that say which run a row is of.
RUN_COLUMNS = (
    "record", "shipped", "track", "treebank", "language", "group", "recipe", "system", "tested",
    "kind",
    "variant", "name", "settings", "given", "altered", "digest", "size", "precision", "seed",
    "ensemble", "selected", "select", "newest", "weights", "finished", "commit", "version",
    "device", "threads", "kernels", "searched",
)  # fmt: skip
#: Columns that say what the number is.
NUMBER_COLUMNS = (
    "split", "baseline", "metric", "figure", "value", "sentences", "skipped", "signature",
    "signature_long", "fingerprint",
)  # fmt: skip
#: What runs of one group have in common that differ in their seed only.
SERIES = ["shipped", "size", "variant", "digest", "precision", "ensemble"]
#: One table: scores that compare.
GROUP = ["track", "treebank", "group"]

Run = dict[str, Any]

_PLAIN = {"baseline": "", "metric": ""}


def by_age(records: Iterable[Record]) -> list[Record]:
    """Records in the order by which the frame numbers them, oldest first."""
    return sorted(records, key=lambda record: record.finished)


def records_frame(records: Iterable[Record], shipped: Iterable[Record] = ()) -> pd.DataFrame:
    """One row for each record, split, metric and figure that has a value.

    Args:
        records: of the user.
        shipped: that come with the program, to stand beside them; of a user's run and a shipped
            one, which another machine has made, no mean is taken, and neither is the newer of both.

    The columns are :data:`RUN_COLUMNS` and :data:`NUMBER_COLUMNS`. Of these,

    - ``record`` is the number of the record in the order of :func:`by_age`;
    - ``shipped`` says whether it comes with the program;
    - ``system`` says whether it is a system of somebody else, not a run, and ``tested`` how many
      of its outputs have been scored on test;
    - ``group`` numbers, within a treebank, the records whose scores compare;
    - ``name`` is the variant with its ``settings``: those that were changed of the recipe
      (``given``) and those in which runs of this name differ otherwise;
    - ``altered`` says whether these change the model, but for its precision;
    - ``digest`` stands for all settings, ``select`` for what dev selects by;
    - ``searched`` says what was spent on a search for its settings, empty if nothing was;
    - ``newest`` says whether it is the newest record of its run;
    - ``baseline`` is the name of a baseline, empty for the parser itself;
    - ``metric`` is empty for figures that are no metric's: the ``score`` that selects (split
      ``dev``), ``tag_accuracy`` and ``tokens_per_second`` of a split, and (split ``train``)
      ``tokens_per_second``, ``wall_seconds``, ``epochs`` and ``parameters`` of the training;
    - ``sentences`` are those of the split that were scored, ``skipped`` those left out.

    Scores by metrics that are not installed are left out.
    """
    pairs = [*((record, False) for record in records), *((record, True) for record in shipped)]
    pairs.sort(key=lambda pair: pair[0].finished)
    ordered = [record for record, _ in pairs]
    runs = [_run(number, *pair) for number, pair in enumerate(pairs)]
    numbers = [list(_numbers(record)) for record in ordered]
    _number_groups(runs, numbers)
    _name_runs(runs, ordered)
    newest = {(*_series_of(run), run["seed"]): run["record"] for run in runs}
    for run in runs:
        run["newest"] = newest[*_series_of(run), run["seed"]] == run["record"]
    rows = [run | number for run, found in zip(runs, numbers, strict=True) for number in found]
    frame = pd.DataFrame(rows, columns=[*RUN_COLUMNS, *NUMBER_COLUMNS])
    return frame.dropna(subset="value").astype({"newest": bool, "altered": bool})


def _run(number: int, record: Record, shipped: bool) -> Run:
    scored = record.dev or record.test
    results = scored.metrics.values() if scored else ()
    parts = [signature_parts(result.signature_long) for result in results]
    hardware = record.hardware
    return {
        "record": number,
        "shipped": shipped,
        "track": record.treebank.track,
        "treebank": record.treebank.name,
        "language": record.treebank.language,
        "recipe": record.lang,
        "system": record.system is not None,
        "tested": record.system.tested if record.system else 0,
        "kind": record.kind,
        "variant": record.variant,
        "given": settings_text(record.settings),
        "digest": digest(resolved_settings(record.recipe)),
        "size": record.size,
        "precision": next((found["precision"] for found in parts if "precision" in found), ""),
        "seed": record.seed,
        "ensemble": len(record.ensemble),
        "selected": record.selected,
        "select": record.select,
        "weights": record.weights,
        "finished": record.finished,
        "commit": record.commit or "",
        "version": record.versions.get("spmrl_bench", ""),
        "device": hardware.device if hardware else "",
        "threads": hardware.threads if hardware else 0,
        "kernels": (hardware.kernels if hardware else None) or "",
        "searched": searched_text(record.searches),
    }


def _numbers(record: Record) -> Iterator[dict[str, Any]]:
    """The figures of a record, with how they were counted."""
    for figure in ("tokens_per_second", "wall_seconds", "epochs", "parameters"):
        value = getattr(record.cost, figure, None)
        yield _PLAIN | {"split": "train", "figure": figure, "value": value}
    results = [("dev", "", record.dev), ("test", "", record.test)]
    results += [("test", name, result) for name, result in record.baselines.items()]
    for split, baseline, result in results:
        if result is None:
            continue
        where = _PLAIN | {"split": split, "baseline": baseline}
        for figure in ("tag_accuracy", "tokens_per_second"):
            yield where | {"figure": figure, "value": getattr(result, figure)}
        for name in (name for name in METRICS.names() if name in result.metrics):
            scored = result.metrics[name]
            skipped = int(signature_parts(scored.signature_long).get("skipped", "0"))
            how = where | {
                "metric": name,
                "sentences": result.sentences - skipped,
                "skipped": skipped,
                "signature": scored.signature,
                "signature_long": scored.signature_long,
                "fingerprint": record.treebank.fingerprint(metric_named(name).layers),
            }
            for figure, value in _figures(result, name).items():
                yield how | {"figure": figure, "value": value}
    try:
        score = record.dev.score(SelectionMetric.parse(record.select)) if record.dev else None
    except ScoreError:
        score = None  # by a metric that is not installed
    yield _PLAIN | {"split": "dev", "figure": "score", "value": score}


def _figures(result: SplitResult, name: str) -> dict[str, int | float | None]:
    """The stored figures, and those that the metric has got since, from the counts."""
    metric, stored = metric_named(name), result.metrics[name].figures
    if set(metric.figures) <= stored.keys():
        return stored
    try:
        return metric.values(result.counts(name)) | stored
    except ScoreError:
        return stored  # counted before the metric had all its columns


# ---- Which records compare ----


Counted = dict[str, dict[str, str]]
"""What decides the scores: for each metric and split the keys that records must agree in."""


def _counted(rows: Iterable[Any]) -> Counted:
    """How the rows of one record, or of records that compare, were counted."""
    found: Counted = {}
    for row in rows:
        name = f"{row['metric']} {row['split']}"
        if row["metric"] and not row["baseline"] and name not in found:
            key = score_key(row["signature_long"], row["fingerprint"])
            # Beyond dev, the splits of two records can differ in this only.
            skipped = {"test skipped": key.get("skipped", "0")}
            found[name] = skipped if row["split"] == "test" else key
    return found


def counting_differences(one: pd.DataFrame, other: pd.DataFrame) -> list[Difference]:
    """In what the scores of two groups were counted differently, sorted by key."""
    groups = (rows.drop_duplicates(["metric", "split", "baseline"]) for rows in (one, other))
    first, second = (_counted(rows.to_dict("records")) for rows in groups)
    common = first.keys() & second.keys()
    return sorted(row for name in common for row in differences(first[name], second[name]))


def _number_groups(runs: Sequence[Run], numbers: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Put every record in the first group of its treebank that it compares with."""
    groups: dict[tuple[str, str], list[Counted]] = {}
    for run, rows in zip(runs, numbers, strict=True):
        known = groups.setdefault((run["track"], run["treebank"]), [])
        key = _counted(rows)
        place = next((n for n, group in enumerate(known) if _agree(group, key)), len(known))
        if place == len(known):
            known.append({})
        known[place].update(key)
        run["group"] = place + 1


def _agree(one: Counted, other: Counted) -> bool:
    return all(one[name] == other[name] for name in one.keys() & other.keys())


# ---- Which runs are the same, and what they are called ----


def _series_of(run: Run) -> tuple[Any, ...]:
    return tuple(run[column] for column in (*GROUP, *SERIES))


def _name_runs(runs: Sequence[Run], records: Sequence[Record]) -> None:
    """Name runs by what was changed of the recipe and by what else tells them apart."""
    series: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        series.setdefault(_series_of(run), []).append(run)
    alike: dict[tuple[Any, ...], list[list[Run]]] = {}
    for found in series.values():
        # The same settings can be a recipe's or given with the command.
        given = next((run["given"] for run in found if run["given"]), "")
        for run in found:
            run["given"] = given
        key = *(found[0][column] for column in (*GROUP, *SERIES) if column != "digest"), given
        alike.setdefault(key, []).append(found)
    for several in alike.values():
        settings = [resolved_settings(records[found[0]["record"]].recipe) for found in several]
        differing = differing_settings(settings)
        for found, resolved in zip(several, settings, strict=True):
            changed = next(filter(None, (records[run["record"]].settings for run in found)), {})
            shown = {**changed, **{key: resolved[key] for key in differing if key in resolved}}
            of = f", ensemble of {found[0]['ensemble']}" if found[0]["ensemble"] else ""
            of += ", shipped" if found[0]["shipped"] else ""
            model = {key for key in shown if key.startswith("model.")}
            for run in found:
                run["settings"] = settings_text(shown)
                run["altered"] = not model <= {"model.precision"}
                run["name"] = variant_text(run["variant"], shown) + of


# ---- Reading the frame ----


def parts(rows: pd.DataFrame, by: str | Sequence[str]) -> dict[Any, pd.DataFrame]:
    """The rows for each value of the columns, sorted by it."""
    return dict(list(rows.groupby(by if isinstance(by, str) else list(by))))
