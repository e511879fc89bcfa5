"""The table of a study: unrounded numbers for programs, and the same for readers."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from spmrl_bench.analysis.definition import StudyRow
from spmrl_bench.analysis.drawing import load_matplotlib
from spmrl_bench.analysis.findings import Findings, Line, with_deviation
from spmrl_bench.analysis.study_picture import draw_study
from spmrl_bench.errors import RecordError, SpmrlError
from spmrl_bench.files import write_text
from spmrl_bench.leaderboard.formats import Document, Table, to_latex, to_markdown


def write_study(findings: Findings, place: Path) -> str:
    """Write ``place.csv``, ``.md``, ``.tex``, ``.png`` and ``.svg``.

    Returns:
        Why there is no picture; empty if there is one. The tables do not wait for a library that
        only the picture needs.

    Raises:
        RecordError: a file cannot be written.
    """
    texts = {
        "csv": to_frame(findings).to_csv(index=False, lineterminator="\n"),
        "md": markdown(findings),
        "tex": latex(findings),
    }
    for ending, text in texts.items():
        path = place.with_name(f"{place.name}.{ending}")
        try:
            write_text(path, text)
        except OSError as error:
            raise RecordError(f"{path}: cannot be written: {error.strerror}") from None
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
    and ``limits`` what was taken from the attention of the trained parser, both as JSON.
    """
    lines = {line.name: line for line in findings.lines}
    rows = findings.work.study.rows
    return pd.DataFrame([_numbers(findings, row, lines.get(row.name)) for row in rows])


def markdown(findings: Findings) -> str:
    """The table with its caption and notes as Markdown."""
    return to_markdown(_document(findings))


def latex(findings: Findings) -> str:
    """The same for LaTeX."""
    return to_latex(_document(findings))


def _numbers(findings: Findings, row: StudyRow, line: Line | None) -> dict[str, object]:
    study = findings.work.study
    figure = "dev_" + "+".join(name for _, name in study.metric.terms)
    cells: dict[str, object] = {"system": row.name}
    if line is not None:
        found = line.measured
        cells |= {
            "variant": found.config.variant,
            "settings": json.dumps(found.config.settings),
            "limits": json.dumps(row.limit.model_dump(mode="json", exclude_defaults=True)),
            "layers": line.layers,
            "seeds": line.score.seeds,
            figure: line.score.mean,
            f"{figure}_sd": line.score.sd,
        }
        cells |= {f"{figure}_seed{seed}": score for seed, score in found.scores.items()}
    difference = line.difference if line else None
    return cells | {
        "difference": difference.mean if difference else None,
        "difference_sd": difference.sd if difference else None,
        f"published_{figure}": row.published,
        "published_difference": study.published_difference(row),
        "note": findings.work.left_out.get(row.name, ""),
    }


def _document(findings: Findings) -> Document:
    study, lines = findings.work.study, findings.lines
    columns: dict[str, list[str]] = {"system": [line.name for line in lines]}
    columns[study.measure] = [with_deviation(line.score) for line in lines]
    if findings.several:
        columns["each seed"] = [
            " ".join(f"{score:.2f}" for score in line.measured.scores.values()) for line in lines
        ]
    columns["difference"] = [
        with_deviation(line.difference, "+.2f") if line.difference else "" for line in lines
    ]
    published = [line.measured.row.published for line in lines]
    if any(figure is not None for figure in published):
        columns["published"] = ["" if one is None else f"{one:.2f}" for one in published]
        columns["published difference"] = [
            "" if line.published_difference is None else f"{line.published_difference:+.2f}"
            for line in lines
        ]
    table = Table(
        title=findings.title,
        frame=pd.DataFrame(columns),
        numeric=frozenset(columns) - {"system"},
        notes=(
            findings.caption,
            f"Differences are to '{study.reference}', in points"
            + (", with their standard deviation over the seeds." if findings.several else "."),
            f"Common to all signatures: `{findings.signature}`",
            *findings.notes,
        ),
        items=findings.reversals,
    )
    return Document(f"Study {study.name}", tables=(table,))
