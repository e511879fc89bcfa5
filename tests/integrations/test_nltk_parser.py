"""A trained parser behind NLTK's interface: its trees, its graphs, its words left as they are."""

from __future__ import annotations

import math
import re
import sys
from itertools import count, islice
from typing import Any

import pytest
from nltk.parse import DependencyEvaluator, DependencyGraph
from nltk.parse.api import ParserI
from nltk.sem.glue import Glue
from nltk.tag import DefaultTagger

from spmrl_bench.errors import SpmrlError, TokensError
from spmrl_bench.integrations.nltk_parser import NltkParser, to_graph
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import AttachNeighbour
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.readers.conll import read_conll
from spmrl_bench.trees import Parse
from spmrl_bench.trees.dependencies import DependencyTree
from tests.builders import tiny
from tests.laboratory import make_trees
from tests.reliability.kinds import KINDS

EXAMPLES = [Parse.of(tree) for tree in make_trees(10, 1)]
PARSER = tiny("chart", EXAMPLES)
ODD = ["(", "a b", "-LRB-", "1/2", "*", "", "\u00a0", "]"]


def test_trees_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    tree = parse_brackets("(S (NP (DT the) (NN dog)) (VP (VB barks)))")
    tree.pretty_print()
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("S", "NP", "the", "dog", "barks"))
    for shown in (tree, Parse.of(tree)):
        assert re.match("<svg.*barks", shown._repr_svg_(), re.DOTALL)
    assert Parse.of(dependencies=LINKS)._repr_svg_() is None


def test_without_nltk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk.tree", None)
    with pytest.raises(SpmrlError, match="pip install nltk"):
        EXAMPLES[0].tree.to_nltk()


SENTENCES = [["the", "dog", "sees", "a", "ring"], ODD, ["the"], ["an", "unknown", "word"]]


def test_it_is_a_parser_of_nltk() -> None:
    parser = NltkParser(PARSER)
    assert isinstance(parser, ParserI)
    ours = list(PARSER.parse(SENTENCES))
    together = [list(found) for found in parser.parse_sents(SENTENCES)]
    for words, parse, found in zip(SENTENCES, ours, together, strict=True):
        assert found == [parse.tree.to_nltk()]
        assert found[0].leaves() == words
        assert list(parser.parse(words)) == parser.parse_all(words) == found
        assert parser.parse_one(words) == found[0]
    assert list(parser.parse_sents([])) == parser.parse_one([]).leaves() == []


def test_trees_have_their_probabilities_if_asked_for() -> None:
    parsers = (NltkParser(PARSER, scores=scores) for scores in (False, True))
    plain, sure = (next(parser.parse(SENTENCES[0])) for parser in parsers)
    assert [*sure] == [*plain]
    (parse,) = PARSER.parse(SENTENCES[:1], scored=True)
    assert parse.probabilities is not None
    assert sure.logprob() * math.log(2) == pytest.approx(parse.probabilities.log_tree)
    assert not hasattr(plain, "prob")
    first, *others = NltkParser(PARSER, scores=True, best=3).parse(SENTENCES[0])
    assert first == sure
    assert [first.prob() > other.prob() > 0 for other in others] == [True, True]


def test_tags_come_as_pairs() -> None:
    tagged = [list(zip(words, "abcdefgh", strict=False)) for words in SENTENCES]
    for found, pairs in zip(NltkParser(PARSER).parse_sents(tagged), tagged, strict=True):
        assert next(found).pos() == pairs
    mixed: list[Any] = [tagged[0], SENTENCES[0]]
    for sentences in (mixed, mixed[::-1]):
        with pytest.raises(TokensError, match="tags with every sentence or with none"):
            list(NltkParser(PARSER).parse_sents(sentences))


