"""Parameter files: what they say, and that nothing wrong in one is ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import Parameters, Program, load_prm
from spmrl_bench.scoring.evalb import label_rules
from tests.reliability.tally import Tally


def write(folder: Path, text: str, name: str = "own.prm") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_published_sets() -> None:
    """Their limits; what counts as equal or is removed is in their digests."""
    limits = {
        "COLLINS": (Program.EVALB, 10, 40, "007b6fa9"),
        "new": (Program.EVALB, 10, 40, "902fadeb"),
        "nk": (Program.EVALB, 10000, 40, "902fadeb"),
        "spmrl": (Program.EVALB_SPMRL, 10000, 70, "190d4840"),
        "spmrl_hebrew": (Program.EVALB_SPMRL, 10000, 40, "219ee644"),
    }
    sets = {name: load_prm(name) for name in limits}
    assert limits == {
        name: (prm.program, prm.max_error, prm.cutoff_len, prm.sha256[:8])
        for name, prm in sets.items()
    }


def test_what_a_file_leaves_out_has_the_default_of_the_c_programs(tmp_path: Path) -> None:
    prm = load_prm(write(tmp_path, "#PROGRAM EVALB\n"))
    assert (prm.max_error, prm.cutoff_len, prm.labeled, prm.debug) == (10, 40, True, 0)
    assert not prm.delete_labels


def test_unknown_name_says_what_exists() -> None:
    with pytest.raises(ScoreError, match=r"'COLINS'\. Did you mean COLLINS\?.*spmrl"):
        load_prm("COLINS")


def test_absent_file_is_named() -> None:
    for path in ("nowhere.prm", "./COLLINS", "folder/COLLINS"):
        with pytest.raises(ScoreError, match="cannot read"):
            load_prm(path)


#: Lines behind the first, and what is said of them.
MISTAKES = [
    ("DELETE_LABELS TOP", r":2: unknown key 'DELETE_LABELS'.*DELETE_LABEL\b"),
    ("delete_label TOP", ":2: unknown key 'delete_label'"),
    ("  # indented", ":2: unknown key '#'"),
    ("DELETE\0LABEL TOP", ":2: unknown key"),
    ("A" * (1 << 20), ":2: unknown key 'AAA"),
    ("DELETE_LABEL", ":2: DELETE_LABEL takes one value, found 0"),
    ("DELETE_LABEL TOP S1", ":2: DELETE_LABEL takes one value, found 2"),
    ("EQ_LABEL ADVP", ":2: EQ_LABEL takes two values, found 1"),
    ("EQ_WORD a b c", ":2: EQ_WORD takes two values, found 3"),
    *((f"CUTOFF_LEN {number}", ":2: CUTOFF_LEN takes one number, found")
      for number in ("", "1 2", "forty", "-1", "1.5", "\u0664\u0660", "9" * 5000)),
    ("LABELED 2", ":2: LABELED must be 0 or 1"),
    ("CUTOFF_LEN 40\nCUTOFF_LEN 70", ":3: CUTOFF_LEN was set in line 2 already"),
    ("#PROGRAM EVALB_SPMRL", ":2: declares EVALB_SPMRL, but an earlier line EVALB"),
    ("#PROGRAM evalc", ":2: unknown program 'evalc'"),
    ("#PROGRAM", ":2: unknown program ''"),
    ("EQ_LABEL A B\nEQ_LABEL B C", ": EQ_LABEL makes B equal to A and to C"),
]  # fmt: skip


def test_a_line_that_makes_no_sense_is_an_error(tmp_path: Path, tally: Tally) -> None:
    held = tally("R11", "malformed")
    for lines, problem in MISTAKES:
        held.add()
        with pytest.raises(ScoreError, match=rf"own\.prm{problem}") as caught:
            load_prm(write(tmp_path, f"#PROGRAM EVALB\n{lines}\n"))
        assert len(str(caught.value)) < 1500


def test_a_line_that_the_c_programs_ignore_is_named(tmp_path: Path) -> None:
    prm = load_prm(write(tmp_path, "#PROGRAM EVALB\n  DELETE_LABEL TOP\n"))
    assert prm.delete_labels == {"TOP"}
    (note,) = prm.notes
    assert "own.prm:2: counts, although the C programs ignore" in note


def test_quotes_contradict_a_program_that_removes_no_words(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match="QUOTE_LABEL"):
        load_prm(write(tmp_path, "#PROGRAM EVALB_SPMRL\nQUOTE_LABEL ``\n"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.prm"
    path.write_bytes(b"#PROGRAM EVALB\nDELETE_LABEL \xff\n")
    with pytest.raises(ScoreError, match="UTF-8"):
        load_prm(path)


def test_a_file_without_a_program_is_evalbs_and_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, "DELETE_LABEL TOP\n")
    prm = load_prm(path)
    assert prm.program is Program.EVALB
    (note,) = prm.notes
    assert note.startswith(f"{path}: taken for a file of EVALB, since")
    assert prm == load_prm(path, Program.EVALB)
    assert load_prm(path, Program.EVALB).notes == load_prm("COLLINS").notes == ()
    assert load_prm(path, "evalb_spmrl").program is Program.EVALB_SPMRL
    assert load_prm(write(tmp_path, "#PROGRAM Evalb_Spmrl\n")).program is Program.EVALB_SPMRL
    with pytest.raises(ScoreError, match="unknown program 'PARSEVAL'"):
        load_prm(path, "PARSEVAL")
    with pytest.raises(ScoreError, match="declares EVALB, but EVALB_SPMRL was asked for"):
        load_prm("COLLINS", "EVALB_SPMRL")


def test_an_equivalence_of_three_is_accepted_when_complete(tmp_path: Path) -> None:
    prm = load_prm(write(tmp_path, "#PROGRAM EVALB\nEQ_LABEL B A\nEQ_LABEL B C\nEQ_LABEL C A\n"))
    assert prm.eq_labels == {("A", "B"), ("B", "C"), ("A", "C")}
    assert len(set(map(label_rules(prm).label, "ABC"))) == 1


def test_hash_follows_the_meaning_not_the_text(tmp_path: Path) -> None:
    def parsed(text: str, name: str = "own.prm") -> Parameters:
        return load_prm(write(tmp_path, f"#PROGRAM EVALB\n{text}", name))

    base = parsed("DELETE_LABEL A\nDELETE_LABEL B\nEQ_LABEL C D\n")
    same = parsed("# x\nMAX_ERROR 7\nEQ_LABEL D C\n\nDELETE_LABEL B\nDELETE_LABEL A\n", "b.prm")
    assert base.sha256 == same.sha256
    others = [
        parsed(text)
        for text in (
            "DELETE_LABEL A\nDELETE_LABEL B\n",
            "DELETE_LABEL A\nDELETE_LABEL B\nEQ_WORD C D\n",
            "DELETE_LABEL A\nDELETE_LABEL B\nEQ_LABEL C D\nLABELED 0\n",
            "DELETE_LABEL A\nDELETE_LABEL B\nEQ_LABEL C D\nCUTOFF_LEN 41\n",
            "DELETE_LABEL A\nDELETE_LABEL_FOR_LENGTH B\nEQ_LABEL C D\n",
            "DELETE_LABEL A\nQUOTE_LABEL B\nEQ_LABEL C D\n",
        )
    ]
    assert len({prm.sha256 for prm in (base, *others)}) == len(others) + 1
    plain = write(tmp_path, "DELETE_LABEL A\n")
    assert load_prm(plain, "EVALB").sha256 != load_prm(plain, "EVALB_SPMRL").sha256
