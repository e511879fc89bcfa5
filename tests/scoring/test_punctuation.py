"""Punctuation rules on words and tags whose verdict is known."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from spmrl_bench.scoring.punctuation import PTB_CTB_TAGS, PUNCTUATION_RULES


@pytest.mark.parametrize("tag", [".", ",", ":", "``", "''", "PU"])
def test_tags_that_the_papers_leave_out(tag: str) -> None:
    assert PUNCTUATION_RULES["ptb-ctb"].holds("word", tag)


# The papers' code tests for a substring of the concatenated tags; on real tags that is the set.
@pytest.mark.parametrize(
    "tag", ["-LRB-", "-RRB-", "$", "#", "NN", "P", "U", "SYM", "LS", "", "PUNC", ".,", "'", "`"]
)
def test_tags_that_are_scored(tag: str) -> None:
    assert not PUNCTUATION_RULES["ptb-ctb"].holds(".", tag)


def test_a_tag_rule_knows_tags_of_other_sets() -> None:
    assert PUNCTUATION_RULES["ptb-ctb"].foreign_tags == {"_", "PUNCT"}
    assert not PUNCTUATION_RULES["ptb-ctb"].foreign_tags & PTB_CTB_TAGS
    assert not PUNCTUATION_RULES["unicode"].foreign_tags
    assert not PUNCTUATION_RULES["none"].foreign_tags


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        (".", True),
        ("...", True),
        ("\u2026", True),
        ("\u00ab", True),
        ("\u3002", True),
        ("\u060c", True),
        ("?!", True),
        ("(", True),
        ("%", True),
        ("-", True),
        ("_", True),
        ("''", True),
        ("``", False),
        ("$", False),
        ("+", False),
        ("-LRB-", False),
        ("U.S.", False),
        ("l'", False),
        (". .", False),
        ("1", False),
        ("", False),
    ],
)
def test_unicode_goes_by_every_character(word: str, verdict: bool) -> None:
    assert PUNCTUATION_RULES["unicode"].holds(word, ".") is verdict


def test_unicode_on_every_character() -> None:
    categories = {"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}
    holds = PUNCTUATION_RULES["unicode"].holds
    for code in range(0, sys.maxunicode + 1, 7):
        assert holds(chr(code), "") == (unicodedata.category(chr(code)) in categories)


def test_none_leaves_out_nothing() -> None:
    assert not PUNCTUATION_RULES["none"].holds(".", ".")
