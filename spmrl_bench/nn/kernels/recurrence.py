"""Bidirectional LSTMs and GRUs over sequences of unequal length on the CPU: all or last states.

The functions of torch's LSTM and GRU (Cho et al. 2014; the reset gate weighs the state after its
product, not before) over a packed sequence. Torch slices that at every step, and the gradient of
each slice is as large as the whole. Here both directions walk through the sequences at once,
longest first; each step is one batched product and one call of the kernel ``_recurrent``, and the
gradients of the weights are one product over all steps.

A cell activates four sums. Those of an LSTM have a part from the input and one from the state.
A GRU, ``h' = (1 - z) n + z h`` with ``n = tanh(W_n x + b_n + r (U_n h + c_n))``, needs the parts
of ``n`` apart: its sums are the state's part of ``n``, then ``r`` and ``z``, which have both, then
the input's part of ``n``. So the input adds to the last three, in torch's order of the weights'
rows (``r``, ``z``, ``n``), and the state to the first three, which are those rows turned by one.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.kernels import Backward, check, check_weight, refuse, rounded_rows

RecurrentLayer = nn.LSTM | nn.GRU


class Steps:
    """The order in which the items of sequences are worked on, step after step; all are int64."""

    def __init__(self, lengths: Tensor) -> None:
        """Order sequences of these lengths, int64 ``[sequences]``, each at least 1."""
        if lengths.dtype != torch.int64 or lengths.dim() != 1 or not lengths.is_cpu:
            refuse(lengths, "lengths", "int64 [sequences] on the CPU")
        if not len(lengths) or not 1 <= int(lengths.min()) <= int(lengths.max()) < 1 << 40:
            raise ArrayError(f"lengths is {lengths.tolist()}; there must be some, each at least 1.")
        of_sequence = lengths.numpy()
        order = np.argsort(-of_sequence, kind="stable")
        in_order = of_sequence[order]
        taking_part = in_order[None, :] > np.arange(int(in_order[0]))[:, None]
        step, place = np.nonzero(taking_part)
        first = np.concatenate(([0], np.cumsum(taking_part.sum(axis=1))))
        ends = in_order[place] == step + 1
        # [sequences], from longest to shortest; [items], the place of each in its sequence, which
        # that is, where the item lies that the other direction reads then, and where the state
        # after it is kept, see _run.
        self.order, self.step = torch.from_numpy(order), torch.from_numpy(step)
        self.sequence = torch.from_numpy(order[place])
        self.backward = torch.from_numpy(first[in_order[place] - 1 - step] + place)
        self.after = torch.from_numpy(np.where(ends, first[-1], first[step + 1]) + place)
        counts: list[int] = np.diff(first).tolist()
        # Of each step its first item, its sequences, and how many of these go on.
        self.walk = list(zip(first.tolist(), counts, [*counts[1:], 0], strict=False))


def states(
    layer: RecurrentLayer, inputs: Tensor, steps: Steps, dtype: torch.dtype, *, every: bool
) -> Tensor:
    """Return the states of both directions that have read an item, ``[items, 2 size]``, or without
    ``every`` all of a sequence, ``[sequences, 2 size]``.

    ``layer`` is bidirectional and has biases; ``inputs`` are float32 ``[items, features]`` in the
    order of ``steps``; ``dtype`` is that of the factors of the matrix products.
    """
    weights = [weight for each in layer.all_weights for weight in each]
    sums = (3 if isinstance(layer, nn.GRU) else 4) * layer.hidden_size
    shapes = [(sums, layer.input_size), (sums, layer.hidden_size), (sums,), (sums,)]
    for weight, shape in zip(weights, 2 * shapes, strict=True):
        check_weight(layer, weight, *shape)
    check(inputs, "inputs", len(steps.step), layer.input_size)
    run = partial(_run, isinstance(layer, nn.GRU), steps, dtype, every)
    result: Tensor = kernels.CustomGradient.apply(run, inputs, *weights)
    return result


@torch.autocast("cpu", enabled=False)  # the types are chosen here
def _run(
    gru: bool, steps: Steps, dtype: torch.dtype, every: bool, inputs: Tensor, *weights: Tensor
) -> tuple[Tensor, Backward]:
    """The states, from the inputs and the eight weights; direction 0 is forward, 1 backward.

    Every item has a row with the state that its step starts from, ``[2, items, size]``: a step
    writes the state after it into the row of the sequence's next item, or, after the last, into
    the row of the sequence in ``[2, sequences, size]``.
    """
    size, sequences, real = weights[1].shape[1], len(steps.order), len(inputs)
    # Columns of the four sums: those before ``own`` have the state's part alone, those from
    # ``shared`` on the input's alone.
    own = size if gru else 0
    shared = 4 * size - own
    of_inputs = [weights[side].to(dtype) for side in (0, 4)]
    of_states = torch.stack([weights[side].roll(own, 0).to(dtype) for side in (1, 5)])
    biases = [
        (pad(weights[side], (own, 0)) + pad(weights[side + 1].roll(own), (0, own))).to(dtype)
        for side in (2, 6)
    ]
    # The first step has the most sequences; a product of any step may read on that far.
    beyond = sequences // 8 + 16 if kernels.rounds_rows(dtype) else 0
    rounded = torch.zeros(rounded_rows(real + beyond, dtype), inputs.shape[1], dtype=dtype)
    rounded[:real] = inputs
    mirrored = torch.zeros_like(rounded)
    torch.index_select(rounded, 0, steps.backward, out=mirrored[:real])
    read = rounded, mirrored
    # Sums of the inputs' part first; each step adds the states' part and activates them.
    gates = torch.empty(2, len(rounded), 4 * size, dtype=dtype)
    for side in range(2):
        gates[side, :, :own] = biases[side][:own]
        sums, weight = gates[side, :, own:], of_inputs[side].t()
        torch.addmm(biases[side][own:], read[side], weight, out=sums)
    bf16, threads = dtype != torch.float32, torch.get_num_threads()
    cells = kernels.load("recurrent").Cells(gru, bf16, sequences, gates, threads)
    cells.states[:, real:] = 0
    turned = of_states.transpose(1, 2)
    for at, count, going_on in steps.walk:
        # The results of rows beyond ``count`` are not used.
        before = cells.states[:, at : at + rounded_rows(count, dtype)]
        cells.forward(torch.bmm(before, turned) if at else None, at, count, going_on)
    if every:
        kept = torch.cat((cells.states[:, :real].float(), cells.last), dim=1)
        forward, backward = kept.index_select(1, steps.after)
        # The two directions are mirror images, so the same places lead back.
        result = torch.cat((forward, backward.index_select(0, steps.backward)), dim=1)
    else:
        result = torch.empty(sequences, 2 * size)
        result[steps.order] = torch.cat((cells.last[0], cells.last[1]), dim=1)

    @torch.autocast("cpu", enabled=False)
    def back(gradient: Tensor) -> list[Tensor]:
        forward, backward = gradient[:, :size], gradient[:, size:]
        # Of each sequence's state: by its own last step it is reached, and nothing touches it yet.
        d_states, d_cells = torch.zeros(2, 2, sequences, size).unbind()
        if every:
            d_every = torch.stack((forward, backward.index_select(0, steps.backward)))
        else:
            torch.index_select(forward, 0, steps.order, out=d_states[0])
            torch.index_select(backward, 0, steps.order, out=d_states[1])
        gates[:, real:] = 0
        for at, count, going_on in reversed(steps.walk):
            after = at + count
            if going_on:
                beyond = after + rounded_rows(going_on, dtype)
                following = torch.bmm(gates[:, after:beyond, :shared], of_states)
                d_states[:, :going_on] = following[:, :going_on]
            if every:
                d_states[:, :count] += d_every[:, at:after]
            cells.backward(d_states, d_cells, at, count, going_on)
        # The first step starts from zeros and adds nothing to the gradient of the states' part.
        later = 0 if kernels.rounds_rows(dtype) else sequences
        by_side, found = list[Tensor](), list[Tensor]()
        for side in range(2):
            of_input, of_state = gates[side, :, own:], gates[side, later:, :shared]
            by_side.append(torch.mm(of_input, of_inputs[side])[:real].float())
            bias = gates[side].sum(0).float()
            found += [
                torch.mm(of_input.t(), read[side]).float(),
                torch.mm(of_state.t(), cells.states[side, later:]).float().roll(-own, 0),
                bias[own:],
                bias[:shared].roll(-own),
            ]
        return [by_side[0] + by_side[1].index_select(0, steps.backward), *found]

    return result, back
