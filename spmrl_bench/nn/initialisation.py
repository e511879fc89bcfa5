"""Random weights by one rule for a whole network, in place of what each layer starts from.

Layers start from what their papers say or what torch gives them (``usual``). Zhang et al. 2017
(section 4) draw all weights instead from a normal distribution with mean 0 whose *variance* they
print as ``sqrt(6 / (rows + columns))`` (``glorot-normal``). That is the *bound* of the uniform
distribution of Glorot & Bengio 2010 (formula 16), whose variance is ``2 / (rows + columns)`` and
which they probably mean (``glorot-uniform``): of a matrix of 500 by 500 the printed formula makes
numbers of about 0.28, the other of about 0.04.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor, nn

from spmrl_bench.nn.choices import Initialisation


@torch.no_grad()
def initialise(
    module: nn.Module, rule: Initialisation, kept: Collection[nn.Parameter] = ()
) -> None:
    """Draw the weights of a module and all its parts anew, in place.

    - Matrices are drawn, each with its own rows and columns. The gates of an LSTM or GRU are
      matrices of their own, as in its formulas; an embedding is the matrix of its table, of which
      rows that are zero (of what is never seen) stay so. Of a weight with more than two axes the
      last two are rows and columns.
    - Biases, which are known by their name, become zero.
    - All other vectors stay as they are: the gains of norms, the weights of a mix.

    Args:
        module: whose parameters these are; with the rule ``usual`` nothing is done and no random
            number drawn.
        rule: of the distribution.
        kept: parameters to leave alone, such as those that were read from files.
    """
    if rule == "usual":
        return
    left = set(map(id, kept))
    for part in module.modules():
        gates = _gates(part)
        for name, weight in part.named_parameters(recurse=False):
            if id(weight) in left:
                continue
            if name.startswith("bias"):
                weight.zero_()
            elif weight.dim() >= 2:
                rows, columns = weight.shape[-2] // gates, weight.shape[-1]
                unseen = (weight == 0).all(dim=1) if isinstance(part, nn.Embedding) else None
                _draw(weight, rule, math.sqrt(6 / (rows + columns)))
                if unseen is not None:
                    weight[unseen] = 0


def _gates(part: nn.Module) -> int:
    """How many matrices lie one below the other in the weights of a layer."""
    if isinstance(part, nn.LSTM | nn.LSTMCell):
        return 4
    return 3 if isinstance(part, nn.GRU | nn.GRUCell) else 1


def _draw(weight: Tensor, rule: Initialisation, glorot: float) -> None:
    """Fill a weight; ``glorot`` is the root of 6 by the sum of rows and columns."""
    if rule == "glorot-normal":
        weight.normal_(std=math.sqrt(glorot))
    else:
        weight.uniform_(-glorot, glorot)
