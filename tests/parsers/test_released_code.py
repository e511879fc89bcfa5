"""Where settings follow the code released with Kitaev & Klein 2018, written once more.

Each of these forms stands here a second time, in plain Python and one sentence, word or step at a
time, as a description of that code (nikitakit/self-attentive-parser, tag ``acl2018``, and its
version 0.2) has it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.experiments.run_folder import read_config
from spmrl_bench.leaderboard.frame import differing_settings, resolved_settings
from spmrl_bench.nn.encoders.self_attention import AttentionEncoder, EncoderLayer, Start
from spmrl_bench.nn.inputs import Boundary
from spmrl_bench.nn.layers import FactoredLinear
from spmrl_bench.nn.scorers.span_scores import fenceposts
from spmrl_bench.parsers.chart import ChartParser, span_rows
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.training.schedule import Progress, TrainConfig, learning_rate
from tests.builders import TREES, config, flat, tiny
from tests.damage import forget_digest
from tests.laboratory import train_config
from tests.nn.built import attention_encoder
from tests.parsers.examples import batch_of
from tests.parsers.plain_parser import PlainParser
from tests.training.trainers import TRAIN_TREES, break_off, make_trainer

UNFACTORED = {"position": "added", "matrices": "full", "lexical": ("charlstm",)}
WORDS = TREES[6].words


def encoded(parser: ChartParser) -> Tensor:
    """The tokens of one sentence, START and STOP among them."""
    indexer = parser.indexer()
    return parser.encode(batch_of(parser, indexer, [indexer.sentence(WORDS)]))


def halved(tokens: Tensor, start: int, end: int) -> Tensor:
    """The code's vector of a span: the first half of the tokens before its ends, the second half
    of those behind them."""
    half = tokens.shape[1] // 2
    first = [tokens[end][k] - tokens[start][k] for k in range(half)]
    second = [tokens[end + 1][k] - tokens[start + 1][k] for k in range(half, 2 * half)]
    return torch.stack(first + second)


def test_scores_of_spans_are_of_halves() -> None:
    parser = tiny(**UNFACTORED, forward_features="first").double().eval()
    weight = dict(parser.named_parameters())
    with torch.no_grad():
        tokens = encoded(parser)
        (group,) = parser.encoded([WORDS])
        found = torch.cat([block.clone() for block in parser.scorer.label_scores(group)])
        start, end = span_rows(group.batch.lengths, parser.device)
        for scores, i, j in zip(found, start.tolist(), end.tolist(), strict=True):
            hidden = weight["scorer.first.weight"] @ halved(tokens, i, j)
            hidden = hidden + weight["scorer.first.bias"]
            spread = (hidden - hidden.mean()) / (hidden.var(unbiased=False) + 1e-5).sqrt()
            hidden = spread * weight["scorer.norm.weight"] + weight["scorer.norm.bias"]
            expected = weight["scorer.second.weight"] @ hidden.clamp(min=0)
            torch.testing.assert_close(scores, expected + weight["scorer.second.bias"])


def forward_halves(parser: ChartParser) -> Tensor:
    """The forward half of each fencepost."""
    tokens = encoded(parser)
    posts = fenceposts(tokens, torch.arange(len(tokens) - 1), parser.encoder.d_block)
    return posts[:, : tokens.shape[1] // 2]


def characters_only(features: str) -> ChartParser:
    """A parser whose tokens are the CharLSTM's states and nothing else."""
    parser = tiny(**UNFACTORED, layers=0, input_norm=False, forward_features=features)
    assert isinstance(parser.encoder, AttentionEncoder)
    parser.encoder.positions.weight.data.zero_()
    return parser.double().eval()


