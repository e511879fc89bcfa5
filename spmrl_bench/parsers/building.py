"""The encoder of a chart parser, as its settings say."""

from __future__ import annotations

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoder import Encoder, content_width
from spmrl_bench.nn.label_attention import LabelAttentionLayer
from spmrl_bench.nn.limits import Limit
from spmrl_bench.nn.recurrent_encoder import RecurrentEncoder
from spmrl_bench.parsers.config import NeuralParserConfig


def d_content(config: NeuralParserConfig) -> int:
    """Width of the content, which the lexical model makes and the encoder takes."""
    if config.join == "concatenated":
        return sum(config.input_widths.values())
    if config.encoder != "attention":
        return config.d_model
    return content_width(config.d_model, config.position)


def label_heads(config: NeuralParserConfig, labels: int) -> int:
    """How many heads label attention has.

    Args:
        config: settings with label attention.
        labels: of the vocabulary, without the empty one.

    Raises:
        RecipeError: there are no labels to have heads for, or too few.
    """
    heads = config.label_heads or labels
    if not heads:
        raise RecipeError(
            "label_attention has a head for each label of the training trees, but they have none; "
            "set model.label_heads to a number"
        )
    try:
        config.check_label_heads(heads)
    except ValueError as error:
        raise RecipeError(f"{error}. Set model.label_heads to have more than labels") from None
    return heads


def build_encoder(config: NeuralParserConfig, labels: int = 0) -> Encoder | RecurrentEncoder:
    """The encoder that the settings name, with label attention on top if they say so.

    Args:
        config: settings.
        labels: of the vocabulary, without the empty one; label attention may have as many heads.

    Raises:
        RecipeError: as of :func:`label_heads`.
    """
    encoder = _stack(config)
    if config.label_attention:
        encoder.label_attention = LabelAttentionLayer(
            config.d_model,
            label_heads(config, labels),
            config.label_d_kv,
            config.label_d_proj,
            config.d_ff,
            attention_dropout=config.attention_dropout,
            output_dropout=config.label_residual_dropout,
            residual_dropout=config.residual_dropout,
            relu_dropout=config.relu_dropout,
            matrices=config.matrices_of_labels,
            queries=config.label_queries,
            outputs=config.label_outputs,
            feed_forward=config.label_feed_forward,
            attention_scale=config.attention_scale,
            layer_norm=config.layer_norm,
        )
    return encoder


def _stack(config: NeuralParserConfig) -> Encoder | RecurrentEncoder:
    """The layers below, with the window that the settings give their attention."""
    if config.encoder != "attention":
        return RecurrentEncoder(
            config.encoder,
            config.d_model,
            config.layers,
            d_content=d_content(config),
            dropout=config.residual_dropout,
            masks=config.recurrent_dropout,
            precision=config.precision,
        )
    encoder = Encoder(
        config.d_model,
        config.layers,
        config.heads,
        config.d_kv,
        config.d_ff,
        config.max_positions,
        attention_dropout=config.attention_dropout,
        residual_dropout=config.residual_dropout,
        relu_dropout=config.relu_dropout,
        precision=config.precision,
        matrices=config.matrices,
        position=config.position,
        position_table=config.position_table,
        position_only_layers=config.position_only_layers,
        attention_scale=config.attention_scale,
        layer_norm=config.layer_norm,
        input_norm=config.input_norm,
    )
    if config.attention_window is not None:
        window = Limit(window=config.attention_window, relaxed=config.relaxed_window)
        encoder.limit(dict.fromkeys(range(config.layers), window))
    return encoder
