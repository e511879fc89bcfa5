"""The whole chart parser, from words to trees, with any lexical inputs and with tags to predict."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from torch import Tensor

from spmrl_bench.errors import SentenceTooLongError, TokensError, TreeError
from spmrl_bench.nn.inputs import Boundary, Codes, Frozen, LexicalInput, Tokens
from spmrl_bench.nn.vocabulary import FIRST_TAG, START, STOP, UNK, Vocabulary
from spmrl_bench.parsers import session
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.legacy import current_name
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Parse
from spmrl_bench.trees.tree import NO_TAG
from tests.builders import TREES, config, tiny
from tests.damage import edited
from tests.parsers.examples import (
    SIDE_BY_SIDE,
    batch_of,
    check_learnt_and_loaded,
    gold_of,
    lively,
    loss_of,
    random_sentences,
    trees_of,
)


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


def test_unary_chains_are_written_out() -> None:
    parser = tiny("chart", [parse_brackets("(A (B (C (t x)) (C (t y))))")])
    assert parser.vocabulary.labels == ((), ("A", "B"), ("C",))
    with torch.no_grad():
        parser.scorer.second.weight.zero_()
        parser.scorer.second.bias.copy_(torch.tensor([1.0, -1.0]))
    (tree,) = parser.parse([["x", "y"]])
    assert str(tree) == "(A (B (A (B (XX x))) (A (B (XX y)))))"


WORDS = [tree.words for tree in TREES]
TAGS = [tree.tags for tree in TREES]


def test_tags_are_embedded_and_nothing_else_is_read() -> None:
    parser = tiny(lexical=("tag",))
    indexer = parser.indexer()
    tags = ["no-such-tag", TREES[0].tags[0]]
    sentence = indexer.sentence(["what", "ever"], tags)
    known = FIRST_TAG + parser.vocabulary.tags.index(tags[1])
    assert sentence.tags.tolist() == [START, UNK, known, STOP]
    content = parser.lexical(batch_of(parser, indexer, [sentence]).tokens)
    assert torch.equal(content, parser.lexical["tag"].embedding.weight[[START, UNK, known, STOP]])


def test_a_parser_that_reads_tags_asks_for_them() -> None:
    parser = tiny(lexical=("tag", "charlstm"))
    with pytest.raises(TreeError, match="this parser reads tags, but none are given"):
        list(parser.parse(WORDS))
    assert [tree.tags for tree in parser.parse(WORDS, TAGS)] == TAGS


def test_loss_of_a_tagging_parser_adds_the_weighted_cross_entropy() -> None:
    parser = tiny(predict_tags=True, d_tag_hidden=6, tag_loss_weight=3.0).double().eval()
    assert parser.tagger is not None
    total = loss_of(parser)
    tagger, parser.tagger = parser.tagger, None
    margin = loss_of(parser)
    parser.tagger = tagger
    indexer = parser.indexer()
    expected = 0.0
    for tree in TREES:
        encoded = parser.encode(batch_of(parser, indexer, [gold_of(parser, indexer, tree)]))
        for row, tag in zip(encoded[1:-1], tree.tags, strict=True):
            hidden = tagger.first.weight @ row + tagger.first.bias
            spread = (hidden - hidden.mean()) / (hidden.var(unbiased=False) + 1e-5).sqrt()
            hidden = (tagger.norm.weight * spread + tagger.norm.bias).clamp(min=0)
            scores = tagger.second.weight @ hidden + tagger.second.bias
            number = parser.vocabulary.tags.index(tag)
            expected -= (scores[number] - scores.logsumexp(0)).item()
    words = sum(map(len, TREES))
    assert total - margin == pytest.approx(3.0 * expected / words, rel=1e-9)


@pytest.mark.parametrize("inputs", [("charlstm",), ("word", "charconcat")])
def test_sub_batches_change_no_gradient(inputs: tuple[str, ...]) -> None:
    parser = tiny(predict_tags=True, lexical=inputs, d_model=32, d_ff=16, d_tag_hidden=6).double()
    parser.eval()
    whole = loss_of(parser)
    gradients = {name: weight.grad for name, weight in parser.named_parameters()}
    assert all(gradient is not None for gradient in gradients.values())
    parser.zero_grad()
    assert loss_of(parser, max_tokens=20) == pytest.approx(whole)
    for name, weight in parser.named_parameters():
        torch.testing.assert_close(weight.grad, gradients[name], msg=name)


def test_predicted_tags_are_those_with_the_highest_scores() -> None:
    parser = tiny(predict_tags=True, d_tag_hidden=6).eval()
    with torch.no_grad():
        parser.tagger.second.weight.mul_(20)
    indexer = parser.indexer()
    for tree, words in zip(parser.parse(WORDS), WORDS, strict=True):
        with torch.no_grad():
            encoded = parser.encode(batch_of(parser, indexer, [indexer.sentence(words)]))
        best = parser.tagger(encoded).argmax(dim=1)[1:-1].tolist()
        assert list(tree.tags) == [parser.vocabulary.tags[tag] for tag in best]
    assert [tree.tags for tree in parser.parse(WORDS, TAGS)] == TAGS
    assert {tag for tree in tiny().parse(WORDS) for tag in tree.tags} == {NO_TAG}


class Lengths(LexicalInput):
    """A word is the sum of its characters' code points times its frozen number."""

    def __init__(self, width: int) -> None:
        super().__init__(None, Vocabulary({}, (), ((),)), width)
        self.width = width
        self.scale = torch.nn.Parameter(torch.tensor(0.5))
        self.frozen = Frozen(torch.nn.Linear(1, 1, bias=False))
        self.frozen.held.weight.data.fill_(2.0)

    def codes(self, form: str | Boundary) -> np.ndarray:
        if isinstance(form, Boundary):
            return np.array([1000 if form is Boundary.START else 2000])
        return np.array([ord(character) for character in form])

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        assert codes is not None
        within = torch.arange(codes.values.shape[1]) < codes.lengths[:, None]
        sums = self.frozen((codes.values * within).sum(dim=1, keepdim=True).float())
        return (self.scale * sums[codes.rows]).expand(-1, self.width)


