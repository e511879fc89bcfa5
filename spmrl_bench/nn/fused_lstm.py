"""A bidirectional LSTM over words' characters on the CPU, of which only the last states matter.

The same function as torch's LSTM over a packed sequence, forwards and backwards. Torch slices
the packed sequence at every step, and the gradient of each slice is an array as large as the
whole. Here both directions walk through the forms at once, longest first; each step is one
batched product and one call of the kernel ``_lexical``, and the gradients of the weights are
one product over all steps.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from spmrl_bench.nn import kernels
from spmrl_bench.nn.kernels import ByHand, call, product_rows, rounds_rows

# Forms of a step below which a second thread costs more than it does.
FEW = 64


class Steps:
    """The order in which the characters of forms are worked on, step after step.

    Attributes:
        order: int64 ``[forms]``, the forms from longest to shortest.
        rows: int64 ``[characters]``, where the next character of each form lies in the
            flattened ``[longest, forms]`` table.
        backward: int64 ``[characters]``, where that of the other direction lies in ``rows``.
        counts: forms that take part in each step.
    """

    def __init__(self, lengths: Tensor) -> None:
        of_form = lengths.numpy()
        order = np.argsort(-of_form, kind="stable")
        in_order = of_form[order]
        taking_part = in_order[None, :] > np.arange(int(in_order[0]))[:, None]
        step, place = np.nonzero(taking_part)
        first = np.concatenate(([0], np.cumsum(taking_part.sum(axis=1))))
        self.order = torch.from_numpy(order)
        self.rows = torch.from_numpy(step * len(of_form) + order[place])
        self.backward = torch.from_numpy(first[in_order[place] - 1 - step] + place)
        self.counts: list[int] = np.diff(first).tolist()


def last_states(lstm: nn.LSTM, inputs: Tensor, steps: Steps, dtype: torch.dtype) -> Tensor:
    """Last states of both directions, ``[forms, 2 size]``.

    Args:
        lstm: one bidirectional layer with biases, for its weights.
        inputs: float32 ``[characters, features]``, in the order of ``steps.rows``.
        steps: of the forms' lengths.
        dtype: of the factors of the matrix products.
    """
    weights = [weight for each in lstm.all_weights for weight in each]
    result: Tensor = ByHand.apply(_Pass(steps, dtype), inputs, *weights)
    return result


class _Pass:
    """One way over all steps and perhaps back; direction 0 is forward, 1 backward."""

    def __init__(self, steps: Steps, dtype: torch.dtype) -> None:
        self.kernel = kernels.load("_lexical")
        self.steps = steps
        self.dtype = dtype
        self.low = dtype != torch.float32
        self.rounded = rounds_rows(dtype)
        self.forms = len(steps.order)

    def _threads(self, count: int) -> int:
        return torch.get_num_threads() if count >= FEW else 1

    @torch.autocast("cpu", enabled=False)  # the types are chosen here
    def forward(self, inputs: Tensor, *weights: Tensor) -> Tensor:
        """Last states, from the inputs and the eight weights of both directions."""
        dtype = self.dtype
        self.of_inputs = [weights[side].to(dtype) for side in (0, 4)]
        self.of_states = torch.stack([weights[side].to(dtype) for side in (1, 5)])
        biases = [weights[side] + weights[side + 1] for side in (2, 6)]
        self.real = len(inputs)
        # The first step has the most forms; a product of any step may read on that far.
        beyond = self.forms // 8 + 16 if self.rounded else 0
        self.rows = product_rows(self.real + beyond, dtype)
        rounded = torch.zeros(self.rows, inputs.shape[1], dtype=dtype)
        rounded[: self.real] = inputs
        mirrored = torch.zeros_like(rounded)
        torch.index_select(rounded, 0, self.steps.backward, out=mirrored[: self.real])
        self.inputs = [rounded, mirrored]
        size, rows, forms = weights[1].shape[1], self.rows, self.forms
        # Sums of the inputs' part first; each step adds the states' part and activates them.
        self.gates = torch.empty(2, rows, 4 * size, dtype=self.dtype)
        for side in range(2):
            torch.addmm(
                biases[side].to(self.dtype),
                self.inputs[side],
                self.of_inputs[side].t(),
                out=self.gates[side],
            )
        self.states = torch.empty(2, rows, size, dtype=self.dtype)
        self.cells = torch.empty(2, rows, size)
        self.states[:, :forms] = 0
        self.cells[:, :forms] = 0
        self.states[:, self.real :] = 0
        last, self.last_cells = torch.empty(2, forms, size), torch.empty(2, forms, size)
        more = torch.empty(2 * self._read(forms) * 4 * size, dtype=self.dtype)
        at = 0
        for step, count in enumerate(self.steps.counts):
            read = self._read(count)
            added = more[: 2 * read * 4 * size].view(2, read, 4 * size) if step else None
            if added is not None:
                states = self.states[:, at : at + read]
                torch.bmm(states, self.of_states.transpose(1, 2), out=added)
            call(
                self.kernel.step_forward, self.gates, added, read, self.low, self.states,
                self.cells, last, self.last_cells, rows, forms, size, at, count,
                self._going_on(step), self._threads(count),
            )  # fmt: skip
            at += count
        result = torch.empty(forms, 2 * size)
        result[self.steps.order] = torch.cat((last[0], last[1]), dim=1)
        return result

    def _read(self, count: int) -> int:
        """Rows of a step's product; the results of those beyond ``count`` are not used."""
        return product_rows(count, self.dtype)

    def _going_on(self, step: int) -> int:
        """Forms that take part in the next step too."""
        return self.steps.counts[step + 1] if step + 1 < len(self.steps.counts) else 0

    @torch.autocast("cpu", enabled=False)
    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Gradients of the inputs and of the eight weights."""
        size, forms = gradient.shape[1] // 2, self.forms
        # A form's last state is reached by its own last step: until then nothing touches it.
        in_order = gradient[self.steps.order]
        d_states = torch.stack((in_order[:, :size], in_order[:, size:]))
        d_cells = torch.zeros(2, forms, size)
        self.gates[:, self.real :] = 0
        at = self.real
        for step in range(len(self.steps.counts) - 1, -1, -1):
            count, going_on = self.steps.counts[step], self._going_on(step)
            if going_on:
                following = self.gates[:, at : at + self._read(going_on)]
                d_states[:, :going_on] = torch.bmm(following, self.of_states)[:, :going_on]
            at -= count
            call(
                self.kernel.step_backward, self.gates, self.low, self.cells, self.last_cells,
                d_states, d_cells, self.rows, forms, size, at, count, going_on,
                self._threads(count),
            )  # fmt: skip
        # The first step starts from zeros and adds nothing to the gradient of the states' part.
        later = 0 if self.rounded else forms
        by_side: list[Tensor] = []
        weights: list[Tensor] = []
        for side in range(2):
            gates = self.gates[side]
            by_side.append(torch.mm(gates, self.of_inputs[side])[: self.real].float())
            bias = gates.sum(0).float()
            weights += [
                torch.mm(gates.t(), self.inputs[side]).float(),
                torch.mm(gates[later:].t(), self.states[side, later:]).float(),
                bias,
                bias,
            ]
        # The two directions are mirror images, so the same places lead back.
        return [by_side[0] + by_side[1].index_select(0, self.steps.backward), *weights]
