"""Every figure that the C programs print for the reference files, column by column."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import (
    BracketCounts,
    Column,
    Parameters,
    Status,
    load_prm,
    score_files,
    score_trees,
)
from tests.conftest import shared_data

REFERENCE = shared_data("evalb_reference")

# Parameter sets that are not part of the package, as that folder's README gives them.
_NEW = """#PROGRAM EVALB
DELETE_LABEL TOP
DELETE_LABEL S1
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL ?
DELETE_LABEL !
DELETE_LABEL_FOR_LENGTH -NONE-
QUOTE_LABEL ``
QUOTE_LABEL ''
QUOTE_LABEL POS
QUOTE_LABEL NN
QUOTE_LABEL CD
QUOTE_LABEL VBZ
QUOTE_LABEL :
EQ_LABEL ADVP PRT
"""
OTHER_SETS = {"new": _NEW, "nk": f"{_NEW}MAX_ERROR 10000\n"}
SETS = ("COLLINS", "spmrl", *OTHER_SETS)

FOLDERS = sorted(path.parent.name for path in REFERENCE.glob("*/gold.txt"))
FINISHED = [
    (folder, name)
    for folder in FOLDERS
    for name in SETS
    if (REFERENCE / folder / f"{name}.err").read_text().rstrip().endswith("exit 0")
]

# The C programs' statuses: scored, error, skip.
PRINTED_STATUS = {
    Status.VALID: 0,
    Status.LENGTH_UNMATCH: 1,
    Status.WORDS_UNMATCH: 1,
    Status.NO_WORDS: 2,
}


@pytest.fixture
def prm(request: pytest.FixtureRequest, tmp_path: Path) -> Parameters:
    name = request.param
    if name not in OTHER_SETS:
        return load_prm(name)
    path = tmp_path / f"{name}.prm"
    path.write_text(OTHER_SETS[name], encoding="utf-8")
    return load_prm(path)


def two_decimals(figure: float | None) -> str:
    """As the C programs print it, who print 0 for 0 of 0."""
    return f"{figure or 0.0:.2f}"


def printed_row(number: int, row: list[int]) -> list[str]:
    """The columns of one sentence's line on standard output."""
    length, status, matched, gold, test, crossing, words, tags = row
    return [
        str(number),
        str(length),
        str(PRINTED_STATUS[Status(status)]),
        two_decimals(100 * matched / gold if gold else None),
        two_decimals(100 * matched / test if test else None),
        *map(str, (matched, gold, test, crossing, words, tags)),
        two_decimals(100 * tags / words if words else None),
    ]


def printed_summary(counts: BracketCounts) -> list[str]:
    """The twelve values of a summary."""
    statuses = [PRINTED_STATUS[Status(s)] for s in counts.column(Column.STATUS).tolist()]
    return [
        str(len(counts)),
        str(statuses.count(1)),
        str(statuses.count(2)),
        str(counts.valid),
        two_decimals(counts.recall),
        two_decimals(counts.precision),
        two_decimals(counts.f1),
        two_decimals(counts.complete_match),
        two_decimals(counts.average_crossing),
        two_decimals(counts.no_crossing),
        two_decimals(counts.two_or_less_crossing),
        two_decimals(counts.tagging_accuracy),
    ]


@pytest.mark.parametrize(("folder", "prm"), FINISHED, indirect=["prm"])
def test_every_printed_figure(folder: str, prm: Parameters) -> None:
    counts = score_files(REFERENCE / folder / "gold.txt", REFERENCE / folder / "test.txt", prm)
    output = (REFERENCE / folder / f"{prm.name}.out").read_text(encoding="utf-8")
    _, sentences, rest = output.split("=" * 76 + "\n")
    rows = [line.split() for line in sentences.splitlines()]
    ours = [printed_row(number, row) for number, row in enumerate(counts.rows.tolist(), start=1)]
    assert ours == rows
    totals = printed_row(0, counts.rows.sum(axis=0, where=[[0, 0, *[1] * 6]]).tolist())
    assert totals[3:] == rest.splitlines()[0].split()
    _, everything, limited = rest.split("\n-- ")
    for part, summarised in ((everything, counts), (limited, counts.up_to(prm.cutoff_len))):
        title, *lines = part.strip().splitlines()
        assert title in ("All --", f"len<={prm.cutoff_len} --")
        assert [line.split("=")[1].strip() for line in lines] == printed_summary(summarised)


STOPPED = [("wsj_punct_tags", "COLLINS"), ("wsj_punct_tags", "new")]


@pytest.mark.parametrize(("folder", "prm"), STOPPED, indirect=["prm"])
def test_goes_on_where_the_program_gave_up(folder: str, prm: Parameters) -> None:
    counts = score_files(REFERENCE / folder / "gold.txt", REFERENCE / folder / "test.txt", prm)
    output = (REFERENCE / folder / f"{prm.name}.out").read_text(encoding="utf-8")
    _, sentences = output.split("=" * 76 + "\n")
    rows = [line.split() for line in sentences.splitlines()]
    ours = [printed_row(number, row) for number, row in enumerate(counts.rows.tolist(), start=1)]
    assert prm.max_error < counts.skipped
    assert len(rows) < len(ours) == 245
    assert ours[: len(rows)] == rows


def table(name: str) -> list[dict[str, str]]:
    with (REFERENCE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


EDGE_CASES = {row["case"]: row for row in table("edge_cases.tsv")}
EXPECTED = {
    (row["case"], row["prm"]): row for row in table("edge_cases_expected.tsv") if row["flags"] == ""
}


@pytest.mark.parametrize("prm", SETS, indirect=True)
@pytest.mark.parametrize("case", EDGE_CASES)
def test_edge_case(case: str, prm: Parameters) -> None:
    expected = EXPECTED[case, prm.name]
    around = "(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c)))))"
    gold, test = (
        [
            parse_brackets(text, escapes="brackets", blank="tree")
            for text in (around, EDGE_CASES[case][side], around)
        ]
        for side in ("gold", "test")
    )
    counts = score_trees(gold, test, prm)
    row = printed_row(2, counts.rows[1].tolist())
    summary = printed_summary(counts)
    if counts.rows[1, Column.STATUS] == Status.LENGTH_UNMATCH and prm.name == "spmrl":
        # EVALB_SPMRL counts the sentence as scored, with nothing in it; we as an error.
        row[2], summary[1], summary[3] = "0", "0", "3"
    keys = "sentences error skip valid recall precision fmeasure complete_match average_crossing"
    assert summary[:9] == [expected[key] for key in keys.split()]
    assert summary[-1] == expected["tagging_accuracy"]
    assert row == expected["row_of_sentence_2"].split()
