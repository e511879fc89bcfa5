"""Random weights by one rule for a whole network, in place of what each layer starts from.

Layers start from what their papers say or what torch gives them (``usual``). Zhang et al. 2017
(section 4) draw all weights instead from a normal distribution with mean 0 whose *variance* they
print as ``sqrt(6 / (rows + columns))`` (``glorot-normal``). That is the *bound* of the uniform
distribution of Glorot & Bengio 2010 (formula 16), which they probably mean (``glorot-uniform``).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Literal

import torch
from torch import nn

Initialisation = Literal["usual", "glorot-normal", "glorot-uniform"]
#: Layers whose weights are so many matrices, one below the other.
GATES = {nn.LSTM: 4, nn.LSTMCell: 4, nn.GRU: 3, nn.GRUCell: 3}


@torch.no_grad()
def initialise(
    module: nn.Module, rule: Initialisation, kept: Collection[nn.Parameter] = ()
) -> None:
    """Draw the weights of a module anew, in place; nothing if ``usual``.

    Each matrix has its own rows and columns, of more than two axes the last two. Rows of an
    embedding that are zero stay so, biases become zero; other vectors stay, and what is ``kept``.
    """
    if rule == "usual":
        return
    left = set(map(id, kept))
    for part in module.modules():
        gates = next((n for cell, n in GATES.items() if isinstance(part, cell)), 1)
        for name, weight in part.named_parameters(recurse=False):
            if id(weight) not in left and name.startswith("bias"):
                weight.zero_()
            elif id(weight) not in left and weight.dim() >= 2:
                bound = math.sqrt(6 / (weight.shape[-2] // gates + weight.shape[-1]))
                unseen = isinstance(part, nn.Embedding) & (weight == 0).all(dim=-1, keepdim=True)
                if rule == "glorot-normal":
                    weight.normal_(std=math.sqrt(bound))
                else:
                    weight.uniform_(-bound, bound)
                weight.masked_fill_(unseen, 0)
