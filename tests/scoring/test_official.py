"""Official programs: whatever goes wrong in one, no score comes out; a sound one confirms it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import Parameters, Policy, Program, load_prm, score_files
from spmrl_bench.scoring.official import as_evalb, check_against_program
from spmrl_bench.scoring.texts import read_sides
from spmrl_bench.storage.paths import data_dir
from tests.conftest import PATIENCE, shared_data
from tests.reliability.tally import Tally
from tests.scoring.programs import (
    GOLD,
    LOSING,
    OUTPUT,
    TEST,
    TWO_LEFT_OUT,
    fake_program,
    prints,
    program,
)

COLLINS = load_prm("COLLINS")
SPMRL = load_prm("spmrl")


def write(folder: Path, gold: str = GOLD, test: str = TEST) -> tuple[Path, Path]:
    """Both files in a folder."""
    for name, text in (("gold.mrg", gold), ("test.mrg", test)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "gold.mrg", folder / "test.mrg"


def confirmed(
    binary: Path | str,
    files: tuple[Path, Path],
    prm: Parameters = COLLINS,
    *,
    allow_skipped: bool = False,
    timeout: float = PATIENCE,
) -> str:
    """The program's name, if it counts as we do."""
    counts = score_files(*files, prm)
    return check_against_program(
        binary, *files, counts, prm, allow_skipped=allow_skipped, timeout=timeout
    )


def test_a_sound_program_is_named_with_its_digest(tmp_path: Path) -> None:
    binary = fake_program(tmp_path / "evalb", prints(OUTPUT, "warning: anything\n"))
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    assert confirmed(binary, write(tmp_path)) == f"evalb({digest[:8]})"


ROW_2 = "   2    3    0   33.33  33.33     1      3    3      1      3     3   100.00\n"
END = "of its output, which"

FAILURES = {
    "exit 1 after the summary": (prints(OUTPUT, then="exit 1"), r"exit status 1\. No score"),
    "exit 1 with a complaint": (prints("", "a\n9 : b\n", "exit 1"), "status 1; the last .*'9 : b'"),
    "crash": (prints(OUTPUT, then="kill -SEGV $$"), "was ended by Segmentation fault"),
    "abort": (prints(OUTPUT, "*** stack smashing ***", "kill -ABRT $$"), "Aborted; .*smashing"),
    "hang": (prints(OUTPUT, then="sleep 100"), "did not finish within 0.3 seconds"),
    "deaf": ("trap '' TERM INT; while :; do sleep 0.01; done", "did not finish"),
    "output without end": (prints(OUTPUT, then="yes"), "prints more than 1,001,[0-9]{3} bytes"),
    "errors without end": (prints(OUTPUT, then="yes >&2"), "prints more than"),
    "no output": (prints(""), f"in line 1 {END} is '' and should be '  Sent."),
    "no summary": (
        prints(OUTPUT[: OUTPUT.index("=== Summary")]),
        f"in line 9 {END} is '' and should be '=== Summary ==='",
    ),
    "a row is missing": (
        prints(OUTPUT.replace(ROW_2, "")),
        r"line 5 of its output \(sentence 2\), which is '   3    2 .* and should be '   2    3",
    ),
    "a count of a sentence": (
        prints(OUTPUT.replace("1      3    3", "2      3    3")),
        r"line 5 of its output \(sentence 2\), which is '.* 2      3    3 .* 1      3    3 ",
    ),
    "the line of totals": (prints(OUTPUT.replace("5     8     8", "5     9     8")), "in line 8"),
    "a figure": (prints(OUTPUT.replace("=  62.50", "=  62.51", 1)), "in line 16 .* 62.51' and"),
    "a figure of the second summary": (prints("92.50".join(OUTPUT.rsplit("87.50", 1))), "line 37"),
    "a figure that is not a number": (
        prints(OUTPUT.replace("FMeasure       =  62.50", "FMeasure       =   -nan", 1)),
        f"in line 18 {END} is 'Bracketing FMeasure       =   -nan'",
    ),
    "cut at the end": (prints(OUTPUT[:-4]), "in line 37"),
    "more at the end": (
        prints(f"{OUTPUT}Segmentation fault\n"),
        f"in line 38 {END} is 'Segmentation fault' and should be ''",
    ),
    "one row more": (prints(OUTPUT.replace(ROW_2, 2 * ROW_2)), "in line 6"),
    "one error": (
        prints(OUTPUT.replace("Error sentence  =      0", "Error sentence  =      1")),
        "in line 13 .* 1' and",
    ),
    "one skipped": (
        prints(OUTPUT.replace("Skip  sentence  =      0", "Skip  sentence  =      1")),
        "in line 14 .* 1' and",
    ),
    "commas in numbers": (prints(OUTPUT.replace(".", ",")), "in line 1 .*'  Sent,"),
    "commas in figures": (prints(OUTPUT.replace("62.50", "62,50")), "in line 8 .*62,50"),
    "Latin-1": (prints(OUTPUT.replace("All", "\xc4ll").encode("latin-1")), "in line 11"),
    "UTF-16": (prints(OUTPUT.encode("utf-16")), "in line 1 "),
    "lines in disorder": (prints(OUTPUT.replace("   1    3", "   9    3")), "in line 4"),
    "garbage": (prints(OUTPUT.replace("33.33", "\xff\x00\x9c", 1).encode("latin-1")), "in line 5"),
    "sentences are left out": (prints(TWO_LEFT_OUT), r"sentence 2\), .*'   2    3    1    0.00"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_program_that_fails_gives_no_score(tmp_path: Path, failure: str, tally: Tally) -> None:
    tally("R3", "ways in which a program fails").add()
    body, message = FAILURES[failure]
    binary = fake_program(tmp_path / "evalb", body)
    timeout = 0.3 if failure in ("hang", "deaf") else PATIENCE
    with pytest.raises(ScoreError, match=message) as caught:
        confirmed(binary, write(tmp_path), timeout=timeout)
    assert str(caught.value).startswith(f"{binary}: ")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "evalb: cannot be read: No such file"),
        (Path.mkdir, "evalb: cannot be read: Is a directory"),
        (lambda path: fake_program(path, "").chmod(0o644), "evalb: cannot be run: Permission den"),
        (
            lambda path: fake_program(path, "").write_bytes(b"\x00\x01not a program"),
            "evalb: cannot be run: Exec format error",
        ),
    ],
)
def test_what_is_no_program_gives_no_score(
    tmp_path: Path, make: Callable[[Path], object], message: str, tally: Tally
) -> None:
    tally("R3", "ways in which a program fails").add()
    make(tmp_path / "evalb")
    with pytest.raises(ScoreError, match=message):
        confirmed(tmp_path / "evalb", write(tmp_path))


