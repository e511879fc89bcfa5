"""Self-attention of every form against the computation of the paper, written down plainly."""

from __future__ import annotations

import contextlib
import itertools
import math
from itertools import product
from typing import Any, get_args

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from spmrl_bench.errors import RecipeError, UnsupportedError
from spmrl_bench.nn.encoders.self_attention import AttentionEncoder, AttentionMask, EncoderLayer
from spmrl_bench.nn.layers import Matrices, ReleasedLayerNorm, SinusoidalPositions
from tests import twins
from tests.nn import built, plain
from tests.nn.plain import layout_of, random_rows, randomise

LENGTHS = [3, 12, 1, 7, 5]
LAYOUT = layout_of(LENGTHS)
D_MODEL, PLACES = 12, 14
ADDED: dict[str, Any] = {"position": "added", "matrices": "full"}
CHOICES: list[dict[str, Any]] = [
    *(
        {"position": position, "matrices": matrices, "input_norm": norm}
        for position, matrices, norm in itertools.product(
            ("concatenated", "added"), get_args(Matrices), (True, False)
        )
    ),
    {"attention_scale": "d_model"},
    {"attention_scale": "d_model", "matrices": "full"},
    {"layer_norm": "released"},
    {"position_table": "sinusoidal"},
    {"position_table": "sinusoidal", **ADDED},
]


def encoder(layers: int = 3, **choices: Any) -> AttentionEncoder:
    module = built.attention_encoder(
        D_MODEL, layers=layers, max_positions=PLACES, **choices
    ).double()
    randomise(module, seed=3)
    return module


def layer(**dropout: float) -> EncoderLayer:
    module = built.encoder_layer(D_MODEL, **dropout).double()
    randomise(module, seed=2)
    return module


def test_encoders_are_layers_over_content_and_position() -> None:
    for choices, layers in itertools.product(CHOICES, (0, 1, 3)):
        module = encoder(layers, **choices)
        content = random_rows(LENGTHS, module.content_width)
        divisor = math.sqrt(D_MODEL) if choices.get("attention_scale") == "d_model" else None
        expected = plain.encoder(module, content, LENGTHS, divisor)
        found = module(content, LAYOUT)
        torch.testing.assert_close(found, expected, atol=1e-11, rtol=0, msg=str(choices))
        # By the kernels, of what they compute.
        with torch.no_grad():
            found = module.float()(content.float(), LAYOUT).double()
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0, msg=str(choices))