@pytest.mark.parametrize(
    "wrong", ["the dog", b"the dog", ["the", 3], [("the", "DT"), "dog"], [(1, 2)]]
)
def test_what_is_no_sentence(wrong: Any) -> None:
    with pytest.raises(TokensError, match="found"):
        NltkParser(PARSER).parse(wrong)
    with pytest.raises(TokensError, match="found"):
        list(NltkParser(PARSER).parse_sents(wrong))


def test_many_sentences_are_parsed_as_they_are_needed() -> None:
    endless = (["the", "dog"] for _ in count())
    assert len(list(islice(NltkParser(PARSER).parse_sents(endless), 3))) == 3


LINKS = DependencyTree.build(
    ("a b", "sees", "it", "."), ("N", "V", "XX", "P"), (2, 0, 2, 2), ("subj", "top", "obj", "p")
)


def test_graphs_have_the_heads_and_relations() -> None:
    graph = to_graph(LINKS)
    rows = [graph.nodes[k] for k in range(1, 5)]
    assert [row["word"] for row in rows] == list(LINKS.words)
    assert [row["head"] for row in rows] == [2, 0, 2, 2]
    assert [row["rel"] for row in rows] == list(LINKS.relations)
    assert [row["tag"] for row in rows] == ["N", "V", "_", "P"]
    assert graph.root["word"] == "sees"
    assert graph.tree().label() == "sees"
    assert next(iter(graph.triples())) == (("sees", "V"), "subj", ("a b", "N"))


def test_a_parser_of_dependencies_gives_graphs() -> None:
    baseline = AttachNeighbour.build(ParserConfig(), [Parse.of(dependencies=LINKS)])
    parser = NltkParser(baseline)
    assert parser.layer == "dependencies"
    graph = parser.parse_one([("sees", "V"), ("it", "N")])
    assert isinstance(graph, DependencyGraph)
    assert DependencyEvaluator([graph], [graph]).eval() == (1, 1)
    empty = parser.parse_one([])
    assert isinstance(empty, DependencyGraph)
    assert len(empty.nodes) == len(DependencyGraph().nodes)
    with pytest.raises(SpmrlError, match="finds dependencies, not constituents"):
        NltkParser(baseline, layer="constituents")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_layer(kind: str) -> None:
    parser, sentences = tiny(kind, seed=1, layers=1), [SENTENCES[k] for k in (0, 2, 3)]
    for layer in kind_named(kind).layers:
        found = [next(one) for one in NltkParser(parser, layer=layer).parse_sents(sentences)]
        for parse, expected in zip(found, parser.parse(sentences), strict=True):
            if layer == "constituents":
                assert parse == expected.tree.to_nltk()
                continue
            (read,) = read_conll(parse.to_conll(10), path="t")
            assert read.tree.words == expected.words
            assert read.tree.heads.tolist() == expected.dependencies.heads.tolist()
            assert read.tree.relations == expected.dependencies.relations


def test_words_without_a_tag_from_a_tagger_of_nltk() -> None:
    reading = tiny("chart", EXAMPLES, inputs=("word", "tag"))
    tagged = DefaultTagger(None).tag(["the", "dog"])
    (unknown,) = NltkParser(reading).parse(tagged)
    (other,) = NltkParser(reading).parse([("the", "XX"), ("dog", "XX")])
    assert unknown == other


def test_glue_semantics_takes_a_parser_of_dependencies() -> None:
    baseline = AttachNeighbour.build(ParserConfig(), [Parse.of(dependencies=LINKS)])
    glue = Glue(depparser=NltkParser(baseline))
    (graph,) = glue.dep_parse(["sees", "it"])
    assert isinstance(graph, DependencyGraph)
    assert {graph.nodes[k]["word"] for k in (1, 2)} == {"sees", "it"}


def test_without_nltk_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "spmrl_bench.integrations.nltk_parser"
    monkeypatch.delitem(sys.modules, place)
    monkeypatch.setitem(sys.modules, "nltk.parse.api", None)
    with pytest.raises(SpmrlError, match=r"NLTK needs it: pip install 'spmrl-bench\[nltk\]'"):
        __import__(place)
