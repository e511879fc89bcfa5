"""Official programs: whatever goes wrong in one, no score comes out; a sound one becomes counts."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

from spmrl_bench.data import data_dir
from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.scoring import BracketCounts, Program, load_prm, score_files
from spmrl_bench.scoring.official import first_difference, score_with_program
from tests.conftest import PATIENCE, shared_data
from tests.scoring.official_examples import (
    GOLD,
    OF_ONE,
    OUTPUT,
    ROWS,
    TEST,
    TWO_LEFT_OUT,
    TWO_LEFT_OUT_ERRORS,
    fake_program,
    prints,
)

COLLINS = load_prm("COLLINS")
SPMRL = load_prm("spmrl")


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.mrg"
    path.write_text(GOLD, encoding="utf-8")
    return path


@pytest.fixture
def test(tmp_path: Path) -> Path:
    path = tmp_path / "test.mrg"
    path.write_text(TEST, encoding="utf-8")
    return path


def test_a_sound_program_becomes_the_counts_of_our_own(
    tmp_path: Path, gold: Path, test: Path
) -> None:
    binary = fake_program(tmp_path / "evalb", prints(OUTPUT))
    score = score_with_program(binary, gold, test, COLLINS)
    assert score.counts.rows.tolist() == ROWS
    assert score.program is Program.EVALB
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    assert score.sha256 == digest
    assert score.scorer == f"evalb({digest[:8]})"
    assert first_difference(score, score_files(gold, test, COLLINS)) is None


ROW_2 = "   2    3    0   33.33  33.33     1      3    3      1      3     3   100.00\n"
FULL_OF_ERRORS = "".join(f"{n} : Length unmatch (1|2)\n" for n in range(1, 13))

FAILURES = {
    "exit 1 after the summary": (prints(OUTPUT, then="exit 1"), "exit status 1$"),
    "exit 1 after too many errors": (
        prints("", FULL_OF_ERRORS, "exit 1"),
        r"exit status 1 \(the parameters say MAX_ERROR 10\).*'12 : Length unmatch \(1\|2\)'",
    ),
    "exit 0 without the summary": (
        prints(OUTPUT[: OUTPUT.index("=== Summary")]),
        "output line 9: it ends where '=== Summary ===' should be",
    ),
    "no output": (prints(""), "output line 1: it ends where"),
    "crash": (prints(OUTPUT, then="kill -SEGV $$"), "was ended by SIGSEGV"),
    "abort": (prints(OUTPUT, "*** stack smashing ***", "kill -ABRT $$"), "SIGABRT.*smashing"),
    "hang": (prints(OUTPUT, then="sleep 1000"), "did not finish within 0.5 seconds"),
    "a row is missing": (
        prints(OUTPUT.replace(ROW_2, "")),
        "output line 5: expected the row of sentence 2, found that of sentence 3",
    ),
    "the last row is missing": (
        prints(re.sub("   3    2 .*\n", "", OUTPUT)),
        "output line 6: expected the row of sentence 3, found '=====",
    ),
    "a row is there twice": (
        prints(OUTPUT.replace(ROW_2, 2 * ROW_2)),
        "output line 6: expected the row of sentence 3, found that of sentence 2 again",
    ),
    "one row too many": (
        prints(OUTPUT.replace(ROW_2, ROW_2 * 2).replace("   3    2", "   4    2", 1)),
        "output line 6: expected the row of sentence 3",
    ),
    "F is not a number": (
        prints(OUTPUT.replace("FMeasure       =  62.50", "FMeasure       =   -nan", 1)),
        "expected a number for 'Bracketing FMeasure' of the summary '-- All --', found .*-nan",
    ),
    "totals contradict the rows": (
        prints(OUTPUT.replace("Recall         =  62.50", "Recall         =  92.50", 1)),
        "'Bracketing Recall' of the summary '-- All --' is 92.50, but the rows give 62.50",
    ),
    "the second summary contradicts the rows": (
        prints("92.50".join(OUTPUT.rsplit("87.50", 1))),
        "'Tagging accuracy' of the summary '-- len<=40 --' is 92.50, but the rows give 87.50",
    ),
    "the line of totals contradicts the rows": (
        prints(OUTPUT.replace("5     8     8", "5     9     8")),
        "output line 8: the total of gold is 9, but the rows give 8",
    ),
    "a row contradicts itself": (
        prints(OUTPUT.replace("33.33  33.33     1", "33.33  33.33     2")),
        "output line 5: sentence 2 has recall 33.33, but its counts 2 of 3 give 66.67",
    ),
    "impossible counts": (
        prints(OUTPUT.replace("1      3    3", "4      3    3")),
        "output line 5: the counts of sentence 2 are impossible",
    ),
    "errors in the summary only": (
        prints(OUTPUT.replace("Error sentence  =      0", "Error sentence  =      1", 1)),
        "'Number of Error sentence' of the summary '-- All --' is 1, but the rows give 0",
    ),
    "sentences in the summary": (
        prints(OUTPUT.replace("of sentence        =      3", "of sentence        =      2", 1)),
        "'Number of sentence' of the summary '-- All --' is 2, but the rows give 3",
    ),
    "sentences left out": (
        prints(TWO_LEFT_OUT, TWO_LEFT_OUT_ERRORS),
        "2 of 3 sentences .*: sentence 2: different words; sentence 3: no parse.*--allow-skipped",
    ),
    "an error that standard error does not know": (
        prints(TWO_LEFT_OUT),
        r"output line 5: sentence 2 has an error \(status 1\) of which standard error says nothing",
    ),
    "an error that the rows do not know": (
        prints(OUTPUT, "1 : Length unmatch (3|4)\n"),
        "output line 4: sentence 1 has the status 0, but standard error .* number of words",
    ),
    "unknown status": (
        prints(OUTPUT.replace("   2    3    0", "   2    3    7")),
        "output line 5: sentence 2 has the status 7",
    ),
    "truncated row": (
        prints(OUTPUT.replace(ROW_2, ROW_2[:40] + "\n")),
        "output line 5: expected the row of sentence 2, found '   2    3    0   33.33  33.33",
    ),
    "truncated at the end": (prints(OUTPUT[:-4]), "line 37: it ends in 'Tagging accuracy"),
    "two rows in one": (prints(OUTPUT.replace("100.00\n   2", "100.00   2")), "output line 4"),
    "something after the end": (
        prints(f"{OUTPUT}Segmentation fault\n"),
        "output line 38: expected the end, found 'Segmentation fault'",
    ),
    "binary garbage": (
        prints(OUTPUT.replace("33.33", "\xff\x00\x9c", 1).encode("latin-1")),
        "output line 5: byte 0xff is no text",
    ),
    "zero bytes": (prints(OUTPUT.replace(ROW_2, "\0" * 70 + "\n")), r"output line 5: .*\\x00"),
    "commas in numbers": (prints(OUTPUT.replace("3.33", "3,33")), "output line 5: expected the"),
    "another cut-off": (
        prints(OUTPUT.replace("len<=40", "len<=70")),
        "expected '-- len<=40 --', found '-- len<=70 --'",
    ),
    "trouble on standard error": (
        prints(OUTPUT, "Unknown keyword (EQ_LABLE) in parameter file\n"),
        r"standard error: 'Unknown keyword \(EQ_LABLE\)",
    ),
    "files of different length": (
        prints(OUTPUT, "3 : Number of lines unmatch (too many lines in gold file)\n"),
        "standard error: '3 : Number of lines unmatch",
    ),
    "an error in a sentence that does not exist": (
        prints(OUTPUT, "4 : Words unmatch (a|b)\n"),
        "standard error: '4 : Words unmatch .*there is no such sentence",
    ),
    "output without end": (prints(OUTPUT, then="yes"), r"wrote more than 1,001,500 bytes on sta"),
    "errors without end": (prints(OUTPUT, then="yes >&2"), r"more than .* on standard error"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_program_that_fails_gives_no_score(
    tmp_path: Path, gold: Path, test: Path, failure: str
) -> None:
    body, message = FAILURES[failure]
    binary = fake_program(tmp_path / "evalb", body)
    timeout = 0.5 if failure == "hang" else PATIENCE
    with pytest.raises(ScoreError, match=message) as caught:
        score_with_program(binary, gold, test, COLLINS, timeout=timeout)
    assert "evalb" in str(caught.value).casefold()


def missing(_: Path) -> None:
    pass


def folder(path: Path) -> None:
    path.mkdir()


def not_executable(path: Path) -> None:
    fake_program(path, prints(OUTPUT)).chmod(0o644)


def no_program(path: Path) -> None:
    path.write_bytes(b"\x00\x01not a program")
    path.chmod(0o755)


def other_program(path: Path) -> None:
    fake_program(path, prints(OUTPUT), of_one="hello\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (missing, "evalb: cannot be read: No such file"),
        (folder, "evalb: cannot be read: Is a directory"),
        (not_executable, "evalb: cannot be run: Permission denied"),
        (no_program, "evalb: cannot be run: Exec format error"),
        (other_program, r"evalb: output line 1: .*found 'hello' \(on a test sentence"),
    ],
)
def test_what_is_no_program_gives_no_score(
    tmp_path: Path, gold: Path, test: Path, make, message: str
) -> None:
    make(tmp_path / "evalb")
    with pytest.raises(ScoreError, match=message):
        score_with_program(tmp_path / "evalb", gold, test, COLLINS)


def test_the_other_program_is_recognised(tmp_path: Path, gold: Path, test: Path) -> None:
    of_one = OF_ONE.replace("1     1   100.00\n", "2     2   100.00\n")
    binary = fake_program(tmp_path / "e", prints(OUTPUT), of_one)
    with pytest.raises(ScoreError, match=r"is EVALB_SPMRL, but .* COLLINS is for EVALB,"):
        score_with_program(binary, gold, test, COLLINS)
    binary = fake_program(tmp_path / "e", prints(OUTPUT))
    with pytest.raises(ScoreError, match=r"is EVALB, but .* spmrl is for EVALB_SPMRL"):
        score_with_program(binary, gold, test, SPMRL)


def test_left_out_sentences_may_be_allowed(tmp_path: Path, gold: Path, test: Path) -> None:
    binary = fake_program(tmp_path / "evalb", prints(TWO_LEFT_OUT, TWO_LEFT_OUT_ERRORS))
    score = score_with_program(binary, gold, test, COLLINS, allow_skipped=True)
    assert score.counts.rows.tolist() == [ROWS[0], [3, 2, *[0] * 6], [2, 3, *[0] * 6]]


def test_a_sentence_that_spmrl_counts_as_scored_is_left_out(
    tmp_path: Path, gold: Path, test: Path
) -> None:
    """EVALB_SPMRL complains of unequal lengths, but prints status 0 and counts it as complete."""
    output = (
        OUTPUT.replace(ROW_2, ROW_2[:14] + TWO_LEFT_OUT.splitlines()[4][14:] + "\n")
        .replace("62.50", "80.00")
        .replace("5     8     8      1      8     7    87.50", "4 5 5 0 5 4 80.00")
        .replace("33.33", "66.67")
        .replace("  0.33", "  0.00")
        .replace("No crossing               =  66.67", "No crossing               = 100.00")
        .replace("87.50", "80.00")
        .replace("len<=40", "len<=70")
    )
    of_one = OF_ONE.replace("1     1   100.00\n", "2     2   100.00\n")
    body = prints(output, "2 : Length unmatch (3|4)\n")
    binary = fake_program(tmp_path / "evalb_spmrl", body, of_one)
    score = score_with_program(binary, gold, test, SPMRL, allow_skipped=True)
    assert score.counts.rows.tolist() == [ROWS[0], [3, 1, *[0] * 6], ROWS[2]]
    with pytest.raises(ScoreError, match=r"1 of 3 .*sentence 2: different number of words"):
        score_with_program(binary, gold, test, SPMRL)


def test_it_runs_in_a_folder_of_its_own(
    tmp_path: Path, gold: Path, test: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    body = f'echo x > status; pwd > {tmp_path}/pwd; cat "$2" > {tmp_path}/seen; {prints(OUTPUT)}'
    score_with_program(fake_program(tmp_path / "evalb", body), gold, test, COLLINS)
    assert not (tmp_path / "status").exists()
    used = Path((tmp_path / "pwd").read_text().strip())
    assert used != tmp_path
    assert not used.exists()
    (tmp_path / "seen.prm").write_text("#PROGRAM EVALB\n" + (tmp_path / "seen").read_text())
    assert load_prm(tmp_path / "seen.prm").sha256 == COLLINS.sha256


def test_trees_reach_it_one_per_line(tmp_path: Path) -> None:
    indented = tmp_path / "gold.mrg"
    text = GOLD.replace(" (VP", "\r\n    (VP") + "\n\n"
    indented.write_bytes(b"\xef\xbb\xbf" + text.replace("dog", "Hündin").encode())
    test = tmp_path / "test.mrg"
    test.write_text(TEST, encoding="latin-1")
    body = f'cat "$3" > {tmp_path}/seen; {prints(OUTPUT)}'
    binary = fake_program(tmp_path / "evalb", body)
    score_with_program(binary, indented, test, COLLINS)
    seen = (tmp_path / "seen").read_bytes().decode().removesuffix("\n").split("\n")
    assert [" ".join(line.split()) for line in seen] == GOLD.replace("dog", "Hündin").splitlines()


@pytest.mark.parametrize(
    ("gold_text", "test_text", "error", "message"),
    [
        (GOLD, TEST[:-10], ReadError, "test.mrg:3"),
        (GOLD, "\n".join(TEST.splitlines()[:2]), ScoreError, "gold.mrg has 3 .*test.mrg has 2"),
        (GOLD, "", ScoreError, "test.mrg: holds no tree"),
        (GOLD, TEST.replace("dog", "d" * 100), ScoreError, "sentence 2 has 100 bytes in a word"),
    ],
)
def test_files_that_it_must_not_see(
    tmp_path: Path,
    gold: Path,
    test: Path,
    gold_text: str,
    test_text: str,
    error: type[Exception],
    message: str,
) -> None:
    gold.write_text(gold_text, encoding="utf-8")
    test.write_text(test_text, encoding="utf-8")
    binary = fake_program(tmp_path / "evalb", f"touch {tmp_path}/ran; {prints(OUTPUT)}")
    with pytest.raises(error, match=message):
        score_with_program(binary, gold, test, COLLINS)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (1, 5, 2, r"sentence 2, crossing: evalb\(\w{8}\) 1, own scorer 2"),
        (2, 1, 2, "sentence 3, status: .* valid, own scorer different words"),
        (0, 0, 9, "sentence 1, length: .* 3, own scorer 9"),
    ],
)
def test_the_first_difference_is_named(
    tmp_path: Path, gold: Path, test: Path, row: int, column: int, value: int, message: str
) -> None:
    score = score_with_program(
        fake_program(tmp_path / "evalb", prints(OUTPUT)), gold, test, COLLINS
    )
    other = [list(counts) for counts in ROWS]
    other[row][column] = value
    other[2][7] = 2
    difference = first_difference(score, BracketCounts.from_rows(other))
    assert difference is not None
    assert re.fullmatch(message, difference)


BINARIES = {program: os.environ.get(program.value) for program in Program}


def binary_of(program: Program) -> str:
    path = BINARIES[program]
    if not path:
        pytest.skip(f"no {program} binary (set the environment variable {program})")
    return path


PARAMETER_SETS = sorted(path.stem for path in data_dir("evalb").glob("*.prm"))
FOLDERS = (
    "sequoia_brackets",
    "sequoia_features",
    "sequoia_missing",
    "sequoia_punct_tags",
    "wsj_brackets",
    "wsj_punct_tags",
    "wsj_tags",
)


@pytest.mark.parametrize("name", PARAMETER_SETS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_real_programs_agree_with_our_own(name: str, folder: str) -> None:
    prm = load_prm(name)
    binary = binary_of(prm.program)
    files = [shared_data(f"evalb_reference/{folder}/{side}.txt") for side in ("gold", "test")]
    own = score_files(*files, prm)
    if own.skipped > prm.max_error:
        with pytest.raises(ScoreError, match=f"MAX_ERROR {prm.max_error}"):
            score_with_program(binary, *files, prm, allow_skipped=True)
        return
    score = score_with_program(binary, *files, prm, allow_skipped=True)
    assert first_difference(score, own) is None


@pytest.mark.parametrize("prm", [COLLINS, SPMRL], ids=lambda prm: prm.name)
def test_the_real_programs_on_invented_sentences(prm, gold: Path, test: Path) -> None:
    score = score_with_program(binary_of(prm.program), gold, test, prm)
    assert score.counts.rows.tolist() == ROWS
