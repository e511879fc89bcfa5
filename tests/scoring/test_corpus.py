"""The compiled counting gives the rows of the plain-Python code, from trees and from text.

The plain-Python code is compared with the C programs elsewhere; here it is the measure.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import (
    MissingParse,
    Parameters,
    Policy,
    Punctuation,
    corpus,
    count_brackets,
    load_prm,
    score_files,
    score_texts,
    score_trees,
)
from spmrl_bench.scoring.corpus import kernel_name, score_plain_texts
from spmrl_bench.scoring.files import read_sides
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from tests.conftest import shared_data
from tests.scoring.hostile import as_trees, hostile_pairs
from tests.trees.strategies import trees

compiled = all(
    importlib.util.find_spec(f"spmrl_bench.scoring.{name}") for name in ("_counting", "_scanning")
)
needs_compiled = pytest.mark.skipif(not compiled, reason="kernels not built")

NAMES = ("COLLINS", "new", "nk", "spmrl", "spmrl_hebrew")
PARAMETERS = {name: load_prm(name) for name in NAMES} | {
    "same words": replace(load_prm("COLLINS"), eq_words=frozenset([("a", "b"), ("d", "ß")])),
    "unlabelled": replace(load_prm("new"), labeled=False),
}
POLICIES = [Policy(*choices) for choices in product(MissingParse, Punctuation)]


def twin_rows(
    gold: list[Tree], test: list[Tree], prm: Parameters, policy: Policy
) -> list[list[int]]:
    return [
        list(count_brackets(one, other, prm, policy)) for one, other in zip(gold, test, strict=True)
    ]


def check_pairs(pairs: list[tuple[str, str]], prm: Parameters, policy: Policy) -> None:
    """Rows from the trees and from the lines are those of the twin."""
    lines, other_lines = map(list, zip(*pairs, strict=True))
    gold, test = as_trees(lines), as_trees(other_lines)
    expected = twin_rows(gold, test, prm, policy)
    assert score_trees(gold, test, prm, policy).rows.tolist() == expected
    texts = ("".join(f"{line}\n" for line in side) for side in (lines, other_lines))
    assert score_texts(*texts, prm, policy).rows.tolist() == expected


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: "+".join(vars_of(policy)))
def test_hostile_pairs(name: str, policy: Policy) -> None:
    check_pairs(list(hostile_pairs(500, seed=1)), PARAMETERS[name], policy)


def vars_of(policy: Policy) -> tuple[str, str]:
    return policy.missing_parse, policy.punctuation


@pytest.mark.parametrize("name", NAMES)
def test_many_hostile_pairs(name: str) -> None:
    check_pairs(list(hostile_pairs(20_000, seed=2)), PARAMETERS[name], Policy())


@needs_compiled
def test_few_sentences_are_left_to_the_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare the twin with itself."""
    asked = 0

    def counting(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return count_brackets(*arguments)

    monkeypatch.setattr(corpus, "count_brackets", counting)
    check_pairs(list(hostile_pairs(1000, seed=3)), PARAMETERS["new"], Policy())
    assert 0 < asked < 400


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "folder", ["wsj_punct_tags", "wsj_tags", "sequoia_missing", "sequoia_features"]
)
def test_reference_files(folder: str, name: str) -> None:
    paths = [shared_data("evalb_reference") / folder / side for side in ("gold.txt", "test.txt")]
    prm = PARAMETERS[name]
    gold, test = read_sides(*paths)
    expected = twin_rows(gold, test, prm, Policy())
    assert score_trees(gold, test, prm).rows.tolist() == expected
    assert score_files(*paths, prm).rows.tolist() == expected


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(trees(), trees()), max_size=4), st.sampled_from(sorted(PARAMETERS)))
def test_any_trees(pairs: list[tuple[Tree, Tree]], name: str) -> None:
    """Any Unicode, also where an escape in a text stands for it."""
    prm = PARAMETERS[name]
    gold, test = [one for one, _ in pairs], [other for _, other in pairs]
    for sides in ((gold, test), (gold, gold)):
        expected = twin_rows(*sides, prm, Policy())
        assert score_trees(*sides, prm).rows.tolist() == expected
        texts = ("\n".join(write_brackets(tree, "ptb") for tree in side) for side in sides)
        plain = score_plain_texts(*texts, prm, escapes="ptb")
        if compiled and pairs:
            assert plain is not None
            assert plain.rows.tolist() == expected
        else:
            assert plain is None