@pytest.mark.parametrize("step", ["mkdtemp", "write_text", "write_bytes", "open"])
def test_a_full_disk_gives_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, tally: Tally
) -> None:
    tally("R3", "ways in which a program fails").add()
    binary, files = fake_program(tmp_path / "evalb", prints(OUTPUT)), write(tmp_path)
    counts = score_files(*files, COLLINS)

    place = tempfile if step == "mkdtemp" else Path
    original = getattr(place, step)

    def full(*given: Any, **options: Any) -> Any:
        if step == "mkdtemp" or given[0].parent.name.startswith("spmrl-bench-"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(*given, **options)

    monkeypatch.setattr(place, step, full)
    with pytest.raises(ScoreError, match=r"evalb: cannot be run in .* No space left on device\."):
        check_against_program(binary, *files, counts, COLLINS)


def test_left_out_sentences_may_be_allowed(tmp_path: Path) -> None:
    binary = fake_program(tmp_path / "evalb", prints(TWO_LEFT_OUT, "2 : Words unmatch (the|a)\n"))
    files = write(tmp_path, test=LOSING)
    message = "2 of 3 .*: sentence 2: different words; sentence 3: no parse.*--allow-skipped"
    with pytest.raises(ScoreError, match=message):
        confirmed(binary, files)
    assert confirmed(binary, files, allow_skipped=True).startswith("evalb(")


@pytest.mark.parametrize("nan", ["  -nan", "   nan"])
def test_no_number_has_either_sign(tmp_path: Path, nan: str) -> None:
    files = write(tmp_path, *("(TOP (X (NN a)))\n", "(TOP (Y (NN a)))\n"))
    sides = read_sides(*files)
    ours = as_evalb(lambda: sides, score_files(*files, COLLINS), COLLINS, Policy())
    assert ours.count("nan\n") == 2
    printed = re.sub(" *-?nan\n", f" {nan}\n", ours)
    binary = fake_program(tmp_path / "evalb", prints(printed))
    assert confirmed(binary, files).startswith("evalb(")


def test_it_runs_in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    body = f'echo x > status; pwd > {tmp_path}/pwd; cat "$2" > {tmp_path}/seen; {prints(OUTPUT)}'
    confirmed(fake_program(tmp_path / "evalb", body), write(tmp_path))
    assert not (tmp_path / "status").exists()
    used = Path((tmp_path / "pwd").read_text().strip())
    assert used != tmp_path
    assert not used.exists()
    (tmp_path / "seen.prm").write_text("#PROGRAM EVALB\n" + (tmp_path / "seen").read_text())
    assert load_prm(tmp_path / "seen.prm").sha256 == COLLINS.sha256


def test_what_it_started_is_stopped_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    body = f"exec 3>{tmp_path}/pipe; (sleep 30; echo survived >&3) & exec yes"
    binary, files = fake_program(tmp_path / "evalb", body), write(tmp_path)
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with open(reader, "rb") as pipe:
        with pytest.raises(ScoreError, match="prints more than"):
            confirmed(binary, files)
        os.set_blocking(reader, True)
        assert pipe.read() == b""  # the end of all that could write


def test_trees_reach_it_one_per_line(tmp_path: Path) -> None:
    gold, test = write(tmp_path)
    text = GOLD.replace(" (VP", "\r\n    (VP").replace("dog", "Hündin") + "\n\n"
    gold.write_bytes(b"\xef\xbb\xbf" + text.encode())
    test.write_text(TEST.replace("dog", "Hündin"), encoding="utf-8")
    body = f'cat "$3" > {tmp_path}/seen; {prints(OUTPUT)}'
    confirmed(fake_program(tmp_path / "evalb", body), (gold, test))
    seen = (tmp_path / "seen").read_bytes().decode().removesuffix("\n").split("\n")
    assert [" ".join(line.split()) for line in seen] == GOLD.replace("dog", "Hündin").splitlines()


@pytest.mark.parametrize(
    ("prm", "gold", "test", "message"),
    [
        (COLLINS, 20 * GOLD, 20 * LOSING, "gives up after 11 .* and here are 20"),
        (SPMRL, "(S (NN a))\n", "(S (NN a) (NN b))\n", "EVALB_SPMRL counts a sentence twice"),
    ],
)
def test_files_that_it_does_not_see(
    tmp_path: Path, prm: Parameters, gold: str, test: str, message: str
) -> None:
    binary = fake_program(tmp_path / "evalb", f"touch {tmp_path}/ran; {prints(OUTPUT)}")
    with pytest.raises(ScoreError, match=message):
        confirmed(binary, write(tmp_path, gold, test), prm, allow_skipped=True)
    assert not (tmp_path / "ran").exists()


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
def test_the_real_programs_confirm_our_own(name: str, folder: str) -> None:
    prm = load_prm(name)
    binary = program(prm.program)
    reference = shared_data(f"evalb_reference/{folder}")
    files = reference / "gold.txt", reference / "test.txt"
    if score_files(*files, prm).skipped > prm.max_error:
        with pytest.raises(ScoreError, match=f"MAX_ERROR {prm.max_error}"):
            confirmed(binary, files, prm, allow_skipped=True)
    else:
        assert confirmed(binary, files, prm, allow_skipped=True).startswith(prm.program.lower())


@pytest.mark.parametrize(("prm", "room"), [(COLLINS, 200), (SPMRL, 1_000)])
def test_the_real_programs_beyond_their_room(tmp_path: Path, prm: Parameters, room: int) -> None:
    binary = program(prm.program)

    def of_words(number: int) -> tuple[Path, Path]:
        return write(tmp_path, *2 * (f"{GOLD}(TOP (X{number * ' (NN a)'}))\n{GOLD}",))

    assert confirmed(binary, of_words(room), prm).startswith(prm.program.lower())
    with pytest.raises(ScoreError, match="no limits"):
        confirmed(binary, of_words(10 * room), prm)


@pytest.mark.parametrize("name", ["COLLINS", "spmrl"])
def test_the_other_real_program_counts_otherwise(tmp_path: Path, name: str) -> None:
    prm = load_prm(name)
    other = next(program for program in Program if program is not prm.program)
    files = write(tmp_path, *2 * ("(TOP (S (NN word) (. .)))\n",))
    with pytest.raises(ScoreError, match=rf"\(sentence 1\).* is it {prm.program} as published"):
        confirmed(program(other), files, replace(prm, delete_labels=frozenset({"TOP", "."})))
