"""In which numbers the large matrix products are computed.

With ``bf16`` the products of the CharLSTM, of the encoder and of the decoder of actions take
bfloat16 numbers, which many processors multiply several times as fast. Weights and their updates,
the residual stream, layer norms, attention weights on the CPU, the span scorer, charts and losses
stay in float32: a bfloat16 number has eight bits, too few to add small steps to or to rank trees
by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

# Settings are read without torch, which takes a second to load.
Precision = Literal["float32", "bf16"]
FLOAT32: Precision = "float32"


def product_dtype(precision: Precision) -> torch.dtype:
    """The type of the factors of a product."""
    import torch

    return torch.bfloat16 if precision == "bf16" else torch.float32


def products(precision: Precision, device: torch.device) -> torch.autocast:
    """Context in which operations of torch compute products with this precision."""
    import torch

    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
