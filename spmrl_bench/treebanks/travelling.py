"""Treebanks whose sentences were brought to another machine, without their files.

What trains elsewhere needs the sentences of some splits and layers as they were read here, and
what stands for the treebank; the test split stays where it is. Each split and layer travels as a
file of the form that :mod:`spmrl_bench.treebanks.columns` describes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.columns import from_bytes, to_bytes
from spmrl_bench.treebanks.manifest import Manifest, MiniManifest
from spmrl_bench.treebanks.reading import SplitContent
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import Layer

#: Tracks whose treebanks anybody may have.
FREE = ("open", "mini")


class TravellingTreebank(Treebank):
    """A treebank of which some splits and layers are here; the test split is closed."""

    def __init__(
        self,
        manifest: Manifest,
        fingerprints: Mapping[Layer, str],
        files: Mapping[tuple[str, Layer], str],
        folder: Path,
    ) -> None:
        """A treebank.

        Args:
            manifest: of it.
            fingerprints: of the layers that are here.
            files: by split and layer the SHA-256 of a file, by which it is named.
            folder: where the files are.
        """
        super().__init__(manifest, folder)
        self.layers = tuple(layer for layer in manifest.layers if layer in fingerprints)
        self._fingerprints = dict(fingerprints)
        self._files = dict(files)
        self._test_closed = True

    def _read(self, name: str, layer: Layer) -> SplitContent:
        digest = self._files.get((name, layer))
        if digest is None:
            raise TreebankError(f"{self.name}: {layer} of the split {name} did not travel along")
        path = self._folder_of(layer) / digest
        try:
            data = path.read_bytes()
        except OSError as error:
            raise TreebankError(f"{path}: cannot be read: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise TreebankError(f"{path}: is damaged; it is sent again when it is gone")
        sentences, notes = from_bytes(data)
        return SplitContent(sentences, notes["dropped"], tuple(notes["skipped"]))


def packed(bank: Treebank, splits: Sequence[str], layer: Layer) -> dict[tuple[str, Layer], bytes]:
    """What travels of a layer of a treebank, by split and layer."""
    if isinstance(bank.manifest, MiniManifest):
        layer = bank.layers[0]  # one content has both
    found = {}
    for split in splits:
        content = bank.content(split, layer)
        notes: dict[str, Any] = {"dropped": content.dropped, "skipped": content.skipped}
        found[split, layer] = to_bytes(content.sentences, notes)
    return found
