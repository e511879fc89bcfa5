"""Settings of parsers: every size and rate that shapes a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from spmrl_bench.nn.choices import (
    AttentionScale,
    EncoderKind,
    HeadDrivenSpans,
    Initialisation,
    Join,
    LabelFeedForward,
    LabelOutputs,
    LabelQueries,
    LayerNormForm,
    Matrices,
    PositionInput,
    PositionTable,
    RecurrentDropout,
    SubwordPooling,
)
from spmrl_bench.nn.precision import FLOAT32, Precision
from spmrl_bench.transitions.moves import SystemName
from spmrl_bench.trees.pseudo_projective import EncodingName

LexicalInput = Literal["word", "tag", "charlstm", "charconcat", "vectors", "elmo", "transformer"]
Positive = Annotated[int, Field(ge=1)]
Even = Annotated[int, Field(ge=2, multiple_of=2)]
Rate = Annotated[float, Field(ge=0, lt=1)]

#: Numbers of the largest table of sines and cosines, which no file holds.
LARGEST_TABLE = 1 << 25


class ParserConfig(BaseModel):
    """What the settings of every kind of parser have; a kind adds its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lexical: tuple[LexicalInput, ...] = ()
    """What the parser reads of a word; the variants of a recipe decide it."""
    precision: Precision = FLOAT32
    """Numbers that the large matrix products take, in training and in parsing."""

    @property
    def cost(self) -> float:
        """How long a word takes, roughly: the weights that its vectors are multiplied with."""
        return 1.0

    @property
    def parsing_settings(self) -> tuple[str, ...]:
        """Settings that decide nothing but how a trained parser parses, so that it may be given
        others."""
        return ()

    def pretrained(self) -> dict[str, str]:
        """Files that others have trained, or folders or hub names of them, by setting."""
        return {}


