"""What the settings of the parts of a network have in common.

A lexical input, an encoder or another part has its settings, ``Config``, in its own file. They
are frozen and know all of their keys, so that a misspelt one is noticed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
Even = Annotated[int, Field(ge=2, multiple_of=2)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Precision = Literal["float32", "bf16"]


class Settings(BaseModel):
    """Settings of one part."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def files(self) -> dict[str, str]:
        """Pretrained files, folders or hub names that the settings name, by key."""
        return {}


class InputSettings(Settings):
    """Settings of a lexical input."""

    width: Positive | None = None
    """Width of its vectors where inputs stand side by side; added up, all are as wide as the
    content."""


class WordConfig(InputSettings):
    """Settings of the input ``word``."""

    dropout: Rate
    """Dropout of word embeddings."""
    max_words: Positive | None = None
    """Known words, the most frequent of the training trees; without it all that occur in them."""
    vectors: str | None = None
    """File of word vectors (word2vec or GloVe) that the embeddings start from, as wide as they."""


class TagConfig(InputSettings):
    """Settings of the input ``tag``."""

    dropout: Rate = 0.2
    """Dropout of tag embeddings."""


class CharLSTMConfig(InputSettings):
    """Settings of the input ``charlstm``."""

    width: Even | None = None
    d_char: Positive
    """Width of a character embedding."""
    d_states: Even | None = None
    """Width of the last states, both directions together; without it, that of the input. States
    of another width are mapped to that."""
    char_dropout: Rate
    """Dropout of character embeddings."""
    dropout: Rate
    """Dropout of the vector of a form (``morpho_emb_dropout`` of the released code)."""


class CharConcatConfig(InputSettings):
    """Settings of the input ``charconcat``."""

    width: Annotated[int, Field(ge=16, multiple_of=16)] | None = None
    dropout: Rate
    """Dropout of the vector of a form."""
    boundaries: Literal["copies", "spelt"] = "copies"
    """What START and STOP are: copies of a mark (the released code), or ``spelt`` as for the
    CharLSTM, as parsers had it before there was this setting."""


class VectorsConfig(InputSettings):
    """Settings of the input ``vectors``."""

    file: str
    """File of static word vectors (word2vec or GloVe)."""
    dropout: Rate
    """Dropout of the mapped vectors."""


class ElmoConfig(InputSettings):
    """Settings of the input ``elmo``."""

    weights: str
    """HDF5 file with the weights of the language model."""
    options: str
    """JSON file with its options."""
    mix_dropout: Rate = 0.5
    """Dropout of the mix of the language model's layers."""
    dropout: Rate
    """Dropout of the mapped mix."""


class TransformerConfig(InputSettings):
    """Settings of the input ``transformer``."""

    name: str
    """Folder or hub name of a pretrained encoder."""
    revision: str | None = None
    """Which revision of a hub's encoder; required for a hub name."""
    pooling: Literal["first", "last", "mean"] = "last"
    """Which sub-words of a word make its vector: the first, the last, or the mean of all."""
    frozen: bool = False
    """Whether training leaves the pretrained weights as they are."""
    dropout: Rate
    """Dropout of the mapped vectors."""


