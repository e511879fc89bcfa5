"""The registry of transforms, those of text, and what holds for all of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.transforms import TRANSFORMS, transform_named
from tests.timing import takes_linear_time
from tests.trees.strategies import trees


def applied(name: str, text: str) -> str:
    result = transform_named(name).apply(parse_brackets(text))
    assert isinstance(result, Tree)
    return write_brackets(result)


def changed(name: str, text: str) -> str:
    result = transform_named(name).apply(text)
    assert isinstance(result, str)
    return result


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("S-TPC=1", "S"),
        ("ADVP|PRT", "ADVP"),
        ("ADVP|PRT-CLR", "ADVP"),
        ("PP-DE_OBJ", "PP"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("-X", "-X"),
        ("-", "-"),
        ("=", "="),
        ("", ""),
    ],
)
def test_strip_functions(label: str, category: str) -> None:
    tree = Tree.build(["a"], ["A-B"], [(0, 1, label)])
    assert transform_named("strip-functions").apply(tree) == Tree.build(
        ["a"], ["A-B"], [(0, 1, category)]
    )


def test_strip_tag_functions() -> None:
    text = "(VN-X (CLS-SUJ il) (CLR-AFF.DEMSUJ s') (P+D du) (-LRB- -LRB-) (PRP$ my) (: --))"
    expected = "(VN-X (CLS il) (CLR s') (P+D du) (-LRB- -LRB-) (PRP$ my) (: --))"
    assert applied("strip-tag-functions", text) == expected


def test_strip_features_works_on_text_with_spaces() -> None:
    text = "(NP##n=sg x|l=a b## (NN##lem=( ## Wort) (CARD 1#2))\n(X##a## b)"
    assert changed("strip-features", text) == "(NP (NN Wort) (CARD 1#2))\n(X b)"
    open_pair = "(NN a##)\n(NN b##)"
    assert changed("strip-features", open_pair) == open_pair


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<DOC>\n<S ID=1>\n( (NN a) )\n</S>\n</DOC>", "\n\n( (NN a) )\n\n"),
        ("<S ID=1>\r\n( (NN a))\r\n </S>\t\r\n", "\r\n( (NN a))\r\n\r\n"),
        ("<S>\r( (NN a))\r</S>\r", "\r( (NN a))\r\r"),
        ("<DATE> 10 May </DATE>\n(A b)\n", "\n(A b)\n"),
        ("(PU <)\n(PU >)\n < b\n(X <a>)\n", "(PU <)\n(PU >)\n < b\n(X <a>)\n"),
        ("<a\n(X b)\nc>", "<a\n(X b)\nc>"),
        ("\u2028<a>\n", "\u2028<a>\n"),
        ("", ""),
    ],
)
def test_strip_markup_empties_lines_and_keeps_their_number(text: str, expected: str) -> None:
    assert changed("strip-markup", text) == expected


@pytest.mark.parametrize("name", ["strip-features", "strip-markup"])
@pytest.mark.parametrize(
    "unit", ["##", "#", "## ", "<", "<>", "< ", "> ", " ", "\n<", "<a>\r", "(A##x## b)\n"]
)
def test_text_transforms_take_linear_time(name: str, unit: str) -> None:
    apply = transform_named(name).apply
    texts = ["<" + unit * (size // len(unit)) + "x" for size in (1 << 15, 1 << 20)]
    assert takes_linear_time(apply, *texts)


@pytest.mark.parametrize(
    "name", [transform.name for transform in TRANSFORMS.values() if transform.stage == "tree"]
)
@given(tree=trees())
def test_tree_transforms_give_valid_trees_and_settle(name: str, tree: Tree) -> None:
    apply = transform_named(name).apply
    once = apply(tree)
    if once is None:
        return  # that no overt word is lost is for the tests of the transform
    assert isinstance(once, Tree)
    assert Tree.build(once.words, once.tags, once.constituents()) == once
    assert not once.spans.flags.writeable
    assert apply(once) is once


def test_names_are_those_of_the_functions() -> None:
    for name, transform in TRANSFORMS.items():
        assert transform.name == name
        assert re.fullmatch("[a-z]+(-[a-z]+)*", name)
        assert transform.apply.__name__.replace("_", "-") == name
    stages = [transform.stage for transform in TRANSFORMS.values()]
    assert set(stages) == {"text", "graph", "tree"}


def test_every_transform_explains_itself() -> None:
    for transform in TRANSFORMS.values():
        assert len(transform.description) > 60


def test_unknown_name() -> None:
    with pytest.raises(SpmrlError, match=r"unknown transform 'drop-trace'\. Did you mean drop-tr"):
        transform_named("drop-trace")
