"""Label attention: heads that each see a sentence in one way of their own.

A head of self-attention asks a question from every token, and what all heads find is mixed by a
matrix. A head of label attention (Mrini et al. 2020, section 2) asks one question only, a learned
query vector, and what it finds in the sentence is added to every token. The heads are not mixed:
each gives a token features of its own, so that one can tell which head said what about a span.
With as many heads as a treebank has labels each may become that of a label.

For head ``h`` with query ``q_h`` and matrices ``K_h`` and ``V_h`` over the tokens ``x_t``::

    a_ht = softmax_t(q_h . K_h x_t / sqrt(d_kv))        one distribution over the sentence
    c_h  = sum_t a_ht V_h x_t                           one context vector
    y_th = LayerNorm(R (x_t + O c_h))                   ``d_proj`` features of a token

``O`` (back to ``d_model``), ``R`` (to ``d_proj``) and the norm are shared by all heads, as in the
released code; the paper leaves it open. Only the softmax and the norm are not linear, so each
product is taken where it is smallest, and no keys or values of tokens are ever made:
``q_h . K_h x_t = (K_h' q_h) . x_t`` needs one product with each token,
``c_h = V_h (sum_t a_ht x_t)`` one for each sentence, and ``R (x_t + O c_h) = R x_t + (R O) c_h``
projects a token once and not once for each head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from spmrl_bench.nn.choices import (
    AttentionScale,
    LabelFeedForward,
    LabelOutputs,
    LabelQueries,
    LayerNormForm,
    Matrices,
)
from spmrl_bench.nn.encoder import AttentionHeads
from spmrl_bench.nn.maps import KINDS, FactoredLinear, FullLinear, SplitLinear, head_fans
from spmrl_bench.nn.norms import layer_norm as norm_of
from spmrl_bench.nn.ragged import Ragged, SentenceDropout


class LabelHeads(nn.Module):
    """Heads that each ask one question of a sentence, with a learned query vector.

    With factored maps queries, keys and values have a content and a position half, as in
    :class:`~spmrl_bench.nn.encoder.AttentionHeads`, and one softmax of the sum of both products.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_kv: int,
        dropout: float,
        matrices: Matrices = "factored",
        scale: AttentionScale = "d_kv",
    ) -> None:
        super().__init__()
        self.heads = heads
        self.d_kv = d_kv
        self.dropout = dropout
        self.factor = 1 / math.sqrt(d_model if scale == "d_model" else d_kv)
        linear = KINDS[matrices]
        self.query = nn.Parameter(torch.empty(heads, d_kv))
        self.key = linear(d_model, heads * d_kv, bias=False)
        self.value = linear(d_model, heads * d_kv, bias=False)
        # Xavier normal over the tensors of all heads, as in the released code.
        nn.init.normal_(self.query, std=math.sqrt(2 / (heads + d_kv // linear.parts)))
        into, _ = head_fans(d_model, heads, d_kv, linear.parts)
        self.key.init_heads(into)
        self.value.init_heads(into)

    def weights(self, rows: Tensor, layout: Ragged) -> Tensor:
        """Attention weights ``[sentences, heads, longest]``, zero beyond the end of a sentence."""
        matrices = self.key.head_matrices(self.heads)
        queries = self.query.chunk(len(matrices), dim=1)
        pairs = zip(queries, matrices, strict=True)
        asked = torch.cat([(query[:, None] @ keys)[:, 0] for query, keys in pairs], dim=1)
        logits = layout.spread(functional.linear(rows, asked * self.factor)).transpose(1, 2)
        return logits.masked_fill(~layout.filled[:, None], -math.inf).softmax(dim=2)

    def contexts(self, rows: Tensor, layout: Ragged) -> Tensor:
        """What each head finds in each sentence, ``[sentences, heads, d_kv]``."""
        # These products are few and small, and the weights deserve all their digits.
        with torch.autocast(rows.device.type, enabled=False):
            weights = functional.dropout(self.weights(rows, layout), self.dropout, self.training)
            mixed = (weights @ layout.spread(rows)).permute(1, 2, 0)
            matrices = self.value.head_matrices(self.heads)
            pairs = zip(mixed.chunk(len(matrices), dim=1), matrices, strict=True)
            found = torch.cat([matrix @ means for means, matrix in pairs], dim=1)
            return found.permute(2, 0, 1).contiguous()

    def weights_of_each(self, rows: Tensor, layout: Ragged) -> list[Tensor]:
        """Of each sentence of ``n`` tokens the weights ``[heads, n]``."""
        lengths = layout.lengths.tolist()
        return [
            weights[:, :n] for weights, n in zip(self.weights(rows, layout), lengths, strict=True)
        ]


class FeedForward(nn.Module):
    """``LayerNorm(x + dropout(W2 dropout(relu(W1 x + b1)) + b2))`` of each token."""

    def __init__(
        self,
        width: int,
        d_ff: int,
        linear: type[FactoredLinear] | type[FullLinear],
        *,
        last: int,
        relu_dropout: float,
        residual_dropout: float,
        layer_norm: LayerNormForm = "usual",
    ) -> None:
        """Random weights.

        Args:
            width, d_ff: of the tokens and of the hidden layer.
            linear: kind of the maps.
            last: so many of the last features have maps of their own, to and from one half of
                the hidden layer; 0 for none.
            relu_dropout, residual_dropout: one mask for each sentence.
            layer_norm: form of the norm.

        Raises:
            ValueError: all features would be the last.
        """
        super().__init__()
        self.expand: nn.Module
        self.contract: nn.Module
        if last >= width:
            raise ValueError(f"the last {last} features cannot stand apart from {width} in all")
        if last:
            features, halves = (width - last, last), (d_ff - d_ff // 2, d_ff // 2)
            self.expand = SplitLinear(features, halves)
            self.contract = SplitLinear(halves, features)
        else:
            self.expand = linear(width, d_ff, bias=True)
            self.contract = linear(d_ff, width, bias=True)
        self.relu_dropout = SentenceDropout(relu_dropout)
        self.residual_dropout = SentenceDropout(residual_dropout)
        self.norm = norm_of(width, layer_norm)

    def forward(self, rows: Tensor, layout: Ragged) -> Tensor:
        """``[tokens, width]`` to the same shape."""
        hidden = self.expand(rows).relu_()
        contracted = self.contract(self.relu_dropout(hidden, layout))
        result: Tensor = self.norm(rows + self.residual_dropout(contracted, layout))
        return result


@dataclass(frozen=True, slots=True)
class LabelView:
    """What label attention makes of one sentence of ``n`` tokens, START and STOP among them.

    Attributes:
        weights: ``[heads, n]``, how much each head takes of each token; with query matrices
            ``[heads, n, n]``, for the token that asks and the one that is asked. The last
            dimension sums to 1.
        blocks: ``[n, heads, d_proj]``, the features that each head gives each token; None where
            the heads are added up. Without a feed-forward layer they are the encoded tokens;
            with one, what it reads.
    """

    weights: Tensor
    blocks: Tensor | None

    def of_span(self, start: int, end: int) -> Tensor:
        """What each head contributes to a span vector (section 2, figure 6).

        Args:
            start, end: fenceposts of the span, ``0 <= start < end <= n - 2``.

        Returns:
            ``[heads, d_proj]``: in each row the forward part of a head, then its backward part.

        Raises:
            ValueError: the heads have no features of their own, or there is no such span.
        """
        return self.of_spans([(start, end)])[0]

    def of_spans(self, spans: Sequence[tuple[int, int]]) -> Tensor:
        """As :meth:`of_span` of several spans, ``[spans, heads, d_proj]``."""
        if self.blocks is None:
            raise ValueError(
                "the outputs of the heads are added up (label_outputs = 'projected'), so no part "
                "of a span vector is that of a head; 'concatenated' keeps them apart"
            )
        words = len(self.blocks) - 2
        for start, end in spans:
            if not 0 <= start < end <= words:
                raise ValueError(f"span ({start}, {end}) is not within the {words} words")
        fences = torch.tensor(list(spans), device=self.blocks.device).view(-1, 2)
        start_rows, end_rows = fences.long().unbind(1)
        forward, backward = self.blocks.chunk(2, dim=2)
        parts = (
            forward[end_rows] - forward[start_rows],
            backward[end_rows + 1] - backward[start_rows + 1],
        )
        return torch.cat(parts, dim=2)


class LabelAttentionLayer(nn.Module):
    """Label attention and a feed-forward layer, on top of an encoder's stack.

    Two switches lead from label attention to plain self-attention (section 4.3): heads that ask
    from every token with query matrices, and outputs that are added up by a matrix of all heads,
    ``LayerNorm(x + O [c_1 ... c_heads])``. With both the layer is one of self-attention.

    What comes out of concatenated heads has no content and position halves: ``R`` has mixed them
    in the features of each head. So the feed-forward layer has one matrix for all of them. The
    released code gives the last ``d_model / 2`` features, those of the last few heads, matrices of
    their own with half of the hidden layer (``released``).

    Attributes:
        d_out: width of its output.
        d_block: width of a block of it, the first half of which is the forward part.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_kv: int,
        d_proj: int,
        d_ff: int,
        *,
        attention_dropout: float,
        output_dropout: float,
        residual_dropout: float,
        relu_dropout: float,
        matrices: Matrices = "factored",
        queries: LabelQueries = "vectors",
        outputs: LabelOutputs = "concatenated",
        feed_forward: LabelFeedForward = "usual",
        attention_scale: AttentionScale = "d_kv",
        layer_norm: LayerNormForm = "usual",
    ) -> None:
        """Random weights.

        Args:
            d_model: width of a token vector.
            heads: how many there are.
            d_kv: width of a query, key or value of one head.
            d_proj: width of what a head gives a token, where the outputs are concatenated.
            d_ff: hidden width of the feed-forward layer.
            attention_dropout: on attention weights.
            output_dropout: on what each head adds to a token (the paper's residual dropout);
                one mask for each sentence.
            residual_dropout, relu_dropout: of the feed-forward layer.
            matrices: of queries, keys, values and what leads back to ``d_model``.
            queries, outputs, feed_forward: what the paper varies.
            attention_scale: whose root divides the products of queries and keys.
            layer_norm: form of the norms.

        Raises:
            ValueError: the released feed-forward layer is asked for where it cannot be.
        """
        super().__init__()
        self.concatenated = outputs == "concatenated"
        self.d_out = heads * d_proj if self.concatenated else d_model
        self.d_block = d_proj if self.concatenated else 2
        linear = KINDS[matrices]
        sizes = (d_model, heads, d_kv, attention_dropout, matrices, attention_scale)
        self.heads: LabelHeads | AttentionHeads
        into, back = head_fans(d_model, heads, d_kv, linear.parts)
        if queries == "vectors":
            self.heads = LabelHeads(*sizes)
        else:
            self.heads = AttentionHeads(*sizes)
            self.heads.project.init_heads(into)
        self.output = linear(d_kv if self.concatenated else heads * d_kv, d_model, bias=False)
        if self.concatenated:
            self.reduce = nn.Linear(d_model, d_proj, bias=False)
        else:
            self.output.init_heads(back)
        self.norm = norm_of(d_proj if self.concatenated else d_model, layer_norm)
        self.output_dropout = SentenceDropout(output_dropout)
        self.feed_forward: FeedForward | None = None
        if feed_forward != "none":
            released = feed_forward == "released" and self.concatenated
            self.feed_forward = FeedForward(
                self.d_out,
                d_ff,
                FullLinear if self.concatenated else linear,
                last=d_model // 2 if released else 0,
                relu_dropout=relu_dropout,
                residual_dropout=residual_dropout,
                layer_norm=layer_norm,
            )

    def forward(self, rows: Tensor, layout: Ragged) -> Tensor:
        """``[tokens, d_model]`` to ``[tokens, d_out]``.

        What a sentence gets does not depend on the others of a batch.
        """
        if self.concatenated:
            found = self._blocks(rows, layout).flatten(1)
        else:
            joined = self.output.from_heads(self.heads.contexts(rows, layout))
            added = self.output_dropout(self._of_tokens(joined, layout), layout)
            found = self.norm(rows + added)
        return found if self.feed_forward is None else self.feed_forward(found, layout)

    def _of_tokens(self, found: Tensor, layout: Ragged) -> Tensor:
        """``[tokens, ...]`` from what was found for each, or for each sentence."""
        per_sentence = isinstance(self.heads, LabelHeads)
        return found.index_select(0, layout.sentence) if per_sentence else found

    def _blocks(self, rows: Tensor, layout: Ragged) -> Tensor:
        """What each head gives each token, ``[tokens, heads, d_proj]``."""
        added = self._reduced(self.heads.contexts(rows, layout), layout).to(rows.dtype)
        found = self._of_tokens(added, layout)
        own = self.reduce(rows).to(rows.dtype)
        blocks: Tensor = self.norm(found.add_(own[:, None]))
        return blocks

    def _reduced(self, contexts: Tensor, layout: Ragged) -> Tensor:
        """Contexts ``[places, heads, d_kv]`` through ``R O`` to ``[places, heads, d_proj]``.

        A place is a sentence, or with query matrices a token.
        """
        p = self.output_dropout.p if self.training else 0.0
        if p == 0:
            matrices = [matrix[0] for matrix in self.output.head_matrices(1)]
            pairs = zip(self.reduce.weight.chunk(len(matrices), dim=1), matrices, strict=True)
            return functional.linear(contexts, torch.cat([r @ o for r, o in pairs], dim=1))
        # Between O and R features are dropped, for each head and sentence others.
        places, heads, _ = contexts.shape
        d_model = self.reduce.in_features
        shape = (len(layout.lengths), heads, d_model)
        masks = contexts.new_empty(shape).bernoulli_(1 - p).div_(1 - p)
        if isinstance(self.heads, LabelHeads):
            dropped = self.output(contexts.flatten(0, 1)).view(places, heads, d_model) * masks
            return self.reduce(dropped)

        def of_head(context: Tensor, mask: Tensor) -> Tensor:
            dropped = self.output(context) * mask.index_select(0, layout.sentence)
            reduced: Tensor = self.reduce(dropped)
            return reduced

        # [tokens, heads, d_model] is the largest array by far, so there is one head of it at a
        # time, which is computed once more on the way back.
        return torch.stack(
            [
                checkpoint(of_head, context, mask, use_reentrant=False, preserve_rng_state=False)
                for context, mask in zip(contexts.unbind(1), masks.unbind(1), strict=True)
            ],
            dim=1,
        )

    @torch.no_grad()
    def views(self, rows: Tensor, layout: Ragged) -> list[LabelView]:
        """What the heads make of each sentence, without dropout.

        Args:
            rows: ``[tokens, d_model]``, as of :meth:`forward`.
            layout: which rows form a sentence.
        """
        was_training = self.training
        self.eval()
        try:
            blocks: Sequence[Tensor | None] = [None] * len(layout.lengths)
            if self.concatenated:
                blocks = self._blocks(rows, layout).split(layout.lengths.tolist())
            with torch.autocast(rows.device.type, enabled=False):
                weights = self.heads.weights_of_each(rows, layout)
            return [LabelView(*parts) for parts in zip(weights, blocks, strict=True)]
        finally:
            self.train(was_training)
