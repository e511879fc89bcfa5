"""Label attention against loops over sentences, heads and tokens, and the formula of its code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoders import label_attention as module_of_layer
from spmrl_bench.nn.encoders.label_attention import LabelAttention, LabelHeads
from spmrl_bench.nn.kernels import autocast
from tests import twins
from tests.nn.built import attention_encoder, label_attention, recurrent_encoder
from tests.nn.plain import label_layer, layout_of, random_rows, randomise
from tests.twins import assert_near

LENGTHS = [3, 6, 1, 4]
D_MODEL, HEADS, D_KV, D_PROJ = 8, 5, 4, 6
SWITCHES: list[dict[str, Any]] = [
    {"queries": queries, "outputs": outputs, "matrices": matrices, "feed_forward": feed_forward}
    for queries, outputs, matrices, feed_forward in itertools.product(
        ("vectors", "matrices"),
        ("concatenated", "projected"),
        ("factored", "full"),
        ("usual", "none"),
    )
]
SWITCHES += [
    {"feed_forward": "released"},
    {"queries": "matrices", "feed_forward": "released"},
    {"attention_scale": "d_model"},
    {"attention_scale": "d_model", "queries": "matrices"},
    {"layer_norm": "released"},
    {"layer_norm": "released", "outputs": "projected"},
    {"attention_scale": "d_model", "layer_norm": "released", "feed_forward": "released"},
]
CONCATENATED: list[dict[str, Any]] = [{}, {"queries": "matrices"}]
every_switch = pytest.mark.parametrize("choices", SWITCHES, ids=str)


def layer(*, heads: int = HEADS, seed: int = 1, **choices: Any) -> LabelAttention:
    module = label_attention(D_MODEL, heads, **choices).double()
    randomise(module, seed)
    return module


def run(module: nn.Module, rows: Tensor, lengths: list[int] = LENGTHS) -> Tensor:
    found: Tensor = module(rows, layout_of(lengths))
    return found


def outcome(module: nn.Module, run: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    """The result of random rows, and the gradients of all that has some."""
    return twins.outcome(run, random_rows(LENGTHS, D_MODEL), list(module.named_parameters()))


@every_switch
def test_values_and_gradients_are_those_of_the_loops(choices: dict[str, Any]) -> None:
    module = layer(**choices)
    divisor = math.sqrt(D_MODEL if choices.get("attention_scale") == "d_model" else D_KV)
    expected = outcome(module, lambda rows: label_layer(module, rows, LENGTHS, divisor=divisor))
    assert expected["result"].shape == (sum(LENGTHS), module.d_out)
    assert min(value.abs().max() for value in expected.values()) > 1e-4
    assert_near(outcome(module, lambda rows: run(module, rows)), expected, 1e-10)


def test_initial_weights_are_those_of_the_released_code() -> None:
    d_model, heads, d_kv = 256, 40, 64
    torch.manual_seed(0)
    for queries in ("vectors", "matrices"):
        module = label_attention(d_model, heads, d_kv=d_kv, d_proj=32, queries=queries)
        whole = nn.init.xavier_normal_(torch.empty(heads, d_model // 2, d_kv // 2))
        kinds = [module.heads.key, module.heads.value] if queries == "vectors" else []
        for linear in kinds or [module.heads.project]:
            for part in (linear.content, linear.position):
                assert part.weight.std().item() == pytest.approx(whole.std().item(), rel=0.03)
        if isinstance(module.heads, LabelHeads):
            own = nn.init.xavier_normal_(torch.empty(heads, d_kv // 2))
            assert module.heads.query.std().item() == pytest.approx(own.std().item(), rel=0.08)


def bare(queries: Any, p: float, d_model: int = 30) -> LabelAttention:
    """Heads whose blocks are the token plus what is added to it, without a norm."""
    module = label_attention(
        d_model, HEADS, d_proj=d_model, head_dropout=p, queries=queries, feed_forward="none"
    ).double()
    randomise(module, seed=3)
    module.norm = nn.Identity()
    with torch.no_grad():
        module.reduce.weight.copy_(torch.eye(d_model))
    return module


@pytest.mark.parametrize("queries", ["vectors", "matrices"])
def test_output_dropout_has_a_mask_for_each_head_and_sentence(queries: str) -> None:
    """In section 4.2: residual dropout applies separately to the output of each head."""
    module, rows = bare(queries, 0.4), random_rows(LENGTHS, 30)
    tokens = (sum(LENGTHS), HEADS, 30)
    whole = run(module.eval(), rows).view(tokens) - rows[:, None]
    torch.manual_seed(0)
    dropped = run(module.train(), rows).view(tokens) - rows[:, None]
    ratios = (dropped / whole).round(decimals=6)
    masks = []
    for part in ratios.split(LENGTHS):
        assert (part == part[0]).all()  # shared by the tokens of a sentence
        masks += list(part[0])
    assert torch.stack(masks).unique().tolist() == pytest.approx([0, 1 / 0.6], abs=1e-5)
    assert len({tuple(mask.tolist()) for mask in masks}) == len(LENGTHS) * HEADS
    assert torch.stack(masks).count_nonzero() / (len(masks) * 30) == pytest.approx(0.6, abs=0.08)


def test_gradients_through_the_masks_are_those_of_the_whole_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is computed a second time on the way back is what was computed before."""
    module = layer(queries="matrices", head_dropout=0.4).train()
    found = []
    for stored in (False, True):
        if stored:
            monkeypatch.setattr(module_of_layer, "checkpoint", lambda run, *given, **_: run(*given))
        torch.manual_seed(3)
        found.append(outcome(module, lambda rows: run(module, rows)))
    assert_near(*found, 1e-11)


