"""The lexical model of a parser, as its settings and its vocabulary say.

Inputs that read files bring their module along only when a recipe names them.
"""

from __future__ import annotations

from pathlib import Path

from spmrl_bench.nn.char_concat import Alphabet, CharConcat
from spmrl_bench.nn.inputs import CodedInput
from spmrl_bench.nn.lexical import CharLSTM, LexicalModel
from spmrl_bench.parsers.neural_config import NeuralParserConfig
from spmrl_bench.parsers.vocabulary import (
    BOUNDARY_CHARACTERS,
    CHAR_START,
    CHAR_STOP,
    CHAR_UNK,
    CHAR_WORD_START,
    CHAR_WORD_STOP,
    FIRST_CHAR,
    FIRST_TAG,
    FIRST_WORD,
    Vocabulary,
)


def build_lexical_model(
    config: NeuralParserConfig, vocabulary: Vocabulary, assets: Path | None = None
) -> LexicalModel:
    """The inputs that the settings name, added up or side by side.

    Args:
        config: of the parser.
        vocabulary: likewise.
        assets: folder of a saved parser, which may hold what an input needs again.

    Raises:
        PretrainedError: a file that an input needs is missing, broken or does not fit.
    """
    widths = config.input_widths
    char_lstm = None
    if "charlstm" in config.lexical:
        char_lstm = CharLSTM(
            FIRST_CHAR + len(vocabulary.characters),
            config.d_char,
            widths["charlstm"],
            d_states=config.d_char_lstm,
            unknown=CHAR_UNK,
            dropout=config.char_dropout,
            precision=config.precision,
        )
    return LexicalModel(
        config.d_content,
        words=FIRST_WORD + len(vocabulary.words) if "word" in config.lexical else None,
        word_dropout=config.word_dropout,
        char_lstm=char_lstm,
        form_dropout=config.form_dropout,
        tags=FIRST_TAG + len(vocabulary.tags) if "tag" in config.lexical else None,
        tag_dropout=config.tag_dropout,
        coded=_coded_inputs(config, vocabulary, assets),
        join=config.join,
        d_word=config.d_word,
        d_tag=config.d_tag,
    )


def _coded_inputs(
    config: NeuralParserConfig, vocabulary: Vocabulary, assets: Path | None
) -> dict[str, CodedInput]:
    """The inputs that read codes of their own, by name."""
    widths = config.input_widths
    found: dict[str, CodedInput] = {}
    if "charconcat" in config.lexical:
        found["charconcat"] = CharConcat(
            alphabet(vocabulary), widths["charconcat"], config.form_dropout, config.char_boundaries
        )
    if config.vectors is not None:
        from spmrl_bench.nn.vectors import StaticVectors

        found["vectors"] = StaticVectors.read(
            Path(config.vectors), widths["vectors"], config.word_dropout
        )
    if config.elmo_options is not None and config.elmo_weights is not None:
        from spmrl_bench.nn.elmo import Elmo

        found["elmo"] = Elmo(
            Path(config.elmo_options),
            Path(config.elmo_weights),
            widths["elmo"],
            config.elmo_dropout,
            config.form_dropout,
        )
    if config.transformer is not None:
        from spmrl_bench.nn.transformer import Transformer

        found["transformer"] = Transformer.read(
            config.transformer,
            config.transformer_revision,
            widths["transformer"],
            config.transformer_pooling,
            config.transformer_frozen,
            config.form_dropout,
            assets=assets,
            precision=config.precision,
        )
    return found


def alphabet(vocabulary: Vocabulary) -> Alphabet:
    """The numbers of the characters that the CharLSTM reads too."""
    return Alphabet(
        ids=vocabulary.character_ids,
        size=FIRST_CHAR + len(vocabulary.characters),
        unknown=CHAR_UNK,
        word_start=CHAR_WORD_START,
        word_stop=CHAR_WORD_STOP,
        start=(CHAR_START,) * BOUNDARY_CHARACTERS,
        stop=(CHAR_STOP,) * BOUNDARY_CHARACTERS,
    )
