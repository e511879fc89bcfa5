"""JSON of others, as values that the rest of the program can be given without a thought.

The standard reader takes more than JSON (``NaN``), fails with whatever comes up (too deep a
nesting is a ``RecursionError``), and gives what fails later: half a character that cannot be
written again, a whole number beyond 64 bits, the last of two values of one key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.files import LIMIT, read_bounded

#: Lists and objects inside each other; no file of the program has ten.
DEPTH = 100
#: Bound on lists, and on objects four times over, which take so much more memory than their text.
CONTAINERS = 1 << 22
_LARGEST = 2**63 - 1

_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_LARGE_NUMBER = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{300}")
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def parsed_json(data: bytes, *, wide: bool = False) -> Any:
    """The value that bytes are, in UTF-8 with or without a mark at the beginning.

    Args:
        data: of a file.
        wide: whether whole numbers may have more than 64 bits, as other programs write them.

    Raises:
        ValueError: they are no JSON, or have what is named above.
    """
    if data.count(b"[") + 4 * data.count(b"{") > CONTAINERS:
        raise ValueError("more lists and objects than any file of the program has")
    # The usual readers of numbers are much faster.
    whole = _whole if not wide and _LONG_NUMBER.search(data) else None
    finite = _finite if _LARGE_NUMBER.search(data) else None
    try:
        value = json.loads(
            data.decode("utf-8-sig"),
            parse_int=whole,
            parse_float=finite,
            parse_constant=_no_constant,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    check_depth(value)
    if _HALF_CHARACTER.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise ValueError(f"\\u{ord(half):04x} is half a character") from None
    return value


def read_json(path: Path, error: type[SpmrlError], limit: int = LIMIT) -> Any:
    """The value of a JSON file.

    Raises:
        SpmrlError: of the class given: there is no such file, it is too large, or no JSON, as of
            :func:`parsed_json`.
    """
    data = read_bounded(path, error, limit)
    try:
        return parsed_json(data)
    except json.JSONDecodeError as problem:
        place = f"{path}:{problem.lineno}:{problem.colno}"
        raise error(f"{place}: not valid JSON: {problem.msg}") from None
    except ValueError as problem:
        raise error(f"{path}: not valid JSON: {problem}") from None


_TOO_DEEP = f"lists or objects more than {DEPTH} deep inside each other"


def check_depth(value: Any) -> None:
    """Make sure that lists and objects are not too deep inside each other; else a ValueError."""
    level: Sequence[Any] = [value]
    depth = 0
    while level := _inside(level):
        depth += 1
        if depth > DEPTH:
            raise ValueError(_TOO_DEEP)


def _inside(level: Sequence[Any]) -> list[Any]:
    """The members of the lists and objects among some values."""
    found: list[Any] = []
    for value in level:
        if type(value) is list:
            found += value
        elif type(value) is dict:
            found += value.values()
    return found


def check_whole(number: int) -> int:
    """Make sure that a whole number has 64 bits at most; else a ValueError."""
    if not -_LARGEST <= number <= _LARGEST:
        raise ValueError(f"a whole number beyond {_LARGEST}")
    return number


def _whole(text: str) -> int:
    return check_whole(int(text) if len(text) <= 20 else _LARGEST + 1)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]}, which is too large")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"the number {name}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key '{twice[:40]}' twice in one object")
    return found
