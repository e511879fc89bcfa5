"""Layers named by their place in a stack of any height, such as its first half.

A paper says "the first four of eight layers"; a smaller model has four in all. The same share
of the stack is what compares, and of eight layers it is what the paper says.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

LayerNumber = Annotated[int, Field(ge=0)]
#: ``all`` and ``none``, a share of the stack, or layers by number, the first of which is 0.
Layers = (
    Literal["all", "none", "first half", "last half", "first 3/4", "last 3/4"]
    | tuple[LayerNumber, ...]
)

_SHARES = {"half": Fraction(1, 2), "3/4": Fraction(3, 4)}


def layer_numbers(layers: Layers, count: int) -> tuple[int, ...]:
    """The layers of a stack that a name stands for, in ascending order.

    A share that is no whole number of layers is rounded up: the first half of five is three.

    Args:
        layers: the name, or the numbers themselves.
        count: how many layers the stack has.

    Raises:
        ValueError: a number is that of no layer.
    """
    if not isinstance(layers, str):
        absent = [number for number in layers if not 0 <= number < count]
        if absent:
            known = f"the layers are 0 to {count - 1}" if count else "there are no layers"
            raise ValueError(f"layer {absent[0]}: {known}")
        return tuple(sorted(set(layers)))
    if layers in ("all", "none"):
        return tuple(range(count)) if layers == "all" else ()
    end, _, share = layers.partition(" ")
    taken = math.ceil(_SHARES[share] * count)
    return tuple(range(taken) if end == "first" else range(count - taken, count))