def read_rows(gold: str, test: str, prm: Parameters, folder: Path) -> list[list[int]] | str:
    """What reading trees and counting in plain Python comes to; an error as its message."""
    (folder / "gold").write_bytes(gold.encode())
    (folder / "test").write_bytes(test.encode())
    try:
        return twin_rows(*read_sides(folder / "gold", folder / "test"), prm, Policy())
    except SpmrlError as error:
        return str(error)


def check_texts(gold: str, test: str, prm: Parameters, folder: Path) -> bool:
    """The scanner gives up exactly where the reader finds a mistake, and both tell it alike."""
    expected = read_rows(gold, test, prm, folder)
    plain = score_plain_texts(gold, test, prm)
    if isinstance(expected, str):
        assert plain is None
        with pytest.raises(SpmrlError) as caught:
            score_files(folder / "gold", folder / "test", prm)
        assert str(caught.value) == expected
        return False
    assert (plain is not None) == compiled
    assert score_files(folder / "gold", folder / "test", prm).rows.tolist() == expected
    return True


PIECES = [
    "(",
    ")",
    "(N a)",
    "b",
    " ",
    "\n",
    "\r\n",
    "\t",
    "(S ",
    "(S(N a))",
    "()",
    "\x0b\x0c",
    "\0é",
]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=14), cut=st.integers(0, 14))
def test_any_text(pieces: list[str], cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = "".join(pieces)
    folder = tmp_path_factory.getbasetemp()
    check_texts(text, text, PARAMETERS["spmrl"], folder)
    check_texts(text, "".join(pieces[:cut]), PARAMETERS["new"], folder)


def mutations(text: str, count: int) -> Iterator[str]:
    rng = random.Random(count)
    for _ in range(count):
        start = rng.randrange(len(text))
        end = min(len(text), start + rng.choice((0, 1, 1, 2, 10)))
        yield text[:start] + rng.choice(("", "(", ")", " ", "\n", "\r\n", "x", "()")) + text[end:]


def indented(line: str) -> str:
    """The same tree over several lines."""
    return line.replace(" (", "\n  (") + "\n"


@pytest.mark.parametrize("layout", ["lines", "indented", "crlf"])
def test_mutated_text(layout: str, tmp_path: Path) -> None:
    """A file that was damaged in one place, against the whole one."""
    lines = [gold for gold, _ in hostile_pairs(12, seed=4)]
    if layout == "indented":
        lines = [line for line in lines if line.strip("() ") and "(NP ())" not in line]
        text = "\n".join(map(indented, lines))
    else:
        text = ("\r\n" if layout == "crlf" else "\n").join(lines)
    check_texts(text, text, PARAMETERS["COLLINS"], tmp_path)
    whole = [check_texts(text, other, PARAMETERS["nk"], tmp_path) for other in mutations(text, 150)]
    assert 5 < sum(whole) < 145


@pytest.mark.parametrize("text", ["", "\n", "\n\n", "(())\n", "(NP)\n()\n", "  \n(S\n\n)"])
def test_text_without_words(text: str, tmp_path: Path) -> None:
    for pair in ((text, "(S (N a))"), ("(S (N a))", text), (text, text)):
        check_texts(*pair, PARAMETERS["spmrl"], tmp_path)


def test_byte_order_mark_and_encoding(tmp_path: Path) -> None:
    prm = PARAMETERS["spmrl"]
    (tmp_path / "gold").write_bytes("\ufeff(S (N é) (N ß))\r\n".encode())
    (tmp_path / "test").write_bytes("(S (N é) (N ß))\n".encode("utf-16"))
    assert score_files(tmp_path / "gold", tmp_path / "gold", prm).f1 == 100.0
    texts = [(tmp_path / name).read_bytes() for name in ("gold", "test")]
    counts = score_texts(texts[0].decode("utf-8-sig"), texts[1].decode("utf-16"), prm)
    assert counts.rows.tolist() == [[2, 0, 1, 1, 1, 0, 2, 2]]


def test_words_that_differ_in_their_escapes() -> None:
    gold, test = r"(S (CD 1\/2) (N -LCB-))", "(S (CD 1/2) (N {))"
    assert score_texts(gold, test, PARAMETERS["spmrl"]).skipped == 1
    assert score_texts(gold, test, PARAMETERS["spmrl"], escapes="ptb").skipped == 0
    with pytest.raises(SpmrlError, match="unknown escape policy 'nothing'"):
        score_texts(gold, test, PARAMETERS["spmrl"], escapes="nothing")


def test_a_quotation_mark_that_is_an_escape_is_put_back() -> None:
    gold = r"(S (NP (NN cat)) ('' \/) (VP (VB saw)))"
    test = r"(S (NP (NN cat) (POS \/)) (VP (VB saw)))"
    assert score_texts(gold, test, PARAMETERS["new"], escapes="ptb").skipped == 0
    assert score_texts(gold, test, PARAMETERS["new"]).skipped == 1


def test_long_sentences_long_labels_and_many_of_them() -> None:
    """Everything that starts small and grows."""
    rng = random.Random(7)
    n = 1500
    chain = [(0, n, "X" * 10_000)] * 3000
    right = [(i, n, f"R{i % 700}-x") for i in range(n)]
    left = [(0, n - i, f"L{rng.randrange(700)}") for i in range(n)]
    words, tags = [f"w{i}" for i in range(n)], [f"T{rng.randrange(2000)}" for _ in range(n)]
    gold = [Tree.build(words, tags, chain + rows) for rows in (right, left, right)]
    test = [Tree.build(words, tags[::-1], chain + rows) for rows in (left, left, right[::2])]
    prm = PARAMETERS["spmrl"]
    expected = twin_rows(gold, test, prm, Policy())
    assert score_trees(gold, test, prm).rows.tolist() == expected
    texts = ("\n".join(map(write_brackets, side)) for side in (gold, test))
    assert score_texts(*texts, prm).rows.tolist() == expected


def test_many_sentences() -> None:
    line = "(TOP (S (NP (NN a)) (VP (VB b))))"
    text = f"{line}\n" * 3000
    counts = score_texts(text, text, PARAMETERS["COLLINS"])
    assert counts.rows.tolist() == [[2, 0, 3, 3, 3, 0, 2, 2]] * 3000
    assert not counts.rows.flags.writeable


def test_trees_that_no_reader_builds_are_counted_all_the_same() -> None:
    usual = parse_brackets("(S (NP (D a) (N b)) (VP (V c)))")
    odd = {
        "wide spans": replace(usual, spans=usual.spans.astype(np.int64)),
        "slices": replace(usual, spans=np.repeat(usual.spans, 2, axis=0)[::2]),
        "columns": replace(usual, spans=np.asfortranarray(usual.spans)),
        "order": replace(usual, labels=usual.labels[::-1], spans=usual.spans[::-1].copy()),
        "inner first": replace(
            usual, labels=("NP", "S", "VP"), spans=usual.spans[[1, 0, 2]].copy()
        ),
        "lists": replace(usual, words=list(usual.words), tags=list(usual.tags)),  # type: ignore
        "empty": replace(usual, spans=np.array([[0, 3], [2, 2], [2, 3]], dtype=np.int32)),
    }
    for name, tree in odd.items():
        for pair in ((usual, tree), (tree, usual)):
            expected = twin_rows([pair[0]], [pair[1]], PARAMETERS["spmrl"], Policy())
            rows = score_trees([pair[0]], [pair[1]], PARAMETERS["spmrl"]).rows
            assert rows.tolist() == expected, name


def test_no_sentences() -> None:
    assert score_trees([], [], PARAMETERS["spmrl"]).rows.shape == (0, 8)


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "spmrl_bench.scoring._scanning", None)
    corpus._load_kernels.cache_clear()
    yield
    corpus._load_kernels.cache_clear()


@pytest.mark.usefixtures("without_kernels")
def test_without_kernels_the_twin_counts_and_one_warning_says_so() -> None:
    line = "(TOP (S (NP (NN a)) (VP (VB b))))"
    with pytest.warns(RuntimeWarning, match=r"plain-Python code.*_scanning.*C compiler"):
        counts = score_texts(line, line, PARAMETERS["spmrl"])
    assert counts.f1 == 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernel_name() == "python"
        tree = parse_brackets(line)
        assert score_trees([tree, None], [tree, tree], PARAMETERS["spmrl"]).f1 == 100.0


@needs_compiled
def test_the_kernels_are_used_where_they_are_built() -> None:
    assert kernel_name() == "cython"
