"""At the last size that a program has room for nothing is refused; one more is."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring import Parameters, load_prm
from spmrl_bench.scoring.limits import check_room, check_room_for_parameters
from spmrl_bench.scoring.official import score_with_program

EVALB = replace(load_prm("COLLINS"), quote_labels=frozenset({"POS"}))
SPMRL = load_prm("spmrl")


def words(number: int) -> str:
    return f"(S {'(NN a) ' * number})"


def brackets(number: int) -> str:
    return f"{'(X ' * number}(NN a){')' * number}"


def label(number: int) -> str:
    return f"(TOP ({'X' * number} (NN a)))"


def tag(number: int) -> str:
    return f"(TOP (X ({'N' * number} a)))"


def word(number: int) -> str:
    return f"(TOP (X (NN {'a' * number})))"


def quotes(number: int) -> str:
    return f"(TOP (X {'(POS / ) ' * number}(NN a)))".replace("/ )", "/)")


def line(number: int) -> str:
    """A sentence whose line has a number of bytes without its end."""
    return "(TOP (X (NN a)))".replace(" (X", " " * (number - 15) + "(X")


CASES = [
    (EVALB, words, 200, "201 words; EVALB has room for 200"),
    (EVALB, brackets, 200, "201 brackets"),
    (EVALB, label, 29, "30 bytes in a label"),
    (EVALB, tag, 29, "30 bytes in a label"),
    (EVALB, word, 99, "100 bytes in a word"),
    (EVALB, quotes, 20, "21 quotation marks"),
    (EVALB, line, 4998, "5000 bytes on a line"),
    (SPMRL, words, 1000, "1001 words; EVALB_SPMRL has room for 1000"),
    (SPMRL, brackets, 2000, "2001 brackets"),
    (SPMRL, label, 299, "300 bytes in a label"),
    (SPMRL, tag, 299, "300 bytes in a label"),
    (SPMRL, word, 99, "100 bytes in a word"),
    (SPMRL, line, 49_998, "50000 bytes on a line"),
]


@pytest.mark.parametrize(("prm", "make", "most", "message"), CASES)
def test_one_too_many(prm: Parameters, make, most: int, message: str) -> None:
    sound = b"(TOP (X (NN a)))"
    check_room("gold", [sound, make(most).encode()], prm)
    with pytest.raises(ScoreError, match=f"^gold: sentence 2 has {message}.*internal scorer"):
        check_room("gold", [sound, make(most + 1).encode()], prm)


def test_lengths_are_in_bytes() -> None:
    check_room("gold", [word(99).replace("a" * 98, "ä" * 49).encode()], EVALB)
    with pytest.raises(ScoreError, match="100 bytes in a word"):
        check_room("gold", [word(99).replace("a" * 98, "ä" * 49 + "a").encode()], EVALB)


def test_zero_bytes_would_end_a_line() -> None:
    with pytest.raises(ScoreError, match="1 zero bytes"):
        check_room("gold", [b"(TOP (X (NN a\0b)))"], EVALB)


def names(number: int) -> frozenset[str]:
    return frozenset(map(str, range(number)))


def pairs(number: int) -> frozenset[tuple[str, str]]:
    return frozenset((f"{n}a", f"{n}b") for n in range(number))


@pytest.mark.parametrize(
    ("key", "values", "most", "message"),
    [
        ("delete_labels", names, 100, "101 DELETE_LABEL lines"),
        ("delete_labels_for_length", names, 100, "101 DELETE_LABEL_FOR_LENGTH lines"),
        ("quote_labels", names, 20, "21 QUOTE_LABEL lines"),
        ("eq_labels", pairs, 100, "101 EQ_LABEL lines"),
        ("eq_words", pairs, 100, "101 EQ_WORD lines"),
        ("eq_words", lambda n: frozenset({("a", "b" * n)}), 29, "30 bytes in an equivalent"),
    ],
)
def test_parameters_that_do_not_fit(key: str, values, most: int, message: str) -> None:
    check_room_for_parameters(replace(EVALB, **{key: values(most)}))
    with pytest.raises(ScoreError, match=f"^COLLINS has {message}"):
        check_room_for_parameters(replace(EVALB, **{key: values(most + 1)}))


@pytest.mark.parametrize(("prm", "make", "most", "message"), CASES)
def test_the_real_programs_have_the_room(
    tmp_path: Path, prm: Parameters, make, most: int, message: str
) -> None:
    """The largest sentence that is let through does no harm to the program."""
    del message
    binary = os.environ.get(prm.program)
    if not binary:
        pytest.skip(f"no {prm.program} binary (set the environment variable {prm.program})")
    path = tmp_path / "trees"
    path.write_text(f"(TOP (X (NN a)))\n{make(most)}\n(TOP (X (NN a)))\n", encoding="utf-8")
    counts = score_with_program(binary, path, path, prm).counts
    assert (len(counts), counts.f1) == (3, 100.0)
