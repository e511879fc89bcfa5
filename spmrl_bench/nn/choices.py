"""Names of what a recipe can choose for a network; read without torch, which takes a second."""

from __future__ import annotations

from typing import Literal

#: The cells of a recurrent encoder.
Cell = Literal["lstm", "gru"]
#: Whether the lexical inputs of a word are added up or stand side by side.
Join = Literal["sum", "concatenated"]
#: Whether the dropout masks of a recurrent encoder are of a whole sentence or of a single token.
RecurrentDropout = Literal["sentence", "token"]
#: What the weights are before training: each layer's own, or of one distribution for all.
Initialisation = Literal["usual", "glorot-normal", "glorot-uniform"]
#: Whether the halves of a token vector, content and position, have matrices of their own.
Matrices = Literal["factored", "full"]
#: Whether the position is the second half of a token vector or added to the content.
PositionInput = Literal["concatenated", "added"]
#: Which features of a token vector a span takes from the token before a fencepost: the even ones,
#: the others from the token behind it, or the first half.
ForwardFeatures = Literal["even", "first"]
#: Random weights of an encoder's attention: Xavier normal, or as in the code released with Kitaev &
#: Klein 2018, or as in version 0.2 of that.
AttentionStart = Literal["usual", "released", "version-0.2"]
#: What START and STOP are to an input of single characters: as many copies of a mark as a word has
#: places, or the three marks that the CharLSTM reads, filled up as a word is.
CharBoundaries = Literal["copies", "spelt"]
#: Whether the vectors of the positions are learned or sines and cosines.
PositionTable = Literal["learned", "sinusoidal"]
#: Whose square root divides the products of queries and keys.
AttentionScale = Literal["d_kv", "d_model"]
#: The usual layer norm, or that of the code released with Kitaev & Klein 2018.
LayerNormForm = Literal["usual", "released"]
#: What the heads of label attention ask with: one learned vector each, or a vector of each token.
LabelQueries = Literal["vectors", "matrices"]
#: Whether the outputs of these heads stand side by side, or are added up by a matrix.
LabelOutputs = Literal["concatenated", "projected"]
#: What follows label attention: one feed-forward layer over all features, one as in the code of
#: Mrini et al. 2020, whose last features are kept apart, or none.
LabelFeedForward = Literal["usual", "released", "none"]
#: Which sub-words of a word make its vector.
SubwordPooling = Literal["first", "last", "mean"]
#: How constituents and dependencies are learnt as one structure.
HeadDrivenSpans = Literal["joint", "division"]
