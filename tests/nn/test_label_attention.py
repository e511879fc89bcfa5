"""Label attention against loops over sentences, heads and tokens, and the formula of its code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from spmrl_bench.nn import label_attention
from spmrl_bench.nn.encoder import AttentionHeads, Encoder, EncoderLayer
from spmrl_bench.nn.label_attention import LabelAttentionLayer, LabelHeads, LabelView
from spmrl_bench.nn.precision import products
from spmrl_bench.nn.recurrent_encoder import RecurrentEncoder
from spmrl_bench.nn.span_scorer import fenceposts
from tests import twins
from tests.nn.plain import layout_of, randomise
from tests.nn.plain_labels import label_layer
from tests.twins import assert_near

LENGTHS = [3, 6, 1, 4]
D_MODEL, HEADS, D_KV, D_PROJ, D_FF = 8, 5, 4, 6, 10
NO_DROPOUT = dict.fromkeys(
    ("attention_dropout", "output_dropout", "residual_dropout", "relu_dropout"), 0.0
)
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
]
CONCATENATED: list[dict[str, Any]] = [{}, {"queries": "matrices"}]
every_switch = pytest.mark.parametrize("choices", SWITCHES, ids=str)


def layer(*, heads: int = HEADS, seed: int = 1, **choices: Any) -> LabelAttentionLayer:
    sizes = {"d_kv": D_KV, "d_proj": D_PROJ, "d_ff": D_FF, **NO_DROPOUT}
    module = LabelAttentionLayer(D_MODEL, heads, **{**sizes, **choices}).double()
    randomise(module, seed)
    return module


def rows_of(lengths: list[int] = LENGTHS, width: int = D_MODEL, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sum(lengths), width, generator=generator, dtype=torch.float64)


def run(module: nn.Module, rows: Tensor, lengths: list[int] = LENGTHS) -> Tensor:
    found: Tensor = module(rows, layout_of(lengths))
    return found


def outcome(module: nn.Module, run: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    """The result of random rows, and the gradients of all that has some."""
    return twins.outcome(run, rows_of(), list(module.named_parameters()))


# ---- values and gradients --------------------------------------------------------------


@every_switch
def test_values_and_gradients_are_those_of_the_loops(choices: dict[str, Any]) -> None:
    module = layer(**choices)
    divisor = math.sqrt(D_MODEL if choices.get("attention_scale") == "d_model" else D_KV)
    released = choices.get("layer_norm") == "released"
    expected = outcome(
        module,
        lambda rows: label_layer(module, rows, LENGTHS, divisor=divisor, released_norm=released),
    )
    assert expected["result"].shape == (sum(LENGTHS), module.d_out)
    assert min(value.abs().max() for value in expected.values()) > 1e-4
    assert_near(outcome(module, lambda rows: run(module, rows)), expected, 1e-10)


def test_every_switch_changes_the_result() -> None:
    """So that none of them is compared with itself above; outputs of one width only."""
    by_width: dict[int, list[Tensor]] = {}
    for choices in SWITCHES:
        module = layer(**choices)
        by_width.setdefault(module.d_out, []).append(run(module, rows_of()))
    assert sorted(map(len, by_width.values())) == [9, 13]
    for found in by_width.values():
        for one, other in itertools.combinations(found, 2):
            assert (one - other).abs().max() > 1e-4


def test_the_formula_of_the_released_code_on_one_sentence() -> None:
    """Keys and values of every token; root of d_model; deviation plus 0.001; the last features.

    Content and position are the halves of a token, and each head's query, key and value has a
    half for either.
    """
    n, half = 7, D_MODEL // 2
    module = layer(attention_scale="d_model", layer_norm="released", feed_forward="released")
    weight = dict(module.named_parameters())
    x = rows_of([n])

    def normed(z: Tensor, name: str) -> Tensor:
        z = (z - z.mean(-1, keepdim=True)) / (z.std(-1, keepdim=True) + 0.001)
        return z * weight[f"{name}.weight"] + weight[f"{name}.bias"]

    outputs = []
    for head in range(HEADS):
        of_head = slice(head * D_KV // 2, (head + 1) * D_KV // 2)
        key_c, key_p, value_c, value_p = (
            x[:, side] @ weight[f"heads.{name}.{part}.weight"][of_head].T
            for name in ("key", "value")
            for side, part in ((slice(half), "content"), (slice(half, None), "position"))
        )
        keys, values = torch.cat((key_c, key_p), 1), torch.cat((value_c, value_p), 1)
        attention = torch.softmax(weight["heads.query"][head] @ keys.T / D_MODEL**0.5, dim=0)
        context = attention @ values
        back = torch.cat(
            (
                weight["output.content.weight"] @ context[: D_KV // 2],
                weight["output.position.weight"] @ context[D_KV // 2 :],
            )
        )
        outputs.append(normed((back + x) @ weight["reduce.weight"].T, "norm"))
    y = torch.cat(outputs, dim=1)
    changes = []
    for part, columns in (("first", slice(-half)), ("last", slice(-half, None))):
        w1, b1, w2, b2 = (
            weight[f"feed_forward.{which}.{part}.{name}"]
            for which in ("expand", "contract")
            for name in ("weight", "bias")
        )
        changes.append(torch.relu(y[:, columns] @ w1.T + b1) @ w2.T + b2)
    expected = normed(y + torch.cat(changes, dim=1), "feed_forward.norm")
    torch.testing.assert_close(run(module, x, [n]), expected, atol=1e-11, rtol=0)


@pytest.mark.parametrize("matrices", ["factored", "full"])
@pytest.mark.parametrize("norm", ["usual", "released"])
def test_query_matrices_and_projection_are_plain_self_attention(matrices: Any, norm: Any) -> None:
    """The third ablation of section 4.3: one more layer of the encoder, with these heads."""
    module = layer(queries="matrices", outputs="projected", matrices=matrices, layer_norm=norm)
    rates = {name: rate for name, rate in NO_DROPOUT.items() if name != "output_dropout"}
    plain = EncoderLayer(
        D_MODEL, HEADS, D_KV, D_FF, **rates, matrices=matrices, layer_norm=norm
    ).double()
    renamed = {
        "heads.project": "attention.project",
        "output": "attention.output",
        "norm": "attention_norm",
        "feed_forward.expand": "expand",
        "feed_forward.contract": "contract",
        "feed_forward.norm": "feed_forward_norm",
    }
    weights = {}
    for name, weight in module.state_dict().items():
        (old,) = [old for old in renamed if name.startswith(f"{old}.")]
        weights[renamed[old] + name.removeprefix(old)] = weight
    plain.load_state_dict(weights)
    rows = rows_of()
    torch.testing.assert_close(run(module, rows), run(plain, rows), atol=1e-13, rtol=0)
    assert (module.d_out, module.d_block) == (D_MODEL, 2)


@pytest.mark.parametrize("outputs", ["concatenated", "projected"])
def test_a_query_vector_adds_the_same_to_every_token(outputs: Any) -> None:
    """And a query matrix adds to each token something else."""
    added = {}
    for queries in ("vectors", "matrices"):
        module = layer(queries=queries, outputs=outputs, feed_forward="none", d_proj=D_MODEL)
        module.norm = nn.Identity()
        if module.concatenated:
            with torch.no_grad():
                module.reduce.weight.copy_(torch.eye(D_MODEL))
        rows = rows_of()
        found = run(module, rows) - rows.repeat(1, module.d_out // D_MODEL)
        added[queries] = [part - part[0] for part in found.split(LENGTHS)]
    assert max(part.abs().max() for part in added["vectors"]) < 1e-12
    assert max(part.abs().max() for part in added["matrices"]) > 0.05


def test_initial_weights_are_those_of_the_released_code() -> None:
    d_model, heads, d_kv = 256, 40, 64
    torch.manual_seed(0)
    for queries in ("vectors", "matrices"):
        module = LabelAttentionLayer(
            d_model,
            heads,
            d_kv,
            32,
            16,
            **NO_DROPOUT,
            queries=queries,
        )
        whole = nn.init.xavier_normal_(torch.empty(heads, d_model // 2, d_kv // 2))
        kinds = [module.heads.key, module.heads.value] if queries == "vectors" else []
        for linear in kinds or [module.heads.project]:
            for part in (linear.content, linear.position):
                assert part.weight.std().item() == pytest.approx(whole.std().item(), rel=0.03)
        if isinstance(module.heads, LabelHeads):
            own = nn.init.xavier_normal_(torch.empty(heads, d_kv // 2))
            assert module.heads.query.std().item() == pytest.approx(own.std().item(), rel=0.08)


# ---- batches ---------------------------------------------------------------------------


@every_switch
def test_a_sentence_gives_the_same_alone_and_in_any_batch(choices: dict[str, Any]) -> None:
    module = layer(**choices)
    sentences = [rows_of([n], seed=n) for n in (5, 2, 9, 1, 5)]
    alone = [run(module, rows, [len(rows)]) for rows in sentences]
    for order in ([0, 1, 2, 3, 4], [3, 2], [4, 0], [2, 4, 1]):
        lengths = [len(sentences[k]) for k in order]
        together = run(module, torch.cat([sentences[k] for k in order]), lengths)
        for k, found in zip(order, together.split(lengths), strict=True):
            torch.testing.assert_close(found, alone[k], atol=1e-12, rtol=0)


# ---- dropout ---------------------------------------------------------------------------


def bare(queries: Any, p: float, d_model: int = 30) -> LabelAttentionLayer:
    """Heads whose blocks are the token plus what is added to it, without a norm."""
    module = LabelAttentionLayer(
        d_model, HEADS, D_KV, d_model, D_FF, **{**NO_DROPOUT, "output_dropout": p},
        queries=queries, feed_forward="none",
    ).double()  # fmt: skip
    randomise(module, seed=3)
    module.norm = nn.Identity()
    with torch.no_grad():
        module.reduce.weight.copy_(torch.eye(d_model))
    return module


@pytest.mark.parametrize("queries", ["vectors", "matrices"])
def test_output_dropout_has_a_mask_for_each_head_and_sentence(queries: str) -> None:
    """In section 4.2: residual dropout applies separately to the output of each head."""
    module, rows = bare(queries, 0.4), rows_of(width=30)
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
    module = layer(queries="matrices", output_dropout=0.4).train()
    found = []
    for stored in (False, True):
        if stored:
            monkeypatch.setattr(label_attention, "checkpoint", lambda run, *given, **_: run(*given))
        torch.manual_seed(3)
        found.append(outcome(module, lambda rows: run(module, rows)))
    assert_near(*found, 1e-11)


def test_projected_outputs_are_dropped_together() -> None:
    module = layer(outputs="projected", output_dropout=0.5, feed_forward="none")
    module.norm = nn.Identity()
    rows = rows_of()
    whole = run(module.eval(), rows) - rows
    torch.manual_seed(0)
    ratios = ((run(module.train(), rows) - rows) / whole).round(decimals=6)
    for part in ratios.split(LENGTHS):
        assert (part == part[0]).all()
    assert ratios.unique().tolist() == [0, 2]


def test_attention_dropout_is_drawn_for_each_weight() -> None:
    """Uniform weights over one-hot values make the masked weights themselves visible."""
    n, p = 6, 0.5
    heads = LabelHeads(n, 3, n, p, matrices="full").double()
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


def test_the_feed_forward_layer_has_dropout_of_its_own() -> None:
    module = layer(residual_dropout=0.3, relu_dropout=0.2).train()
    assert module.feed_forward.residual_dropout.p == 0.3
    assert module.feed_forward.relu_dropout.p == 0.2
    assert module.output_dropout.p == 0
    rows = rows_of()
    assert (run(module, rows) - run(module.eval(), rows)).abs().max() > 0.1


# ---- span halves -----------------------------------------------------------------------


def test_fenceposts_split_each_head_in_the_middle() -> None:
    module = layer()
    assert (module.d_out, module.d_block) == (HEADS * D_PROJ, D_PROJ)
    encoded, left = rows_of([4, 3], module.d_out), torch.tensor([0, 1, 2, 4, 5])
    found = fenceposts(encoded, left, module.d_block)
    half = D_PROJ // 2
    for post, token in zip(found.tolist(), left.tolist(), strict=True):
        forward, backward = [], []
        for head in range(HEADS):
            first = head * D_PROJ
            forward += encoded[token, first : first + half].tolist()
            backward += encoded[token + 1, first + half : first + D_PROJ].tolist()
        assert post == forward + backward


def test_encoders_say_how_wide_they_are() -> None:
    rates = {name: rate for name, rate in NO_DROPOUT.items() if name != "output_dropout"}
    encoders = (
        Encoder(D_MODEL, 1, 2, 4, 8, 9, **rates),
        RecurrentEncoder("lstm", D_MODEL, 1, dropout=0.0),
    )
    for encoder in encoders:
        assert (encoder.d_out, encoder.d_block) == (D_MODEL, 2)
        names = set(encoder.state_dict())
        encoder.label_attention = layer(matrices="full").float()
        assert (encoder.d_out, encoder.d_block) == (HEADS * D_PROJ, D_PROJ)
        width = D_MODEL if isinstance(encoder, RecurrentEncoder) else D_MODEL // 2
        content = rows_of(width=width).float()
        below = encoder.stack(content, layout_of(LENGTHS))
        expected = run(encoder.label_attention, below)
        assert torch.equal(run(encoder, content), expected)
        added = set(encoder.state_dict()) - names
        assert added
        assert all(name.startswith("label_attention.") for name in added)


# ---- what one can see ------------------------------------------------------------------


@pytest.mark.parametrize("choices", CONCATENATED, ids=str)
def test_views_are_what_the_layer_uses(choices: dict[str, Any]) -> None:
    module, rows = layer(**choices, feed_forward="none"), rows_of()
    found = run(module, rows).split(LENGTHS)
    contexts = module.heads.contexts(rows, layout_of(LENGTHS))
    views = module.views(rows, layout_of(LENGTHS))
    begin = 0
    for number, (view, given, part) in enumerate(
        zip(views, rows.split(LENGTHS), found, strict=True)
    ):
        n = len(given)
        torch.testing.assert_close(view.blocks.flatten(1), part, atol=1e-12, rtol=0)
        torch.testing.assert_close(view.weights.sum(-1), torch.ones_like(view.weights.sum(-1)))
        heads = module.heads
        if isinstance(heads, LabelHeads):
            assert view.weights.shape == (HEADS, n)
            values = heads.value.to_heads(given, HEADS)
            expected = torch.einsum("hj,jhd->hd", view.weights, values)
            own = contexts[number]
        else:
            assert view.weights.shape == (HEADS, n, n)
            values = heads.project.to_heads(given, 3 * HEADS)[:, 2 * HEADS :]
            expected = torch.einsum("hij,jhd->ihd", view.weights, values)
            own = contexts[begin : begin + n]
        torch.testing.assert_close(own, expected, atol=1e-12, rtol=0)
        begin += n
    assert views[1].weights.std() > 0.02


def test_views_that_cannot_be() -> None:
    (view,) = layer(outputs="projected").views(rows_of([6]), layout_of([6]))
    assert view.weights.shape == (HEADS, 6)
    with pytest.raises(ValueError, match=r"added up .*'projected'.* no part"):
        view.of_span(0, 2)
    (view,) = layer().views(rows_of([6]), layout_of([6]))
    for span in ((0, 5), (2, 2), (-1, 2), (3, 1)):
        with pytest.raises(ValueError, match=r"is not within the 4 words"):
            view.of_span(*span)
    assert isinstance(view, LabelView)


# ---- numbers and memory ----------------------------------------------------------------


@pytest.mark.parametrize("choices", SWITCHES[::3], ids=str)
def test_bfloat16_products_are_close(choices: dict[str, Any]) -> None:
    module, rows = layer(**choices).float(), rows_of().float()
    exact = run(module, rows)
    with products("bf16", rows.device):
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
        ({"output_dropout": 0.2, "attention_dropout": 0.2}, "outputs"),
        ({"outputs": "projected"}, "rows"),
        ({"queries": "matrices", "output_dropout": 0.2}, "queries"),
    ],
    ids=str,
)
def test_no_array_is_blown_up_for_the_heads(choices: dict[str, Any], bound: str) -> None:
    """There and back: without keys, values or residual vectors of tokens for each head."""
    lengths, d_model, heads, d_kv, d_proj = [50, 70], 64, 10, 16, 8
    sizes: dict[str, Any] = {**NO_DROPOUT, **choices, "feed_forward": "none"}
    module = LabelAttentionLayer(d_model, heads, d_kv, d_proj, 4, **sizes).double()
    rows = rows_of(lengths, d_model).requires_grad_()
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


# ---- mistakes --------------------------------------------------------------------------


def test_too_few_features_to_keep_some_apart() -> None:
    with pytest.raises(ValueError, match="the last 4 features cannot stand apart from 4 in all"):
        layer(heads=1, d_proj=4, feed_forward="released")
    assert layer(heads=1, d_proj=6, feed_forward="released").d_out == 6
    assert isinstance(layer(queries="matrices").heads, AttentionHeads)
