"""Splits that were read once are kept, ready for use, in the user's own folder.

Most files of a treebank take far longer to read than their sentences take to load. A stored split
is found by a key that stands for everything that decides the sentences: the bytes of the files, the
settings of the manifest, and the code of the readers and transforms. So it can never be out of
date; the old file is removed when a new one is written.

Files appear under their names only when they are whole, and carry a checksum: several processes may
read and write at the same time, and be stopped. A damaged file counts as absent.

Forty thousand trees are millions of small objects. A file holds them as columns (every distinct
string once, words and labels as numbers into that list, spans end to end), in the safetensors
format: loading it runs no code.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

import spmrl_bench
from spmrl_bench.storage.digests import digest
from spmrl_bench.storage.files import write_bytes
from spmrl_bench.storage.garbage import no_collection
from spmrl_bench.storage.paths import cache_folder
from spmrl_bench.treebanks.reading import SplitData
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree, readonly_int32

_DIGEST_SIZE = 32
_CODE = ("readers", "trees", "treebanks")

_log = logging.getLogger(__name__)


def cached(name: str, key: Mapping[str, Any], read: Callable[[], SplitData]) -> SplitData:
    """Return the data of a split, but for its places, from the cache or else from ``read``.

    One file is kept for each name (of treebank and split); ``key`` has all that decides the data
    besides the program itself.
    """
    if (folder := cache_folder()) is None:
        return read()
    path = folder / f"{name}.{digest({**key, 'code': _code_digest()})[:24]}.safetensors"
    with suppress(OSError):
        data = path.read_bytes()
        payload = data[_DIGEST_SIZE:]
        if hashlib.sha256(payload).digest() == data[:_DIGEST_SIZE]:
            return from_bytes(payload)
        _log.warning("%s is damaged; reading the treebank again", path)
    found = read()
    payload = to_bytes(found)
    try:  # a failure costs time only
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, hashlib.sha256(payload).digest() + payload)
        for other in {*folder.glob(f"{name}.*.safetensors")} - {path}:
            other.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("cannot keep the treebank for the next time: %s", error)
    return found


@lru_cache(maxsize=1)
def _code_digest() -> str:
    """SHA-256 of the program's code that decides what a treebank is read as."""
    package = Path(spmrl_bench.__file__).parent
    content = [
        (path.relative_to(package).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(path for part in _CODE for path in (package / part).rglob("*.py*"))
        if path.suffix in (".py", ".pyx")
    ]
    return digest({"version": spmrl_bench.__version__, "files": content})


def to_bytes(data: SplitData) -> bytes:
    """Return the data of a split, but for its places, as bytes; all have the same layers."""
    sentences = data.sentences
    known: dict[str, int] = {}  # strings, numbered in order of their first use

    def numbers(texts: Iterable[tuple[str, ...]]) -> NDArray[np.int32]:
        found = [known.setdefault(text, len(known)) for text in chain.from_iterable(texts)]
        return np.array(found, dtype=np.int32)

    arrays: dict[str, NDArray[Any]] = {
        "words": numbers(sentence.words for sentence in sentences),
        "tags": numbers(sentence.tags for sentence in sentences),
        "token_ends": _ends(map(len, sentences)),
    }
    if trees := [sentence.tree for sentence in sentences if sentence.tree is not None]:
        arrays["labels"] = numbers(tree.labels for tree in trees)
        arrays["label_ends"] = _ends(len(tree.labels) for tree in trees)
        arrays["spans"] = np.concatenate([tree.spans for tree in trees])
    if layer := [one.dependencies for one in sentences if one.dependencies is not None]:
        arrays["heads"] = np.concatenate([tree.heads for tree in layer])
        arrays["relations"] = numbers(tree.relations for tree in layer)
        layer_tags = numbers(tree.tags for tree in layer)
        if not np.array_equal(layer_tags, arrays["tags"]):
            arrays["layer_tags"] = layer_tags
    encoded = [text.encode() for text in known]
    arrays["strings"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    arrays["string_ends"] = _ends(map(len, encoded))
    notes = json.dumps([data.dropped, data.skipped]).encode()  # what is no array
    arrays["notes"] = np.frombuffer(notes, dtype=np.uint8)
    return save(arrays)


@no_collection()
def from_bytes(data: bytes) -> SplitData:
    """Return what :func:`to_bytes` was given."""
    arrays = load(data)
    text = arrays["strings"].tobytes()
    strings = [text[part].decode() for part in _slices(arrays["string_ends"])]
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
    dropped, skipped = json.loads(arrays["notes"].tobytes())
    return SplitData(list(map(Parse, words, tags, trees, layer)), dropped, tuple(skipped))


def _parts(
    strings: Sequence[str], numbers: NDArray[Any], parts: Sequence[slice]
) -> list[tuple[str, ...]]:
    found = tuple(map(strings.__getitem__, numbers.tolist()))  # its slices are tuples already
    return [found[part] for part in parts]


def _ends(lengths: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(accumulate(lengths), dtype=np.int64)


def _slices(ends: NDArray[Any]) -> list[slice]:
    borders = [0, *ends.tolist()]
    return list(map(slice, borders, borders[1:]))
