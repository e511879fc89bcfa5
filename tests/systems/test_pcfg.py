"""The treebank grammar: the parser that asks for rules by their children is nltk's own."""

from __future__ import annotations

import importlib
import random
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest
from nltk import Nonterminal
from nltk.grammar import PCFG, ProbabilisticProduction
from nltk.parse import ViterbiParser

from spmrl_bench.storage.paths import data_dir


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(data_dir("systems") / "drivers")
    return importlib.import_module("pcfg_driver")


def random_rules(choose: random.Random) -> list[ProbabilisticProduction]:
    """Rules with one and two children, chains and circles among them, and with words."""
    symbols = [Nonterminal(name) for name in "STUVW"]
    rules = []
    for left in symbols:
        rights: list[tuple[object, ...]] = [(choose.choice("abc"),)]
        rights += [tuple(choose.choices(symbols, k=2)) for _ in range(3)]
        rights += [(choose.choice(symbols),) for _ in range(choose.randint(0, 2))]
        weights = [choose.random() for _ in rights]
        rules += [
            ProbabilisticProduction(left, right, prob=weight / sum(weights))
            for right, weight in zip(rights, weights, strict=True)
        ]
    return rules


@pytest.mark.parametrize("seed", range(20))
def test_the_best_tree_is_the_one_that_nltk_finds(seed: int, driver: ModuleType) -> None:
    choose = random.Random(seed)
    rules = random_rules(choose)
    grammar = PCFG(Nonterminal("S"), rules)
    lexical = [rule for rule in rules if rule.is_lexical()]
    content = {
        name: [[str(rule.lhs()), *map(str, rule.rhs()), rule.prob()] for rule in some]
        for name, some in (("rules", set(rules) - set(lexical)), ("lexical", lexical))
    }
    ours = driver.Grammar({"start": "S", **content})
    known = sorted({rule.rhs()[0] for rule in lexical})
    for length in range(1, 7):
        words = choose.choices(known, k=length)
        expected = next(ViterbiParser(grammar).parse(words), None)
        found = ours.parse(words)
        assert (found is None) == (expected is None)
        if expected is not None:
            tree, probability = found
            assert probability == pytest.approx(expected.prob(), rel=1e-12)
            assert tree.leaves() == words


def test_trees_that_were_learnt_come_back(driver: ModuleType, tmp_path: Path) -> None:
    """Chains, more than two children, and words as they were spelt."""
    trees = [
        "(ROOT (S (NP (PRP I)) (VP (VBP see) (NP (DT a) (JJ big) (NN dog)))))",
        "(ROOT (S (NP (PRP I)) (VP (VBP see) "
        "(NP (NP (DT a) (NN dog)) (PP (IN in) (NP (NNP Ulm)))))))",
        r"(ROOT (S (NP (CD 1-RRB-) (CD 1\/2)) (VP (VBP -LRB-))))",
        r"(ROOT (S (NP (CD 1-RRB-) (CD 1\/2)) (VP (VBP -LRB-))))",
    ]
    train, given, answers = (tmp_path / name for name in ("train", "given", "answers"))
    train.write_text("\n".join(trees) + "\n", encoding="utf-8")
    sentences = ["I see a big dog", r"1-RRB- 1\/2 -LRB-", "dog dog", "I see Aue"]
    flat = [" ".join(f"(X {word})" for word in sentence.split()) for sentence in sentences]
    given.write_text("".join(f"(ROOT {words})\n" for words in flat), encoding="utf-8")
    options = Namespace(
        train=str(train), model=str(tmp_path), horizontal=1, vertical=0,
        input=str(given), output=str(answers), seconds=10.0,
    )  # fmt: skip
    driver.train(options)
    driver.parse(options)
    found = answers.read_text(encoding="utf-8").splitlines()
    assert found[:3] == [trees[0], trees[2], "(())"]
    assert "Aue" in found[3]  # a name that was never seen
