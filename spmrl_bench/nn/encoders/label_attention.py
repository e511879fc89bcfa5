"""Label attention: heads that each see a sentence in one way of their own.

A head of label attention (Mrini et al. 2020, section 2) has one learned query vector, and what it
finds in the sentence is added to every token. The heads are not mixed: each gives a token features
of its own, so that one can tell which head said what about a span.

For head ``h`` with query ``q_h`` and matrices ``K_h`` and ``V_h`` over the tokens ``x_t``::

    a_ht = softmax_t(q_h . K_h x_t / sqrt(d_kv))        one distribution over the sentence
    c_h  = sum_t a_ht V_h x_t                           one context vector
    y_th = LayerNorm(R (x_t + O c_h))                   ``d_proj`` features of a token

``O`` (back to ``d_model``), ``R`` (to ``d_proj``) and the norm are shared by all heads, as in the
released code. Each product is taken where it is smallest: ``q_h . K_h x_t = (K_h' q_h) . x_t``
needs one with each token, ``c_h = V_h (sum_t a_ht x_t)`` one for each sentence, and
``R (x_t + O c_h) = R x_t + (R O) c_h`` projects a token once and not once for each head.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoders.self_attention import AttentionHeads, Heads, Scale
from spmrl_bench.nn.layers import LINEAR, Matrices, Norm, init_heads, layer_norm
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import Even, Rate, Settings, Width


class LabelHeads(Heads):
    """Heads with one learned query vector each."""

    def __init__(self, config: Any, d_model: int, heads: int, matrices: Matrices) -> None:
        super().__init__(config, d_model, heads)
        linear = LINEAR[matrices]
        self.query = nn.Parameter(torch.empty(heads, self.d_kv))
        self.key = linear(d_model, heads * self.d_kv, bias=False)
        self.value = linear(d_model, heads * self.d_kv, bias=False)
        # Xavier normal over the tensors of all heads, as in the released code.
        nn.init.normal_(self.query, std=math.sqrt(2 / (heads + self.d_kv // linear.parts)))
        init_heads(self.key, heads, self.d_kv)
        init_heads(self.value, heads, self.d_kv)

    def weights(self, rows: Tensor, layout: Ragged) -> Tensor:
        """Attention weights ``[sentences, heads, longest]``, zero beyond the end of a sentence."""
        # These products are few and small, and the weights deserve all their digits.
        with torch.autocast(rows.device.type, enabled=False):
            matrices = self.key.head_matrices(self.heads)
            pairs = zip(self.query.chunk(len(matrices), dim=1), matrices, strict=True)
            queries = torch.cat([(query[:, None] @ keys)[:, 0] for query, keys in pairs], dim=1)
            logits = layout.pad(functional.linear(rows, queries * self.factor)).transpose(1, 2)
            return logits.masked_fill(~layout.mask[:, None], -math.inf).softmax(dim=2)

    def contexts(self, rows: Tensor, layout: Ragged) -> Tensor:
        """What each head finds in each sentence, ``[sentences, heads, d_kv]``."""
        with torch.autocast(rows.device.type, enabled=False):
            weights = functional.dropout(self.weights(rows, layout), self.dropout, self.training)
            mixed = (weights @ layout.pad(rows)).permute(1, 2, 0)
            matrices = self.value.head_matrices(self.heads)
            pairs = zip(mixed.chunk(len(matrices), dim=1), matrices, strict=True)
            found = torch.cat([matrix @ means for means, matrix in pairs], dim=1)
            return found.permute(2, 0, 1).contiguous()


class SplitLinear(nn.Module):
    """Two linear maps side by side, of the first and of the last features."""

    def __init__(self, inputs: tuple[int, int], outputs: tuple[int, int]) -> None:
        super().__init__()
        self.widths = inputs
        self.first = nn.Linear(inputs[0], outputs[0])
        self.last = nn.Linear(inputs[1], outputs[1])

    def forward(self, rows: Tensor) -> Tensor:
        first, last = rows.split(self.widths, dim=1)
        return torch.cat((self.first(first), self.last(last)), dim=1)


class FeedForward(nn.Module):
    """``LayerNorm(x + dropout(W2 dropout(relu(W1 x + b1)) + b2))`` of each token; the ``last`` of
    the features, if any, have maps of their own, of half of the hidden layer."""

    def __init__(self, config: Any, width: int, matrices: Matrices, last: int) -> None:
        super().__init__()
        linear: Any = SplitLinear if last else partial(LINEAR[matrices], bias=True)
        outer: Any = (width - last, last) if last else width
        inner: Any = (config.d_ff - config.d_ff // 2, config.d_ff // 2) if last else config.d_ff
        self.expand, self.contract = linear(outer, inner), linear(inner, outer)
        self.relu_dropout = SentenceDropout(config.relu_dropout)
        self.residual_dropout = SentenceDropout(config.residual_dropout)
        self.norm = layer_norm(width, config.layer_norm)

    def forward(self, rows: Tensor, layout: Ragged) -> Tensor:
        contracted = self.contract(self.relu_dropout(self.expand(rows).relu_(), layout))
        return self.norm(rows + self.residual_dropout(contracted, layout))


class LabelAttention(nn.Module):
    """Label attention and a feed-forward layer, on top of an encoder's stack. Two switches lead to
    plain self-attention (section 4.3): query matrices, and outputs that are added up,
    ``LayerNorm(x + O [c_1 ... c_heads])``."""

    class Config(Settings):
        """Settings of label attention (Mrini et al. 2020)."""

        heads: Width | None = None
        """How many; without it, one for each label of the training trees."""
        d_kv: Even = 128
        """Width of a query, key or value of a head; half content, half position."""
        d_proj: Even = 128
        """Width of what a head gives a token; half forward, half backward part."""
        d_ff: Even
        """Hidden width of the feed-forward layer."""
        attention_dropout: Rate
        """Dropout of attention weights."""
        head_dropout: Rate = 0.0
        """Dropout of what each head adds to the tokens, one mask for each sentence."""
        residual_dropout: Rate
        """Dropout of the output of the feed-forward layer."""
        relu_dropout: Rate
        """Dropout within the feed-forward sublayer, behind its relu."""
        queries: Literal["vectors", "matrices"] = "vectors"
        """A learned query vector for each head, or the query matrices of self-attention."""
        outputs: Literal["concatenated", "projected"] = "concatenated"
        """Whether outputs of heads stand side by side or are added up as in self-attention."""
        matrices: Matrices | None = None
        """Matrices of queries, keys and values; without it, as of the encoder's layers."""
        feed_forward: Literal["usual", "released", "none"] = "usual"
        """Over all features, with matrices of the last ``d_model / 2`` (their code), or none."""
        attention_scale: Scale = "d_kv"
        """As of the encoder ``attention``."""
        layer_norm: Norm = "usual"
        """As of the encoder ``attention``."""

        def problem(self, d_model: int, matrices: Matrices | None, heads: int | None) -> str:
            """Return why label attention cannot be on an encoder, or ''; ``matrices`` are of its
            layers, None where they mix content and position; ``heads`` None if not known yet."""
            if self.matrices == "factored" and matrices is None:
                return (
                    "label attention with matrices = 'factored' keeps content and position apart, "
                    "which the encoder has mixed; only 'full' is possible"
                )
            own, last = self.matrices or matrices or "full", d_model // 2
            few = heads is not None and heads * self.d_proj <= last
            plain = own == "full" or self.outputs == "projected"
            if self.feed_forward == "released" and (plain or few):
                return (
                    f"label attention with feed_forward = 'released' keeps the last {last} "
                    f"features of all heads apart (half of d_model): {heads} heads with d_proj = "
                    f"{self.d_proj} have {(heads or 0) * self.d_proj}, outputs are {self.outputs} "
                    f"and matrices are {own}. Give it more heads, concatenated outputs and "
                    "factored matrices, or feed_forward = 'usual'"
                )
            return ""

    def __init__(
        self, config: Config, d_model: int, labels: int, matrices: Matrices | None = "factored"
    ) -> None:
        """Random weights; RecipeError if there are no labels to have heads for, or a problem."""
        super().__init__()
        heads = config.heads or labels
        if not heads:
            raise RecipeError(
                "label attention has a head for each label of the training trees, but they have "
                "none; set label_attention.heads to a number"
            )
        if problem := config.problem(d_model, matrices, heads):
            raise RecipeError(problem)
        matrices = config.matrices or matrices or "full"
        self.concatenated = config.outputs == "concatenated"
        self.d_out = heads * config.d_proj if self.concatenated else d_model
        self.d_block = config.d_proj if self.concatenated else None  # features stay in their place
        d_kv = config.d_kv
        kind = LabelHeads if config.queries == "vectors" else AttentionHeads
        self.heads: LabelHeads | AttentionHeads = kind(config, d_model, heads, matrices)
        if isinstance(self.heads, AttentionHeads):
            init_heads(self.heads.project, heads, d_kv)
        inputs = d_kv if self.concatenated else heads * d_kv
        self.output = LINEAR[matrices](inputs, d_model, bias=False)
        if self.concatenated:
            self.reduce = nn.Linear(d_model, config.d_proj, bias=False)
        else:
            init_heads(self.output, heads, d_kv, back=True)
        self.norm = layer_norm(self.d_block or d_model, config.layer_norm)
        self.output_dropout = SentenceDropout(config.head_dropout)
        self.feed_forward: FeedForward | None = None
        if config.feed_forward != "none":
            kept = "full" if self.concatenated else matrices
            last = d_model // 2 if config.feed_forward == "released" else 0
            self.feed_forward = FeedForward(config, self.d_out, kept, last)

    def forward(self, rows: Tensor, layout: Ragged) -> Tensor:
        """``[tokens, d_model]`` to ``[tokens, d_out]``, of each sentence by itself."""
        if self.concatenated:
            found = self.features(rows, layout).flatten(1)
        else:
            joined = self.output.from_heads(self.heads.contexts(rows, layout))
            found = self.norm(rows + self.output_dropout(self._of_tokens(joined, layout), layout))
        return found if self.feed_forward is None else self.feed_forward(found, layout)

    def features(self, rows: Tensor, layout: Ragged) -> Tensor:
        """What each head gives each token, ``[tokens, heads, d_proj]``; if concatenated."""
        added = self._reduced(self.heads.contexts(rows, layout), layout).to(rows.dtype)
        own = self.reduce(rows).to(rows.dtype)
        return self.norm(self._of_tokens(added, layout).add_(own[:, None]))

    def weights(self, rows: Tensor, layout: Ragged) -> list[Tensor]:
        """Weights of each sentence, ``[heads, n]``; ``[heads, n, n]`` with query matrices."""
        pairs = zip(self.heads.weights(rows, layout), layout.lengths.tolist(), strict=True)
        return [weights[..., :n][:, :n] for weights, n in pairs]

    def _of_tokens(self, found: Tensor, layout: Ragged) -> Tensor:
        """``[tokens, ...]`` from what was found for each, or for each sentence."""
        per_sentence = isinstance(self.heads, LabelHeads)
        return found.index_select(0, layout.sentence) if per_sentence else found

    def _reduced(self, contexts: Tensor, layout: Ragged) -> Tensor:
        """Contexts ``[..., heads, d_kv]`` of sentences or tokens through ``R O``."""
        p = self.output_dropout.p if self.training else 0.0
        if p == 0:
            matrices = [matrix[0] for matrix in self.output.head_matrices(1)]
            pairs = zip(self.reduce.weight.chunk(len(matrices), dim=1), matrices, strict=True)
            return functional.linear(contexts, torch.cat([r @ o for r, o in pairs], dim=1))
        # Between O and R features are dropped, for each head and sentence others.
        shape = (len(layout.lengths), contexts.shape[1], self.reduce.in_features)
        masks = contexts.new_empty(shape).bernoulli_(1 - p).div_(1 - p)
        if isinstance(self.heads, LabelHeads):
            return self.reduce(self.output(contexts.flatten(0, 1)).view(shape) * masks)

        def of_head(context: Tensor, mask: Tensor) -> Tensor:
            masked = self.output(context) * mask.index_select(0, layout.sentence)
            return functional.linear(masked, self.reduce.weight)

        # [tokens, heads, d_model] is the largest array by far, so there is one head of it at a
        # time, which is computed once more on the way back.
        pairs = zip(contexts.unbind(1), masks.unbind(1), strict=True)
        again = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
        return torch.stack([again(of_head, *pair) for pair in pairs], dim=1)
