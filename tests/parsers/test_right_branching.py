"""The right-branching baseline."""

from __future__ import annotations

from collections.abc import Sequence

from spmrl_bench.parsers.baseline import body_end
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.parsers.right_branching import RightBranching
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse, Tree

TRAINING = [
    parse_brackets("(S (NP (N a)) (VP (V b) (NP (N c))))"),
    parse_brackets("(TOP (S (NP (N a)) (X (Y (V b) (N c)))))"),
    parse_brackets("(TOP (S (NP (N a)) (V b)))"),
]


def baseline_of(trees: Sequence[Tree]) -> RightBranching:
    return RightBranching.build(ParserConfig(), [Parse.of(tree) for tree in trees])


def answer(baseline: RightBranching, words: Sequence[str], tags: Sequence[str]) -> Tree:
    (parse,) = baseline.parse([list(words)], [list(tags)])
    assert parse.tree is not None
    return parse.tree


def test_labels_are_the_most_frequent_chains() -> None:
    baseline = baseline_of(TRAINING)
    assert baseline.counted["whole"] == ["TOP", "S"]
    assert baseline.counted["inner"] == ["NP"]


def test_a_suffix_is_not_the_whole() -> None:
    baseline = baseline_of([parse_brackets("(S (t a) (X (t b) (X (t c) (t d))))")])
    assert [baseline.counted["whole"], baseline.counted["inner"]] == [["S"], ["X"]]


def test_a_one_word_sentence_counts_as_whole() -> None:
    trees = [parse_brackets("(NP (N a))")] * 3 + [parse_brackets("(S (VP (V a)) (X b))")]
    baseline = baseline_of(trees)
    assert [baseline.counted["whole"], baseline.counted["inner"]] == [["NP"], ["VP"]]


def test_first_seen_label_wins_a_tie() -> None:
    trees = [parse_brackets("(B (Y (t a)) (t b))"), parse_brackets("(A (X (t a)) (t b))")]
    baseline = baseline_of(trees)
    assert [baseline.counted["whole"], baseline.counted["inner"]] == [["B"], ["Y"]]


def test_every_suffix_of_two_words_or_more_is_a_constituent() -> None:
    tree = answer(baseline_of(TRAINING), ["p", "q", "r", "s"], ["1", "2", "3", "4"])
    assert tree == parse_brackets("(TOP (S (1 p) (NP (2 q) (NP (3 r) (4 s)))))")


def test_short_sentences() -> None:
    baseline = baseline_of(TRAINING)
    assert answer(baseline, ["p"], ["1"]) == parse_brackets("(TOP (S (1 p)))")
    assert answer(baseline, ["p", "q"], ["1", "2"]) == parse_brackets("(TOP (S (1 p) (2 q)))")


def test_unlabelled_where_training_shows_no_label() -> None:
    baseline = baseline_of([parse_brackets("(S (t a) (t b))")])
    assert list(answer(baseline, "pqr", "123").constituents()) == [(0, 3, "S")]
    assert not list(answer(baseline_of([]), "pqr", "123").constituents())
    assert isinstance(answer(baseline_of([]), "p", "1"), Tree)


def test_final_punctuation_hangs_from_the_root() -> None:
    german = [parse_brackets("(TOP (S (NP (N a)) (V b)) (. .))")]
    baseline = baseline_of(german)
    assert baseline.counted == {"whole": ["TOP"], "body": ["S"], "inner": ["NP"]}
    tree = answer(baseline, ["p", "q", "r", "!", '"'], list("12345"))
    assert tree == parse_brackets('(TOP (S (1 p) (NP (2 q) (3 r))) (4 !) (5 "))')
    assert answer(baseline, ["p", "q"], ["1", "2"]) == parse_brackets("(TOP (1 p) (2 q))")


def test_body_that_mostly_is_no_constituent_gets_no_label() -> None:
    english = [parse_brackets("(S (NP (N a)) (VP (V b)) (. .))")] * 2
    english.append(parse_brackets("(S (VP (V b) (NP (N a))) (. .))"))
    tree = answer(baseline_of(english), ["p", "q", "r", "."], list("1234"))
    assert tree == parse_brackets("(S (1 p) (NP (2 q) (3 r)) (4 .))")


def test_body_ends_before_final_punctuation() -> None:
    assert body_end(["a", ",", "b", ".", '"']) == 3
    assert body_end(["a", "b"]) == 2
    assert body_end(["...", "!"]) == 2
