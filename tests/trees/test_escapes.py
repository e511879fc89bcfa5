"""Writing brackets, and the escapes that make every word readable again."""

from __future__ import annotations

import pytest
from hypothesis import given

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import (
    ESCAPES,
    decode_label,
    encode_label,
    escapes_named,
    write_brackets,
)
from tests.trees.strategies import ANY_TEXT

REVERSIBLE = [name for name in ESCAPES if name != "none"]


@given(word=ANY_TEXT)
def test_without_escapes_words_are_their_text(word: str) -> None:
    policy = escapes_named("none")
    assert policy.decode_word(word) == word
    text = policy.encode_word(word)
    assert text
    assert not set(text) & set("() \t\n\r\f\v")
    assert text == word or set(word) & set("() \t\n\r\f\v") or not word


@pytest.mark.parametrize("escapes", REVERSIBLE)
@given(word=ANY_TEXT)
def test_encoded_words_hold_no_separator_and_decode(escapes: str, word: str) -> None:
    policy = escapes_named(escapes)
    text = policy.encode_word(word)
    assert text
    assert not set(text) & set("() \t\n\r\f\v")
    assert policy.decode_word(text) == word


@given(label=ANY_TEXT)
def test_labels_decode(label: str) -> None:
    assert decode_label(encode_label(label)) == label


#: As they stand in a file, and as words.
READ = {
    "ptb": [
        *(("-LRB-", "("), (r"1\/2", "1/2"), ("1/2", "1/2"), (r"M\*A\*S\*H", "M*A*S*H")),
        *(("*T*-1", "*T*-1"), ("-LCB-", "{"), ("-LSB-", "["), ("[", "["), (r"\-LRB-", "-LRB-")),
        *((r"C:\dir", r"C:\dir"), ("-LRB-LRB-", "(LRB-")),
    ],
    "brackets": [("traité-LRB-e-RRB-", "traité(e)"), ("-LCB-",) * 2, (r"1\/2",) * 2, ("[",) * 2],
}
#: Words, and what is written.
WRITTEN = {
    "ptb": [
        *(("(", "-LRB-"), ("1/2", r"1\/2"), ("-LRB(", r"\-LRB-LRB-"), ("", r"\0")),
        *(("a b", r"a\x20b"), ("a\xa0b", "a\xa0b"), ("[", "-LSB-")),
    ],
    "brackets": [("1/2]", "1/2]"), ("\\", r"\\")],
}


@pytest.mark.parametrize("policy", REVERSIBLE)
def test_policies_read_what_treebanks_write(policy: str) -> None:
    escapes = escapes_named(policy)
    assert [(text, escapes.decode_word(text)) for text, _ in READ[policy]] == READ[policy]
    assert [(word, escapes.encode_word(word)) for word, _ in WRITTEN[policy]] == WRITTEN[policy]


def test_labels_are_not_words() -> None:
    tree = Tree.build(["(", "("], ["-LRB-", "$("], [(0, 2, "")])
    assert write_brackets(tree) == "( (-LRB- -LRB-) ($\\x28 -LRB-))"


def test_small_trees() -> None:
    assert write_brackets(Tree.build(["a"], ["NN"], [])) == "(NN a)"
    assert write_brackets(Tree.build([], [], [])) == "(())"
    assert str(Tree.build(["a"], [""], [(0, 1, "X")])) == "(X (\\0 a))"


@pytest.mark.parametrize("rows", [[], [(0, 1, "A"), (1, 2, "B")]])
def test_forest_is_refused(rows: list[tuple[int, int, str]]) -> None:
    with pytest.raises(TreeError, match="2 words"):
        write_brackets(Tree.build(["a", "b"], ["X", "Y"], rows))


def test_unknown_policy_names_near_matches() -> None:
    with pytest.raises(SpmrlError, match=r"'bracket'.*brackets"):
        escapes_named("bracket")