@torch.no_grad()
def test_the_states_of_the_forward_lstm_are_in_the_forward_half() -> None:
    """With the code's halves, none of those of the backward one are; the paper's even features
    have both, which no other order of the features makes the same."""
    parser = characters_only("first")
    plain = PlainParser(parser)
    ids = parser.vocabulary.character_ids
    spelt = [[3] * 3, *([ids[character] for character in word] for word in WORDS)]
    states = [plain.form((1, *letters, 2)) for letters in spelt]
    expected = torch.stack([state[: len(state) // 2] for state in states])
    torch.testing.assert_close(forward_halves(parser), expected)

    for features, affected in (("first", False), ("even", True)):
        parser = characters_only(features)
        before = forward_halves(parser)
        parser.lexical["charlstm"].lstm.weight_hh_l0_reverse.mul_(3)
        assert torch.equal(forward_halves(parser), before) != affected, features


def test_label_attention_that_is_added_up_keeps_the_halves() -> None:
    labels = {"label_attention": True, "label_heads": 2, "label_d_kv": 8, "label_d_proj": 6}
    for outputs, block in (("projected", 32), ("concatenated", 6)):
        parser = tiny(**UNFACTORED, **labels, label_outputs=outputs, forward_features="first")
        assert parser.encoder.d_block == block


def concatenated(parser: ChartParser, form: str | Boundary) -> list[int]:
    """Sixteen characters as the code has them: a word between sixteen marks on either side, read
    from its beginning and, reversed, from its end; START and STOP a mark sixteen times."""
    if isinstance(form, Boundary):
        return [3 if form is Boundary.START else 4] * 16
    numbers = [parser.vocabulary.character_ids.get(character, 0) for character in form]
    between = [1] * 16 + numbers + [2] * 16
    return between[16:24] + between[::-1][16:24]


FORMS = (Boundary.START, Boundary.STOP, "a", "dogs", "barks&", "houseboat", "x" * 20)


def codes(parser: ChartParser) -> list[list[int]]:
    module: Any = parser.lexical["charconcat"]
    return [module.codes(form).tolist() for form in FORMS]


def test_charconcat_reads_copies_of_a_mark_for_start_and_stop() -> None:
    parser = tiny(lexical=("charconcat",))
    assert codes(parser) == [concatenated(parser, form) for form in FORMS]
    earlier = codes(tiny(lexical=("charconcat",), char_boundaries="spelt"))
    for codes_of_mark, mark in zip(earlier, (3, 4), strict=False):
        assert codes_of_mark == [*[mark] * 3, *[2] * 5, *[mark] * 3, *[1] * 5]
    assert earlier[2:] == codes(parser)[2:]


def test_a_parser_of_before_reads_them_as_it_learnt_them(tmp_path: Path) -> None:
    parser = tiny(lexical=("charconcat",), char_boundaries="spelt")
    parser.save(tmp_path)
    path = tmp_path / "parser.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    description["config"] = flat(parser.config)
    assert description["config"].pop("char_boundaries") == "spelt"
    path.write_text(json.dumps(description), encoding="utf-8")
    forget_digest(tmp_path)
    again = load_parser(tmp_path, "cpu")
    assert isinstance(again, ChartParser)
    assert again.config == parser.config
    assert codes(again) == codes(parser)


def test_runs_and_records_of_before_are_other_runs(tmp_path: Path) -> None:
    """Those with CharConcat; of all others the setting says nothing."""
    for inputs, expected in ((["charconcat"], "spelt"), (["charlstm"], "copies")):
        now = flat(config(lexical=inputs))
        noted = {key: value for key, value in now.items() if key != "char_boundaries"}
        settings = [resolved_settings({"model": model}) for model in (now, noted)]
        assert settings[1].get("model.char_boundaries", "copies") == expected
        assert differing_settings(settings) == (
            ["model.char_boundaries"] if expected == "spelt" else []
        )
        run = {
            "recipe": "german", "treebank": "x", "fingerprint": "", "variant": "v",
            "size": "small", "seed": 1, "model": noted,
            "train": train_config().model_dump(mode="json"),
        }  # fmt: skip
        (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
        model: Any = read_config(tmp_path / "run.json").model
        assert getattr(model.inputs[inputs[0]], "boundaries", "copies") == expected


def rates_of_the_code(corpus: int, size: int, warmup: int, rate: float) -> Iterator[float]:
    """Of each step: sentences that went by, divided by the size of a batch, count as steps."""
    processed, now = 0, 0.0
    while True:
        for start in range(0, corpus, size):
            iteration = processed // size + 1
            if iteration <= warmup:
                now = rate * iteration / warmup
            yield now
            processed += min(size, corpus - start)


def test_a_training_run_follows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches of 7, 7, 7 and 3 sentences, also where a run was broken off and goes on."""
    found: dict[int, float] = {}

    def noted(config: TrainConfig, progress: Progress) -> float:
        return found.setdefault(progress.steps, learning_rate(config, progress))

    monkeypatch.setattr("spmrl_bench.training.schedule.learning_rate", noted)
    settings: dict[str, Any] = {
        "batch_size": 7, "warmup_batches": 9, "warmup_counts": "sentences",
        "learning_rate": 0.01, "max_epochs": 4, "evaluations_per_epoch": 1,
    }  # fmt: skip
    break_off(tmp_path, 1, **settings)
    assert len(found) == 8
    progress = make_trainer(tmp_path, **settings).fit()
    assert progress.sentences == 4 * len(TRAIN_TREES)
    rates = rates_of_the_code(len(TRAIN_TREES), 7, 9, 0.01)
    assert [found[step] for step in range(16)] == pytest.approx([next(rates) for _ in range(16)])
    assert found[9] < 0.01 == found[10]  # the eleventh step is the first at the full rate


D_MODEL, HEADS, D_KV = 256, 4, 32


def begun(start: Start, **settings: Any) -> list[EncoderLayer]:
    """The layers of a fresh encoder."""
    torch.manual_seed(0)
    encoder = attention_encoder(
        D_MODEL, layers=3, heads=HEADS, d_kv=D_KV, d_ff=64, start=start, **settings
    )
    return [layer for layer in encoder.layers if isinstance(layer, EncoderLayer)]


def attention_weights(layer: EncoderLayer) -> tuple[list[Tensor], list[Tensor], int]:
    """Of the maps to the heads and of those back, and of how many parts they are."""
    project, output = layer.attention.project, layer.attention.output
    parts = 2 if isinstance(project, FactoredLinear) else 1
    return list(project.parameters()), list(output.parameters()), parts


EVERY = pytest.mark.parametrize(
    "settings", [{}, {"position": "added", "matrices": "full"}], ids=str
)


@EVERY
def test_weights_of_2018(settings: dict[str, Any]) -> None:
    """Xavier normal over ``[heads, inputs, outputs]``, and back a linear map as torch begins it."""
    for layer in begun("released", **settings):
        to_heads, back, parts = attention_weights(layer)
        per_head = nn.init.xavier_normal_(torch.empty(HEADS, D_MODEL // parts, D_KV // parts))
        for weight in to_heads:
            assert weight.std().item() == pytest.approx(per_head.std().item(), rel=0.05)
            assert weight.abs().max() > 3 * weight.std()  # normal, not uniform
        bound = 1 / math.sqrt(HEADS * D_KV // parts)
        for weight in back:
            assert weight.abs().max().item() == pytest.approx(bound, rel=0.01)
            assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.03)
    first, second = (attention_weights(layer)[0][0] for layer in begun("released")[:2])
    assert not torch.equal(first, second)


@EVERY
def test_weights_of_version_02(settings: dict[str, Any]) -> None:
    """All of attention uniform with the deviation 0.02, and every layer a copy of the first."""
    layers = begun("version-0.2", **settings)
    for weights in attention_weights(layers[0])[:2]:
        for weight in weights:
            assert weight.abs().max().item() == pytest.approx(0.02 * math.sqrt(3), rel=0.01)
            assert weight.std().item() == pytest.approx(0.02, rel=0.03)
    for layer in layers[1:]:
        for name, weight in layer.state_dict().items():
            assert torch.equal(weight, layers[0].state_dict()[name]), name
        assert not {id(each) for each in layer.parameters()} & {
            id(each) for each in layers[0].parameters()
        }


def test_the_setting_reaches_the_encoder() -> None:
    torch.manual_seed(0)
    parser = ChartParser(config(attention_start="version-0.2"), tiny().vocabulary)
    first, second = (attention_weights(layer)[0][0] for layer in list(parser.encoder.layers))
    assert torch.equal(first, second)
