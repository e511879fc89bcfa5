"""Settings of parsers that are neural networks: inputs, encoder and tagger, of every kind alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.choices import (
    AttentionScale,
    AttentionStart,
    CharBoundaries,
    ForwardFeatures,
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
from spmrl_bench.nn.encoder_kinds import EncoderKind, encoder_named, readers_of
from spmrl_bench.parsers.config import (
    FILES,
    PRETRAINED,
    WIDTHS,
    Even,
    LexicalInput,
    ParserConfig,
    Positive,
    Rate,
)

#: Numbers of the largest table of sines and cosines, which no file holds.
LARGEST_TABLE = 1 << 25

#: Settings of encoders that may be set whatever the encoder is: other layers read them too, or
#: they describe a position, of which an encoder without one says nothing.
FOR_ALL_ENCODERS = frozenset(
    {
        "attention_scale",
        "input_norm",
        "layer_norm",
        "matrices",
        "position",
        "position_table",
        "precision",
    }
)


def _known_encoder(name: str) -> str:
    try:
        encoder_named(name)
    except SpmrlError as error:
        raise ValueError(str(error)) from None
    return name


class NeuralParserConfig(ParserConfig):
    """Inputs, encoder and tagger of one parser, whatever it reads off the encoded tokens.

    Recipes state the settings without a default; those with one are options of the model, and
    their default is the form of the paper.
    """

    lexical: Annotated[tuple[LexicalInput, ...], Field(min_length=1)]
    """Inputs that make the content together."""
    join: Join = "sum"
    """Whether the inputs are added up, or stand side by side, each with a width of its own. The
    content of a recurrent encoder is as wide as all of them; that of attention is as wide as ever,
    and they must fill it."""
    d_word: Positive | None = None
    """Width of the input ``word``, where inputs stand side by side (``join``); so the next ones."""
    d_tag: Positive | None = None
    """Width of the input ``tag``."""
    d_form: Even | None = None
    """Width of the input ``charlstm`` or ``charconcat``."""
    d_vectors: Positive | None = None
    """Width of the input ``vectors``: what word vectors are mapped to."""
    d_elmo: Positive | None = None
    """Width of the input ``elmo``: what the language model's layers are mapped to."""
    d_transformer: Positive | None = None
    """Width of the input ``transformer``: what the pre-trained encoder's output is mapped to."""
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
    """Dropout of attention weights."""
    residual_dropout: Rate
    """Dropout of what a sublayer of the encoder gives, before it is added to its input."""
    relu_dropout: Rate
    """Dropout within the feed-forward sublayers, behind their relu."""
    word_dropout: Rate
    """Dropout of word embeddings."""
    form_dropout: Rate
    """Dropout of the CharLSTM's output (``morpho_emb_dropout`` of the released code), and of that
    of the other inputs that read the form of a word."""
    char_dropout: Rate
    """Dropout of the CharLSTM's input."""
    tag_dropout: Rate = 0.2
    """Dropout of tag embeddings."""
    d_char_lstm: Even | None = None
    """Width of the CharLSTM's states, both directions together; without it, that of the content.
    States of another width are mapped to that."""

    char_boundaries: CharBoundaries = "copies"
    """What START and STOP are to ``charconcat``: copies of a mark (the released code), or ``spelt``
    as for the CharLSTM, as parsers had it before there was this setting."""

    encoder: Annotated[str, AfterValidator(_known_encoder)] = "attention"
    """What reads the sentence: ``attention``, ``lstm``, ``gru`` or another of the names in
    ``nn/encoder_kinds.py``, where stands which of these settings it reads; an LSTM or GRU has the
    width, layers and residual dropout."""
    recurrent_dropout: RecurrentDropout = "sentence"
    """Where an LSTM or GRU has the residual dropout: with masks of sentences between its layers,
    or with masks of single tokens before and behind each of them (Zaremba et al. 2014)."""
    position: PositionInput = "concatenated"
    """How the position enters: as the second half of a token vector, or added to the content."""
    matrices: Matrices = "factored"
    """Matrices of the encoder's layers: one for each half of a token vector, or one for all of
    it."""
    position_table: PositionTable = "learned"
    """What stands for a place in the sentence: learned vectors, or sines and cosines."""
    position_only_layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Layers, the first of which is 0, whose queries and keys come from the positions alone."""
    attention_scale: AttentionScale = "d_kv"
    """Whose square root divides the products of queries and keys; in the released code that of
    ``d_model``."""
    layer_norm: LayerNormForm = "usual"
    """The usual layer norm, or ``released``, which divides by the unbiased standard deviation plus
    0.001, as the code of 2018."""
    input_norm: bool = True
    """Whether a layer norm stands before the first layer (the released code has it)."""

    attention_start: AttentionStart = "usual"
    """Random weights of attention: Xavier normal over the tensors of all heads; ``released``: the
    map from the heads back is uniform, as in the code of 2018; ``version-0.2``: all uniform with
    standard deviation 0.02, and all layers alike, as in version 0.2 of the code."""
    forward_features: ForwardFeatures = "even"
    """Of a token vector, for span vectors: the even ones (the paper), or the ``first`` half of
    them, as in the released code where the position is added."""

    attention_window: Annotated[int, Field(ge=0)] | None = None
    """Largest distance of two tokens that see each other, in all layers; without it any."""
    relaxed_window: bool = False
    """Whether the first two and the last two tokens see all, and are seen by all."""

    label_attention: bool = False
    """Whether a layer of label attention stands on the encoder (Mrini et al. 2020). It shares the
    attention and relu dropout, ``d_ff``, ``attention_scale`` and ``layer_norm``."""
    label_heads: Positive | None = None
    """How many heads label attention has; without it, one for each label of the training trees."""
    label_d_kv: Even = 128
    """Width of a query, key or value of a head of label attention; half content, half position."""
    label_d_proj: Even = 128
    """Width of what a head of label attention gives a token; half forward, half backward part."""
    label_queries: LabelQueries = "vectors"
    """What the heads of label attention ask with: a learned query vector each, or the query
    matrices of self-attention."""
    label_outputs: LabelOutputs = "concatenated"
    """Whether the outputs of the heads of label attention stand side by side, or are added up as in
    self-attention."""
    label_matrices: Matrices | None = None
    """Matrices of the queries, keys and values of label attention; without it, as of the encoder's
    layers."""
    label_feed_forward: LabelFeedForward = "usual"
    """What follows label attention: a feed-forward layer over all features, ``released`` for that
    of the code of Mrini et al., where the last ``d_model / 2`` have matrices of their own, or
    ``none``."""
    label_residual_dropout: Rate = 0.0
    """Dropout of what each head of label attention adds to the tokens; the feed-forward layer has
    ``residual_dropout``."""

    predict_tags: bool = False
    """Whether the parser learns to tag, from the encoded tokens and together with the trees."""
    d_tag_hidden: Positive = 250
    """Hidden width of the tagger."""
    tag_loss_weight: Annotated[float, Field(gt=0)] = 5.0
    """Weight of the tagger's loss of a word beside the parser's of a sentence (Kitaev, Cao & Klein
    2019, their code)."""

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
    """JSON file with the options of the language model, for the input ``elmo``."""
    elmo_dropout: Rate = 0.5
    """Dropout of the mix of the language model's layers."""
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

    @classmethod
    def noted(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        lexical = settings.get("lexical")
        if isinstance(lexical, list | tuple) and "charconcat" in lexical:
            return {"char_boundaries": "spelt", **settings}
        return settings

    @property
    def matrices_of_labels(self) -> Matrices:
        """Those of label attention; a recurrent encoder has no halves to keep apart."""
        own: Matrices = self.matrices if self._encoder.reads("matrices") else "full"
        return self.label_matrices or own

    @property
    def input_widths(self) -> dict[LexicalInput, int]:
        """Of each input; where they are added up, it is that of the content."""
        if self.join == "sum":
            return dict.fromkeys(self.lexical, self._encoder.content(self))
        return {name: getattr(self, WIDTHS[name]) for name in self.lexical}

    @property
    def d_content(self) -> int:
        """Width of the content, which the lexical inputs make and the encoder takes."""
        if self.join == "concatenated":
            return sum(self.input_widths.values())
        return self._encoder.content(self)

    @property
    def _encoder(self) -> EncoderKind:
        return encoder_named(self.encoder)

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
        taken = self._encoder.content(self)
        if side_by_side and width != taken and not self._encoder.any_width:
            raise ValueError(
                f"join = 'concatenated' makes a content that is {width} wide of the inputs "
                f"{', '.join(self.lexical)}, but the encoder '{self.encoder}' with d_model = "
                f"{self.d_model} has one of {taken}; make their widths add up to it"
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
        if self.char_boundaries != "copies" and "charconcat" not in self.lexical:
            raise ValueError("char_boundaries is set, but the input 'charconcat' is not in lexical")
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
                f"{width} wide; make d_model a multiple of {16 * max(1, self.d_model // width)}"
            )
        if "tag" in self.lexical and self.predict_tags:
            raise ValueError("predict_tags is set, but the input 'tag' already reads the tags")
        return self

    @model_validator(mode="after")
    def _table_is_not_too_large(self) -> Self:
        width = self._encoder.content(self)
        if not self._encoder.reads("position_table"):
            return self
        if self.position_table == "sinusoidal" and self.max_positions > LARGEST_TABLE // width:
            raise ValueError(
                f"max_positions = {self.max_positions} makes a sinusoidal table of more than "
                f"{LARGEST_TABLE} numbers; of this width it can have {LARGEST_TABLE // width} rows"
            )
        return self

    @model_validator(mode="after")
    def _the_encoder_reads_what_is_set(self) -> Self:
        for key, field in type(self).model_fields.items():
            unset = field.is_required() or getattr(self, key) == field.default
            if unset or key in FOR_ALL_ENCODERS or self._encoder.reads(key):
                continue
            if readers := [f"'{name}'" for name in readers_of(key)]:
                raise ValueError(
                    f"{key} is set, but the encoder '{self.encoder}' does not read it; only "
                    f"{' and '.join(readers)} can"
                )
        return self

    @model_validator(mode="after")
    def _limits_have_something_to_limit(self) -> Self:
        if self.relaxed_window and self.attention_window is None:
            raise ValueError("relaxed_window is set, but there is no attention_window to relax")
        absent = [number for number in self.position_only_layers if number >= self.layers]
        if absent:
            raise ValueError(
                f"position_only_layers names layer {absent[0]}, but the layers are 0 to "
                f"{self.layers - 1}"
                if self.layers
                else "position_only_layers is set, but there are no layers"
            )
        if self.forward_features == "first" and self.position != "added":
            raise ValueError(
                "forward_features = 'first' needs position = 'added'; where the position is "
                "concatenated, the first half of a token vector is its content"
            )
        if self.position_only_layers and (self.position, self.matrices) != ("added", "full"):
            raise ValueError(
                "position_only_layers needs position = 'added' and matrices = 'full'; a factored "
                "encoder is kept from its content with a limit of attention"
            )
        return self

    @model_validator(mode="after")
    def _weights_begin_in_one_way(self) -> Self:
        if self.attention_start != "usual" and self.initialisation != "usual":
            raise ValueError(
                f"attention_start = '{self.attention_start}' and initialisation = "
                f"'{self.initialisation}' are both set, and the second draws all weights anew"
            )
        return self

    @model_validator(mode="after")
    def _label_attention_can_be_as_it_is_set(self) -> Self:
        if not self.label_attention:
            for key, field in type(self).model_fields.items():
                if key.startswith("label_") and getattr(self, key) != field.default:
                    raise ValueError(f"{key} is set, but label_attention is not")
            return self
        if self.label_matrices == "factored" and not self._encoder.reads("matrices"):
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
