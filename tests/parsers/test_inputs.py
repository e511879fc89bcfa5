"""Parsers with other lexical inputs than words and characters, and parsers that tag."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from spmrl_bench.errors import CheckpointError, TreeError
from spmrl_bench.nn.inputs import Boundary, CodedInput, Codes, Frozen
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.parsers import load_parser
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import FIRST_TAG, START, STOP, UNK
from spmrl_bench.trees.tree import NO_TAG
from tests.builders import TREES, config, tiny
from tests.damage import forget_digest
from tests.parsers.examples import accumulate, batch_of, gold_of, steady_indexer

WORDS = [tree.words for tree in TREES]
TAGS = [tree.tags for tree in TREES]


def loss_of(parser: ChartParser, max_tokens: int = 10_000) -> float:
    """Mean loss of the trees; the gradients are left in the parser."""
    indexer = steady_indexer(parser)
    gold = [gold_of(parser, indexer, tree) for tree in TREES]
    parser.zero_grad()
    return accumulate(parser, gold, indexer, np.random.default_rng(0), max_tokens)


# ---- tags as an input ------------------------------------------------------------------


def test_tags_are_embedded_and_nothing_else_is_read() -> None:
    parser = tiny(lexical=("tag",))
    indexer = parser.indexer()
    tags = ["no-such-tag", TREES[0].tags[0]]
    sentence = indexer.sentence(["what", "ever"], tags)
    known = FIRST_TAG + parser.vocabulary.tags.index(tags[1])
    assert sentence.tags.tolist() == [START, UNK, known, STOP]
    batch, _ = batch_of(parser, indexer, [sentence])
    content = parser.lexical(batch.tokens, torch.empty(0, 0))
    assert torch.equal(content, parser.lexical.tags.weight[[START, UNK, known, STOP]])


def test_inputs_add_up() -> None:
    parser = tiny(lexical=("word", "tag")).double()
    indexer = parser.indexer()
    sentence = gold_of(parser, indexer, TREES[0])
    batch, _ = batch_of(parser, indexer, [sentence])
    content = parser.lexical(batch.tokens, torch.empty(0, 0))
    words, tags = parser.lexical.words, parser.lexical.tags
    torch.testing.assert_close(content, words.weight[sentence.words] + tags.weight[sentence.tags])


def test_a_parser_that_reads_tags_asks_for_them() -> None:
    parser = tiny(lexical=("tag", "charlstm"))
    with pytest.raises(TreeError, match="this parser reads tags, but none are given"):
        list(parser.parse(WORDS))
    assert [tree.tags for tree in parser.parse(WORDS, TAGS)] == TAGS


def test_other_tags_give_other_scores() -> None:
    parser = tiny(lexical=("tag",))
    scores = []
    for tags in (TAGS[0], TAGS[0][::-1]):
        (encoded,) = parser.encoded([WORDS[0]], [tags], 100, None)
        scores.append(torch.cat([block.clone() for block in parser.label_scores(encoded)]))
    assert not torch.allclose(scores[0], scores[1])


def test_as_many_tags_as_words() -> None:
    parser = tiny(lexical=("tag",))
    with pytest.raises(TreeError, match="2 tags for 3 words"):
        parser.indexer().sentence(["a", "b", "c"], ["X", "Y"])


# ---- predicted tags --------------------------------------------------------------------


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
        batch, forms = batch_of(parser, indexer, [gold_of(parser, indexer, tree)])
        encoded = parser.encode(batch, parser.form_vectors(indexer, np.array(forms)))
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
    assert loss_of(parser, max_tokens=20) == pytest.approx(whole)
    for name, weight in parser.named_parameters():
        torch.testing.assert_close(weight.grad, gradients[name], msg=name)


def test_predicted_tags_are_those_with_the_highest_scores() -> None:
    parser = tiny(predict_tags=True, d_tag_hidden=6).eval()
    with torch.no_grad():
        parser.tagger.second.weight.mul_(20)
    indexer = parser.indexer()
    for tree, words in zip(parser.parse(WORDS), WORDS, strict=True):
        batch, forms = batch_of(parser, indexer, [indexer.sentence(words)])
        with torch.no_grad():
            encoded = parser.encode(batch, parser.form_vectors(indexer, np.array(forms)))
        best = parser.tagger(encoded).argmax(dim=1)[1:-1].tolist()
        assert list(tree.tags) == [parser.vocabulary.tags[tag] for tag in best]
    assert [tree.tags for tree in parser.parse(WORDS, TAGS)] == TAGS
    assert {tag for tree in tiny().parse(WORDS) for tag in tree.tags} == {NO_TAG}


def test_tags_are_learned() -> None:
    parser = tiny(predict_tags=True, d_tag_hidden=16, lexical=("word",)).train()
    optimiser = torch.optim.Adam(parser.parameters(), lr=0.02)
    for _ in range(60):
        loss_of(parser)
        optimiser.step()
    found = [tag for tree in parser.eval().parse(WORDS) for tag in tree.tags]
    gold = [tag for tags in TAGS for tag in tags]
    right = sum(one == other for one, other in zip(found, gold, strict=True))
    assert right / len(gold) > 0.9


# ---- inputs with codes of their own ----------------------------------------------------


class Lengths(CodedInput):
    """A word is the sum of its characters' code points times its frozen number."""

    def __init__(self, width: int, limit: int = 10**6) -> None:
        super().__init__()
        self.width, self.limit = width, limit
        self.scale = torch.nn.Parameter(torch.tensor(0.5))
        self.frozen = Frozen(torch.nn.Linear(1, 1, bias=False))
        self.frozen.held.weight.data.fill_(2.0)

    def codes(self, form: str | Boundary) -> np.ndarray:
        if isinstance(form, Boundary):
            return np.array([1000 if form is Boundary.START else 2000])
        return np.array([ord(character) for character in form])

    def check(self, lengths: np.ndarray) -> str:
        return f"{lengths.sum()} characters" if lengths.sum() > self.limit else ""

    def forward(self, codes: Codes, layout: Ragged) -> Tensor:
        within = torch.arange(codes.values.shape[1]) < codes.lengths[:, None]
        sums = self.frozen((codes.values * within).sum(dim=1, keepdim=True).float())
        return (self.scale * sums[codes.rows]).expand(-1, self.width)


