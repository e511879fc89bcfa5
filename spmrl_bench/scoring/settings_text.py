"""Settings that were changed from the recipe's, in a few words.

Two runs of one variant may differ in a single setting. Wherever a run is named (the signature of
its scores, its row in a table, its folder), the settings that differ from the recipe belong to
the name, or the two would be taken for one. A setting is ``section.key`` with a value of JSON,
as :class:`spmrl_bench.experiments.recipe.RunConfig` keeps it; the section is left out where
that leaves no doubt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

# Characters of a folder name that mean nothing to a shell, a URL or a file system.
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=,-]")
# Those that separate parts of a signature or of a Markdown table, and those that cannot be seen.
_SEPARATING = re.compile(r"[%|:`\x00-\x1f\x7f\x85\u2028\u2029]")
# Strings that are shown without quotation marks.
_PLAIN = re.compile(r"[\w./~@+-]+")
_LONGEST_FOLDER = 80


def settings_text(settings: Mapping[str, Any], separator: str = ",") -> str:
    """``key=value`` of every setting, in the order of the keys; empty without settings.

    A value is shown as TOML writes it, a string without quotation marks where it has none of
    the characters that need them. Characters that a signature reserves are written as in a URL,
    as ``%`` and the digits of their bytes.
    """
    pairs = (f"{key}={_toml(value)}" for key, value in _short_keys(settings).items())
    return _SEPARATING.sub(lambda found: quote(found[0]), separator.join(pairs))


def settings_folder(settings: Mapping[str, Any]) -> str:
    """The same as part of a folder's name, different for different settings.

    Lists are joined by ``+``, and other characters that a shell or a file system could mistake
    are replaced; what was changed so, or is long, ends with digits of a hash.
    """
    pairs = []
    for key, value in _short_keys(settings).items():
        parts = value if isinstance(value, list) else [value]
        pairs.append(f"{key}={'+'.join(map(_toml, parts)) or 'none'}")
    whole = ",".join(pairs)
    safe = _UNSAFE.sub("_", whole)
    if safe == whole and len(safe) <= _LONGEST_FOLDER:
        return safe
    digest = hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode()).hexdigest()
    return f"{safe[: _LONGEST_FOLDER - 9]}_{digest[:8]}"


def variant_text(variant: str, settings: Mapping[str, Any]) -> str:
    """The variant, and in brackets what was changed: ``charlstm (matrices=full)``."""
    return f"{variant} ({settings_text(settings, ', ')})" if settings else variant


def _short_keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Sorted, and without the section where two keys do not end alike."""
    ends = Counter(key.partition(".")[2] for key in settings)
    shown = {}
    for key in sorted(settings):
        end = key.partition(".")[2] or key
        shown[end if ends[end] == 1 else key] = settings[key]
    return shown


def _toml(value: object) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{','.join(map(_toml, value))}]"
    return "none" if value is None else json.dumps(value)
