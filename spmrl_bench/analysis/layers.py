"""Layers named by their place in a stack of any height, such as its first half.

A paper says "the first four of eight layers"; a smaller model has four in all. The same share
of the stack is what compares, and of eight layers it is what the paper says.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator

_SHARES = {"half": Fraction(1, 2), "3/4": Fraction(3, 4)}
NAMES = ("all", "none", *(f"{end} {share}" for share in _SHARES for end in ("first", "last")))


def _checked(value: object) -> object:
    """One message for a value that is neither a name nor a list of numbers."""
    if isinstance(value, str) and value in NAMES:
        return value
    if isinstance(value, list | tuple) and all(type(n) is int and n >= 0 for n in value):
        return tuple(value)
    raise ValueError(f"layers are {', '.join(map(repr, NAMES))}, or a list of numbers from 0 on")


#: ``all`` and ``none``, a share of the stack, or layers by number, the first of which is 0.
Layers = Annotated[str | tuple[int, ...], BeforeValidator(_checked)]


def layer_numbers(layers: str | tuple[int, ...], count: int) -> tuple[int, ...]:
    """The layers of a stack that a name stands for, in ascending order.

    A share that is no whole number of layers is rounded up: the first half of five is three.

    Args:
        layers: one of NAMES, or the numbers themselves.
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
