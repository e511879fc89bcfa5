"""Where each page lies: names that every file system, server and shell takes as they are.

Names of treebanks, variants and systems come from records, which may be anybody's, so none is
used as it stands. A name keeps its letters where it can; what was changed, or would be the same as
another's where capitals do not count, ends with digits of a hash of the whole. So an address does
not depend on what else there is, unless two names differ in nothing but such characters.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

from spmrl_bench.storage.paths import path_fault

Thing = TypeVar("Thing", bound=Hashable)

_LONGEST = 60
_DIGITS = 8
_OTHERS = re.compile(r"[^A-Za-z0-9._=+-]+")


def slugs(texts: Mapping[Thing, str]) -> dict[Thing, str]:
    """A name of its own for each thing, from what it is called.

    Args:
        texts: what things are called, different for different things.
    """
    plain = {thing: _plain(text) for thing, text in texts.items()}
    several = Counter(name.lower() for name in plain.values())
    return {
        thing: name if several[name.lower()] == 1 else _marked(name, texts[thing])
        for thing, name in plain.items()
    }


def _plain(text: str) -> str:
    """The text where it can be a name, else what is left of it and a hash."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = _OTHERS.sub("-", ascii_text).strip(".-")
    # Blanks and the brackets around settings are no loss.
    lost = re.search(r"[^A-Za-z0-9._=+(), -]", text)
    if lost or not name or len(name) > _LONGEST or path_fault(name) is not None:
        return _marked(name, text)
    return name


def _marked(name: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{name[:_LONGEST].strip('.-') or 'unnamed'}-{digest}"
