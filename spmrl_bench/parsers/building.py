"""The layers of a chart parser, as its settings say."""

from __future__ import annotations

from spmrl_bench.nn.encoder import Encoder, content_width
from spmrl_bench.nn.lexical import CharLSTM, LexicalModel
from spmrl_bench.nn.limits import Limit
from spmrl_bench.nn.lstm_encoder import LSTMEncoder
from spmrl_bench.parsers.config import ChartParserConfig
from spmrl_bench.parsers.vocabulary import CHAR_UNK, FIRST_CHAR, FIRST_WORD, Vocabulary


def d_content(config: ChartParserConfig) -> int:
    """Width of the content, which the lexical model makes and the encoder takes."""
    if config.encoder == "lstm":
        return config.d_model
    return content_width(config.d_model, config.position)


def build_lexical_model(config: ChartParserConfig, vocabulary: Vocabulary) -> LexicalModel:
    """The sum of the inputs that the settings name."""
    width = d_content(config)
    char_lstm = None
    if "charlstm" in config.lexical:
        char_lstm = CharLSTM(
            FIRST_CHAR + len(vocabulary.characters),
            config.d_char,
            width,
            unknown=CHAR_UNK,
            dropout=config.char_dropout,
            precision=config.precision,
        )
    return LexicalModel(
        width,
        words=FIRST_WORD + len(vocabulary.words) if "word" in config.lexical else None,
        word_dropout=config.word_dropout,
        char_lstm=char_lstm,
        form_dropout=config.form_dropout,
    )


def build_encoder(config: ChartParserConfig) -> Encoder | LSTMEncoder:
    """The encoder that the settings name, with the window that they give its attention."""
    if config.encoder == "lstm":
        return LSTMEncoder(
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
    )
    if config.attention_window is not None:
        window = Limit(window=config.attention_window, relaxed=config.relaxed_window)
        encoder.limit(dict.fromkeys(range(config.layers), window))
    return encoder
