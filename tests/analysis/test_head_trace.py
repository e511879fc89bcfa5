"""Labels traced back: what is said of a span, of its rival, and of the heads behind it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from spmrl_bench.analysis.head_contributions import shares, span_features
from spmrl_bench.analysis.head_trace import trace, trace_text
from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.head_driven import TO_HEAD
from spmrl_bench.trees.tree import Tree, collapsed_spans
from tests.analysis.constructed import HEADS, ON, random_parser, seen_in, two_headed_parser
from tests.parsers.test_joint_parser import joint

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]


def gold_tree(brackets: str) -> Tree:
    return parse_brackets(brackets)


GOLD = gold_tree("(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (A big) (N dog))) (X (P .)))")


def test_each_constituent_has_its_label_and_its_heads() -> None:
    made = random_parser(label_feed_forward="usual")
    (parse,) = made.parse([WORDS])
    heads = seen_in(made, WORDS).heads
    found = trace(made, WORDS)
    assert found.tree == parse.tree
    rows = list(collapsed_spans(parse.tree))
    assert [(span.start, span.end, span.label) for span in found.spans] == rows
    assert found.compared == len(rows) > 1
    labels = made.vocabulary.labels
    for span in found.spans:
        place = [(span.start, span.end)]
        scores = heads.label_scores(torch.from_numpy(heads.features)[None], place)[0, 0].detach()
        assert span.score == pytest.approx(float(scores[labels.index(span.label)]), abs=1e-5)
        assert span.rival_score == pytest.approx(float(scores[labels.index(span.rival)]), abs=1e-5)
        assert span.gold is None
        assert not span.wrong
        (own,) = shares(span_features(heads.features, place))
        np.testing.assert_allclose(span.shares, own, atol=1e-6)
        np.testing.assert_allclose(span.weights, heads.weights, atol=1e-6)


def test_what_heads_looked_at_with_query_matrices() -> None:
    """The mean over the tokens that the span vector is made of."""
    made = random_parser(label_queries="matrices")
    (span,) = trace(made, WORDS, spans=[(2, 5)]).spans
    weights = seen_in(made, WORDS).heads.weights
    expected = (weights[:, 2] + weights[:, 5] + weights[:, 3] + weights[:, 6]) / 4
    np.testing.assert_allclose(span.weights, expected, atol=1e-6)
    assert span.weights.shape == (HEADS, len(WORDS) + 2)


def test_the_head_behind_a_label_comes_first() -> None:
    made = two_headed_parser(np_head=3, vp_head=1)
    found = trace(made, WORDS)
    for span in found.spans:
        own, other = (3, 1) if span.label == ("NP",) else (1, 3)
        assert span.top_heads(1) == span.top_heads(1, "without") == [own]
        assert span.parts[own] > 0.1 > span.parts[other]
        np.testing.assert_allclose(span.parts[[0, 2, 4]], 0, atol=1e-6)
    assert {span.label for span in found.spans} == {("NP",), ("VP",)}


def test_gold_is_the_rival_where_it_differs() -> None:
    made = random_parser()
    found = trace(made, WORDS, gold=GOLD)
    predicted = {row[:2]: row[2] for row in collapsed_spans(found.tree)}
    right = {row[:2]: row[2] for row in collapsed_spans(GOLD)}
    spans = [(span.start, span.end) for span in found.spans]
    assert spans == sorted(predicted.keys() | right.keys(), key=lambda span: (span[0], -span[1]))
    for span in found.spans:
        place = (span.start, span.end)
        assert (span.label, span.gold) == (predicted.get(place, ()), right.get(place, ()))
        assert span.wrong == (span.label != span.gold)
        assert span.known == (span.gold != ("X",))
        if span.wrong and span.known:
            assert span.rival == span.gold
        else:
            assert span.rival != span.label
    wrong = found.errors()
    assert [span.wrong for span in wrong.spans] == [True] * len(wrong.spans)
    assert 0 < len(wrong.spans) <= wrong.compared == len(found.spans)


@pytest.mark.parametrize("structure", ["joint", "division"])
def test_labels_of_joint_parsers_are_those_of_constituents(structure: str) -> None:
    bank = open_treebank("german-mini")
    sentences = bank.examples("train", ["constituents", "dependencies"])[:20]
    made = joint(sentences, structure=structure, **{**ON, "label_feed_forward": "usual"}).eval()
    labels = 0
    for example in sentences[:4]:
        (parse,) = made.parse([example.words])
        found = trace(made, example.words, gold=example.tree)
        assert found.tree == parse.tree
        assert found.compared == len(found.spans)
        for span in found.spans:
            labels += bool(span.label)
            assert span.label != span.rival
            assert TO_HEAD not in (*span.label, *span.rival)
            assert span.wrong or span.lead >= -1e-4 or not span.label
    assert labels > 10


def test_the_text_says_it_all() -> None:
    made = two_headed_parser(np_head=3, vp_head=1)
    text = trace_text(trace(made, WORDS, gold=GOLD), top=2, tokens=2)
    lines = text.splitlines()
    assert lines[0].endswith(")")
    found = trace(made, WORDS, gold=GOLD)
    wrong = len(found.errors().spans)
    assert lines[1] == f"{wrong} of {len(found.spans)} spans differ from gold"
    assert "6:7 " in text
    assert "in gold X: .\n" in text
    assert "the parser does not know the gold label" in text
    assert text.count("looks at") == len(found.spans)
    first = found.spans[0]
    head = first.top_heads(1)[0]
    strongest = np.argsort(-first.weights[head])[0]
    token = ["START", *WORDS, "STOP"][strongest]
    (row,) = [line for line in lines[:7] if line.startswith(f"  {head:4d} ")]
    percent = 100 * first.weights[head, strongest]
    assert f"  {token} {percent:.0f} %, " in row
    assert f"{100 * first.shares[head]:.1f} %" in row
    assert f"{first.parts[head]:+.3f}" in row
    assert f"{first.without[head]:+.3f}" in row
    long = trace_text(trace(made, WORDS, spans=[(0, 7)]), width=20)
    assert ": the cat ... big dog .\n" in long


def test_what_cannot_be_traced() -> None:
    made = random_parser()
    with pytest.raises(SpmrlError, match="without words has no spans"):
        trace(made, [])
    for span in ((0, 8), (3, 3), (5, 2), (-1, 2)):
        with pytest.raises(SpmrlError, match=f"no span {span[0]}:{span[1]}: the fenceposts of th"):
            trace(made, WORDS, spans=[span])
    with pytest.raises(TreeError, match="the words of the gold tree are others"):
        trace(made, ["dog"], gold=GOLD)
    with pytest.raises(SpmrlError, match="adds the outputs of its heads up"):
        trace(random_parser(label_outputs="projected"), WORDS)
