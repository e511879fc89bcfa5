"""How much arithmetic a parser needs at least: the multiplications of one forward pass.

The count is of the model as it is computed here: block-diagonal maps without their zeros, the
linear part of the span scorer once for each fencepost and the rest once for each span, the
CharLSTM once for each distinct form of a batch, the decoder of actions once for each action of
each hypothesis. It leaves out what is not a product of matrices, and the options that few parsers
have: the tagger and pre-trained encoders.
"""

from __future__ import annotations

from collections.abc import Sequence

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.encoder_kinds import encoder_named
from spmrl_bench.parsers.building import label_heads
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.parsers.kind_configs import (
    ChartParserConfig,
    DependencyParserConfig,
    TransitionParserConfig,
)
from spmrl_bench.parsers.neural_config import NeuralParserConfig
from spmrl_bench.parsers.vocabulary import BOUNDARY_CHARACTERS
from spmrl_bench.trees.parse import Parse


def sizes(batch: Sequence[Parse]) -> tuple[list[int], int]:
    """Words of each sentence, and characters of all distinct forms, their marks included.

    START and STOP are forms too.
    """
    spelt = [len(form) for form in {word for parse in batch for word in parse.words}]
    return [len(parse) for parse in batch], sum(n + 2 for n in (*spelt, *[BOUNDARY_CHARACTERS] * 2))


def is_counted(config: ParserConfig) -> bool:
    """Whether the functions below know the parser's kind and its encoder."""
    return (
        isinstance(config, ChartParserConfig | TransitionParserConfig)
        and not isinstance(config, DependencyParserConfig)
        and encoder_named(config.encoder).products is not None
    )


def forward_products(
    config: ParserConfig, outputs: int, lengths: Sequence[int], characters: int
) -> int:
    """Multiplications of a forward pass over a batch; an operation count is twice as large.

    Of a transition parser it is the pass that parses, with as many hypotheses as its beam holds.
    Lengths and characters are those of :func:`sizes`.

    Args:
        config: of the parser.
        outputs: labels of spans, the empty one too; or actions.
        lengths: words of the sentences.
        characters: of the distinct forms.

    Raises:
        SpmrlError: nobody counted those of the parser's kind, or of its encoder.
    """
    below = _encoder_products(config, lengths, characters)
    if isinstance(config, TransitionParserConfig):
        counts = (_decoder_products, _search_products)
        return below + min(count(config, outputs, lengths, config.beam) for count in counts)
    config = _of_chart(config)
    tokens, pairs = _tokens(lengths)
    d_out = config.d_model
    if config.label_attention:
        attending = label_heads(config, outputs - 1)
        below += _label_products(config, attending, len(lengths), tokens, pairs)
        if config.label_outputs == "concatenated":
            d_out = attending * config.label_d_proj
    posts = sum(n + 1 for n in lengths)
    spans = sum(n * (n + 1) // 2 for n in lengths)
    scorer = posts * d_out * config.d_label_hidden
    scorer += spans * config.d_label_hidden * (outputs - 1)
    return below + scorer


def _tokens(lengths: Sequence[int]) -> tuple[int, int]:
    """Tokens of a batch and pairs of tokens of one sentence, with START and STOP."""
    return sum(n + 2 for n in lengths), sum((n + 2) ** 2 for n in lengths)


def _encoder_products(config: ParserConfig, lengths: Sequence[int], characters: int) -> int:
    """Multiplications of the encoder and, where there is one, the CharLSTM."""
    if not isinstance(config, NeuralParserConfig):
        raise SpmrlError("arithmetic is counted of neural parsers only")
    products = encoder_named(config.encoder).products
    if products is None:
        raise SpmrlError(f"arithmetic is not counted of the encoder '{config.encoder}'")
    encoder = products(config, *_tokens(lengths))
    if "charlstm" not in config.lexical:
        return encoder
    state = (config.d_char_lstm or config.input_widths["charlstm"]) // 2
    return encoder + characters * 2 * 4 * state * (config.d_char + state)


def _decoder_products(
    config: TransitionParserConfig, actions: int, lengths: Sequence[int], hypotheses: int
) -> int:
    """Multiplications of the decoder of actions and its attention, step by step.

    Attention is counted over all words, also those that have been removed from the stack.
    """
    d_words, layers = config.d_model, config.attention_layers
    context = layers * d_words
    step = _state_products(config, actions)
    step += (layers - 1) * d_words * config.d_attention + context * 4 * config.d_decoder
    word = layers * (config.d_attention + d_words)  # of each word at each step
    steps = sum(2 * n * (step + n * word) for n in lengths)
    return sum(lengths) * d_words * config.d_attention + hypotheses * steps


def _search_products(
    config: TransitionParserConfig, actions: int, lengths: Sequence[int], hypotheses: int
) -> int:
    """The same of a search that multiplies each word once with what its contexts are multiplied
    with, and sums up the results by the weights (:mod:`spmrl_bench.nn.fused_search`)."""
    d_words, layers = config.d_model, config.attention_layers
    made = layers * 4 * config.d_decoder + (layers - 1) * config.d_attention
    step = _state_products(config, actions)
    word = layers * config.d_attention + made
    steps = sum(2 * n * (step + n * word) for n in lengths)
    return sum(lengths) * d_words * (config.d_attention + made) + hypotheses * steps


def _state_products(config: TransitionParserConfig, actions: int) -> int:
    """Those of a step that no context is in: of states, the action before, and the scores."""
    d_state = config.d_decoder
    cells = 3 * d_state * (config.d_action + d_state)
    cells += (config.decoder_layers - 1) * 6 * d_state**2
    queries = config.attention_layers * d_state * config.d_attention
    return queries + cells + (config.d_action + d_state) * d_state + d_state * actions


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
    config: ParserConfig, outputs: int, lengths: Sequence[int], characters: int
) -> int:
    """Floating-point operations of a training step over a batch: forward and twice backward.

    The scores of all spans are needed forward only, as the loss reaches back through a few.
    Arguments and errors are those of :func:`forward_products`.
    """
    if isinstance(config, TransitionParserConfig):
        decoder = _decoder_products(config, outputs, lengths, hypotheses=1)  # known actions
        return 6 * (_encoder_products(config, lengths, characters) + decoder)
    config = _of_chart(config)
    all_spans = sum(n * (n + 1) // 2 for n in lengths) * config.d_label_hidden * (outputs - 1)
    forward = forward_products(config, outputs, lengths, characters)
    return 2 * (3 * forward - 2 * all_spans)


def _of_chart(config: ParserConfig) -> ChartParserConfig:
    if not isinstance(config, ChartParserConfig) or isinstance(config, DependencyParserConfig):
        raise SpmrlError("arithmetic is counted of parsers of the kinds chart and transition only")
    return config
