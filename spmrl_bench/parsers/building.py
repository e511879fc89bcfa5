"""The encoder of a parser, as its settings say."""

from __future__ import annotations

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoder_kinds import encoder_named
from spmrl_bench.nn.label_attention import LabelAttentionLayer
from spmrl_bench.nn.token_encoder import TokenEncoder
from spmrl_bench.parsers.neural_config import NeuralParserConfig


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


def build_encoder(config: NeuralParserConfig, labels: int = 0) -> TokenEncoder:
    """The encoder that the settings name, with label attention on top if they say so.

    Args:
        config: settings.
        labels: of the vocabulary, without the empty one; label attention may have as many heads.

    Raises:
        RecipeError: as of :func:`label_heads`.
    """
    encoder = encoder_named(config.encoder).build(config)
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
