"""Scores of corpora, texts and files: the kernel gives the rows of the plain-Python code.

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

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError, ScoreError, SpmrlError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring import (
    Column,
    MissingParse,
    Parameters,
    Policy,
    Punctuation,
    Status,
    count_brackets,
    load_prm,
    score_files,
    score_texts,
    score_trees,
    texts,
)
from spmrl_bench.scoring.texts import read_sides
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from tests.scoring.hostile import as_trees, hostile_pairs
from tests.trees.strategies import trees

compiled = importlib.util.find_spec("spmrl_bench.scoring._scanning")

NAMES = ("COLLINS", "new", "nk", "spmrl", "spmrl_hebrew")
PARAMETERS = {name: load_prm(name) for name in NAMES} | {
    "same words": replace(load_prm("COLLINS"), eq_words=frozenset([("a", "b"), ("d", "ß")])),
    "unlabelled": replace(load_prm("new"), labeled=False),
}
SPMRL = PARAMETERS["spmrl"]
POLICIES = [Policy(*choices) for choices in product(MissingParse, Punctuation)]
Rows = list[list[int]]


def plain_rows(gold: list[Tree], test: list[Tree], prm: Parameters, policy: Policy) -> Rows:
    pairs = zip(gold, test, strict=True)
    return [list(count_brackets(one, other, prm, policy)) for one, other in pairs]


def check_pairs(count: int, seed: int, *ways: tuple[Parameters, Policy]) -> None:
    """Rows from the lines are those of the plain code."""
    sides = [list(side) for side in zip(*hostile_pairs(count, seed), strict=True)]
    gold, test = map(as_trees, sides)
    both = ["".join(f"{line}\n" for line in side) for side in sides]
    for prm, policy in ways:
        expected = plain_rows(gold, test, prm, policy)
        assert score_texts(*both, prm, policy).rows.tolist() == expected, (prm, policy)


@pytest.mark.parametrize("count", [2000, pytest.param(20_000, marks=pytest.mark.campaign)])
def test_hostile_pairs(count: int) -> None:
    check_pairs(count, 2, *((PARAMETERS[name], Policy()) for name in NAMES))
    check_pairs(300, 1, *product(PARAMETERS.values(), POLICIES))


@pytest.mark.skipif(not compiled, reason="the kernel is not built")
def test_few_sentences_are_left_to_the_plain_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare the plain code with itself."""
    asked = 0

    def counting(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return count_brackets(*arguments)

    monkeypatch.setattr(texts, "count_brackets", counting)
    check_pairs(1000, 3, (PARAMETERS["new"], Policy()))
    assert 0 < asked < 500


@given(
    st.lists(st.tuples(trees(), trees()), min_size=1, max_size=4),
    st.sampled_from(sorted(PARAMETERS)),
)
def test_any_trees(pairs: list[tuple[Tree, Tree]], name: str) -> None:
    """Any Unicode, also where an escape in a text stands for it."""
    prm = PARAMETERS[name]
    gold, test = [one for one, _ in pairs], [other for _, other in pairs]
    for sides in ((gold, test), (gold, gold)):
        expected = plain_rows(*sides, prm, Policy())
        both = ("\n".join(write_brackets(tree, "ptb") for tree in side) for side in sides)
        assert score_texts(*both, prm, escapes="ptb").rows.tolist() == expected


def check_texts(gold: str, test: str, prm: Parameters, folder: Path) -> bool:
    """A file is scored as its trees are; what is no file of trees is told as reading tells it."""
    paths = folder / "gold", folder / "test"
    for path, text in zip(paths, (gold, test), strict=True):
        path.write_bytes(text.encode())
    message, expected = "", None
    try:
        expected = plain_rows(*read_sides(*paths), prm, Policy())
    except SpmrlError as error:
        message = str(error)
    if expected is not None:
        assert score_files(*paths, prm).rows.tolist() == expected
        return True
    with pytest.raises(SpmrlError) as caught:
        score_files(*paths, prm)
    assert str(caught.value) == message
    return False


PIECES = [*"()b \n\t", "\r\n", "(N a)", "(S ", "(S(N a))", "()", "(NP)", "\v\f", "\0é"]


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=14), cut=st.integers(0, 14))
def test_any_text(pieces: list[str], cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = "".join(pieces)
    folder = tmp_path_factory.getbasetemp()
    check_texts(text, text, SPMRL, folder)
    check_texts(text, "".join(pieces[:cut]), PARAMETERS["new"], folder)


def mutations(text: str, count: int) -> Iterator[str]:
    rng = random.Random(count)
    for _ in range(count):
        start = rng.randrange(len(text))
        end = min(len(text), start + rng.choice((0, 1, 1, 2, 10)))
        yield text[:start] + rng.choice(("", "(", ")", " ", "\n", "\r\n", "x", "()")) + text[end:]


@pytest.mark.parametrize("layout", ["lines", "indented", "crlf"])
def test_mutated_text(layout: str, tmp_path: Path) -> None:
    """A file that was damaged in one place, against the whole one."""
    lines = [gold for gold, _ in hostile_pairs(12, seed=4)]
    if layout == "indented":
        lines = [line for line in lines if line.strip("() ") and "(NP ())" not in line]
        lines = [line.replace(" (", "\n  (") + "\n" for line in lines]
    text = ("\r\n" if layout == "crlf" else "\n").join(lines)
    assert check_texts(text, text, PARAMETERS["COLLINS"], tmp_path)
    whole = [check_texts(text, other, PARAMETERS["nk"], tmp_path) for other in mutations(text, 60)]
    assert 2 < sum(whole) < 58


def test_words_are_compared_as_they_stand_unless_escapes_are_named() -> None:
    gold, test = r"(S (CD 1\/2) (N -LCB-))", "(S (CD 1/2) (N {))"
    assert score_texts(gold, test, SPMRL).skipped == 1
    assert score_texts(gold, test, SPMRL, escapes="ptb").skipped == 0
    with pytest.raises(SpmrlError, match="unknown escape policy 'nothing'"):
        score_texts(gold, test, SPMRL, escapes="nothing")


def test_a_quotation_mark_that_is_an_escape_is_put_back() -> None:
    gold = r"(S (NP (NN cat)) ('' \/) (VP (VB saw)))"
    test = r"(S (NP (NN cat) (POS \/)) (VP (VB saw)))"
    assert score_texts(gold, test, PARAMETERS["new"], escapes="ptb").skipped == 0
    assert score_texts(gold, test, PARAMETERS["new"]).skipped == 1


def test_many_labels_and_long_trees_after_short_ones() -> None:
    rng = random.Random(7)
    n = 800
    chain = [(0, n, "X" * 10_000)] * 1200
    right = [(i, n, f"R{i % 700}-x") for i in range(n)]
    left = [(0, n - i, f"L{rng.randrange(700)}") for i in range(n)]
    words, tags = [f"w{i}" for i in range(n)], [f"T{rng.randrange(20_000)}" for _ in range(n)]
    gold = [
        Tree.build(["a"], ["N"], []),
        *(Tree.build(words, tags, chain + r) for r in (right, left)),
    ]
    test = [gold[0], *(Tree.build(words, tags[::-1], chain + r) for r in (left, right[::2]))]
    expected = plain_rows(gold, test, SPMRL, Policy())
    both = ("\n".join(map(write_brackets, side)) for side in (gold, test))
    assert score_texts(*both, SPMRL).rows.tolist() == expected


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "spmrl_bench.scoring._scanning", None)
    texts._load_kernel.cache_clear()
    yield
    texts._load_kernel.cache_clear()


