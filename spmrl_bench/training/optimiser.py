"""What changes the weights: Adam or plain gradient descent, with a limit of the gradient.

Adam (Kingma & Ba 2015) gives every weight a step of about the learning rate, however long the
gradient is. Plain gradient descent, ``w - rate g``, has no memory of earlier steps and goes as
far as the gradient is long, which is why the parsers that were trained with it (Zhang et al.
2017) limit its norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from spmrl_bench.parsers.trained import TrainedParser
from spmrl_bench.training.config import TrainConfig


def make_optimiser(parser: TrainedParser, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimiser that the settings name, of all weights of a parser.

    Each group of weights has, besides what the optimiser wants, the ``share`` of the learning
    rate that it is trained with.
    """
    groups = _parameter_groups(parser, config)
    if config.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate)
    return torch.optim.Adam(
        groups,
        lr=config.learning_rate,
        betas=config.adam_betas,
        eps=config.adam_epsilon,
        fused=True,
    )


def limit_gradient(weights: Iterable[nn.Parameter], limit: float) -> float:
    """Scale the gradient ``g`` of all weights together to ``g limit / |g|`` if it is longer.

    Pascanu, Mikolov & Bengio 2013 (section 3.2), with the Euclidean norm.

    Args:
        weights: those that have a gradient count.
        limit: of the norm.

    Returns:
        The norm before; where it is no finite number, the gradient is left as it is.
    """
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms)).item()
    if limit < norm < math.inf:
        for gradient in gradients:
            gradient.mul_(limit / norm)
    return norm


def _parameter_groups(parser: TrainedParser, config: TrainConfig) -> list[dict[str, Any]]:
    """The weights, by the share of the learning rate that they are trained with."""
    pretrained = parser.pretrained_parameters()
    rate = config.pretrained_learning_rate or config.learning_rate
    known = set(map(id, pretrained))
    others = [weight for weight in parser.parameters() if id(weight) not in known]
    groups = [{"params": others, "share": 1.0}]
    if pretrained:
        groups.append({"params": pretrained, "share": rate / config.learning_rate})
    return groups
