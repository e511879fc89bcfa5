"""Constituents that give way to others: sound trees, nothing else changed, drawn evenly."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.training.substitution import MAX_WORDS, Substitution
from spmrl_bench.trees import Parse
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.tree import collapsed_spans
from tests.training.trainers import TRAIN_TREES, break_off, make_trainer, weights


def parse_of(text: str) -> Parse:
    return Parse.of(parse_brackets(text))


def subtrees(text: str) -> list[str]:
    """The text of every constituent that is not a word, by counting brackets."""
    found, opened = [], []
    for match in re.finditer(r"[()]", text):
        if match.group() == "(":
            opened.append(match.start())
        else:
            found.append(text[opened.pop() : match.end()])
    return [one for one in found if one.count("(") > 1]


def label_of(text: str) -> tuple[str, ...]:
    """The chain of labels of a constituent in brackets."""
    return next(label for _, _, label in collapsed_spans(parse_brackets(text)))


def top_of_chain(text: str, whole: str) -> bool:
    """Whether no constituent of the same words is around this one."""
    around = re.search(r"\(\S+ " + re.escape(text) + r"\)", whole)
    return around is None


def possible(trees: list[str], number: int) -> set[str]:
    """All sentences that one substitution can make, by replacing text."""
    donors = [
        one for tree in trees for one in subtrees(tree) if one != tree and top_of_chain(one, tree)
    ]
    whole = trees[number]
    own = [one for one in subtrees(whole) if one != whole and top_of_chain(one, whole)]
    made = set()
    for mine in own:
        for match in re.finditer(re.escape(mine), whole):
            for other in donors:
                if label_of(other) == label_of(mine):
                    made.add(whole[: match.start()] + other + whole[match.end() :])
    return made


TREES = [
    "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))",
    "(S (NP (NP (N dogs)) (PP (P of) (NP (N war)))) (VP (V slept)))",
    "(S (VP (V go)))",
    "(S (N no))",
]


def test_all_sentences_that_text_can_make_come_up_and_no_others() -> None:
    substitution = Substitution([parse_of(text) for text in TREES])
    random = np.random.default_rng(1)
    for number in range(len(TREES)):
        made = {write_brackets(substitution(number, random)[0].tree) for _ in range(600)}
        assert made == (possible(TREES, number) or {TREES[number]})


def test_constituents_are_drawn_evenly() -> None:
    trees = ["(S (X (A a)) (X (B b)))", "(S (X (C c)) (X (D d)))"]
    substitution, random = Substitution(list(map(parse_of, trees))), np.random.default_rng(3)
    seen = Counter(substitution(0, random)[0].words for _ in range(4000))
    # Two places, four constituents: the sentence itself is made in two ways.
    expected = dict.fromkeys([("b", "b"), ("c", "b"), ("d", "b")], 500)
    expected |= dict.fromkeys([("a", "a"), ("a", "c"), ("a", "d")], 500) | {("a", "b"): 1000}
    assert seen.keys() == expected.keys()
    assert all(abs(seen[words] - expected[words]) < 120 for words in expected)


def test_sentences_do_not_grow_beyond_the_limit() -> None:
    long = "(S (X " + " ".join(f"(A w{k})" for k in range(MAX_WORDS)) + ") (B end))"
    parses = [parse_of(long), parse_of("(S (X (A a)) (B b) (C c))")]
    substitution, random = Substitution(parses), np.random.default_rng(4)
    assert max(len(substitution(1, random)[0]) for _ in range(50)) == 3
    assert {len(substitution(0, random)[0]) for _ in range(50)} == {MAX_WORDS + 1, 2}


def test_dependencies_would_not_fit_and_are_refused() -> None:
    tree = parse_brackets(TREES[2])
    heads = DependencyTree.build(tree.words, tree.tags, [0], ["root"])
    for parse in (Parse.of(tree, heads), Parse.of(dependencies=heads)):
        with pytest.raises(TreeError, match=r"train\.substitution exchanges constituents"):
            Substitution([parse])


def test_a_share_of_each_epoch_is_made_anew_and_resumes(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_epochs": 4, "substitution": 0.5}
    break_off(tmp_path / "resumed", 5, **settings)
    for name in ("resumed", "whole"):
        make_trainer(tmp_path / name, **settings).fit()
    assert weights(tmp_path / "resumed" / "last") == weights(tmp_path / "whole" / "last")
    make_trainer(tmp_path / "plain", max_epochs=4).fit()
    assert weights(tmp_path / "plain" / "last") != weights(tmp_path / "whole" / "last")
    trainer = make_trainer(tmp_path / "fresh", **settings)
    epochs = [trainer._sentences_of(epoch) for epoch in range(20)]
    new = [
        sum(one is not old for one, old in zip(epoch, trainer.sentences, strict=True))
        for epoch in epochs
    ]
    assert 0.4 < sum(new) / (20 * len(TRAIN_TREES)) < 0.6
    assert len(set(map(tuple, ([id(s) for s in epoch] for epoch in epochs)))) == 20
