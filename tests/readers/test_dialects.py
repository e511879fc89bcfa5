"""Bracket dialects by a few options: what each means, and what mistakes in it say."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.dialects import (
    check_bracket_options,
    read_bracket_dialect,
    read_sinica,
    without_sisters,
)
from spmrl_bench.trees.escapes import write_brackets
from tests.readers.cases import read_all
from tests.timing import takes_linear_time


def read(text: str, **options: Any) -> tuple[list[str], list[str]]:
    """The trees as lines of brackets, and the errors."""
    options.setdefault("escapes", "brackets")
    trees, errors = read_all(read_bracket_dialect, text, **options)
    return [write_brackets(tree, "brackets") for tree in trees], errors


def test_leaves() -> None:
    for leaf, text, tree in [
        ("{tag} {word}", "(S (A a) (B b))", "(S (A a) (B b))"),
        ("{word} {tag}", "(S (a A) (b B))", "(S (A a) (B b))"),
        ("{tag} {lemma} {word}", "(S (A x a) (B y b))", "(S (A a) (B b))"),
        ("{tag} {word} ...", "(S (A a) (B b x y))", "(S (A a) (B b))"),
        ("{tag} ... form={word} ...", "(S (A x form=a y) (B form=b))", "(S (A a) (B b))"),
        ('{tag} w="{word}"', '(S (A w="a") (B w="b"c"))', '(S (A a) (B b"c))'),
        ("{tag} {word...}", "(S (A New  York) (B b))", "(S (A New\\x20York) (B b))"),
        ("{tag} {word}/{lemma}", "(S (A a/b/c) (B -LRB-/x))", "(S (A a/b) (B -LRB-))"),
        ("{word}_{tag}", "(S (NP (a_b_A)) (b_B))", "(S (NP (A a_b)) (B b))"),
        ("{tag} ({word})", "(S (A (a)) (B (b)))", "(S (A a) (B b))"),
        (
            "{tag} (word {word...}) ...",
            "(S (A (lemma x) (word a  b)) (B (word c) (lemma y)\n (feat 3sg pres)))",
            "(S (A a\\x20b) (B c))",
        ),
    ]:
        for variant in (text, text.replace(" ", "\r\n "), f"\ufeff{text}"):
            assert read(variant, leaf=leaf, drop=["X"]) == ([tree], []), leaf


def test_a_leaf_that_is_not_as_told_is_a_mistake() -> None:
    for leaf, text, place in [
        ("{tag} {word} {lemma}", "(S (A a x) (B b))", "1:12: sentence 1: found '(B b)', expected"),
        ("{tag} {word}/{lemma}", "(S (A a))", "1:4: sentence 1: found '(A a)', expected"),
        ("{tag} {word...}", "(S (A))", "1:4: sentence 1: found '(A)', expected"),
        ("{tag} ({word})", "(S (A (a b)))", "1:7: sentence 1: found '(a b)', expected"),
        ("{tag} (w {word}) ...", "(S (A (x a)))", "1:4: sentence 1: found '(A)' without a word"),
        ("{tag} (w {word}) ...", "(S (A (w a) (w b)))", "1:13: sentence 1: found the word 'b' bes"),
    ]:
        trees, (error,) = read(text, leaf=leaf)
        assert (trees, error[: len(place)]) == ([], place)


def test_nodes_that_are_dropped() -> None:
    text = "(S (CODE x (Y y)) (A a) (NP (CODE)) (B (CODE z) (B b)))\n(CODE only)\n(S (CODE x (Y y))"
    trees, errors = read(text, drop=["CODE"])
    assert trees == ["(S (A a) (B (B b)))"]
    assert [error.split(": ")[:2] for error in errors] == [["3:1", "sentence 2"]]


def test_wrappers_hold_trees() -> None:
    text = "(DOC (PAR (S (A a)) (S (B b)))\n (PAR (S (C c)) (D d)))\n(S (DOC (E e)))"
    trees = ["(S (A a))", "(S (B b))", "(S (C c))", "(D d)", "(S (DOC (E e)))"]
    assert read(text, wrappers=["DOC", "PAR"]) == (trees, [])
    trees, (error,) = read("(DOC (S (A a)) word)", wrappers=["DOC"])
    assert trees == ["(S (A a))"]
    assert error.startswith("1:16: sentence 2: found 'word' between brackets")


def test_names_stand_in_messages() -> None:
    text = "( (S (A a)) (ID x1))\n( (S (B b c)) (ID x2))\n( (ID x3) (S (C)))\n"
    text += "( (S (C c)))\n( (S (D d)) (ID 4) (ID 5))\n"
    trees, errors = read(text, id="ID")
    assert trees == ["( (S (A a)))"]
    assert [error.split(", ")[0] for error in errors] == [
        "2:6: sentence 2: found '(B b c)'",
        "3:14: sentence x3: found '(C)'",
        "4:1: sentence 4: found a tree without '(ID name)'",
        "5:20: sentence 4: found a second ID",
    ]
    text = "(TEXT (NUM 7) (TREE (S (A a))))\n(TEXT (TREE (S (B b))))\n"
    trees, errors = read(text, id="NUM", wrappers=["TEXT", "TREE"])
    assert trees == ["(S (A a))", "(S (B b))"]
    assert [error.partition(" found")[0] for error in errors] == ["2:1: sentence 3:"]


@pytest.mark.parametrize("leaf", ["{tag} {word} ... {lemma}", "{tag} (word {word}) ..."])
def test_a_mistake_costs_its_tree(leaf: str) -> None:
    tree = "(S (NP (A a x y))\n (B b x y))\n"
    tree = tree if "(" not in leaf else "(S (NP (A (word a)))\n (B (y x) (word b)))\n"
    trees, errors = read(tree * 8 + tree.replace("\n", "", 1)[:-2] + "\n" + tree * 8, leaf=leaf)
    assert trees == ["(S (NP (A a)) (B b))"] * 16
    assert [error.split(": ")[:2] for error in errors] == [["17:1", "sentence 9"]]


def test_a_word_is_no_sister() -> None:
    text = "(S (NP (D the (lemma the)) (N dog)) (V barks))\n"
    slip = "(S (NP the (N dog)) (V barks))\n"
    trees, errors = read(text + slip, leaf="{tag} {word...} (...)")
    assert trees == ["(S (NP (D the) (N dog)) (V barks))"]
    assert [error[:36] for error in errors] == ["2:4: sentence 2: found 'the' beside "]
    assert takes_linear_time(without_sisters, *("(T x" + " " * n for n in (999, 31968)))


def test_time_is_linear_in_the_length_of_a_leaf() -> None:
    for leaf in ("{tag} {word}_{lemma}x", "{tag} ... form={word} ... x", "x {word...} {tag}"):

        def check(text: str, leaf: str = leaf) -> None:
            assert len(read(f"(S (A {text}))", leaf=leaf)[1]) == 1

        assert takes_linear_time(check, *("a_ " * number + "_" * number for number in (999, 31968)))


def test_mistakes_in_options() -> None:
    for options, problem in [
        ({"leaf": "{tag}"}, "found '{tag}', expected a leaf with {tag} and {word} once each"),
        ({"leaf": "{tag} {word} {word}"}, "found '{tag} {word} {word}', expected"),
        ({"leaf": "{tag} {word} {wrod}"}, "found"),
        ({"leaf": "{tag} {word...} ..."}, "found"),
        ({"leaf": "({tag} {word})"}, "found"),
        ({"escapes": "ptbb"}, "unknown escape policy 'ptbb'. Did you mean ptb?"),
    ]:
        with pytest.raises(SpmrlError) as caught:
            check_bracket_options({"escapes": "none", **options})
        assert str(caught.value).startswith(problem)


def test_nothing_is_kept_of_a_file_that_has_been_read(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        for number in range(5):
            path = tmp_path / str(number)
            words = (f"A:{number}x{k}{'a' * 1000}" for k in range(500))
            path.write_text("".join(f"#{k} S({word})#\n" for k, word in enumerate(words)))
            assert sum(1 for _ in read_sinica(path)) == 500
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 750_000  # of the 2.5 million read
    finally:
        tracemalloc.stop()
