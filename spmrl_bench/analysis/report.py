"""The files of a study: tables for programs, readers and papers, and the figure."""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.analysis.drawing import load_matplotlib
from spmrl_bench.analysis.figure import draw_study
from spmrl_bench.analysis.summary import Summary
from spmrl_bench.analysis.table import latex, markdown, to_frame
from spmrl_bench.errors import RecordError, SpmrlError
from spmrl_bench.files import write_text


def write_report(summary: Summary, place: Path) -> str:
    """Write ``place.csv``, ``.md``, ``.tex``, ``.png`` and ``.svg``.

    Returns:
        Why there is no figure; empty if there is one. The tables do not wait for a library that
        only the figure needs.

    Raises:
        RecordError: a file cannot be written.
    """
    texts = {
        "csv": to_frame(summary).to_csv(index=False, lineterminator="\n"),
        "md": markdown(summary),
        "tex": latex(summary),
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
    sheet = draw_study(summary)
    for ending in ("png", "svg"):
        sheet.save(place.with_name(f"{place.name}.{ending}"))
    return ""