def with_lengths(**settings: int) -> ChartParser:
    parser = tiny(lexical=("charlstm",))
    width = parser.lexical.char_lstm.lstm.hidden_size * 2
    parser.lexical.char_lstm = None
    parser.lexical.coded["lengths"] = Lengths(width, **settings)
    return parser


def test_each_token_gets_the_codes_of_its_form() -> None:
    parser = with_lengths()
    indexer = parser.indexer()
    sentences = [indexer.sentence(words) for words in (["ab", "c", "ab"], ["dd"])]
    batch, _ = batch_of(parser, indexer, sentences)
    content = parser.lexical(batch.tokens, torch.empty(0, 0))
    sums = [1000, 97 + 98, 99, 97 + 98, 2000, 1000, 200, 2000]
    assert content[:, 0].tolist() == sums
    assert len(batch.tokens.codes["lengths"].values) == 5  # distinct forms


def test_frozen_weights_are_neither_trained_nor_saved_but_follow() -> None:
    parser = with_lengths()
    names = [name for name, _ in parser.named_parameters() if "lengths" in name]
    assert names == ["lexical.coded.lengths.scale"]
    assert [name for name in parser.state_dict() if "lengths" in name] == names
    module = parser.double().train().lexical.coded["lengths"]
    held = module.frozen.held
    assert held.weight.dtype == torch.float64
    assert not held.training
    assert not held.weight.requires_grad


def test_an_input_may_refuse_a_sentence() -> None:
    parser = with_lengths(limit=8)  # START and STOP have one code each
    assert parser.length_problem(["abc", "def"]) == ""
    assert parser.length_problem(["abc", "defg"]) == "9 characters"


# ---- settings and files ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lexical": ("vectors",)}, r"the input 'vectors' needs model\.vectors"),
        ({"vectors": "x.txt"}, "vectors is set, but the input 'vectors' .* is not in lexical"),
        (
            {"lexical": ("elmo",), "elmo_weights": "x"},
            r"the input 'elmo' needs model\.elmo_options",
        ),
        ({"lexical": ("transformer",)}, r"the input 'transformer' needs model\.transformer"),
        ({"lexical": ("tag",), "predict_tags": True}, "the input 'tag' already reads the tags"),
        (
            {"lexical": ("charconcat",), "d_model": 24},
            "12 wide; make d_model a multiple of 32",
        ),
    ],
)
def test_inputs_and_settings_must_fit(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**changes)


def test_description_without_tags_is_that_of_an_earlier_version(tmp_path: Path) -> None:
    tiny().save(tmp_path)
    forget_digest(tmp_path)
    path = tmp_path / "parser.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["vocabulary"]["tags"]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert load_parser(tmp_path, "cpu").vocabulary.tags == ()
    content["config"]["lexical"] = ["no-such-input"]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(CheckpointError, match="not a parser description"):
        load_parser(tmp_path, "cpu")
