"""The whole chart parser: from words to trees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from spmrl_bench.errors import TokensError, TreeError
from spmrl_bench.parsers import session
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse
from tests.builders import TREES, tiny
from tests.parsers.examples import lively, random_sentences, trees_of


def test_answers_are_in_input_order(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = lively()
    sentences = random_sentences(23)
    assert list(parser.parse([])) == []
    assert [len(tree) for tree in parser.parse([[], []])] == [0, 0]
    alone = [next(parser.parse([words])) for words in sentences]
    assert [list(tree.words) for tree in alone] == sentences
    assert len({tuple(tree.constituents()) for tree in trees_of(alone)}) > 10
    for window in (1, 5, 22, 23, 1000):
        monkeypatch.setattr(session, "WINDOW_SENTENCES", window)
        for max_tokens in (1, 40, 2000):
            assert list(parser.parse(sentences, max_tokens=max_tokens)) == alone


def test_tags_are_carried_into_the_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "WINDOW_SENTENCES", 3)
    parser = lively()
    sentences = random_sentences(8)
    tags = [[f"T{k}.{place}" for place in range(len(s))] for k, s in enumerate(sentences)]
    bare, tagged = list(parser.parse(sentences)), list(parser.parse(sentences, iter(tags)))
    for plain_tree, tree, given in zip(bare, tagged, tags, strict=True):
        assert set(plain_tree.tags) == {"XX"}
        assert list(tree.tags) == given
        assert list(tree.tree.constituents()) == list(plain_tree.tree.constituents())


def test_tags_must_fit_the_sentences() -> None:
    for words, tags, message in (
        ([["the", "dog"], ["the", "cat"]], [["D", "N"]], r"fewer rows.*begins: the cat"),
        ([["the", "dog"]], [["D"]], "2 words but 1 tags"),
        ([["the", "dog"]], [], "fewer rows of tags"),
    ):
        with pytest.raises(TreeError, match=message):
            list(lively().parse(words, tags))


def test_a_text_is_no_sentence_and_no_row_of_tags() -> None:
    given: list[Any] = ["the dog", ["the dog"], [["the"], "the dog"], [b"the dog"]]
    for parser in (tiny(), RightBranching.build(ParserConfig(), [*map(Parse.of, TREES)])):
        for sentences in given:
            with pytest.raises(TokensError, match=r"list of words, .* found the text b?'t"):
                list(parser.parse(sentences))
        with pytest.raises(TokensError, match="sentence 1: expected a list of tags"):
            list(parser.parse([["a", "b"]], ["XY"]))


def test_endless_input_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "WINDOW_SENTENCES", 4)
    taken = itertools.count()

    def endless() -> Iterator[list[str]]:
        while True:
            next(taken)
            yield ["the", "dog"]

    answers = lively().parse(endless())
    next(answers)
    assert next(taken) == 4
    list(itertools.islice(answers, 3))
    assert next(taken) == 5
    next(answers)
    assert next(taken) == 10


def test_parsing_leaves_the_mode_as_it_was_and_uses_no_dropout() -> None:
    rates = {"attention", "residual", "relu", "word", "form", "char"}
    parser = lively(**{f"{name}_dropout": 0.5 for name in rates})
    sentences = random_sentences(10)
    expected = list(parser.parse(sentences))
    assert not parser.training
    assert list(parser.train().parse(sentences)) == expected
    assert parser.training
    assert all(parameter.grad is None for parameter in parser.parameters())


def test_empty_label_never_covers_the_sentence() -> None:
    parser = lively()
    with torch.no_grad():
        parser.scorer.second.bias.sub_(100)
    for tree in trees_of(parser.parse(random_sentences(10))):
        assert len(tree.labels) > 0
        assert {(i, j) for i, j, _ in tree.constituents()} == {(0, len(tree))}


def test_unary_chains_are_written_out() -> None:
    parser = tiny("chart", [parse_brackets("(A (B (C (t x)) (C (t y))))")])
    assert parser.vocabulary.labels == ((), ("A", "B"), ("C",))
    with torch.no_grad():
        parser.scorer.second.weight.zero_()
        parser.scorer.second.bias.copy_(torch.tensor([1.0, -1.0]))
    (tree,) = parser.parse([["x", "y"]])
    assert str(tree) == "(A (B (A (B (XX x))) (A (B (XX y)))))"
