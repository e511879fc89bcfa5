"""Everything that makes the parser fast, against the parser without any of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import kernels
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.batches import Pool
from spmrl_bench.parsers.chart import ChartParser, span_rows
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Parse, Tree
from tests.builders import LEXICAL, TREES, config, enlarge, learn, tiny
from tests.chart.enumeration import spans
from tests.conftest import shared_data
from tests.laboratory import make_trees
from tests.nn.plain import all_scores
from tests.parsers.examples import loss_of, random_sentences
from tests.parsers.plain_parser import PlainParser

SIZES: dict[str, Any] = {"layers": 3, "max_positions": 64}

every_kind = pytest.mark.parametrize(
    "settings",
    [*({"lexical": names} for names in LEXICAL.values()), {"encoder": "lstm"}, {"encoder": "gru"}],
    ids=str,
)


@pytest.fixture(params=["kernels", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs with the compiled kernels of the layers and without them."""
    if request.param == "torch":
        monkeypatch.setattr(kernels, "usable", lambda *_: False)
    elif not kernels.usable(torch.zeros(1), "encoder"):
        pytest.skip("the kernels are not built")
    return str(request.param)


def lively_parser(**changes: Any) -> ChartParser:
    """An untrained parser whose scores and trees differ between sentences."""
    return enlarge(tiny(**{**SIZES, **changes}))


def fast_scores(parser: ChartParser, given: list[list[str]], max_tokens: int) -> list[Tensor]:
    """Scores ``[cells, labels - 1]`` of each sentence, as parsing computes them."""
    indexer = parser.indexer()
    pool = Pool([indexer.sentence(words) for words in given], indexer)
    found: list[Tensor] = [torch.empty(0)] * len(given)
    with torch.no_grad():
        vectors = parser.form_vectors(indexer, pool.forms)
        for group, batch in pool.batches(max_tokens, parser.device, vectors):
            projected = parser.scorer.projected_posts(parser.encode(batch), batch.layout)
            scores = all_scores(parser.scorer, projected, *span_rows(batch.lengths, parser.device))
            cells = [n * (n + 1) // 2 for n in batch.lengths.tolist()]
            for k, part in zip(group, scores.split(cells), strict=True):
                found[k] = part
    return found


def check_scores(parser: ChartParser, given: list[list[str]], max_tokens: int) -> None:
    plain = PlainParser(parser)
    for words, found in zip(given, fast_scores(parser, given, max_tokens), strict=True):
        table = plain.scores(words)
        expected = torch.stack([table[i, j, 1:] for i, j in spans(len(words))])
        torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0)
        assert expected.std() > 0.1


@every_kind
def test_scores(settings: dict[str, Any], way: str) -> None:
    check_scores(lively_parser(**settings), random_sentences(10, longest=16), 100)


def test_trees_of_many_sentences(way: str) -> None:
    trees = make_trees(120, seed=5)
    parser = lively_parser(examples=trees, lexical=("word", "charlstm"))
    plain = PlainParser(parser)
    found = parser.parse([tree.words for tree in trees], max_tokens=700)
    kinds = set()
    with torch.no_grad():
        for tree, parse in zip(trees, found, strict=True):
            expected = plain.constituents(tree.words)
            assert list(parse.tree.constituents()) == expected, tree.words
            kinds.add(tuple(expected))
    assert len(kinds) > 60  # not one tree for all


@pytest.mark.campaign
def test_trees_of_500_real_sentences(way: str) -> None:
    """Of the Wall Street Journal, with a parser of the size that small treebanks get."""
    bank = open_treebank("english-wsj-sample", shared_data("treebanks"))
    trees = (bank.split("dev") + bank.split("test"))[:500]
    size = {"d_model": 256, "layers": 4, "heads": 4, "d_kv": 64, "d_ff": 512}
    torch.manual_seed(1)
    settings = config(d_label_hidden=128, max_positions=300, **size)
    parser = ChartParser(settings, Vocabulary.of(map(Parse.of, bank.split("train"))))
    learn(parser, [*map(Parse.of, bank.split("train")[:100])], 40, 1e-3)
    plain = PlainParser(parser)
    given = [list(tree.words) for tree in trees]
    with torch.no_grad():
        check_scores(parser, given, 2000)
        for words, parse in zip(given, parser.parse(given), strict=True):
            assert list(parse.tree.constituents()) == plain.constituents(words)
    assert len(trees) == 500


@every_kind
def test_loss_and_its_gradients(settings: dict[str, Any], way: str) -> None:
    """Of a batch worked through in parts, for every weight; all dropout is off."""
    parser = lively_parser(**settings).train()
    plain = PlainParser(parser)
    weights = dict(plain.parser.named_parameters())
    losses = [plain.loss(tree) for tree in TREES]
    expected = torch.stack(losses).sum() / len(TREES)
    expected.backward()
    assert loss_of(parser, TREES, 30) == pytest.approx(expected.item(), abs=1e-4)
    for name, weight in parser.named_parameters():
        gradient = weights[name].grad
        assert gradient is not None, name
        assert gradient.any(), name
        assert weight.grad is not None, name
        # What every fencepost has alike cancels in spans: such gradients are nothing but rounding.
        scale = max(gradient.abs().max().item(), 0.01)
        torch.testing.assert_close(
            weight.grad.double(), gradient, atol=1e-4 * scale, rtol=0, msg=name
        )


def test_bf16_scores_are_near_and_gradients_alike(way: str) -> None:
    """About three decimal digits: enough to point the same way."""
    trees: list[Tree] = make_trees(20, seed=6)
    found = {}
    for precision in ("float32", "bf16"):
        parser = lively_parser(examples=trees, precision=precision, layers=2).train()
        scores = fast_scores(parser, [list(tree.words) for tree in trees], 100)
        loss_of(parser, trees, 100)
        gradients = [p.grad.flatten() for p in parser.parameters() if p.grad is not None]
        assert all(gradient.dtype == torch.float32 for gradient in gradients)
        found[precision] = torch.cat(scores), torch.cat(gradients)
    scores, gradient = found["float32"]
    near, along = found["bf16"]
    assert near.dtype == torch.float32
    assert not torch.equal(near, scores)
    error = (near - scores).square().mean().sqrt() / scores.std()
    assert error < 0.05
    assert torch.nn.functional.cosine_similarity(along, gradient, dim=0) > 0.97
