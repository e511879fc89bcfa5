"""JSON of others, as values that the rest of the program can be given without a thought.

pydantic's reader is fast and takes nothing but JSON, of bounded depth. What it lets through is
refused here: two values of one key, infinite numbers, and whole ones beyond 64 bits.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.files import LIMIT, read_bounded

#: Bound on lists, and on objects four times over, which take so much more memory than their text.
CONTAINERS = 1 << 22

_LARGEST = 2**63 - 1
_KEY, _LONG = re.compile(rb'"\s*:'), re.compile(rb"\d{19}")


def parse_json(data: bytes, *, wide: bool = False) -> Any:
    """The value of JSON in UTF-8; a ValueError says that it is none, or has what is named above.
    Whole numbers of other programs may be ``wide``, of more than 64 bits."""
    if data.count(b"[") + 4 * data.count(b"{") > CONTAINERS:
        raise ValueError("more lists and objects than any file of the program has")
    data = data.removeprefix(codecs.BOM_UTF8)
    value = from_json(data, allow_inf_nan=False)
    again = to_json(value)
    # Two values of one key, of which the first is lost, leave fewer keys, and fewer of what looks
    # like one in a string; only characters of ASCII that are written as numbers can hide that.
    lost = b"\\u00" in data or len(_KEY.findall(data)) != len(_KEY.findall(again))
    if lost or b"Infinity" in again or _LONG.search(data):
        whole = None if wide else _whole
        json.loads(data, object_pairs_hook=_object, parse_float=_finite, parse_int=whole)
    return value


def read_json(path: Path, error: type[SpmrlError], limit: int = LIMIT) -> Any:
    """The value of a JSON file; ``error`` if there is none, it is too large, or no JSON."""
    data = read_bounded(path, error, limit)
    try:
        return parse_json(data)
    except ValueError as problem:
        raise error(f"{path}: not valid JSON: {problem}") from None


def _object(pairs: list[tuple[str, Any]]) -> None:
    for key, times in Counter(key for key, _ in pairs).most_common(1):
        if times > 1:
            raise ValueError(f"the key '{key[:40]}' twice in one object")


def _whole(text: str) -> None:
    if len(text) > 20 or not -_LARGEST <= int(text) <= _LARGEST:
        raise ValueError(f"a whole number beyond {_LARGEST}")


def _finite(text: str) -> None:
    if not math.isfinite(float(text)):
        raise ValueError(f"the number {text[:40]}, which is too large")
