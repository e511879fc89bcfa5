"""Arabic and Hebrew words between Latin letters and their own script."""

from __future__ import annotations

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.trees import Tree
from spmrl_bench.trees.transforms import (
    BUCKWALTER,
    HEBREW_FINALS,
    HEBREW_LETTERS,
    HEBREW_SIGNS,
    arabic_script,
    from_buckwalter,
    from_hebrew_latin,
    hebrew_script,
)

FINALS = {final: letter for letter, final in HEBREW_FINALS.items()}


def letters_of(hebrew: str) -> str:
    """The transliteration of Hebrew letters; it has no final forms."""
    letters = (FINALS.get(letter, letter) for letter in hebrew)
    return "".join(HEBREW_LETTERS.get(letter, letter) for letter in letters)


ARABIC = [
    ("ktAb", "كتاب"),
    ("Al$ms", "الشمس"),
    (">mAm", "أمام"),
    ("OmAm", "أمام"),
    ("IslAm", "إسلام"),
    ("<slAm", "إسلام"),
    ("|vAr", "آثار"),
    ("ms&wl", "مسؤول"),
    ("msWwl", "مسؤول"),
    ("$y'", "شيء"),
    ("bi}r", "بِئر"),
    ("mdrsp", "مدرسة"),
    ("mad~a", "م\u064eد\u0651\u064e"),
    ("h`*A", "هٰذا"),
    ("{bn", "ٱبن"),
    ("ElY", "على"),
    ("kitAbFA", "كِتابًا"),
    ("1998", "1998"),
    (".", "."),
    ("-PLUS-", "+"),
    ("-MINUS-", "-"),
    ("-LRB-", "("),
    ("-LSB-", "-LSB-"),
    ("", ""),
]

HEBREW = [
    ("FLWM", "שלום"),
    ("ILDIM", "ילדים"),
    ("ARC", "ארץ"),
    ("KSP", "כסף"),
    ("MLK", "מלך"),
    ("GN", "גן"),
    ("CHUL", 'צה"ל'),
    ("50O", "50%"),
    ("JWB", "טוב"),
    ("EZQX", "עזקח"),
    ("IRWFLIM", "ירושלים"),
    ("1990", "1990"),
    ("yyDOT", "."),
    ("yyELPS", "..."),
    ("yyQUOT", '"'),
    ("", ""),
]


@pytest.mark.parametrize(("latin", "arabic"), ARABIC)
def test_arabic_words(latin: str, arabic: str) -> None:
    assert from_buckwalter(latin) == arabic


@pytest.mark.parametrize(("latin", "hebrew"), HEBREW)
def test_hebrew_words(latin: str, hebrew: str) -> None:
    assert from_hebrew_latin(latin) == hebrew


def test_buckwalter_has_one_character_for_each_arabic_letter_and_vowel_sign() -> None:
    letters = {chr(c) for c in (*range(0x621, 0x63B), *range(0x641, 0x653))}
    assert letters <= set(BUCKWALTER)
    assert all(unicodedata.name(arabic).startswith("ARABIC") for arabic in BUCKWALTER)
    assert len(set(BUCKWALTER.values())) == len(BUCKWALTER)
    assert all(len(latin) == 1 and latin.isascii() for latin in BUCKWALTER.values())
    # What is left of the alphabet: XML's O, W and I, and the letters that stand for nothing.
    spare = set(string.ascii_letters) - set(BUCKWALTER.values())
    assert spare == set("OWI") | set("BCLMQRUX") | set("ce")


def test_hebrew_transliteration_has_every_letter() -> None:
    everything = {chr(c) for c in range(0x5D0, 0x5EB)}
    assert everything == (set(HEBREW_LETTERS) | set(HEBREW_FINALS.values())) - {'"', "%"}
    assert len(set(HEBREW_LETTERS.values())) == len(HEBREW_LETTERS)
    for letter, final in HEBREW_FINALS.items():
        name = unicodedata.name(letter).removeprefix("HEBREW LETTER ")
        assert unicodedata.name(final) == f"HEBREW LETTER FINAL {name}"
    # The names of the letters begin as they are spelled, but for those spelled by another sound.
    for letter, latin in HEBREW_LETTERS.items():
        name = unicodedata.name(letter)
        if latin not in "WXJIECFTKUO":
            assert name.startswith(f"HEBREW LETTER {latin}"), name


@given(st.text(alphabet="".join(BUCKWALTER) + "0123456789.,:", max_size=12))
def test_every_arabic_letter_comes_back(word: str) -> None:
    assert from_buckwalter("".join(BUCKWALTER.get(c, c) for c in word)) == word


LATIN = st.text(alphabet="".join(HEBREW_LETTERS.values()) + "0123456789-", max_size=12)


@given(LATIN.filter(lambda word: word not in ("U", "-")))
def test_hebrew_letters_by_place(word: str) -> None:
    hebrew = from_hebrew_latin(word)
    assert letters_of(hebrew) == word
    assert from_hebrew_latin(hebrew) == hebrew
    if word:
        assert hebrew[-1] not in HEBREW_FINALS
        assert not set(hebrew[:-1]) & set(HEBREW_FINALS.values())


@pytest.mark.parametrize("name", HEBREW_SIGNS)
def test_hebrew_signs_are_whole_words(name: str) -> None:
    sign = HEBREW_SIGNS[name]
    assert from_hebrew_latin(name) == sign
    assert from_hebrew_latin(sign) == sign


def test_transforms_change_words_only() -> None:
    tree = Tree.build(["w", "ktb", "yyDOT"], ["CC", "VBD", "yyDOT"], [(0, 3, "S"), (1, 2, "VP")])
    rows = list(tree.constituents())
    assert arabic_script(tree).words[:2] == ("و", "كتب")
    assert hebrew_script(tree) == Tree.build(["w", "ktb", "."], tree.tags, rows)
    arabic = arabic_script(tree)
    assert (arabic.tags, list(arabic.constituents())) == (tree.tags, rows)


def test_words_in_the_right_script_already_stay() -> None:
    hebrew = Tree.build(["שלום", 'צה"ל', "50%", "קליפ"], ["A"] * 4, [(0, 4, "S")])
    assert hebrew_script(hebrew) is hebrew
    arabic = Tree.build(["كتاب", "1998", "."], ["A"] * 3, [(0, 3, "S")])
    assert arabic_script(arabic) is arabic
