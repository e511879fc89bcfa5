"""The published figures that the program carries, and files that are none."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from spmrl_bench.errors import RecordError
from spmrl_bench.leaderboard.published import (
    COLUMNS,
    PRIOR_COLUMNS,
    find_figure,
    read_figures,
    read_prior_work,
)
from tests.conftest import shared_data

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
        (",".join(COLUMNS) + "\nK,german,x,v,dev,f1,90,\n", r":2: source is empty"),
        (",".join(COLUMNS) + "\nK,german,x,v,train,f1,90,s\n", r":2: split 'train'; allowed: dev"),
        (",".join(COLUMNS) + "\nK,german,x,v,dev,F1,90,s\n", r":2: metric 'F1'; allowed: recall"),
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


PRIOR_LINE = "S,P (ACL),{year},german,german-spmrl,{setting},test,f1,{value},Table 1\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (PRIOR_LINE.format(year="MMXX", setting="", value="90"), r":2: year 'MMXX' is not a year"),
        (PRIOR_LINE.format(year="2020", setting="", value="nan"), r":2: value 'nan' is not a perc"),
        ("S,P\n", r":2: needs 10 fields: system,paper,year"),
    ],
)
def test_wrong_file_of_prior_work_is_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "prior.csv"
    path.write_text(",".join(PRIOR_COLUMNS) + "\n" + line, encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        read_prior_work(path)


def test_setting_of_prior_work_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "prior.csv"
    line = PRIOR_LINE.format(year="2020", setting="", value="90.5")
    path.write_text(",".join(PRIOR_COLUMNS) + "\n" + line, encoding="utf-8")
    (figure,) = read_prior_work(path)
    assert (figure.year, figure.setting, figure.value) == (2020, "", 90.5)


def test_prior_work_has_values_and_sources() -> None:
    figures = read_prior_work()
    languages = {*SPMRL, "swedish", "english"}
    for figure in figures:
        assert 0 <= figure.value <= 100
        assert figure.language in languages
        assert figure.treebank in (f"{figure.language}-spmrl", f"{figure.language}-ptb")
        assert "Table" in figure.source or "README" in figure.source
        assert str(figure.year) in figure.paper or "software" in figure.paper
    keys = [
        (one.system, one.setting, one.treebank, one.split, one.metric, one.source)
        for one in figures
    ]
    assert len(set(keys)) == len(keys)


def test_f1_of_prior_work_follows_from_recall_and_precision() -> None:
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    for one in read_prior_work():
        key = (one.system, one.setting, one.treebank)
        values.setdefault(key, {})[f"{one.split} {one.metric}"] = one.value
    whole = [found for found in values.values() if "test recall" in found]
    assert len(whole) > 10
    for found in whole:
        recall, precision = found["test recall"], found["test precision"]
        assert found["test f1"] == pytest.approx(
            2 * recall * precision / (recall + precision), abs=0.06
        )


@pytest.mark.parametrize(
    ("system", "split", "printed"),
    [
        ("Björkelund et al. 2014", "test", 86.12),
        ("Coavoux & Crabbé 2017", "dev", 87.16),
        ("Coavoux & Crabbé 2017", "test", 87.27),
        ("Kitaev et al. 2019, mBERT", "test", 91.01),
        ("Kitaev et al. 2019, mBERT joint", "test", 90.73),
    ],
)
def test_averages_of_prior_work_are_those_the_papers_print(
    system: str, split: str, printed: float
) -> None:
    values = [
        one.value
        for one in read_prior_work()
        if (one.system, one.split, one.metric) == (system, split, "f1")
        and one.treebank.endswith("-spmrl")
    ]
    assert len(values) == 9
    assert sum(values) / 9 == pytest.approx(printed, abs=0.01)


def test_published_figures_are_those_of_the_collection() -> None:
    """Each number of ours is one of the same treebank, year, split and metric there."""
    path = shared_data("published/constituency.csv")
    metrics = {"F1": "f1", "LR": "recall", "LP": "precision"}
    treebanks = {"WSJ": "english-ptb"}
    known = set()
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            language = row["treebank"].partition("SPMRL-")[2].lower()
            treebank = treebanks.get(row["treebank"], f"{language}-spmrl")
            if row["metric"] in metrics:
                year = row["year"]
                known.add(
                    (treebank, year, row["split"], metrics[row["metric"]], float(row["value"]))
                )
    prior = {
        (one.treebank, str(one.year), one.split, one.metric, one.value) for one in read_prior_work()
    }
    ours = {(one.treebank, "2018", one.split, one.metric, one.value) for one in read_figures()}
    assert (prior | ours) - known == set()
