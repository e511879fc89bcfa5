"""The encoder of a chart parser, as its settings say."""

from __future__ import annotations

from spmrl_bench.nn.encoder import Encoder, content_width
from spmrl_bench.nn.limits import Limit
from spmrl_bench.nn.recurrent_encoder import RecurrentEncoder
from spmrl_bench.parsers.config import NeuralParserConfig


def d_content(config: NeuralParserConfig) -> int:
    """Width of the content, which the lexical model makes and the encoder takes."""
    if config.encoder != "attention":
        return config.d_model
    return content_width(config.d_model, config.position)


def build_encoder(config: NeuralParserConfig) -> Encoder | RecurrentEncoder:
    """The encoder that the settings name, with the window that they give its attention."""
    if config.encoder != "attention":
        return RecurrentEncoder(
            config.encoder,
            config.d_model,
            config.layers,
            dropout=config.residual_dropout,
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
