"""The published figures that the program carries, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.published import COLUMNS, find_figure, read_figures

SPMRL = ("arabic", "basque", "french", "german", "hebrew", "hungarian", "korean", "polish")


def mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 2)


def test_averages_are_those_the_paper_prints() -> None:
    """Table 7 of Kitaev & Klein 2018 prints 88.38, 88.32 (dev) and 88.32 (test)."""
    figures = read_figures()
    for split, variant, printed in [
        ("dev", "charlstm", 88.38),
        ("dev", "word-charlstm", 88.32),
        ("test", None, 88.32),
    ]:
        values = [
            figure.value
            for figure in figures
            if figure.treebank.endswith("-spmrl")
            and figure.split == split
            and figure.variant == (variant or figure.variant)
        ]
        assert len(values) == 9
        assert mean(values) == printed


def test_test_figure_belongs_to_the_variant_that_dev_selects() -> None:
    figures = read_figures()
    for language in (*SPMRL, "swedish", "english"):
        dev = {
            variant: figure.value
            for variant in ("charlstm", "word-charlstm")
            if (figure := find_figure(figures, language=language, variant=variant, split="dev"))
        }
        better = max(dev, key=lambda variant: dev[variant])
        scored = {
            variant
            for variant in dev
            if find_figure(figures, language=language, variant=variant, split="test")
        }
        assert scored == {better}, language


def test_every_figure_names_its_source() -> None:
    assert all("Kitaev" in figure.source and "Table" in figure.source for figure in read_figures())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", r":1: columns are a,b; needed: system"),
        (",".join(COLUMNS) + "\nK,german,x,v,dev,f1,ninety,s\n", r":2: value 'ninety'"),
        (",".join(COLUMNS) + "\nK,german,x,v,dev,f1,901,s\n", r":2: value '901'"),
        (",".join(COLUMNS) + "\nK,german\n", r":2: needs 8 fields"),
    ],
)
def test_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "figures.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        read_figures(path)


def test_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"none\.csv: cannot read published figures"):
        read_figures(tmp_path / "none.csv")