class AttentionConfig(Settings):
    """Settings of the encoder ``attention``."""

    layers: Annotated[int, Field(ge=0)]
    heads: Positive
    """Attention heads per layer."""
    d_kv: Even
    """Width of a query, key or value of one head; half content, half position."""
    d_ff: Even
    """Hidden width of the feed-forward sublayer, both halves together."""
    max_positions: Annotated[int, Field(ge=3)]
    """Rows of the position table; a sentence of n words needs n + 2."""
    attention_dropout: Rate
    """Dropout of attention weights."""
    residual_dropout: Rate
    """Dropout of the output of a sublayer, before it is added to its input."""
    relu_dropout: Rate
    """Dropout within the feed-forward sublayers, behind their relu."""
    position: Literal["concatenated", "added"] = "concatenated"
    """How the position enters: as the second half of a token vector, or added to the content."""
    matrices: Literal["factored", "full"] = "factored"
    """One matrix for each half of a token vector, or one for all of it."""
    position_table: Literal["learned", "sinusoidal"] = "learned"
    position_only_layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Layers, the first of which is 0, whose queries and keys come from the positions alone."""
    attention_scale: Literal["d_kv", "d_model"] = "d_kv"
    """Whose square root divides the products of queries and keys; ``d_model`` in the released
    code."""
    layer_norm: Literal["usual", "released"] = "usual"
    """The usual layer norm, or ``released``, which divides by the unbiased standard deviation plus
    0.001, as the code of 2018."""
    input_norm: bool = True
    """Whether a layer norm stands before the first layer (the released code has it)."""
    start: Literal["usual", "released", "version-0.2"] = "usual"
    """Random weights of attention: Xavier normal over the tensors of all heads; ``released``: the
    map from the heads back is uniform, as in the code of 2018; ``version-0.2``: all uniform with
    standard deviation 0.02, and all layers alike, as in version 0.2 of the code."""
    forward_features: Literal["even", "first"] = "even"
    """Of a token vector, for span vectors: the even ones (the paper), or the ``first`` half of
    them, as in the released code where the position is added."""
    window: Annotated[int, Field(ge=0)] | None = None
    """Largest distance of two tokens that see each other, in all layers; without it any."""
    relaxed_window: bool = False
    """Whether the first two and the last two tokens see all, and are seen by all."""


class RecurrentConfig(Settings):
    """Settings of the encoders ``lstm`` and ``gru``."""

    layers: Annotated[int, Field(ge=0)]
    dropout: Rate
    """Dropout between the layers, or before and behind each (``masks``)."""
    masks: Literal["sentence", "token"] = "sentence"
    """Where the dropout is: with masks of sentences between the layers, or with masks of single
    tokens before and behind each of them (Zaremba et al. 2014)."""


class LabelAttentionConfig(Settings):
    """Settings of label attention (Mrini et al. 2020)."""

    heads: Positive | None = None
    """How many; without it, one for each label of the training trees."""
    d_kv: Even = 128
    """Width of a query, key or value of a head; half content, half position."""
    d_proj: Even = 128
    """Width of what a head gives a token; half forward, half backward part."""
    d_ff: Even
    """Hidden width of the feed-forward layer."""
    attention_dropout: Rate
    head_dropout: Rate = 0.0
    """Dropout of what each head adds to the tokens."""
    residual_dropout: Rate
    """Dropout of the output of the feed-forward layer."""
    relu_dropout: Rate
    queries: Literal["vectors", "matrices"] = "vectors"
    """A learned query vector for each head, or the query matrices of self-attention."""
    outputs: Literal["concatenated", "projected"] = "concatenated"
    """Whether the outputs of the heads stand side by side, or are added up as in self-attention."""
    matrices: Literal["factored", "full"] | None = None
    """Matrices of queries, keys and values; without it, as of the encoder's layers."""
    feed_forward: Literal["usual", "released", "none"] = "usual"
    """A feed-forward layer over all features, ``released`` for that of the code of Mrini et al.,
    where the last ``d_model / 2`` have matrices of their own, or ``none``."""
    attention_scale: Literal["d_kv", "d_model"] = "d_kv"
    layer_norm: Literal["usual", "released"] = "usual"


class TaggerConfig(Settings):
    """Settings of the tagger."""

    d_hidden: Positive = 250
    loss_weight: Annotated[float, Field(gt=0)] = 5.0
    """Weight of the tagger's loss of a word beside the parser's of a sentence (Kitaev, Cao & Klein
    2019, their code)."""


class SpanScorerConfig(Settings):
    """Settings of the span scorer."""

    d_hidden: Positive
    layer_norm: Literal["usual", "released"] = "usual"


class DependencyConfig(Settings):
    """Settings of the biaffine scores of arcs and relations."""

    d_arc: Positive
    """Width of a word as a dependent, and as a head, in the scores of arcs."""
    d_relation: Positive
    """Width of a word as a dependent, and as a head, in the scores of relations."""
    dropout: Rate
    """Dropout of the vectors of dependents and heads."""
    arc_loss_weight: Annotated[float, Field(gt=0)] = 1.0
    """Weight of the loss of heads beside the other losses; 0.5 in the released codes of Zhou &
    Zhao 2019 and Mrini et al. 2020."""
    relation_loss_weight: Annotated[float, Field(gt=0)] = 1.0
    """Weight of the loss of relations beside the other losses; 0.5 in the same codes."""


class ActionDecoderConfig(Settings):
    """Settings of the decoder of a transition parser (Zhang et al. 2017)."""

    d_hidden: Positive
    """Width of the recurrent layers."""
    layers: Positive
    d_action: Positive
    """Width of the embedding of an action."""
    d_attention: Positive
    """Width of the sums that additive attention takes the tanh of."""
    dropout: Rate
    """Dropout of the inputs of the layers and of the output of the last (Zaremba et al. 2014)."""
    attention_layers: Positive = 3
    """Attention over the words before an action, each layer with the result of the last."""
    pushed_words: bool = True
    """Whether attention knows which words have been pushed on the stack (vector s)."""
    removed_words: bool = True
    """Whether attention leaves out the words that have been removed from the stack (vector r)."""
