"""The table of a study: unrounded numbers for programs, and the same for readers."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from spmrl_bench.analysis.definition import StudyRow
from spmrl_bench.analysis.drawing import load_matplotlib, write_file
from spmrl_bench.analysis.findings import Findings
from spmrl_bench.analysis.run_study import Measured
from spmrl_bench.analysis.study_picture import draw_study
from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.board import SeedMean, mean_text
from spmrl_bench.leaderboard.formats import Document, Table, to_latex, to_markdown

_P = (
    "p: how likely chance alone makes so large a difference on other sentences, these trainings "
    "given (randomisation test over sentences, the counts of all seeds summed up)."
)


def write_study(findings: Findings, place: Path) -> str:
    """Write ``place.csv``, ``.md``, ``.tex``, ``.png`` and ``.svg``.

    Returns:
        Why there is no picture; empty if there is one. The tables do not wait for a library that
        only the picture needs.

    Raises:
        RecordError: a file cannot be written.
    """
    document = study_document(findings)
    texts = {
        "csv": to_frame(findings).to_csv(index=False, lineterminator="\n"),
        "md": to_markdown(document),
        "tex": to_latex(document),
    }
    for ending, text in texts.items():
        write_file(place.with_name(f"{place.name}.{ending}"), text.encode())
    try:
        load_matplotlib()
    except SpmrlError as problem:
        return str(problem)
    sheet = draw_study(findings)
    for ending in ("png", "svg"):
        sheet.save(place.with_name(f"{place.name}.{ending}"))
    return ""


def to_frame(findings: Findings) -> pd.DataFrame:
    """One row for each system, with unrounded numbers; empty cells are missing.

    Scores in percent, differences in points. ``settings`` are what the run changed of its recipe
    and ``limits`` what was taken from the attention of the trained parser, both as JSON;
    ``parsing`` are its settings of parsing that the study gives, likewise.
    """
    found = {one.name: one for one in findings.rows}
    rows = findings.work.study.rows
    return pd.DataFrame([_numbers(findings, row, found.get(row.name)) for row in rows])


def _numbers(findings: Findings, row: StudyRow, found: Measured | None) -> dict[str, object]:
    study = findings.work.study
    figure = "dev_" + "+".join(name for _, name in study.metric.terms)
    cells: dict[str, object] = {"system": row.name}
    if found is not None:
        score = found.score
        cells |= {
            "variant": found.config.variant,
            "settings": json.dumps(found.config.overrides),
            "limits": json.dumps(row.limit.model_dump(mode="json", exclude_defaults=True)),
            "parsing": json.dumps(row.parsing),
            "layers": found.layers,
            "seeds": score.seeds,
            figure: score.mean,
            f"{figure}_sd": score.sd,
        }
        cells |= {f"{figure}_seed{seed}": score for seed, score in found.scores.items()}
        early = {minutes: found.score_within(minutes) for minutes in study.minutes}
        cells |= {
            f"{figure}_after_{minutes:g}_minutes": one.mean if one else None
            for minutes, one in early.items()
        }
        for metric in study.beside:
            other = SeedMean.of(found.scores_by(metric).values())
            name = "dev_" + "+".join(name for _, name in metric.terms)
            cells |= {name: other and other.mean, f"{name}_sd": other and other.sd}
    difference = findings.differences.get(row.name)
    return cells | {
        "difference": difference.mean if difference else None,
        "difference_sd": difference.sd if difference else None,
        "p": findings.chances.get(row.name),
        f"published_{figure}": row.published,
        "published_difference": study.published_difference(row),
        "note": findings.work.left_out.get(row.name, ""),
    }


def study_document(findings: Findings) -> Document:
    """The table with its caption and notes."""
    study, rows = findings.work.study, findings.rows
    columns = {
        "system": [one.name for one in rows],
        study.measure: [mean_text(one.score) for one in rows],
    }
    if findings.several:
        columns["each seed"] = [" ".join(map("{:.2f}".format, one.scores.values())) for one in rows]
    for metric in study.beside:
        others = [SeedMean.of(one.scores_by(metric).values()) for one in rows]
        columns[f"dev {metric.title}"] = list(map(mean_text, others))
    for minutes in study.minutes:
        early = [one.score_within(minutes) for one in rows]
        if any(early):
            columns[f"after {minutes:g} min"] = list(map(mean_text, early))
    differences = [findings.differences.get(one.name) for one in rows]
    columns["difference"] = [mean_text(one, signed=True) for one in differences]
    if chances := findings.chances:
        columns["p"] = [f"{chances[one.name]:.4f}" if one.name in chances else "" for one in rows]
    published = [one.row.published for one in rows]
    if any(figure is not None for figure in published):
        theirs = [study.published_difference(one.row) for one in rows]
        columns["published"] = ["" if one is None else f"{one:.2f}" for one in published]
        columns["published difference"] = ["" if one is None else f"{one:+.2f}" for one in theirs]
    table = Table(
        title=findings.title,
        headings=list(columns),
        rows=list(zip(*columns.values(), strict=True)),
        numeric=frozenset(columns) - {"system"},
        notes=(
            findings.caption,
            f"Differences are to '{study.reference}', in points"
            + (", with their standard deviation over the seeds." if findings.several else "."),
            *([_P] if findings.chances else ()),
            f"Common to all signatures: `{findings.signature}`",
            *findings.notes,
            *([findings.reversals] if findings.reversals else ()),
        ),
    )
    return Document(f"Study {study.name}", tables=(table,))
