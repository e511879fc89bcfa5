"""Settings of the kinds of neural parsers: what each has beside inputs, encoder and tagger."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from spmrl_bench.nn.choices import HeadDrivenSpans
from spmrl_bench.parsers.config import Positive, Rate
from spmrl_bench.parsers.neural_config import NeuralParserConfig
from spmrl_bench.transitions.moves import SystemName
from spmrl_bench.trees.projective import EncodingName


class ChartParserConfig(NeuralParserConfig):
    """A parser of constituents."""

    d_label_hidden: Positive
    """Hidden width of the span scorer."""


class DependencyParserConfig(NeuralParserConfig):
    """A parser of dependencies."""

    d_arc: Positive
    """Width of what a word is as a dependent, and as a governor, in the scores of arcs."""
    d_relation: Positive
    """Width of what a word is as a dependent, and as a governor, in the scores of relations."""
    biaffine_dropout: Rate
    """Dropout of the vectors of dependents and governors."""
    arc_loss_weight: Annotated[float, Field(gt=0)] = 1.0
    """Weight of the loss of governors beside the other losses; 0.5 in the released codes of Zhou &
    Zhao 2019 and Mrini et al. 2020."""
    relation_loss_weight: Annotated[float, Field(gt=0)] = 1.0
    """Weight of the loss of relations beside the other losses; 0.5 in the same codes."""


class JointParserConfig(ChartParserConfig, DependencyParserConfig):
    """A parser of constituents and dependencies at once."""

    structure: HeadDrivenSpans = "joint"
    """How constituents and heads are one structure: joint spans, or division spans, whose labels
    say where the head is (Zhou & Zhao 2019, section 3)."""
    span_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Weight of the scores of labels in parsing (lambda); the scores of arcs have the rest."""

    @property
    def parsing_settings(self) -> tuple[str, ...]:
        return ("span_weight",) if self.structure == "joint" else ()


class TransitionParserConfig(NeuralParserConfig):
    """A parser of dependencies that writes the actions of a transition system."""

    d_decoder: Positive
    """Width of the recurrent layers of the decoder."""
    decoder_layers: Positive
    """Recurrent layers of the decoder."""
    d_action: Positive
    """Width of the embedding of an action."""
    d_attention: Positive
    """Width of the sums that additive attention takes the tanh of."""
    decoder_dropout: Rate
    """Dropout of the inputs of the decoder's layers and of what leaves the last (Zaremba et al.
    2014)."""
    attention_layers: Positive = 3
    """How often the decoder looks at the words before an action, each time knowing what it saw."""
    pushed_words: bool = True
    """Whether attention knows which words have been pushed on the stack (vector s)."""
    removed_words: bool = True
    """Whether attention leaves out the words that have been removed from the stack (vector r)."""
    system: SystemName = "arc-standard"
    """The transition system, which says what the actions are and when they are legal."""
    beam: Annotated[int, Field(ge=1, le=1000)] = 8
    """Hypotheses that are kept of each sentence in parsing; 1 is greedy search."""
    nonprojective: EncodingName = "head+path"
    """How crossing arcs are learnt: lifted and lost (``projectivise``), or with an encoding in the
    relations from which they come back (Nivre & Nilsson 2005)."""

    @property
    def parsing_settings(self) -> tuple[str, ...]:
        return ("beam",)