@pytest.mark.parametrize(("matrices", "parts"), [("factored", 2), ("full", 1)])
def test_initial_weights_are_xavier_over_whole_head_tensors(matrices: str, parts: int) -> None:
    d_model, heads, d_kv = 256, 8, 64
    module = built.self_attention(d_model, heads=heads, d_kv=d_kv, matrices=matrices)
    sizes = (d_model // parts, d_kv // parts)
    for linear, shape in ((module.project, sizes), (module.output, sizes[::-1])):
        expected = nn.init.xavier_normal_(torch.empty(heads, *shape)).std().item()
        for weight in linear.parameters():
            assert weight.std().item() == pytest.approx(expected, rel=0.03)


def test_attention_dropout_is_drawn_for_each_weight() -> None:
    """Uniform weights over one-hot values make the masked weights themselves visible."""
    n, p = 6, 0.5
    module = built.self_attention(2 * n, heads=2, d_kv=2 * n, attention_dropout=p).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        for head in range(2):
            first_value = (2 * 2 + head) * n
            module.project.content.weight[first_value : first_value + n] = torch.eye(n)
        module.output.content.weight[:, :n] = torch.eye(n)
    rows = torch.cat((torch.eye(n), torch.zeros(n, n)), dim=1).double()
    weights = module(rows, layout_of([n]))[:, :n]
    assert weights.unique().tolist() == pytest.approx([0, 1 / n / (1 - p)])
    assert len({tuple(row) for row in weights.tolist()}) > 1  # not one mask for all queries
    whole = module.eval()(rows, layout_of([n]))[:, :n]
    torch.testing.assert_close(whole, torch.full_like(whole, 1 / n))


class Tap:
    """Keeps the last input and output of a module."""

    def __init__(self, module: nn.Module) -> None:
        module.register_forward_hook(self._keep)

    def _keep(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        self.input = inputs[0].detach().clone()
        joined = output if isinstance(output, Tensor) else torch.cat(output, dim=1)
        self.output = joined.detach().clone()


def assert_sentence_mask(before: Tensor, after: Tensor) -> None:
    """``after`` is ``before`` with half of the features of each sentence dropped."""
    dropped = 0
    masks = set()
    for old, new in zip(before.split(LENGTHS), after.split(LENGTHS), strict=True):
        # A feature that is 0 throughout (after a ReLU) shows no mask.
        shown = (old.abs() > 1e-9).any(dim=0)
        kept = (new.abs() > 1e-9).any(dim=0)
        torch.testing.assert_close(new, old * kept * 2)
        dropped += int((shown & ~kept).sum())
        masks.add(tuple(kept.tolist()))
    assert dropped > 0
    assert len(masks) > 1


def test_dropout_is_shared_by_a_sentence() -> None:
    module, rows = layer(residual_dropout=0.5), random_rows(LENGTHS, D_MODEL)
    attended, contracted = Tap(module.attention), Tap(module.contract)
    first, second = Tap(module.attention_norm), Tap(module.feed_forward_norm)
    module(rows, LAYOUT)
    assert_sentence_mask(attended.output, first.input - rows)
    assert_sentence_mask(contracted.output, second.input - first.output)
    module = layer(relu_dropout=0.5)
    expanded, contracted = Tap(module.expand), Tap(module.contract)
    module(rows, LAYOUT)
    assert_sentence_mask(expanded.output.relu(), contracted.input)


def test_gradients_of_released_norms_are_right_and_finite() -> None:
    module = ReleasedLayerNorm(5).double()
    randomise(module, seed=1)
    assert torch.autograd.gradcheck(module, (random_rows([3], 5, seed=3).requires_grad_(),))
    equal = torch.full((1, 5), 7.0, dtype=torch.float64, requires_grad=True)
    result = module(equal)
    assert torch.equal(result[0], module.bias)
    result.square().sum().backward()
    assert equal.grad.isfinite().all()


def test_the_result_of_released_norms_is_not_rounded_to_bfloat16() -> None:
    rows, module = random_rows([3], 8, seed=4).bfloat16(), ReleasedLayerNorm(8)
    with torch.autocast("cpu", torch.bfloat16):
        found = module(rows)
    assert found.dtype == torch.float32
    assert torch.equal(found, module(rows.float()))


def test_limits_by_hand() -> None:
    """Of both products, of either and of none, with windows up to the whole sentence."""
    module, rows = layer().attention, random_rows(LENGTHS, D_MODEL)
    counting = itertools.product([True, False], repeat=2)
    windows = [(None, False), *product((0, 2, 12), [False]), *product((0, 1, 3, 11), [True])]
    for counts, window in itertools.product(counting, windows):
        limit = AttentionMask(*counts, *window)
        found = module(rows, LAYOUT, limit)
        expected = plain.attention(module, rows, LENGTHS, limit=limit)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0, msg=str(limit))


def test_gradients_of_limited_attention_are_finite() -> None:
    module, rows = encoder(), random_rows(LENGTHS, D_MODEL // 2).requires_grad_()
    with module.limited(dict.fromkeys(range(3), AttentionMask(window=0))):
        module(rows, LAYOUT).square().sum().backward()
        assert rows.grad.isfinite().all()
        # With a window of 0 a token sees itself alone.
        (only,) = torch.autograd.grad(module(rows, LAYOUT)[4].sum(), rows)
    assert only.abs().sum(dim=1).nonzero().flatten().tolist() == [4]


def test_layers_are_limited_one_by_one_and_for_a_while() -> None:
    module, rows = encoder(window=4), random_rows(LENGTHS, D_MODEL // 2)
    found = [module(rows, LAYOUT)]
    for masks in ({1: AttentionMask(window=4, position=False)}, {2: AttentionMask(window=4)}):
        with contextlib.suppress(KeyboardInterrupt), module.limited(masks):
            found.append(module(rows, LAYOUT))
            raise KeyboardInterrupt
    for one, other in itertools.combinations(found, 2):
        assert (one - other).abs().max() > 1e-4
    with module.limited({}):
        assert torch.equal(module(rows, LAYOUT), found[0])
    assert torch.equal(module(rows, LAYOUT), found[0])


def test_limits_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="window is -1; it must be 0 or more"):
        AttentionMask(window=-1)
    refused = [
        (encoder(), {3: AttentionMask(window=1)}, "layer 3: the encoder's layers are 0 to 2"),
        (encoder(matrices="full"), {0: AttentionMask(content=False)}, "layer 0: .* told apart"),
        (encoder(position="added"), {0: AttentionMask(content=False)}, "layer 0: .* told apart"),
        (built.recurrent_encoder("lstm"), {0: AttentionMask()}, "no attention .* LSTMEncoder"),
    ]
    for module, masks, words in refused:
        with pytest.raises(UnsupportedError, match=words):
            module.limited(masks).__enter__()


@pytest.mark.parametrize("width", [2, 6, 512])
def test_the_table_is_that_of_the_paper(width: int) -> None:
    """Vaswani et al. 2017, section 3.5, feature by feature, in float32."""
    module = SinusoidalPositions(40, width)
    for place, i in itertools.product((0, 1, 2, 17, 39), range(width // 2)):
        angle = place / 10000 ** (2 * i / width)
        row = module(torch.tensor([place]))[0]
        assert row[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-7)
        assert row[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_a_fixed_table_is_neither_trained_nor_saved() -> None:
    module, learned = encoder(position_table="sinusoidal"), encoder()
    names = {*module.state_dict(), *dict(module.named_parameters())}
    assert not [name for name in names if "positions" in name]
    counts = [sum(p.numel() for p in each.parameters()) for each in (learned, module)]
    assert counts[0] - counts[1] == PLACES * D_MODEL // 2


@twins.needs_kernel("encoder")
def test_the_kernels_take_a_fixed_table() -> None:
    """The table itself has no gradient."""
    module, content = encoder(position_table="sinusoidal"), random_rows(LENGTHS, D_MODEL // 2)

    def outcome(rows: Tensor) -> dict[str, Tensor]:
        weights = list(module.named_parameters())
        return twins.outcome(lambda rows: module(rows, LAYOUT), rows, weights)

    expected = outcome(content)
    module.float()
    twins.assert_near(outcome(content.float()), expected, 1e-4)


def test_position_only_attention_by_hand() -> None:
    """Queries and keys of the table's rows as they are, values of the layer's input."""
    only = (0, 2)
    module, content = encoder(3, **ADDED, position_only_layers=only), random_rows(LENGTHS, D_MODEL)
    places = [place for n in LENGTHS for place in range(n)]
    position = module.positions.weight[places]
    rows = plain.layer_norm(content + position, module.input_norm)
    for number, each in enumerate(module.layers):
        rows = plain.layer(each, rows, LENGTHS, position if number in only else None)
    torch.testing.assert_close(module(content, LAYOUT), rows, atol=1e-11, rtol=0)


def test_position_only_layers_have_windows_and_gradients() -> None:
    """A window still holds, and the table learns from queries and keys."""
    module = encoder(1, **ADDED, position_only_layers=(0,))
    content, one = random_rows(LENGTHS, D_MODEL).requires_grad_(), layout_of([3])
    short = content.detach()[:3].requires_grad_()
    with module.limited({0: AttentionMask(window=1)}):
        found = module(content, LAYOUT)
        (by_content,) = torch.autograd.grad(found[3 + 4].sum(), content)  # place 4 of the second
        assert by_content.abs().sum(1).nonzero().flatten().tolist() == [3 + 3, 3 + 4, 3 + 5]
        assert torch.autograd.gradcheck(lambda rows: module(rows, one), (short,))
    (by_table,) = torch.autograd.grad(module(short, one)[0].sum(), module.positions.weight)
    assert by_table[:3].abs().sum(1).all()
    assert not by_table[3:].any()


def test_settings_that_cannot_be_are_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        *(
            ({**choice, "position_only_layers": (0,)}, "needs position = 'added' and matrices")
            for choice in ({}, {"position": "added"}, {"matrices": "full"})
        ),
        ({**ADDED, "position_only_layers": (0, 2)}, "layer 2; the encoder's layers are 0 to 1"),
        ({**ADDED, "position_only_layers": (0,), "layers": 0}, "layer 0; .* are none"),
        ({"relaxed_window": True}, "no window to relax"),
        ({"forward_features": "first"}, "forward_features = 'first' needs position = 'added'"),
    ]
    for choices, words in refused:
        with pytest.raises(ValidationError, match=words):
            built.attention_config(**choices)
    with pytest.raises(RecipeError, match=r"more than 33554432 numbers; .* can have 9998 rows"):
        SinusoidalPositions(10_000, 3356)
    with pytest.raises(ValueError, match="width is 1; an unbiased deviation needs 2 features"):
        ReleasedLayerNorm(1)