@pytest.mark.usefixtures("without_kernel")
def test_without_the_kernel_the_plain_code_counts_and_one_warning_says_so() -> None:
    line = "(TOP (S (NP (NN a)) (VP (VB b))))"
    with pytest.warns(RuntimeWarning, match=r"plain-Python code.*_scanning.*C compiler"):
        assert score_texts(line, line, SPMRL).f1 == 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = parse_brackets(line)
        assert score_trees([tree, None], [tree, tree], SPMRL).f1 == 100.0


ONE = "(TOP (S (NP (NN a)) (VP (VB b))))"
TWO = "(TOP (S (NP (NN c)) (VP (VB d) (NP (NN e)))))"
INDENTED = """
( (S
    (NP (NN a))
    (VP (VB b))))


( (S (NP (NN c))
    (VP (VB d)
      (NP (NN e)))))
"""


def files(folder: Path, gold: str, test: str) -> tuple[Path, Path]:
    (folder / "g").write_bytes(gold.encode())
    (folder / "t").write_bytes(test.encode())
    return folder / "g", folder / "t"


def test_indented_gold_against_one_line_per_tree(tmp_path: Path) -> None:
    counts = score_files(*files(tmp_path, INDENTED, f"{ONE}\n{TWO}"), SPMRL)
    assert (len(counts), counts.skipped, counts.f1) == (2, 0, 100.0)