def test_attention_dropout_is_drawn_for_each_weight() -> None:
    """Uniform weights over one-hot values make the masked weights themselves visible."""
    n, p = 6, 0.5
    settings = SimpleNamespace(d_kv=n, attention_dropout=p, attention_scale="d_kv")
    heads = LabelHeads(settings, n, 3, "full").double()
    with torch.no_grad():
        heads.query.zero_()
        heads.value.weight.copy_(torch.eye(n).repeat(3, 1))
    rows, layout = torch.eye(n).double().repeat(2, 1), layout_of([n, n])
    torch.manual_seed(0)
    found = heads.contexts(rows, layout)
    assert sorted(found.unique().tolist()) == pytest.approx([0, 1 / n / (1 - p)])
    assert len({tuple(weights.tolist()) for weights in found.flatten(0, 1)}) > 4
    torch.testing.assert_close(
        heads.eval().contexts(rows, layout), torch.full((2, 3, n), 1 / n).double()
    )


def test_encoders_say_how_wide_they_are() -> None:
    for encoder in (attention_encoder(D_MODEL), recurrent_encoder("lstm", D_MODEL)):
        assert (encoder.d_out, encoder.d_block) == (D_MODEL, 2)
        names = set(encoder.state_dict())
        content = torch.randn(sum(LENGTHS), getattr(encoder, "content_width", D_MODEL))
        below = encoder.stack(content, layout_of(LENGTHS))
        for choices, widths in (
            ({}, (HEADS * D_PROJ, D_PROJ)),
            ({"outputs": "projected"}, (D_MODEL, 2)),
        ):
            encoder.label_attention = layer(matrices="full", **choices).float()
            assert (encoder.d_out, encoder.d_block) == widths
            assert torch.equal(run(encoder, content), run(encoder.label_attention, below))
        added = set(encoder.state_dict()) - names
        assert added
        assert all(name.startswith("label_attention.") for name in added)


