"""The signature of a score: what was done to get it, in one line.

Two F1 scores of "German" can differ by ten points because of the parameter file, the tags or
the sentences that were left out. A score is printed with its signature, as sacreBLEU does,
and scores are comparable where their signatures say so. It is computed from the counts, the
rules and the data that were used, never from what somebody asked for. Where the parses come from
is not known here, but the keys of that stand in the order of all.

Two runs of one variant may differ in a single setting. Wherever a run is named (in the signature of
its scores, its row of a table, its folder), so are the settings that are not the recipe's.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from spmrl_bench import __version__
from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.storage.digests import digest

if TYPE_CHECKING:
    from spmrl_bench.scoring.metric import Metric

#: Keys in the order of a signature, with their short forms.
KEYS = {
    "scorer": "sc", "match": "m", "prm": "p", "punctuation": "punct", "missing": "miss",
    "outer": "outer", "escapes": "esc", "relations": "rel", "roots": "root",
    "treebank": "tb", "split": "s", "sentences": "n", "skipped": "skip", "counts": "cnt",
    "tags": "t", "learns": "learn", "encoder": "enc", "transforms": "tr", "variant": "var",
    "settings": "set", "ensemble": "ens", "size": "sz", "precision": "prec", "seed": "seed",
    "output": "out", "version": "v",
}  # fmt: skip
_COUNTING = tuple(KEYS)[: tuple(KEYS).index("treebank")]
_RESERVED = "|:\n"

# Characters of a folder name that mean nothing to a shell, a URL or a file system.
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=,-]")
# Those that separate parts of a signature or of a Markdown table, and those that cannot be seen.
_SEPARATING = re.compile(r"[%|:`\x00-\x1f\x7f\x85\u2028\u2029]")
# Strings that are shown without quotation marks.
_PLAIN = re.compile(r"[\w./~@+-]+")
_LONGEST_FOLDER = 80


@dataclass(frozen=True, slots=True)
class Signature:
    """Keys and values of a signature, in the order of :data:`KEYS`."""

    items: tuple[tuple[str, str], ...]  # a key that does not apply is absent

    @classmethod
    def of(cls, values: Mapping[str, str | None]) -> Signature:
        """Return the signature of values by key; None stands for a key that does not apply. Raise a
        ScoreError if a value contains a character that separates the parts of a signature."""
        # A metric's own keys that are not listed stand behind those that say how it counts.
        order = dict.fromkeys([*_COUNTING, *(key for key in values if key not in KEYS), *KEYS])
        items = [(key, value) for key in order if (value := values.get(key)) is not None]
        for key, value in items:
            if any(mark in value for mark in _RESERVED):
                raise ScoreError(
                    f"signature: the {key} {value!r} must not contain '|', ':' or line ends"
                )
        return cls(tuple(items))

    def long(self) -> str:
        """``key:value|key:value|...`` with whole keys."""
        return "|".join(f"{key}:{value}" for key, value in self.items)

    def short(self) -> str:
        """The same with short keys."""
        return "|".join(f"{KEYS.get(key, key)}:{value}" for key, value in self.items)

    def as_dict(self) -> dict[str, str]:
        """The pairs as a dict, for records."""
        return dict(self.items)

    def __str__(self) -> str:
        return self.long()


def sign(metric: Metric[Any, Any], counts: Counts, rules: Any, /, **also: str | None) -> Signature:
    """Return the signature of the score that counts give.

    ``rules`` are those that the metric counted by. ``also`` are further values by key: those of the
    sentences and their parses as far as known and, in place of the metric's own, the ``scorer``
    where another program counted. Raise a ScoreError if a value contains a character that separates
    the parts of a signature.
    """
    own = {"sentences": str(len(counts)), "skipped": str(counts.skipped), "version": __version__}
    return Signature.of(own | metric.counting(rules) | also)


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
    return f"{safe[: _LONGEST_FOLDER - 9]}_{digest(dict(settings))[:8]}"


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
