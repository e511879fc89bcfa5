"""The table of a study: unrounded numbers for programs, and the same for readers."""

from __future__ import annotations

import json

import pandas as pd

from spmrl_bench.analysis.summary import Difference, Line, Summary
from spmrl_bench.leaderboard.comparison import signature_parts
from spmrl_bench.leaderboard.formats import Document, Table, to_latex, to_markdown


def to_frame(summary: Summary) -> pd.DataFrame:
    """One row for each system, with unrounded numbers; empty cells are missing.

    F1 in percent, differences in points. ``settings`` are what the run changed of its recipe and
    ``limits`` what was taken from the attention of the trained parser, both as JSON.
    """
    return pd.DataFrame([_numbers(line) for line in summary.lines])


def markdown(summary: Summary) -> str:
    """The table with its caption and notes as Markdown."""
    return to_markdown(_document(summary))


def latex(summary: Summary) -> str:
    """The same for LaTeX."""
    return to_latex(_document(summary))


def _numbers(line: Line) -> dict[str, object]:
    row: dict[str, object] = {"system": line.row.name}
    found = line.measured
    if found is not None:
        limits = line.row.limit.model_dump(mode="json", exclude_defaults=True)
        row |= {
            "variant": found.config.variant,
            "settings": json.dumps(found.config.settings),
            "limits": json.dumps(limits),
            "layers": found.config.model.layers,
            "seeds": len(found.f1),
            "dev_f1": line.mean,
            "dev_f1_sd": line.spread,
        }
        row |= {
            f"dev_f1_seed{config.seed}": f1
            for config, f1 in zip(found.configs, found.f1, strict=True)
        }
    difference = line.difference
    return row | {
        "difference": difference.points if difference else None,
        "difference_sd": difference.spread if difference else None,
        "published_dev_f1": line.row.published,
        "published_difference": line.published_difference,
        "note": line.note,
    }


def _document(summary: Summary) -> Document:
    study = summary.work.study
    lines = [line for line in summary.lines if line.measured is not None]
    several = any(len(line.measured.f1) > 1 for line in lines if line.measured)
    columns: dict[str, list[str]] = {"system": [line.row.name for line in lines]}
    columns[study.metric] = [_with_spread(line.mean, line.spread) for line in lines]
    if several:
        columns["each seed"] = [
            " ".join(f"{f1:.2f}" for f1 in line.measured.f1) if line.measured else ""
            for line in lines
        ]
    columns["difference"] = [_difference(line.difference) for line in lines]
    if any(line.row.published is not None for line in lines):
        columns["published"] = [_percent(line.row.published) for line in lines]
        columns["published difference"] = [
            f"{line.published_difference:+.2f}" if line.published_difference is not None else ""
            for line in lines
        ]
    table = Table(
        title=f"{study.title}: {summary.work.treebank.name}",
        frame=pd.DataFrame(columns),
        numeric=frozenset(columns) - {"system"},
        notes=(
            summary.caption,
            f"Differences are to '{study.reference}', in points"
            + (", with their standard deviation over the seeds." if several else "."),
            f"Common to all signatures: `{_common_signature(summary)}`",
            *summary.notes,
            *([summary.reversals] if summary.reversals else ()),
        ),
    )
    return Document(f"Study {study.name}", tables=(table,))


def _common_signature(summary: Summary) -> str:
    """What the signatures of all scores agree in."""
    found = [
        signature_parts(score.signature)
        for line in summary.lines
        if line.measured
        for score in line.measured.scores
    ]
    first = found[0]
    kept = {key: value for key, value in first.items() if all(p.get(key) == value for p in found)}
    return "|".join(f"{key}:{value}" for key, value in kept.items())


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _with_spread(value: float | None, spread: float | None) -> str:
    return _percent(value) + ("" if spread is None else f" ± {spread:.2f}")


def _difference(difference: Difference | None) -> str:
    if difference is None:
        return ""
    spread = "" if difference.spread is None else f" ± {difference.spread:.2f}"
    return f"{difference.points:+.2f}{spread}"
