"""The steps of a decoder in a search, with compiled kernels and without products of contexts.

The same as :meth:`ActionDecoder.step` up to rounding. A beam of K asks ``2 n K`` times for a
sentence of ``n`` words, each time with a context of a few thousand features, and most of the
arithmetic would be products of contexts with weights. But a context is a mean of the words, and
without dropout a product of a mean is the mean of the products::

    W c^m = W sum_t a^m_t h_t = sum_t a^m_t (W h_t)

So what the first recurrent layer, the hidden layer of the scores and the next layer of attention
read of a context are computed of each word once, and attention takes means of these. What they read
of the action before comes from tables. Left to each step are the products of states.

Kernels and the order of sums are those of :mod:`spmrl_bench.nn.fused_steps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.fused_steps import FEW, asking_words, of_states
from spmrl_bench.nn.kernels import product_rows
from spmrl_bench.nn.stack_attention import Sources, Stacks

if TYPE_CHECKING:
    from spmrl_bench.nn.action_decoder import ActionDecoder


class FusedSearch:
    """As :class:`~spmrl_bench.nn.action_decoder.Search`, for a decoder outside of training."""

    @torch.no_grad()
    def __init__(self, decoder: ActionDecoder, sources: Sources, dtype: torch.dtype) -> None:
        """Prepare for the sentences of ``sources``.

        Raises:
            ArrayError: a parameter, or what there is of the words, is not float32 on the CPU.
        """
        kernels.check_types(decoder)
        for part in sources:
            kernels.check_weight(decoder, part, *part.shape)
        self._kernel = kernels.load("_decoder")
        self._dtype = dtype
        self._low = dtype != torch.float32
        attention, cells = decoder.attention, list(decoder.cells)
        self._score = attention.score.detach()[0]
        self._pushed = None if attention.pushed is None else attention.pushed.detach()[0]
        self._layers = len(cells)
        self._size = size = decoder.scores.in_features
        self._attentions, self._width = len(attention.queries), attention.score.shape[1]
        queries = [query.get_parameter("weight") for query in attention.queries]
        embedded, own = decoder.embedding.weight, decoder.embedding.embedding_dim
        first, hidden = cells[0], decoder.hidden
        # What comes of the action before.
        self._read_table = linear(embedded, first.weight_ih[:, :own], first.bias_ih)
        self._hidden_table = linear(embedded, hidden.weight[:, :own], hidden.bias)
        # What comes of the words: [B, N, attentions, 4 size].
        readers = torch.cat((first.weight_ih[:, own:], hidden.weight[:, own + size :]))
        of_layer = readers.view(4 * size, self._attentions, -1).transpose(0, 1).flatten(0, 1)
        shape = sources.words.shape[:2]
        more = product_rows(shape.numel(), dtype) - shape.numel()
        words, keys = (
            pad(part.flatten(0, 1), (0, 0, 0, more)).unsqueeze(0)
            for part in (sources.words.to(dtype), sources.keys)
        )
        low = [query.to(dtype) for query in queries]
        self._values, self._keys = (
            found[0, : shape.numel()].unflatten(0, shape).contiguous()
            for found in (
                linear(words, of_layer.to(dtype)).float(),
                asking_words(words, keys, low, size),
            )
        )
        # What comes of the states; products of few rows read weights faster so.
        self._of_states = [
            self._turned(weight)
            for weight in (
                *(cell.weight_hh.roll(size, 0) for cell in cells[:-1]),
                of_states(queries, cells[-1].weight_hh),
            )
        ]
        self._biases = [cell.bias_hh.detach().roll(size) for cell in cells]
        self._of_inputs = [self._turned(cell.weight_ih) for cell in cells[1:]]
        self._bases = [self._read_table, *(cell.bias_ih.detach() for cell in cells[1:])]
        self._of_hidden = self._turned(hidden.weight[:, own : own + size])
        self._scores = decoder.scores
        self._after: list[Tensor] = []

    def _turned(self, weight: Tensor) -> Tensor:
        return weight.to(self._dtype).t().contiguous()

    def _threads(self, count: int) -> int:
        return torch.get_num_threads() if count >= FEW else 1

    @torch.no_grad()
    def step(self, last: Tensor, parents: Tensor, stacks: Stacks) -> Tensor:
        """As :meth:`Search.step <spmrl_bench.nn.action_decoder.Search.step>`.

        Raises:
            ArrayError: a tensor is of another type or shape, or the action before does not exist.
        """
        count, size, low, top = len(last), self._size, self._low, self._layers - 1
        if stacks.removed.dim() != 3 or stacks.pushed.shape != stacks.removed.shape:
            raise ArrayError(
                f"pushed and removed have the shapes {list(stacks.pushed.shape)} and "
                f"{list(stacks.removed.shape)}; both must be [sentences, hypotheses, words]."
            )
        each = stacks.removed.shape[1]
        check_indices = kernels.load("_tensors").check_indices
        check_indices(last, "last", len(stacks.removed) * each, 0, len(self._read_table))
        if self._after:
            check_indices(parents, "parents", count, 0, len(self._after[0]))
        asking, wide = self._attentions * self._width, 4 * size
        threads = self._threads(count)
        # Rows beyond the hypotheses only make products as large as others; nobody reads them.
        rounded = product_rows(count, self._dtype)
        if self._after:
            chosen = pad(parents, (0, rounded - count))
            before = [state.index_select(0, chosen) for state in self._after]
        else:
            before = [torch.zeros(rounded, size) for _ in range(self._layers)]
        after = [torch.zeros(rounded, size) for _ in before]
        after_low = [state.to(self._dtype) for state in after]  # the same where not low
        kept = [
            torch.mm(state.to(self._dtype), weight)
            for state, weight in zip(before, self._of_states, strict=True)
        ]
        # What comes of the contexts.
        read = torch.empty(count, wide)
        words = stacks.removed.shape[2]
        self._kernel.attend(
            kept[top][:count], asking + 3 * size, low, self._keys, self._values, True,
            stacks.pushed.flatten(0, 1), stacks.removed.flatten(0, 1), self._score, self._pushed,
            None, torch.empty(count, asking), torch.empty(count, self._attentions, words), read,
            wide, 0, None, 0, count, each, words, self._attentions, self._width, wide, threads,
        )  # fmt: skip
        gates = torch.empty(count, wide)
        rows = read
        for layer in range(self._layers):
            if layer:
                rows = torch.mm(after_low[layer - 1], self._of_inputs[layer - 1])[:count]
            lead = asking if layer == top else 0
            self._kernel.cell(
                kept[layer][:count], lead + 3 * size, lead, self._biases[layer], rows,
                3 * size if layer else wide, low and layer > 0, self._bases[layer],
                0 if layer else 3 * size, None if layer else last, low, gates,
                before[layer][:count], after[layer][:count], after_low[layer][:count], None, 0,
                None, None, size, 0, 0, count, count, threads,
            )  # fmt: skip
        self._after = after
        hidden = torch.mm(after_low[top], self._of_hidden).float()
        hidden[:count] += read[:, 3 * size :]
        hidden[:count] += self._hidden_table.index_select(0, last)
        scores: Tensor = self._scores(hidden.tanh_())
        return scores[:count]
