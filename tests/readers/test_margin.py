"""Trees that took in others: found by the layout, and no sound layout is taken for a mistake."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.readers import brackets
from spmrl_bench.readers.brackets import read_brackets, trees_begin_at_margin
from spmrl_bench.trees import Tree
from tests.conftest import shared_data

FLAT = "(S (NP (D the) (N dog{})) (VP (V barks)))"
INDENTED = "(S\n  (NP (D the)\n      (N dog{}))\n  (VP (V barks)))"
WRAPPED = "( (S (NP (D the) (N dog{}))\n     (VP (V barks))) )"

both = pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(
            True, marks=pytest.mark.skipif(brackets.scan is None, reason="the kernel is not built")
        ),
        False,
    ],
)


def many(tree: str, number: int) -> list[str]:
    return [tree.format(k) for k in range(1, number + 1)]


def read(text: str, kernel: bool = True) -> tuple[list[Tree], list[str]]:
    """The trees of a text and the errors of what was left out."""
    errors: list[ReadError] = []
    with pytest.MonkeyPatch.context() as patch:
        if not kernel:
            patch.setattr(brackets, "scan", None)
        trees = list(read_brackets(text, path="f", on_error=errors.append))
    return trees, list(map(str, errors))


def damaged(trees: list[str], unclosed: int, over: int | None) -> str:
    """The trees, one less and one with a bracket more at its end (numbers from 1)."""
    trees = list(trees)
    trees[unclosed - 1] = trees[unclosed - 1][:-1]
    if over is not None:
        trees[over - 1] += ")"
    return "\n".join(trees) + "\n"


@both
@pytest.mark.parametrize("over", [13, 40, None])
@pytest.mark.parametrize("tree", [FLAT, INDENTED, WRAPPED])
def test_an_unclosed_tree_costs_itself_only(tree: str, over: int | None, kernel: bool) -> None:
    height = tree.count("\n") + 1
    trees, errors = read(damaged(many(tree, 50), 11, over), kernel)
    words = [found.words[1] for found in trees]
    assert words == [f"dog{k}" for k in range(1, 51) if k != 11]
    first, second = 10 * height + 1, 11 * height + 1
    assert errors[0] == (
        f"f:{first}:1: sentence 11: the tree that begins at line {first} is not closed before line "
        f"{second}, where another one begins"
    )
    assert len(errors) == 1 + (over is not None)
    assert all(f"f:{13 * height if over == 13 else 40 * height}:" in error for error in errors[1:])


@both
def test_reading_stops_in_front_of_an_unclosed_tree(kernel: bool) -> None:
    text = damaged(many(FLAT, 30), 11, 13)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        if not kernel:
            patch.setattr(brackets, "scan", None)
        with pytest.raises(ReadError, match="that begins at line 11 is not closed before line 12"):
            found.extend(read_brackets(text, path="f"))
        reader = read_brackets(text, path="f")
        assert [next(reader).words[1] for _ in range(10)] == [f"dog{k}" for k in range(1, 11)]


@pytest.mark.parametrize("outer", ["", "TOP", "ROOT"])
def test_an_outer_bracket_is_evidence_enough(outer: str) -> None:
    """Even in a file of three trees, which its first one takes in."""
    trees = [f"({outer} {tree})" for tree in many(FLAT, 3)]
    assert len(read("\n".join(trees))[0]) == 3
    found, errors = read(damaged(trees, 1, 3))
    assert [tree.words[1] for tree in found] == ["dog2", "dog3"]
    assert [error.split(":")[1] for error in errors] == ["1", "3"]


def test_few_trees_without_an_outer_bracket_may_be_one() -> None:
    trees, errors = read(damaged(many("(S (N a{}))", 3), 1, 3))
    assert ([tree.words for tree in trees], errors) == ([("a1", "a2", "a3")], [])


#: Sound trees with constituents in the first column.
MARGINAL = (
    "(S\n(NP (D the)\n(N dog))\n(VP (V barks))\n)",
    "(S (NP (D the) (N dog))\n(VP (V barks)))",
    "(S (NP (D the) (N dog)) (CC and)\n(S (VP (V barks)))\n(VP (V eats)))",
    "(S (NP (D\nthe) (N\ndog))\n(VP (V barks)))",
    "(\n(S (NP (D the) (N dog))\n(VP (V barks))))",
    "(DOC\n(S (N a))\n(S (N b))\n(S (N c))\n)",
)


@both
@pytest.mark.parametrize("tree", MARGINAL)
@pytest.mark.parametrize("others", [(), many(FLAT, 100), many(INDENTED, 100), many(WRAPPED, 100)])
@pytest.mark.parametrize("number", [1, 3, 40])
def test_constituents_may_stand_at_the_margin(
    tree: str, others: Sequence[str], number: int, kernel: bool
) -> None:
    """In a whole file and in one tree of it, wherever that stands."""
    half = len(others) // 2
    text = "\n".join([*others[:half], *[tree] * number, *others[half:]])
    assert not trees_begin_at_margin(text)
    trees, errors = read(text, kernel)
    assert (len(trees), errors) == (number + len(others), [])


PIECES = [
    "(",
    ")",
    "\n",
    "\n(S (A a))",
    "\n(A a)",
    "\n(S (A a)",
    "\n(S (A a)))",
    "\n ",
    "\n( (S (A a)))",
    "x",
]


@pytest.mark.skipif(brackets.scan is None, reason="the kernel is not built")
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_the_kernel_reads_what_python_reads(text: str) -> None:
    assert read(text, True) == read(text, False)


@given(st.data())
def test_what_is_left_out_are_the_unclosed_trees(data: st.DataObject) -> None:
    """Of a hundred trees, a few lack brackets; all others are read."""
    trees = many(FLAT, 100)
    chosen = data.draw(st.lists(st.integers(0, 98), max_size=5, unique=True))
    for k in chosen:
        trees[k] = trees[k][: -data.draw(st.integers(1, 2))]
    found, errors = read("\n".join(trees))
    assert [int(tree.words[1][3:]) for tree in found] == sorted(
        set(range(1, 101)) - {k + 1 for k in chosen}
    )
    assert [error.split(":")[1] for error in errors] == [str(k + 1) for k in sorted(chosen)]


def test_a_mistake_in_a_tree_that_may_have_taken_in_others_names_its_line() -> None:
    text = "(S (NP (D a))\n(VP (V b)\n  junk))\n"
    assert read(text)[1][0] == (
        "f:3:3: sentence 1: found the word 'junk' without a tag, expected '(TAG word)', '(' or "
        "')'; the tree begins at line 1"
    )


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("wsj_sample_en", "combined/*.mrg"),
        ("gum_en", "const/*.ptb"),
        ("sequoia_fr", "*.mrg_strict"),
        ("icepahc_is", "finished/*.psd"),
        ("keyaki_ja", "treebank/*.psd"),
        ("cess_es", "cess_esp/*.tbf"),
        ("idn_id", "Indonesian_Treebank.bracket"),
    ],
)
def test_released_treebanks_begin_trees_at_the_margin(folder: str, pattern: str) -> None:
    for path in sorted(shared_data(f"treebanks/{folder}").glob(pattern)):
        assert trees_begin_at_margin(path.read_text(encoding="latin-1"))