@pytest.mark.parametrize("choices", CONCATENATED, ids=str)
def test_weights_and_features_are_what_the_layer_uses(choices: dict[str, Any]) -> None:
    module, layout = layer(**choices, feed_forward="none"), layout_of(LENGTHS)
    rows = random_rows(LENGTHS, D_MODEL)
    features = module.features(rows, layout)
    torch.testing.assert_close(features.flatten(1), run(module, rows), atol=1e-12, rtol=0)
    weights = module.weights(rows, layout)
    heads = module.heads
    per_sentence = isinstance(heads, LabelHeads)
    contexts = heads.contexts(rows, layout).split([1] * len(LENGTHS) if per_sentence else LENGTHS)
    for found, given, own in zip(weights, rows.split(LENGTHS), contexts, strict=True):
        n = len(given)
        torch.testing.assert_close(found.sum(-1), torch.ones_like(found.sum(-1)))
        if isinstance(heads, LabelHeads):
            assert found.shape == (HEADS, n)
            values = heads.value.to_heads(given, HEADS)
            expected = torch.einsum("hj,jhd->hd", found, values)[None]
        else:
            assert found.shape == (HEADS, n, n)
            values = heads.project.to_heads(given, 3 * HEADS)[:, 2 * HEADS :]
            expected = torch.einsum("hij,jhd->ihd", found, values)
        torch.testing.assert_close(own, expected, atol=1e-12, rtol=0)
    assert weights[1].std() > 0.02


def test_bfloat16_products_are_close() -> None:
    for choices in SWITCHES[::3]:
        module, rows = layer(**choices).float(), random_rows(LENGTHS, D_MODEL).float()
        exact = run(module, rows)
        with autocast("bf16", rows.device):
            found = run(module, rows)
        assert found.dtype == torch.float32
        assert not torch.equal(found, exact)
        assert (found - exact).abs().max() < 0.06 * exact.abs().max()


class Largest(TorchDispatchMode):
    """Numbers of the largest array that is made within it."""

    numbers = 0

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Any, given: Any = (), named: Any = None
    ) -> Any:
        found = function(*given, **(named or {}))
        for array in found if isinstance(found, tuple | list) else (found,):
            if isinstance(array, Tensor):
                self.numbers = max(self.numbers, array.untyped_storage().nbytes() // 8)
        return found


@pytest.mark.parametrize(
    ("choices", "bound"),
    [
        ({}, "outputs"),
        ({"head_dropout": 0.2, "attention_dropout": 0.2}, "outputs"),
        ({"outputs": "projected"}, "rows"),
        ({"queries": "matrices", "head_dropout": 0.2}, "queries"),
    ],
    ids=str,
)
def test_no_array_is_blown_up_for_the_heads(choices: dict[str, Any], bound: str) -> None:
    """There and back: without keys, values or residual vectors of tokens for each head."""
    lengths, d_model, heads, d_kv, d_proj = [50, 70], 64, 10, 16, 8
    module = label_attention(
        d_model, heads, d_kv=d_kv, d_proj=d_proj, feed_forward="none", **choices
    ).double()
    rows = random_rows(lengths, d_model).requires_grad_()
    tokens = sum(lengths)
    with Largest() as seen:
        run(module, rows, lengths).sum().backward()
    allowed = {
        "outputs": tokens * heads * d_proj,
        "rows": max(tokens * d_model, heads * d_model * d_kv),
        "queries": 2 * max(lengths) * 3 * heads * d_kv,
    }[bound]
    assert allowed < tokens * heads * d_model
    assert max(allowed, heads * d_model * d_kv) >= seen.numbers > tokens * d_proj


def test_what_cannot_be() -> None:
    released = {"feed_forward": "released"}
    refused: list[tuple[dict[str, Any], str]] = [
        (
            {"heads": 1, "d_proj": 4, **released},
            "last 4 features .* 1 heads with d_proj = 4 have 4",
        ),
        ({"inherited": "full", **released}, "matrices are full"),
        ({"matrices": "full", **released}, "matrices are full"),
        ({"outputs": "projected", **released}, "outputs are projected"),
        ({"heads": 0}, "they have none; set label_attention"),
        ({"inherited": None, "matrices": "factored"}, "the encoder has mixed; only 'full'"),
    ]
    for choices, words in refused:
        labels = choices.pop("heads", HEADS)
        with pytest.raises(RecipeError, match=words):
            label_attention(D_MODEL, labels, **choices)
    assert layer(heads=1, d_proj=6, **released).d_out == 6
    assert label_attention(inherited=None).output.parts == 1
