"""How much arithmetic a parser needs at least: the multiplications of one forward pass.

The count is of the model as it is computed here: block-diagonal maps without their zeros, the
linear part of the span scorer once for each fencepost and the rest once for each span, the
CharLSTM once for each distinct form of a batch. It leaves out what is not a product of
matrices, and the options that few parsers have: the tagger and pre-trained encoders.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.encoder_kinds import encoder_named
from spmrl_bench.parsers.building import label_heads
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.parsers.kind_configs import ChartParserConfig
from spmrl_bench.parsers.vocabulary import BOUNDARY_CHARACTERS
from spmrl_bench.trees.parse import Parse


def sizes(batch: Sequence[Parse]) -> tuple[list[int], int]:
    """Words of each sentence, and characters of all distinct forms, their marks included.

    START and STOP are forms too.
    """
    spelt = [len(form) for form in {word for parse in batch for word in parse.words}]
    return [len(parse) for parse in batch], sum(n + 2 for n in (*spelt, *[BOUNDARY_CHARACTERS] * 2))


def forward_products(
    config: ParserConfig, labels: int, lengths: Sequence[int], characters: int
) -> int:
    """Multiplications of a forward pass over a batch; an operation count is twice as large.

    ``labels`` counts the empty one too; lengths and characters are those of :func:`sizes`.

    Raises:
        SpmrlError: nobody counted those of the parser's kind, or of its encoder.
    """
    config = _of_chart(config)
    tokens = sum(n + 2 for n in lengths)  # START and STOP
    pairs = sum((n + 2) ** 2 for n in lengths)
    products = encoder_named(config.encoder).products
    if products is None:
        raise SpmrlError(f"arithmetic is not counted of the encoder '{config.encoder}'")
    encoder = products(config, tokens, pairs)
    d_out = config.d_model
    if config.label_attention:
        attending = label_heads(config, labels - 1)
        encoder += _label_products(config, attending, len(lengths), tokens, pairs)
        if config.label_outputs == "concatenated":
            d_out = attending * config.label_d_proj
    posts = sum(n + 1 for n in lengths)
    spans = sum(n * (n + 1) // 2 for n in lengths)
    scorer = posts * d_out * config.d_label_hidden
    scorer += spans * config.d_label_hidden * (labels - 1)
    lstm = 0
    if "charlstm" in config.lexical:
        state = (config.d_char_lstm or config.input_widths["charlstm"]) // 2
        lstm = characters * 2 * 4 * state * (config.d_char + state)
    return encoder + scorer + lstm


def _label_products(
    config: ChartParserConfig, heads: int, sentences: int, tokens: int, pairs: int
) -> int:
    """Multiplications of label attention and its feed-forward layer."""
    d_model, d_kv, d_proj = config.d_model, config.label_d_kv, config.label_d_proj
    parts = 2 if config.matrices_of_labels == "factored" else 1
    matrix = heads * d_model * d_kv // parts  # keys or values of all heads
    if config.label_queries == "vectors":
        found = matrix + 2 * tokens * heads * d_model  # queries through keys, weights, means
        found += sentences * matrix  # values
        places = sentences
    else:
        found = 3 * tokens * matrix + 2 * pairs * heads * d_kv
        places = tokens
    if config.label_outputs == "concatenated":
        found += d_proj * d_model * d_kv // parts  # two maps in one
        found += places * heads * d_kv * d_proj + tokens * d_model * d_proj
    else:
        found += places * matrix
    both = 2 * tokens * config.d_ff
    if config.label_feed_forward == "none":
        return found
    if config.label_outputs == "projected":
        return found + both * d_model // parts
    return found + both * heads * d_proj // (2 if config.label_feed_forward == "released" else 1)


def training_operations(
    config: ParserConfig, labels: int, lengths: Sequence[int], characters: int
) -> int:
    """Floating-point operations of a training step over a batch: forward and twice backward.

    The scores of all spans are needed forward only, as the loss reaches back through a few.
    """
    config = _of_chart(config)
    all_spans = sum(n * (n + 1) // 2 for n in lengths) * config.d_label_hidden * (labels - 1)
    forward = forward_products(config, labels, lengths, characters)
    return 2 * (3 * forward - 2 * all_spans)


def _of_chart(config: ParserConfig) -> ChartParserConfig:
    if not isinstance(config, ChartParserConfig):
        raise SpmrlError("arithmetic is counted of parsers of kind chart only")
    return config
