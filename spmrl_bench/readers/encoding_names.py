"""Names of encodings, as people give them: which are known, and what else may have been meant."""

from __future__ import annotations

import codecs
import encodings.aliases

from spmrl_bench.errors import SpmrlError, unknown_name

#: Codecs of Python that no file is written in; some take a time that grows with its square.
_NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")


def is_encoding(name: str) -> bool:
    """Whether files can be written in a codec of Python's; some are not for text."""
    try:
        known = codecs.lookup(name).name.replace("_", "-")
        b"a".decode(name)
    except UnicodeDecodeError:  # half a letter
        return True
    except (LookupError, ValueError):
        return False
    return known not in _NO_ENCODINGS


def check_encoding(name: str) -> str:
    """The name, if it is that of an encoding.

    Raises:
        SpmrlError: it is not; names that are near it are listed.
    """
    if not is_encoding(name):
        every = {alias.replace("_", "-") for alias in encodings.aliases.aliases.values()}
        near = unknown_name("encoding", name, filter(is_encoding, every)).partition(" Known:")[0]
        raise SpmrlError(f"{near} Any text encoding of Python is allowed, such as utf-8, cp1252")
    return name