class NeuralParserConfig(ParserConfig):
    """Inputs, encoder and tagger of one parser, whatever it reads off the encoded tokens.

    Recipes state the settings without a default; those with one are options of the model, and
    their default is the form of the paper.
    """

    lexical: Annotated[tuple[LexicalInput, ...], Field(min_length=1)]
    """Inputs that make the content together."""
    join: Join = "sum"
    """Whether they are added up, or stand side by side, each with a width of its own. The content
    of a recurrent encoder is as wide as all of them; that of attention is as wide as ever, and
    they must fill it."""
    d_word: Positive | None = None
    """Width of the input ``word``, where inputs stand side by side; so the next ones."""
    d_tag: Positive | None = None
    d_form: Even | None = None
    """Of ``charlstm``, and of ``charconcat``."""
    d_vectors: Positive | None = None
    """Of what word vectors are mapped to."""
    d_elmo: Positive | None = None
    """Likewise of the language model's layers."""
    d_transformer: Positive | None = None
    """Likewise of the pre-trained encoder's output."""
    max_words: Positive | None = None
    """Known words, the most frequent of the training trees, for the input ``word``; without it
    all that occur in them."""
    d_model: Annotated[int, Field(ge=4, multiple_of=4)]
    """Width of a token vector."""
    layers: Annotated[int, Field(ge=0)]
    """Encoder layers."""
    heads: Positive
    """Attention heads per layer."""
    d_kv: Even
    """Width of a query, key or value of one head; half content, half position."""
    d_ff: Even
    """Hidden width of the feed-forward sublayer, both halves together."""
    d_char: Positive
    """Width of a character embedding of the CharLSTM."""
    max_positions: Annotated[int, Field(ge=3)]
    """Rows of the position table; a sentence of n words needs n + 2."""
    attention_dropout: Rate
    residual_dropout: Rate
    relu_dropout: Rate
    word_dropout: Rate
    """On word embeddings."""
    form_dropout: Rate
    """On the CharLSTM's output (``morpho_emb_dropout`` of the released code), and on that of
    the other inputs that read the form of a word."""
    char_dropout: Rate
    """On the CharLSTM's input."""
    tag_dropout: Rate = 0.2
    """On tag embeddings."""
    d_char_lstm: Even | None = None
    """Width of the CharLSTM's states, both directions together; without it, that of the content.
    States of another width are mapped to that."""

    encoder: EncoderKind = "attention"
    """What reads the sentence; an LSTM or GRU has the width, layers and residual dropout."""
    recurrent_dropout: RecurrentDropout = "sentence"
    """Where an LSTM or GRU has the residual dropout: with masks of sentences between its layers,
    or with masks of single tokens before and behind each of them (Zaremba et al. 2014)."""
    position: PositionInput = "concatenated"
    """How the position enters: as the second half of a token vector, or added to the content."""
    matrices: Matrices = "factored"
    """Of the encoder's layers: one for each half of a token vector, or one for all of it."""
    position_table: PositionTable = "learned"
    """What stands for a place in the sentence: learned vectors, or sines and cosines."""
    position_only_layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Layers, the first of which is 0, whose queries and keys come from the positions alone."""
    attention_scale: AttentionScale = "d_kv"
    """Whose square root divides the products of queries and keys; the released code: d_model."""
    layer_norm: LayerNormForm = "usual"
    """``released``: divides by the unbiased standard deviation plus 0.001, as the code of 2018."""
    input_norm: bool = True
    """Whether a layer norm stands before the first layer (the released code has it)."""

    attention_window: Annotated[int, Field(ge=0)] | None = None
    """Largest distance of two tokens that see each other, in all layers; without it any."""
    relaxed_window: bool = False
    """Whether the first two and the last two tokens see all, and are seen by all."""

    label_attention: bool = False
    """Whether a layer of label attention stands on the encoder (Mrini et al. 2020). It shares the
    attention and relu dropout, ``d_ff``, ``attention_scale`` and ``layer_norm``."""
    label_heads: Positive | None = None
    """How many heads it has; without it, one for each label of the training trees."""
    label_d_kv: Even = 128
    """Width of a query, key or value of one of its heads; half content, half position."""
    label_d_proj: Even = 128
    """Width of what one of its heads gives a token; half forward, half backward part."""
    label_queries: LabelQueries = "vectors"
    """A learned query vector for each head, or the query matrices of self-attention."""
    label_outputs: LabelOutputs = "concatenated"
    """Whether the heads' outputs stand side by side, or are added up as in self-attention."""
    label_matrices: Matrices | None = None
    """Of its queries, keys and values; without it, as of the encoder's layers."""
    label_feed_forward: LabelFeedForward = "usual"
    """What follows: a feed-forward layer over all features, ``released`` for that of the code of
    Mrini et al., where the last ``d_model / 2`` have matrices of their own, or ``none``."""
    label_residual_dropout: Rate = 0.0
    """On what each head adds to the tokens; the feed-forward layer has ``residual_dropout``."""

    predict_tags: bool = False
    """Whether the parser learns to tag, from the encoded tokens and together with the trees."""
    d_tag_hidden: Positive = 250
    """Hidden width of the tagger."""
    tag_loss_weight: Annotated[float, Field(gt=0)] = 5.0
    """Of the tagger's loss of a word beside the parser's of a sentence (Kitaev, Cao & Klein 2019,
    their code)."""

    initialisation: Initialisation = "usual"
    """Random weights before training: each layer's own, or all drawn as Zhang et al. 2017 print it
    (``glorot-normal``) or probably mean it (``glorot-uniform``), and the biases zero."""

    word_vectors: str | None = None
    """File of word vectors (word2vec or GloVe) that the embeddings of the input ``word`` start
    from, as wide as these."""
    vectors: str | None = None
    """File of static word vectors (word2vec or GloVe), for the input ``vectors``."""
    elmo_weights: str | None = None
    """HDF5 file with the weights of the language model, for the input ``elmo``."""
    elmo_options: str | None = None
    """Its JSON file of options."""
    elmo_dropout: Rate = 0.5
    """On the mix of its layers."""
    transformer: str | None = None
    """Folder or hub name of a pre-trained encoder, for the input ``transformer``."""
    transformer_revision: str | None = None
    """Which revision of a hub's encoder; required for a hub name."""
    transformer_pooling: SubwordPooling = "last"
    """Which sub-words of a word make its vector: the first, the last, or the mean of all."""
    transformer_frozen: bool = False
    """Whether training leaves the pre-trained weights as they are."""

    @property
    def cost(self) -> float:
        cost = self.d_model**2 * (1 + self.layers)
        if self.label_attention:
            # How many labels there are is not known yet.
            cost += (self.label_heads or 100) * self.label_d_proj * self.d_ff
        return float(cost)

    def pretrained(self) -> dict[str, str]:
        return {key: value for key in PRETRAINED if (value := getattr(self, key)) is not None}

    @property
    def matrices_of_labels(self) -> Matrices:
        """Those of label attention; a recurrent encoder has no halves to keep apart."""
        own: Matrices = self.matrices if self.encoder == "attention" else "full"
        return self.label_matrices or own

    @property
    def input_widths(self) -> dict[LexicalInput, int]:
        """Of each input; where they are added up, it is that of the content."""
        if self.join == "sum":
            return dict.fromkeys(self.lexical, self._d_content)
        return {name: getattr(self, WIDTHS[name]) for name in self.lexical}

    @property
    def _concatenated(self) -> bool:
        """Whether the content is only half of a token vector."""
        return self.encoder == "attention" and self.position == "concatenated"

    @property
    def _d_content(self) -> int:
        """Width of the content in a token vector of the encoder."""
        return self.d_model // (2 if self._concatenated else 1)

    @model_validator(mode="after")
    def _inputs_fit_together(self) -> Self:
        side_by_side = self.join == "concatenated"
        read = {WIDTHS[name] for name in self.lexical}
        for name, key in WIDTHS.items():
            given = getattr(self, key) is not None
            if given and not side_by_side:
                raise ValueError(
                    f"{key} is set, but the inputs are added up and all as wide as the content; "
                    "join = 'concatenated' gives each a width of its own"
                )
            if given and key not in read:
                raise ValueError(f"{key} is set, but the input '{name}' is not in lexical")
            if side_by_side and name in self.lexical and not given:
                raise ValueError(
                    f"join = 'concatenated' needs model.{key}, the width of the input '{name}', "
                    "which is not set"
                )
        width = sum(self.input_widths.values())
        if side_by_side and width != self._d_content and self.encoder == "attention":
            raise ValueError(
                f"join = 'concatenated' makes a content that is {width} wide of the inputs "
                f"{', '.join(self.lexical)}, but the encoder 'attention' with d_model = "
                f"{self.d_model} has one of {self._d_content}; make their widths add up to it"
            )
        if side_by_side and width != self.d_model and not self.layers:
            raise ValueError(
                f"join = 'concatenated' makes a content that is {width} wide, but there are no "
                f"layers to make tokens of d_model = {self.d_model} of it; make them equal"
            )
        return self

    @model_validator(mode="after")
    def _inputs_have_what_they_need(self) -> Self:
        if len(set(self.lexical)) != len(self.lexical):
            raise ValueError("lexical names an input twice")
        if self.max_words is not None and "word" not in self.lexical:
            raise ValueError("max_words is set, but the input 'word' is not in lexical")
        if self.word_vectors is not None and "word" not in self.lexical:
            raise ValueError("word_vectors is set, but the input 'word' is not in lexical")
        for name, keys in FILES.items():
            for key in keys:
                given = getattr(self, key) is not None
                if name in self.lexical and not given:
                    raise ValueError(f"the input '{name}' needs model.{key}, which is not set")
                if name not in self.lexical and given:
                    raise ValueError(
                        f"{key} is set, but the input '{name}' that reads it is not in lexical"
                    )
        width = self.input_widths.get("charconcat", 0)
        if width % 16 and self.join == "concatenated":
            raise ValueError(
                f"the input 'charconcat' needs a width that 16 divides, and d_form is {width}"
            )
        if width % 16:
            raise ValueError(
                f"the input 'charconcat' needs a content whose width 16 divides, and it is "
                f"{width} wide; make d_model a multiple of {32 if self._concatenated else 16}"
            )
        if "tag" in self.lexical and self.predict_tags:
            raise ValueError("predict_tags is set, but the input 'tag' already reads the tags")
        return self

    @model_validator(mode="after")
    def _table_is_not_too_large(self) -> Self:
        width = self._d_content if self._concatenated else self.d_model
        if self.position_table == "sinusoidal" and self.max_positions > LARGEST_TABLE // width:
            raise ValueError(
                f"max_positions = {self.max_positions} makes a sinusoidal table of more than "
                f"{LARGEST_TABLE} numbers; of this width it can have {LARGEST_TABLE // width} rows"
            )
        return self

    @model_validator(mode="after")
    def _limits_have_something_to_limit(self) -> Self:
        if self.relaxed_window and self.attention_window is None:
            raise ValueError("relaxed_window is set, but there is no attention_window to relax")
        for key in ("attention_window", "position_only_layers"):
            if self.encoder != "attention" and getattr(self, key) not in (None, ()):
                raise ValueError(f"{key} is set, but the encoder '{self.encoder}' has no attention")
        if self.encoder == "attention" and self.recurrent_dropout != "sentence":
            raise ValueError(
                "recurrent_dropout is set, but the encoder 'attention' is not recurrent"
            )
        absent = [number for number in self.position_only_layers if number >= self.layers]
        if absent:
            raise ValueError(
                f"position_only_layers names layer {absent[0]}, but the layers are 0 to "
                f"{self.layers - 1}"
                if self.layers
                else "position_only_layers is set, but there are no layers"
            )
        if self.position_only_layers and (self.position, self.matrices) != ("added", "full"):
            raise ValueError(
                "position_only_layers needs position = 'added' and matrices = 'full'; a factored "
                "encoder is kept from its content with a limit of attention"
            )
        return self

    @model_validator(mode="after")
    def _label_attention_can_be_as_it_is_set(self) -> Self:
        if not self.label_attention:
            for key, field in type(self).model_fields.items():
                if key.startswith("label_") and getattr(self, key) != field.default:
                    raise ValueError(f"{key} is set, but label_attention is not")
            return self
        if self.label_matrices == "factored" and self.encoder != "attention":
            raise ValueError(
                f"label_matrices = 'factored' keeps content and position apart, which the encoder "
                f"'{self.encoder}' has mixed; only 'full' is possible"
            )
        if self.label_feed_forward == "released":
            if (self.label_outputs, self.matrices_of_labels) != ("concatenated", "factored"):
                raise ValueError(
                    "label_feed_forward = 'released' differs from 'usual' only with label_outputs "
                    "= 'concatenated' and label_matrices = 'factored'"
                )
            if self.label_heads is not None:
                self.check_label_heads(self.label_heads)
        return self

    def check_label_heads(self, heads: int) -> None:
        """Whether label attention can have so many heads.

        Raises:
            ValueError: it cannot.
        """
        width, last = heads * self.label_d_proj, self.d_model // 2
        if self.label_feed_forward == "released" and width <= last:
            raise ValueError(
                f"label_feed_forward = 'released' keeps the last {last} features of all heads "
                f"apart (half of d_model), and {heads} heads with label_d_proj = "
                f"{self.label_d_proj} have only {width}; 'usual' needs no more"
            )