def test_a_blank_line_is_a_failed_parse(tmp_path: Path) -> None:
    for blank in ["", "(())", "()", "  "]:
        for end in ["\n", "\r\n"]:
            gold, test = (end.join((*lines, "")) for lines in ((ONE, ONE, TWO), (ONE, blank, TWO)))
            counts = score_files(*files(tmp_path, gold, test), SPMRL)
            statuses = [Status.VALID, Status.NO_WORDS, Status.VALID]
            assert counts.column(Column.STATUS).tolist() == statuses
            nothing = score_files(*files(tmp_path, f"{ONE}\n", "(())\n"), SPMRL)
            assert (len(nothing), nothing.skipped, nothing.f1) == (1, 1, None)


def test_byte_order_mark_and_encoding(tmp_path: Path) -> None:
    (tmp_path / "gold").write_bytes("\ufeff(S (N é) (N ß))\r\n".encode())
    (tmp_path / "test").write_bytes("(S (N é) (N ß))\n".encode("latin-1"))
    assert score_files(tmp_path / "gold", tmp_path / "gold", SPMRL).f1 == 100.0
    path = tmp_path / "test"
    assert score_files(path, path, SPMRL, encoding="latin-1").f1 == 100.0


def test_each_mistake_has_one_clear_error(tmp_path: Path) -> None:
    for gold, test, error, message in [
        (f"{ONE}\n{TWO}\n", f"{ONE}\n", ScoreError, "g has 2 sentences, .*t has 1;"),
        (f"{ONE}\n", f"{ONE}\n\n", ScoreError, "g has 1 .*t has 2;.*t ends with 1 blank line"),
        ("", f"{ONE}\n", ScoreError, "g: holds no tree"),
        (f"{ONE}\n", "", ScoreError, "t: holds no tree"),
        (f"{ONE}\n{TWO}\n", f"{ONE}\n{TWO[:-1]}\n", ReadError, "t:2:1: .*is not closed before"),
        (f"{ONE}\n{TWO})\n", f"{ONE}\n{TWO}\n", ReadError, r"g:2:\d+: .*no bracket is open"),
        (f"{ONE}\n", "(S a b)\n", ReadError, "t:1:.* word"),
        (f"{ONE}\n\n", f"{ONE} {TWO}\n", ScoreError, "g has 2 sentences, .*t has 1;"),
        (INDENTED, f"{ONE}\n", ScoreError, "g has 2 .*g has trees over several lines"),
    ]:
        with pytest.raises(error, match=message):
            score_files(*files(tmp_path, gold, test), SPMRL)


GOLD = ["(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(NP (NN -LRB-))", "(S (NN a))"]
TEST = ["(S (NP (DT the)) (VP (NN dog) (VBZ barks)))", "(X (NN -LRB-))", "(())"]


def test_every_form_of_a_sentence_gives_the_same_counts() -> None:
    nltk = pytest.importorskip("nltk")

    def in_every_form(lines: list[str]) -> list[list[Any]]:
        bracket = nltk.Tree(lines[1][1:].split()[0], [nltk.Tree("NN", ["("])])
        first, last = map(nltk.Tree.fromstring, (lines[0], lines[2]))
        return [as_trees(lines), lines, [first, bracket, last]]

    gold, test = in_every_form(GOLD), in_every_form(TEST)
    expected = score_trees(gold[0], test[0], SPMRL).rows.tolist()
    assert [row[2:5] for row in expected] == [[1, 3, 3], [0, 1, 1], [0, 0, 0]]
    for one in gold:
        for other in (*test, [*TEST[:2], None]):
            assert score_trees(one, other, SPMRL).rows.tolist() == expected
    wrong = nltk.Tree("S", ["a", nltk.Tree("NN", ["b"])])
    for sentence, message in {
        7: "expected a tree, an nltk tree or bracketed text, found int",
        "(S (NN dog)": "<string>:1:1: .*not closed",
    }.items():
        with pytest.raises(ScoreError, match=f"test sentence 2: {message}"):
            score_trees(GOLD[:2], [TEST[0], sentence], SPMRL)  # type: ignore[list-item]
    with pytest.raises(ScoreError, match="test sentence 2: the leaf 'a' below 'S'"):
        score_trees(GOLD[:2], [TEST[0], wrong], SPMRL)


def test_different_numbers_of_sentences_are_an_error() -> None:
    with pytest.raises(ScoreError, match="gold has 3 sentences, test has 1"):
        score_trees(GOLD, TEST[:1], SPMRL)
