"""The lexical model of a parser, as its settings and its vocabulary say."""

from __future__ import annotations

from spmrl_bench.nn.lexical import CharLSTM, LexicalModel
from spmrl_bench.parsers.building import d_content
from spmrl_bench.parsers.config import ChartParserConfig
from spmrl_bench.parsers.vocabulary import CHAR_UNK, FIRST_CHAR, FIRST_WORD, Vocabulary


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
