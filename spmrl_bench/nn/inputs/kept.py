"""States that a frozen encoder gave a sentence, kept: on disk, mapped into memory, for all to use.

An encoder takes a hundred times as long for a sentence as the layers on top of it. Its states are
computed once and found again by a hash of what the encoder read. Files appear under their names
only when they are whole, and carry a digest; processes that need the same states take turns, and
those that were stopped have lost the last file alone. All of it may be removed at any time.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor

from spmrl_bench.storage.files import write_file
from spmrl_bench.storage.locks import in_turn, lock_of
from spmrl_bench.storage.tensors import content_digest, read_tensors

#: Bytes of a file, unless one sentence has more.
FILE = 1 << 28
_DIGEST = "digest"
_KEY = 16  # bytes

_log = logging.getLogger(__name__)

T = TypeVar("T")
#: Yields the states of sentences, ``[rows, ...]`` each, with their keys.
Compute = Callable[[list[T]], Iterator[tuple[bytes, Tensor]]]


def key_of(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=_KEY).digest()


class KeptStates:
    """The states of sentences by their keys, all of one type and, but for the rows, one shape."""

    def __init__(self, folder: Path | None) -> None:
        """Begin with nothing; what is kept goes to a ``folder``, if there is one."""
        self._folder = folder
        self.states: dict[bytes, Tensor] = {}
        self._read: set[Path] = set()

    def keep(self, sentences: Mapping[bytes, T], compute: Compute[T]) -> None:
        """Have the states of sentences, by their keys, of the folder or else computed. A folder
        that cannot be written costs time only."""
        folder = self._folder
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            with nullcontext() if folder is None else in_turn(lock_of(folder)):
                there = () if folder is None else folder.glob("*.safetensors")
                for path in sorted({*there} - self._read):  # which others have written
                    self._take(path)
                found: dict[bytes, Tensor] = {}
                size = 0
                for key, states in compute(self._missing(sentences)):
                    self.states[key] = found[key] = states
                    size += states.nbytes
                    if size >= FILE:
                        self._write(found)
                        found, size = {}, 0
                self._write(found)
        except OSError as error:
            _log.warning("cannot keep the states of an encoder for the next time: %s", error)
            self.states |= compute(self._missing(sentences))

    def _missing(self, sentences: Mapping[bytes, T]) -> list[T]:
        return [each for key, each in sentences.items() if key not in self.states]

    def _take(self, path: Path) -> None:
        try:
            tensors, notes = read_tensors(path)
            if notes.get(_DIGEST) != content_digest(tensors):
                raise ValueError("its digest is another")
            keys, ends = tensors["keys"].numpy(), tensors["ends"].tolist()
            parts = map(slice, [0, *ends], ends)
            self.states |= {
                key.tobytes(): tensors["states"][part]
                for key, part in zip(keys, parts, strict=True)
            }
            self._read.add(path)
        except (OSError, ValueError, KeyError) as error:
            _log.warning("%s: damaged, and computed again (%s)", path, error)

    def _write(self, found: dict[bytes, Tensor]) -> None:
        if not found or self._folder is None:
            return
        keys = torch.frombuffer(bytearray(b"".join(found)), dtype=torch.uint8).view(-1, _KEY)
        ends = torch.tensor([len(states) for states in found.values()]).cumsum(0)
        tensors = {"keys": keys, "ends": ends, "states": torch.cat(list(found.values()))}
        path = self._folder / f"{key_of(*sorted(found)).hex()}.safetensors"
        notes = {_DIGEST: content_digest(tensors)}
        write_file(path, lambda new: save_file(tensors, new, notes))
        os.chmod(path, 0o644)
        self._take(path)  # mapped, in place of what was computed
