"""ELMo (Peters et al. 2018): words as the layers of a language model that reads characters.

The language model is used as it was published; :mod:`spmrl_bench.pretrained.elmo_files` says
what its files hold. Learned are the weights with which its layers are mixed and the map to the
width of the parser, as in Kitaev & Klein 2018.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn.inputs import Boundary, CodedInput, Codes, Frozen
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.pretrained.elmo_files import (
    PADDING,
    SENTENCE_START,
    SENTENCE_STOP,
    WORD_START,
    WORD_STOP,
    Array,
    ElmoWeights,
    cell_group,
    read_elmo,
)

#: Bound on the numbers that one kind of filter gives for the forms worked on at once.
FILTERED = 1 << 24
#: Tokens whose gates are computed at once from the input of a layer.
GATES = 1 << 10


def character_ids(form: str | Boundary, longest: int) -> NDArray[np.int64]:
    """The characters of a form between its marks, int64 ``[longest]`` at most.

    A form is its bytes in UTF-8, cut where there are more than ``longest`` with the marks (a
    character of several bytes can be cut in two, which is how the models were trained). START
    and STOP are a character each. There is no form that stands for them: ``<S>`` is three bytes.
    """
    if isinstance(form, Boundary):
        inner = [SENTENCE_START if form is Boundary.START else SENTENCE_STOP]
    else:
        inner = list(form.encode("utf-8", "ignore")[: longest - 2])
    return np.array([WORD_START, *inner, WORD_STOP], dtype=np.int64)


class _Map(nn.Module):
    """An affine map with published weights."""

    def __init__(self, weight: Array, bias: Array) -> None:
        super().__init__()
        self.weight, self.bias = _parameter(weight), _parameter(bias)

    def forward(self, rows: Tensor) -> Tensor:
        return torch.addmm(self.bias, rows, self.weight)


class _Filters(nn.Module):
    """Filters of one width with published weights, and the largest value of each."""

    def __init__(self, weight: Array, bias: Array) -> None:
        super().__init__()
        self.weight, self.bias = _parameter(weight.transpose(2, 1, 0)), _parameter(bias)

    def forward(self, embedded: Tensor) -> Tensor:
        """``[forms, d, columns]`` to ``[forms, filters]``."""
        return functional.conv1d(embedded, self.weight, self.bias).amax(dim=2)


class CharCNN(nn.Module):
    """Vectors of forms: filters over their characters, highways, and a projection.

    A filter sees the whole width of a word, which padding fills up to a fixed number of
    characters, so that padding takes part in the largest value of each filter.
    """

    def __init__(self, weights: ElmoWeights) -> None:
        super().__init__()
        options, tensors = weights.options.char_cnn, weights.tensors

        def maps(name: str) -> nn.ModuleList:
            groups = [f"CNN_high_{i}" for i in range(options.n_highway)]
            return nn.ModuleList(
                _Map(tensors[f"{group}/W_{name}"], tensors[f"{group}/b_{name}"]) for group in groups
            )

        self.longest = options.max_characters_per_token
        self.activation = torch.relu if options.activation == "relu" else torch.tanh
        self.embedding = _parameter(tensors["char_embed"])
        self.filters = nn.ModuleList(
            _Filters(tensors[f"CNN/W_cnn_{i}"][0], tensors[f"CNN/b_cnn_{i}"])
            for i in range(len(options.filters))
        )
        self._widest = max(width for width, _ in options.filters)
        self._most = max(number for _, number in options.filters)
        self.transforms, self.carries = maps("transform"), maps("carry")
        self.projection = _Map(tensors["CNN_proj/W_proj"], tensors["CNN_proj/b_proj"])

    def forward(self, characters: Tensor, lengths: Tensor) -> Tensor:
        """Vectors of forms, ``[forms, projection_dim]``.

        Args:
            characters: int64 ``[forms, any]``, see :func:`character_ids`.
            lengths: int64 ``[forms]``; what lies beyond is not read.
        """
        order = lengths.argsort(descending=True)
        parts: list[Tensor] = []
        start = 0
        while start < len(order):
            # As wide as the longest of the rest needs: windows that lie wholly in padding are all
            # alike, so that one of them is enough.
            columns = min(self.longest, int(lengths[order[start]]) + self._widest)
            chosen = order[start : start + max(1, FILTERED // (columns * self._most))]
            start += len(chosen)
            given = characters.index_select(0, chosen)[:, :columns]
            ids = given.new_full((len(chosen), columns), PADDING)
            ids[:, : given.shape[1]] = given
            beyond = torch.arange(columns, device=ids.device) >= lengths[chosen][:, None]
            parts.append(self._filtered(ids.masked_fill_(beyond, PADDING)))
        rows = torch.cat(parts)
        rows = torch.empty_like(rows).index_copy_(0, order, rows)
        for transform, carry in zip(self.transforms, self.carries, strict=True):
            gate = torch.sigmoid(carry(rows))
            rows = gate * torch.relu(transform(rows)) + (1 - gate) * rows
        result: Tensor = self.projection(rows)
        return result

    def _filtered(self, ids: Tensor) -> Tensor:
        """``[forms, columns]`` to ``[forms, filters]``: the largest value of each."""
        embedded = functional.embedding(ids, self.embedding).transpose(1, 2)
        largest = [filters(embedded) for filters in self.filters]
        return self.activation(torch.cat(largest, dim=1))


class ProjectedLSTM(nn.Module):
    """One layer in one direction: cells, from which a narrower state is made; both are clipped."""

    def __init__(self, weights: ElmoWeights, group: str) -> None:
        super().__init__()
        options, tensors = weights.options.lstm, weights.tensors
        self.cell_clip, self.state_clip = options.cell_clip, options.proj_clip
        self.cells, width = options.dim, options.projection_dim
        kernel, bias = tensors[f"{group}/W_0"], tensors[f"{group}/B"].copy()
        bias[2 * self.cells : 3 * self.cells] += 1  # of the forget gate
        self.from_input, self.from_state = _parameter(kernel[:width]), _parameter(kernel[width:])
        self.bias = _parameter(bias)
        self.projection = _parameter(tensors[f"{group}/W_P_0"])

    def forward(self, rows: Tensor, counts: list[int]) -> Tensor:
        """States ``[tokens, projection_dim]`` of sentences that all begin without one.

        Args:
            rows: ``[tokens, projection_dim]``, step by step: the first tokens of all sentences,
                the second of those that have one, and so on; sentences always in the same order.
            counts: sentences that have a token at each step, never more than before.
        """
        state = rows.new_zeros(counts[0], self.projection.shape[1])
        cell = rows.new_zeros(counts[0], self.cells)
        states = []
        for steps in _groups(counts, GATES):
            tokens, rows = rows.split((sum(steps), len(rows) - sum(steps)))
            for given in torch.addmm(self.bias, tokens, self.from_input).split(steps):
                gates = torch.addmm(given, state[: len(given)], self.from_state)
                take, new, keep, show = gates.chunk(4, dim=1)
                cell = take.sigmoid() * new.tanh() + keep.sigmoid() * cell[: len(given)]
                if self.cell_clip is not None:
                    cell = cell.clamp(-self.cell_clip, self.cell_clip)
                state = (show.sigmoid() * cell.tanh()) @ self.projection
                if self.state_clip is not None:
                    state = state.clamp(-self.state_clip, self.state_clip)
                states.append(state)
        return torch.cat(states)


class BiLM(nn.Module):
    """All layers of the language model: the vectors of forms, and the states of both directions.

    Every sentence begins without a state. AllenNLP and ``bilm-tf`` hand the last states of a
    batch on to the next one, so that what a word becomes depends on what was read before; here
    it depends on its sentence alone.
    """

    def __init__(self, weights: ElmoWeights) -> None:
        super().__init__()
        options = weights.options.lstm
        self.skip = options.use_skip_connections
        self.characters = CharCNN(weights)
        self.directions = nn.ModuleList(
            nn.ModuleList(
                ProjectedLSTM(weights, cell_group(direction, layer))
                for layer in range(options.n_layers)
            )
            for direction in (0, 1)
        )
        self.layers = 1 + options.n_layers
        self.width = 2 * options.projection_dim

    def forward(self, codes: Codes, layout: Ragged) -> Tensor:
        """``[layers, tokens, width]``, START and STOP included.

        The first layer is the vector of the form, twice; of each other the first half is the
        state of the forward direction and the second that of the backward one.
        """
        forms = self.characters(codes.values, codes.lengths)
        rows = forms.index_select(0, codes.rows)
        steps = layout.position
        counts = torch.bincount(steps).tolist()  # the same from either end
        last = layout.lengths.index_select(0, layout.sentence) - 1
        forward, backward = (
            self._states(rows, _step_by_step(from_end, layout), counts, layers)
            for from_end, layers in zip((steps, last - steps), self.directions, strict=True)
        )
        pairs = zip([rows, *forward], [rows, *backward], strict=True)
        return torch.stack([torch.cat(pair, dim=1) for pair in pairs])

    def _states(
        self, rows: Tensor, order: Tensor, counts: list[int], layers: nn.Module
    ) -> list[Tensor]:
        """What each layer of one direction gives, ``[tokens, projection_dim]`` like ``rows``."""
        given = rows.index_select(0, order)
        found = []
        assert isinstance(layers, nn.ModuleList)
        for number, layer in enumerate(layers):
            states = layer(given, counts)
            given = given + states if number and self.skip else states
            found.append(torch.empty_like(given).index_copy_(0, order, given))
        return found


class Elmo(CodedInput):
    """The layers of a language model, mixed and mapped to the width of the content.

    The mix is ``sum_k s_k layer_k`` where ``s`` is the softmax of learned weights, at first all
    equal; the factor that Peters et al. put before the sum is left out, as the map that follows
    can have any size. The vectors of START and STOP come from the language model too.
    """

    def __init__(
        self,
        options_path: str | PathLike[str],
        weights_path: str | PathLike[str],
        d_content: int,
        dropout: float,
        form_dropout: float,
    ) -> None:
        """An input with a map still to be learned.

        Args:
            options_path, weights_path: the two files of the language model.
            d_content: width of the result.
            dropout: on the mix, for each of its numbers.
            form_dropout: on the result, for each sentence and feature.

        Raises:
            PretrainedError: as :func:`spmrl_bench.pretrained.elmo_files.read_elmo`.
        """
        super().__init__()
        weights = read_elmo(options_path, weights_path)
        model = BiLM(weights)
        self.longest = weights.options.char_cnn.max_characters_per_token
        self.model = Frozen(model)
        self.mix = nn.Parameter(torch.zeros(model.layers))
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(model.width, d_content, bias=False)
        self.form_dropout = SentenceDropout(form_dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        """Its characters, see :func:`character_ids`."""
        return character_ids(form, self.longest)

    def forward(self, codes: Codes, layout: Ragged) -> Tensor:
        """``[tokens, d_content]``."""
        layers = self.model(codes, layout)
        mixed = torch.tensordot(self.mix.softmax(0), layers, dims=1)
        return self.form_dropout(self.linear(self.dropout(mixed)), layout)


def _step_by_step(steps: Tensor, layout: Ragged) -> Tensor:
    """int64 ``[tokens]``: the order in which an LSTM reads them, long sentences first.

    Args:
        steps: int64 ``[tokens]``, at which step of its sentence each token is read.
        layout: of the sentences.
    """
    sentences = len(layout.lengths)
    ranks = torch.empty_like(layout.lengths)
    ranks[layout.lengths.argsort(descending=True)] = torch.arange(sentences, device=ranks.device)
    return (steps * sentences + ranks.index_select(0, layout.sentence)).argsort()


def _groups(counts: list[int], bound: int) -> Iterator[list[int]]:
    """The counts in their order, in groups whose sum keeps within a bound if it can."""
    group: list[int] = []
    for count in counts:
        if group and sum(group) + count > bound:
            yield group
            group = []
        group.append(count)
    if group:
        yield group


def _parameter(array: Array) -> nn.Parameter:
    return nn.Parameter(torch.from_numpy(np.ascontiguousarray(array)), requires_grad=False)
