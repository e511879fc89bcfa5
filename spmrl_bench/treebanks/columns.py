"""The sentences of a split as a few arrays, and their bytes.

Forty thousand trees are millions of small objects. Stored as columns (every distinct string
once, words and labels as numbers into that list, spans end to end) they take a file of some
megabytes that is written and read in a fraction of the time of the treebank's own files. The
bytes are in the safetensors format: loading them runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from spmrl_bench.garbage import no_collection
from spmrl_bench.json_files import parsed_json
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree, readonly_int32

_Arrays = dict[str, NDArray[Any]]

_NOTES = "notes"  # the array that holds what is no array, as JSON


def to_bytes(sentences: Sequence[Parse], notes: Mapping[str, Any]) -> bytes:
    """Sentences, all with the same layers, and anything JSON can hold, as bytes."""
    strings = _Strings()
    arrays: _Arrays = {
        "words": strings.numbers(sentence.words for sentence in sentences),
        "tags": strings.numbers(sentence.tags for sentence in sentences),
        "token_ends": _ends(map(len, sentences)),
    }
    if trees := [sentence.tree for sentence in sentences if sentence.tree is not None]:
        arrays["labels"] = strings.numbers(tree.labels for tree in trees)
        arrays["label_ends"] = _ends(len(tree.labels) for tree in trees)
        arrays["spans"] = np.concatenate([tree.spans for tree in trees])
    if layer := [one.dependencies for one in sentences if one.dependencies is not None]:
        arrays["heads"] = np.concatenate([tree.heads for tree in layer])
        arrays["relations"] = strings.numbers(tree.relations for tree in layer)
        layer_tags = strings.numbers(tree.tags for tree in layer)
        if not np.array_equal(layer_tags, arrays["tags"]):
            arrays["layer_tags"] = layer_tags
    arrays |= strings.arrays()
    arrays[_NOTES] = np.frombuffer(json.dumps(dict(notes)).encode(), dtype=np.uint8)
    return save(arrays)


def from_bytes(data: bytes) -> tuple[list[Parse], dict[str, Any]]:
    """What :func:`to_bytes` was given.

    Raises:
        ValueError: the bytes are not what :func:`to_bytes` makes.
    """
    try:
        arrays = load(data)
        notes = parsed_json(arrays[_NOTES].tobytes())
        with no_collection():
            return _sentences(arrays), notes
    except (SafetensorError, KeyError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"no stored sentences: {error}") from error


def _sentences(arrays: _Arrays) -> list[Parse]:
    strings = _strings(arrays)
    tokens = _slices(arrays["token_ends"])
    words, tags = (_parts(strings, arrays[name], tokens) for name in ("words", "tags"))
    trees: Iterable[Tree | None] = repeat(None)
    layer: Iterable[DependencyTree | None] = repeat(None)
    if "labels" in arrays:
        constituents = _slices(arrays["label_ends"])
        labels = _parts(strings, arrays["labels"], constituents)
        spans = readonly_int32(arrays["spans"])
        trees = map(Tree, words, tags, labels, [spans[part] for part in constituents])
    if "heads" in arrays:
        own = _parts(strings, arrays["layer_tags"], tokens) if "layer_tags" in arrays else tags
        relations = _parts(strings, arrays["relations"], tokens)
        heads = readonly_int32(arrays["heads"])
        layer = map(DependencyTree, words, own, [heads[part] for part in tokens], relations)
    return list(map(Parse, words, tags, trees, layer))


class _Strings:
    """Numbers strings in order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, texts: Iterable[tuple[str, ...]]) -> NDArray[np.int32]:
        """The numbers of all strings of all sentences, end to end."""
        known = self._numbers
        found = [known.setdefault(text, len(known)) for text in chain.from_iterable(texts)]
        return np.array(found, dtype=np.int32)

    def arrays(self) -> _Arrays:
        """Every string once, as UTF-8 end to end, and where each ends."""
        encoded = [text.encode() for text in self._numbers]
        return {
            "strings": np.frombuffer(b"".join(encoded), dtype=np.uint8),
            "string_ends": _ends(map(len, encoded)),
        }


def _strings(arrays: _Arrays) -> list[str]:
    data = arrays["strings"].tobytes()
    return [data[part].decode() for part in _slices(arrays["string_ends"])]


def _parts(
    strings: Sequence[str], numbers: NDArray[Any], parts: Sequence[slice]
) -> list[tuple[str, ...]]:
    """The strings of some numbers, part by part."""
    found = tuple(map(strings.__getitem__, numbers.tolist()))  # its slices are tuples already
    return [found[part] for part in parts]


def _ends(lengths: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(accumulate(lengths), dtype=np.int64)


def _slices(ends: NDArray[Any]) -> list[slice]:
    borders = [0, *ends.tolist()]
    return list(map(slice, borders, borders[1:]))
