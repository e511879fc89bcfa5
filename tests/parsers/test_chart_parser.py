"""The whole chart parser: from words to trees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from spmrl_bench.errors import SentenceTooLongError, TreeError
from spmrl_bench.nn.choices import Matrices, PositionInput
from spmrl_bench.nn.limits import OPEN, Limit
from spmrl_bench.parsers import parsing
from spmrl_bench.parsers.batches import Indexer, Sentence
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import FIRST_CHAR, FIRST_WORD, UNK, Vocabulary
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse
from tests.builders import LEXICAL, TREES, config, tiny
from tests.chart.enumeration import best_tree, label_table
from tests.nn import plain
from tests.nn.plain import all_scores
from tests.parsers.examples import accumulate, batch_of, gold_of, trees_of

WORDS = sorted({word for tree in TREES for word in tree.words})
both_variants = pytest.mark.parametrize("variant", LEXICAL)


def random_sentences(count: int, seed: int = 0) -> list[list[str]]:
    """Sentences of 1 to 12 words, some of them unknown."""
    rng = np.random.default_rng(seed)
    known = [*WORDS, "zebra", "Xyz"]
    lengths = [1, *rng.integers(1, 13, count - 1).tolist()]
    return [[known[k] for k in rng.integers(0, len(known), length)] for length in lengths]


def lively_parser(**changes: Any) -> ChartParser:
    """An untrained parser whose trees differ between sentences."""
    parser = tiny(**changes)
    with torch.no_grad():
        parser.scorer.second.weight.mul_(4)
        parser.scorer.second.bias.sub_(0.5)
    return parser.eval()


# ---- scores ----------------------------------------------------------------------------


def posts_of(parser: ChartParser, indexer: Indexer, sentences: Sequence[Sentence]) -> torch.Tensor:
    batch, forms = batch_of(parser, indexer, sentences)
    encoded = parser.encode(batch, parser.form_vectors(indexer, np.array(forms)))
    return parser.projected_posts(encoded, batch)


@both_variants
def test_fenceposts_come_from_the_encoder_of_the_lexical_sum(variant: str) -> None:
    parser = tiny(lexical=LEXICAL[variant]).double()
    indexer = parser.indexer()
    sentences = [gold_of(parser, indexer, tree) for tree in TREES[:4]]
    assert parser.lexical.char_lstm is not None
    content = []
    for tree, sentence in zip(TREES, sentences, strict=False):
        ids = parser.vocabulary.character_ids
        forms = [[1, *map(ids.__getitem__, word), 2] for word in tree.words]
        for form, word in zip(
            [[1, 3, 3, 3, 2], *forms, [1, 4, 4, 4, 2]], sentence.words, strict=True
        ):
            content.append(plain.char_lstm(parser.lexical.char_lstm, form))
            if parser.lexical.words is not None:
                content[-1] = content[-1] + plain.array(parser.lexical.words.weight)[word]
    lengths = [len(sentence) + 2 for sentence in sentences]
    encoded = plain.encoder(parser.encoder, np.array(content), lengths)
    expected = plain.fenceposts(encoded, lengths) @ plain.array(parser.scorer.first.weight).T
    found = posts_of(parser, indexer, sentences)
    np.testing.assert_allclose(plain.array(found), expected, atol=1e-11)


def test_span_rows_point_at_the_fenceposts_of_the_sentence() -> None:
    start, end = tiny().span_rows(np.array([2, 1, 2], dtype=np.int32))
    # Fenceposts 0..2 of the first sentence, 3..4 of the second, 5..7 of the third.
    assert start.tolist() == [0, 0, 1, 3, 5, 5, 6]
    assert end.tolist() == [1, 2, 2, 4, 6, 7, 7]


# ---- lexical variants ------------------------------------------------------------------


def test_charlstm_knows_words_by_their_characters_only() -> None:
    parser = tiny(lexical=("charlstm",)).double()
    assert not [name for name in parser.state_dict() if "words" in name]
    indexer = parser.indexer()
    sentence = indexer.sentence(["the", "dog", "barks"])
    other = replace(sentence, words=sentence.words * 0)
    assert torch.equal(posts_of(parser, indexer, [sentence]), posts_of(parser, indexer, [other]))
    changed = indexer.sentence(["the", "dog", "bark"])
    assert not torch.allclose(
        posts_of(parser, indexer, [sentence]), posts_of(parser, indexer, [changed])
    )


def test_a_narrow_char_lstm_feeds_a_wide_encoder(tmp_path: Path) -> None:
    parser = tiny(lexical=("charlstm",), encoder="lstm", d_char_lstm=6)
    assert parser.lexical.char_lstm.lstm.hidden_size == 3
    words = [tree.words for tree in TREES]
    expected = [parse.tree for parse in parser.parse(words)]
    parser.save(tmp_path)
    session = ChartParser.load(tmp_path).session()
    for _ in range(2):  # the second time with the vectors of the first
        assert [parse.tree for parse in session.parse(words)] == expected


def test_word_charlstm_also_knows_the_word() -> None:
    parser = tiny(lexical=("word", "charlstm")).double()
    assert parser.lexical.words.num_embeddings == FIRST_WORD + len(WORDS)
    assert parser.lexical.char_lstm.embedding.num_embeddings == FIRST_CHAR + len(
        {character for word in WORDS for character in word}
    )
    indexer = parser.indexer()
    sentence = indexer.sentence(["the", "dog"])
    other = replace(sentence, words=sentence.words.copy())
    other.words[1] = UNK
    assert not torch.allclose(
        posts_of(parser, indexer, [sentence]), posts_of(parser, indexer, [other])
    )


def test_parsing_replaces_unseen_words_only() -> None:
    parser = lively_parser()
    seen: list[int] = []
    parser.lexical.register_forward_pre_hook(lambda _, given: seen.extend(given[0].words.tolist()))
    for _ in range(20):
        list(parser.parse([[*WORDS[:10], "zebra"]]))
    ids = parser.vocabulary.word_ids
    assert seen == [1, *(ids[word] for word in WORDS[:10]), UNK, 2] * 20


# ---- parse -----------------------------------------------------------------------------


def test_answers_are_in_input_order(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = lively_parser()
    sentences = random_sentences(23)
    alone = [next(parser.parse([words])) for words in sentences]
    assert [list(tree.words) for tree in alone] == sentences
    assert len({tuple(tree.constituents()) for tree in trees_of(alone)}) > 10
    for window in (1, 5, 22, 23, 1000):
        monkeypatch.setattr(parsing, "WINDOW_SENTENCES", window)
        for max_tokens in (1, 40, 2000):
            assert list(parser.parse(sentences, max_tokens=max_tokens)) == alone


def test_tags_are_carried_into_the_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "WINDOW_SENTENCES", 3)
    parser = lively_parser()
    sentences = random_sentences(8)
    tags = [[f"T{k}.{place}" for place in range(len(s))] for k, s in enumerate(sentences)]
    bare, tagged = list(parser.parse(sentences)), list(parser.parse(sentences, iter(tags)))
    for plain_tree, tree, given in zip(bare, tagged, tags, strict=True):
        assert set(plain_tree.tags) == {"XX"}
        assert list(tree.tags) == given
        assert list(tree.tree.constituents()) == list(plain_tree.tree.constituents())


def test_tags_must_fit_the_sentences() -> None:
    parser = lively_parser()
    with pytest.raises(TreeError, match=r"fewer rows of tags than sentences.*begins: the cat"):
        list(parser.parse([["the", "dog"], ["the", "cat"]], [["D", "N"]]))
    with pytest.raises(TreeError, match="2 words but 1 tags"):
        list(parser.parse([["the", "dog"]], [["D"]]))
    with pytest.raises(TreeError, match="fewer rows of tags"):
        list(parser.parse([["the", "dog"]], []))


def test_endless_input_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "WINDOW_SENTENCES", 4)
    taken = itertools.count()

    def endless() -> Iterator[list[str]]:
        while True:
            next(taken)
            yield ["the", "dog"]

    answers = lively_parser().parse(endless())
    next(answers)
    assert next(taken) == 4
    list(itertools.islice(answers, 3))
    assert next(taken) == 5
    next(answers)
    assert next(taken) == 10


def test_no_sentence_no_tree() -> None:
    assert list(lively_parser().parse([])) == []


def test_too_long_sentence_is_refused_with_numbers() -> None:
    parser = tiny(max_positions=9)
    assert len(next(parser.parse([["dog"] * 7]))) == 7
    answers = parser.parse([["dog"], ["dog"] * 8, ["cat"]])
    assert next(answers).words == ("dog",)
    with pytest.raises(SentenceTooLongError, match=r"sentence 2: .*8 words.*allows 7"):
        next(answers)


def test_sentence_without_words_gives_a_tree_without_words() -> None:
    sentences = [[], ["dog", "barks"], [], []]
    for max_tokens in (2000, 1):
        trees = list(lively_parser().parse(sentences, max_tokens=max_tokens))
        assert [list(tree.words) for tree in trees] == sentences
    assert [len(tree) for tree in lively_parser().parse([[], []])] == [0, 0]


def test_parsing_leaves_the_mode_as_it_was_and_uses_no_dropout() -> None:
    rates = {"attention", "residual", "relu", "word", "form", "char"}
    parser = lively_parser(**{f"{name}_dropout": 0.5 for name in rates})
    sentences = random_sentences(10)
    expected = list(parser.parse(sentences))
    assert not parser.training
    assert list(parser.train().parse(sentences)) == expected
    assert parser.training
    assert all(parameter.grad is None for parameter in parser.parameters())


@both_variants
def test_empty_label_never_covers_the_sentence(variant: str) -> None:
    parser = lively_parser(lexical=LEXICAL[variant])
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


def test_parses_have_the_best_scores_of_all_trees() -> None:
    """Tree scores from the parse itself, against enumeration over the same charts."""
    parser = lively_parser()
    indexer = parser.indexer()
    sentences = [words for words in random_sentences(30, seed=2) if len(words) <= 6]
    assert len(sentences) > 8
    for words, tree in zip(sentences, trees_of(parser.parse(sentences)), strict=True):
        n = len(words)
        projected = posts_of(parser, indexer, [indexer.sentence(words)])
        start, end = parser.span_rows(np.array([n], dtype=np.int32))
        scores = all_scores(parser.scorer, projected, start, end)
        _, nodes, labels = best_tree(label_table(scores.numpy(), None, n), n)
        expected = [
            (*node, name)
            for node, label in zip(nodes, labels, strict=True)
            for name in parser.vocabulary.labels[label]
        ]
        assert list(tree.constituents()) == expected


def test_a_window_is_trained_in_where_the_settings_say_so() -> None:
    limits = tiny(attention_window=3, relaxed_window=True, layers=2).encoder.limits
    assert limits == (Limit(window=3, relaxed=True),) * 2
    assert tiny(layers=2).encoder.limits == (OPEN,) * 2
    with pytest.raises(ValueError, match="there is no attention_window to relax"):
        config(relaxed_window=True)


# ---- learning --------------------------------------------------------------------------


ENCODERS = list(itertools.product(get_args(PositionInput), get_args(Matrices)))


@pytest.mark.parametrize(
    ("variant", "position", "matrices"),
    [
        *(("charlstm", *encoder) for encoder in ENCODERS),
        ("word-charlstm", *ENCODERS[0]),
        ("charlstm", "lstm", ""),
        ("charlstm", "gru", ""),
    ],
)
def test_a_small_treebank_is_learnt_by_heart(
    variant: str, position: str, matrices: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    changes = {"position": position, "matrices": matrices} if matrices else {"encoder": position}
    parser = ChartParser(
        config(lexical=LEXICAL[variant], layers=1, d_model=64, d_char=16, **changes),
        Vocabulary.of(map(Parse.of, TREES)),
    )
    indexer = parser.indexer()
    gold = [gold_of(parser, indexer, tree) for tree in TREES]
    optimiser = torch.optim.Adam(parser.parameters(), lr=0.01, betas=(0.9, 0.98))
    random = np.random.default_rng(0)
    words, tags = [tree.words for tree in TREES], [tree.tags for tree in TREES]
    assert trees_of(parser.parse(words, tags)) != TREES
    losses = []
    for _ in range(100):
        optimiser.zero_grad()
        losses.append(accumulate(parser.train(), gold, indexer, random, 50))
        optimiser.step()
    assert trees_of(parser.parse(words, tags)) == TREES  # 100 F1
    assert np.mean(losses[-10:]) < 0.1 * losses[0]
    parser.save(tmp_path)
    assert trees_of(ChartParser.load(tmp_path).parse(words, tags)) == TREES
