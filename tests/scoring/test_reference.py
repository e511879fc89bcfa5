"""Everything that the C programs printed for the reference files, byte for byte."""

from __future__ import annotations

import csv

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import Status, load_prm, score_trees
from spmrl_bench.scoring.texts import read_sides
from tests.conftest import shared_data
from tests.reliability.tally import Tally
from tests.scoring.hostile import as_trees
from tests.scoring.test_evalb_format import form, options

REFERENCE = shared_data("evalb_reference")
OUTPUTS = sorted(f"{path.parent.name}/{path.stem}" for path in REFERENCE.glob("*/*.out"))
FINISHED = [
    output
    for output in OUTPUTS
    if (REFERENCE / f"{output}.err").read_text().rstrip().endswith("exit 0")
]
GAVE_UP = sorted({*OUTPUTS} - {*FINISHED})


def printed(output: str) -> str:
    """Our output for a reference output such as ``sequoia_missing/spmrl_X``."""
    folder, name = output.split("/")
    sides = read_sides(REFERENCE / folder / "gold.txt", REFERENCE / folder / "test.txt")
    return form(*sides, *options(name))


def test_there_is_something_to_compare_with() -> None:
    assert len(FINISHED) >= 35
    assert len(GAVE_UP) == 2


def test_reference_output_byte_for_byte(tally: Tally) -> None:
    for output in FINISHED:
        tally("R1", "whole outputs of the C programs for files, byte by byte").add()
        assert printed(output).encode() == (REFERENCE / f"{output}.out").read_bytes()


@pytest.mark.parametrize("output", GAVE_UP)
def test_goes_on_where_the_program_gave_up(output: str) -> None:
    folder, name = output.split("/")
    with pytest.raises(ScoreError, match=r"EVALB gives up after 11 .* and here are 1[2-9];"):
        printed(output)
    of_all = printed(f"{folder}/nk").splitlines()  # as new, with a larger MAX_ERROR
    if name == "new":
        begun = (REFERENCE / f"{output}.out").read_text(encoding="utf-8").splitlines()
        assert of_all[: len(begun)] == begun
    prm = load_prm(name)
    gold, test = read_sides(REFERENCE / folder / "gold.txt", REFERENCE / folder / "test.txt")
    counts = score_trees(gold, test, prm)
    assert len(counts) == 245
    assert prm.max_error < len(counts.sentences_with(Status.LENGTH_UNMATCH)) < 20


def table(name: str) -> list[dict[str, str]]:
    with (REFERENCE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


EDGE_CASES = {row["case"]: row for row in table("edge_cases.tsv")}
EXPECTED = table("edge_cases_expected.tsv")
AROUND = "(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c)))))"
SUMMARY = {
    "sentences": "Number of sentence",
    "error": "Number of Error sentence",
    "skip": "Number of Skip  sentence",
    "valid": "Number of Valid sentence",
    "recall": "Bracketing Recall",
    "precision": "Bracketing Precision",
    "fmeasure": "Bracketing FMeasure",
    "complete_match": "Complete match",
    "average_crossing": "Average crossing",
    "tagging_accuracy": "Tagging accuracy",
}


def test_edge_case(tally: Tally) -> None:
    for expected in EXPECTED:
        tally("R1", "single pairs of trees and the rows that the C programs print").add()
        case = EDGE_CASES[expected["case"]]
        sides = (as_trees([AROUND, case[side] or "", AROUND]) for side in ("gold", "test"))
        lines = form(
            *sides, *options(expected["prm"] + expected["flags"].replace("-", "_"))
        ).splitlines()
        assert lines[4].strip() == expected["row_of_sentence_2"].strip()
        of_all = dict(line.split("=") for line in lines[lines.index("-- All --") + 1 :][:12])
        found = {title.strip(): figure.strip() for title, figure in of_all.items()}
        assert {key: found[title] for key, title in SUMMARY.items()} == {
            key: expected[key] for key in SUMMARY
        }
        assert expected["exit"] == "0"