def with_lengths() -> ChartParser:
    parser = tiny(lexical=("charlstm",))
    del parser.lexical["charlstm"]
    parser.lexical["lengths"] = Lengths(parser.config.d_content)
    return parser


def test_each_token_gets_the_codes_of_its_form() -> None:
    parser = with_lengths()
    indexer = parser.indexer()
    sentences = [indexer.sentence(words) for words in (["ab", "c", "ab"], ["dd"])]
    batch = batch_of(parser, indexer, sentences)
    content = parser.lexical(batch.tokens)
    sums = [1000, 97 + 98, 99, 97 + 98, 2000, 1000, 200, 2000]
    assert content[:, 0].tolist() == sums
    assert len(batch.tokens.codes["lengths"].values) == 5  # distinct forms


def test_frozen_weights_are_neither_trained_nor_saved_but_follow() -> None:
    parser = with_lengths()
    names = [name for name, _ in parser.named_parameters() if "lengths" in name]
    assert names == ["lexical.lengths.scale"]
    assert [name for name in parser.state_dict() if "lengths" in name] == names
    module = parser.double().train().lexical["lengths"]
    held = module.frozen.held
    assert held.weight.dtype == torch.float64
    assert not held.training
    assert not held.weight.requires_grad
    assert parser.to("meta").lexical["lengths"].frozen.held.weight.is_meta


def test_an_encoder_without_a_position_table_reads_longer_sentences() -> None:
    words = ["the", "dog"] * 10
    for encoder in ("lstm", "gru"):
        (parse,) = tiny(encoder=encoder, max_positions=5).parse([words])
        assert parse.words == tuple(words)
    with pytest.raises(SentenceTooLongError, match=r"table allows 3 .*max_positions = 22"):
        list(tiny(max_positions=5).parse([words]))


def test_attention_reads_inputs_that_fill_its_content(tmp_path: Path) -> None:
    parser = tiny(**SIDE_BY_SIDE, d_model=84)
    assert parser.config.d_content == 16 + 7 + 3 + 16
    check_learnt_and_loaded(parser, tmp_path)


def test_files_are_read_in_widths_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "some.vec"
    path.write_text("dog 1 2 3\ncat 4 5 6\n", encoding="utf-8")
    widths: dict[str, Any] = {"d_word": 4, "d_vectors": 5, "join": "concatenated", "encoder": "gru"}
    parser = tiny(lexical=("word", "vectors"), vectors=str(path), **widths).eval()
    indexer = parser.indexer()
    content = parser.lexical(batch_of(parser, indexer, [indexer.sentence(["dog"])]).tokens)
    matrix = parser.lexical["vectors"].linear.weight
    assert content.shape == (3, 9)
    torch.testing.assert_close(content[1, 4:], matrix @ torch.tensor([1.0, 2.0, 3.0]))


def test_inputs_and_settings_must_fit() -> None:
    joined: dict[str, Any] = {"join": "concatenated", "encoder": "lstm"}
    side = {"join": "concatenated", "d_word": 8, "d_form": 10}
    for changes, message in (
        ({"lexical": ("vectors",)}, r"vectors\.file"),
        ({"lexical": ("elmo",), "elmo_weights": "x"}, r"elmo\.options"),
        ({"lexical": ("transformer",)}, r"transformer\.name"),
        ({"lexical": ("tag",), "predict_tags": True}, "the input 'tag' already reads the tags"),
        ({"lexical": ("charconcat",), "d_model": 24}, "12 wide; make d_model a multiple of 32"),
        ({"d_word": 8}, "word.width is set, but the inputs are added up"),
        ({**joined, "d_word": 8}, "needs charlstm.width, which is not set"),
        (side, "18 wide of .* d_model = 32 has a content of 16; make"),
        ({**joined, **side, "layers": 0}, "18 wide .* = 32 and without layers has a content of 32"),
        ({**joined, "lexical": ("charconcat",), "d_form": 24}, "charconcat.width"),
        ({**joined, "d_word": 8, "d_form": 7}, "charlstm.width"),
        ({"join": "beside"}, "join"),
        ({"encoder": "gru", "recurrent_dropout": "word"}, "gru.masks"),
    ):
        with pytest.raises(ValidationError, match=message):
            config(**changes)


def test_weights_under_their_earlier_names_are_read(tmp_path: Path) -> None:
    names = ("word", "tag", "charlstm", "charconcat")
    parser = tiny(lexical=names, d_model=32)
    parser.save(tmp_path)
    earlier = {
        "lexical.word.embedding.weight": "lexical.words.weight",
        "lexical.tag.embedding.weight": "lexical.tags.weight",
        "lexical.charconcat.embedding.weight": "lexical.coded.charconcat.embedding.weight",
    }
    path = tmp_path / "weights.safetensors"
    weights = {
        earlier.get(name, name.replace("lexical.charlstm.", "lexical.char_lstm.")): weight
        for name, weight in load_file(path).items()
    }
    assert not any(name.startswith("lexical.charlstm.") for name in weights)
    save_file(weights, path)
    edited("parser.json", lambda content: content.pop("weights"))(tmp_path)
    again = ChartParser.load(tmp_path).state_dict()
    assert all(torch.equal(weight, again[name]) for name, weight in parser.state_dict().items())
    assert current_name("exp_avg/lexical.words.weight") == "exp_avg/lexical.word.embedding.weight"