class ChartParserConfig(NeuralParserConfig):
    """A parser of constituents."""

    d_label_hidden: Positive
    """Hidden width of the span scorer."""


class DependencyParserConfig(NeuralParserConfig):
    """A parser of dependencies."""

    d_arc: Positive
    """Width of what a word is as a dependent, and as a governor, in the scores of arcs."""
    d_relation: Positive
    """Likewise in the scores of relations."""
    biaffine_dropout: Rate
    """On these vectors."""
    arc_loss_weight: Annotated[float, Field(gt=0)] = 1.0
    """Of the loss of governors beside the other losses; 0.5 in the released codes of Zhou & Zhao
    2019 and Mrini et al. 2020."""
    relation_loss_weight: Annotated[float, Field(gt=0)] = 1.0
    """Of the loss of relations; likewise."""


class JointParserConfig(ChartParserConfig, DependencyParserConfig):
    """A parser of constituents and dependencies at once."""

    structure: HeadDrivenSpans = "joint"
    """How constituents and heads are one structure: joint spans, or division spans, whose labels
    say where the head is (Zhou & Zhao 2019, section 3)."""
    span_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Of the scores of labels in parsing; the scores of arcs have the rest (lambda)."""

    @property
    def parsing_settings(self) -> tuple[str, ...]:
        return ("span_weight",) if self.structure == "joint" else ()


class TransitionParserConfig(NeuralParserConfig):
    """A parser of dependencies that writes the actions of a transition system."""

    d_decoder: Positive
    """Width of the recurrent layers of the decoder."""
    decoder_layers: Positive
    d_action: Positive
    """Width of the embedding of an action."""
    d_attention: Positive
    """Width of the sums that additive attention takes the tanh of."""
    decoder_dropout: Rate
    """On the inputs of the decoder's layers and what leaves the last (Zaremba et al. 2014)."""
    attention_layers: Positive = 3
    """How often the decoder looks at the words before an action, each time knowing what it saw."""
    pushed_words: bool = True
    """Whether attention knows which words have been pushed on the stack (vector s)."""
    removed_words: bool = True
    """Whether attention leaves out the words that have been removed from the stack (vector r)."""
    system: SystemName = "arc-standard"
    """The transition system."""
    beam: Annotated[int, Field(ge=1, le=1000)] = 8
    """Hypotheses that are kept of each sentence in parsing; 1 is greedy search."""
    nonprojective: EncodingName = "head+path"
    """How crossing arcs are learnt: lifted and lost (``projectivise``), or with an encoding in the
    relations from which they come back (Nivre & Nilsson 2005)."""

    @property
    def parsing_settings(self) -> tuple[str, ...]:
        return ("beam",)


#: The setting that gives the width of an input where inputs stand side by side.
WIDTHS: Mapping[LexicalInput, str] = {
    "word": "d_word",
    "tag": "d_tag",
    "charlstm": "d_form",
    "charconcat": "d_form",
    "vectors": "d_vectors",
    "elmo": "d_elmo",
    "transformer": "d_transformer",
}

#: Settings that name the files that a pre-trained input needs, by input.
FILES: Mapping[LexicalInput, tuple[str, ...]] = {
    "vectors": ("vectors",),
    "elmo": ("elmo_weights", "elmo_options"),
    "transformer": ("transformer",),
}

#: The same, and that of the file which the embeddings of words may start from.
PRETRAINED = (*(key for keys in FILES.values() for key in keys), "word_vectors")
