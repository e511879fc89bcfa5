"""Vectors of word forms: for a batch with a gradient, and kept over a stream of text.

What the CharLSTM makes of a form depends on its spelling alone, and most words of a window of
text have been seen in an earlier one. The cache holds as many vectors as fit into a fixed
amount of memory and drops those whose last use is longest ago.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.parsers.batches import Indexer, sub_batches

if TYPE_CHECKING:
    from spmrl_bench.nn.lexical import CharLSTM

#: Bounds of a cache: memory of its vectors, and their number.
MAX_BYTES = 64 << 20
MAX_FORMS = 1 << 15
_LONGEST_KEY = 512  # bytes: 64 characters
#: Bound on forms times the longest that go through the LSTM at once: what a cache can hold of its
#: gates is worked on faster than memory, and much faster than memory that is used the first time.
CHARACTERS = 1 << 13


#: Characters of a batch's distinct forms whose way through the LSTM is kept for the way back.
KEPT_CHARACTERS = 1 << 15


def form_vectors(
    char_lstm: CharLSTM, indexer: Indexer, forms: NDArray[np.int64], device: torch.device
) -> Tensor:
    """CharLSTM output of distinct forms, ``[forms, width]``, with a gradient."""
    lengths = [len(indexer.spelling(form)) for form in forms.tolist()]
    if sum(lengths) <= KEPT_CHARACTERS:
        vectors: Tensor = char_lstm(*indexer.spellings(forms, device))
        return vectors
    # Too much to keep for the way back, where each part is therefore computed again.
    from torch.utils.checkpoint import checkpoint

    def part(_: Tensor, characters: Tensor, of_form: Tensor) -> Tensor:
        vectors: Tensor = char_lstm(characters, of_form)
        return vectors

    groups = list(sub_batches(lengths, KEPT_CHARACTERS))
    # Without an input that has a gradient, checkpoint would give none.
    some = torch.zeros((), requires_grad=True)
    parts = [
        checkpoint(part, some, *indexer.spellings(forms[group], device), use_reentrant=True)
        for group in groups
    ]
    order = np.argsort([place for group in groups for place in group])
    return torch.cat(parts).index_select(0, torch.from_numpy(order).to(device))


def _key(spelling: NDArray[np.int64]) -> bytes:
    """What stands for a spelling in a cache: itself, or a digest where that is shorter by far."""
    key = spelling.tobytes()
    return key if len(key) <= _LONGEST_KEY else blake2b(key, digest_size=32).digest()


class FormCache:
    """Vectors of forms for one parser whose weights do not change meanwhile.

    Attributes:
        computed: number of forms that went through the LSTM.
    """

    def __init__(self, char_lstm: CharLSTM, max_forms: int = MAX_FORMS) -> None:
        self._char_lstm = char_lstm
        weight = char_lstm.embedding.weight
        self._device = weight.device
        self._width = char_lstm.width
        self._capacity = min(max_forms, MAX_BYTES // (self._width * weight.element_size()) + 1)
        self._table: Tensor | None = None  # [capacity, width], made when its type is known
        self._rows: dict[bytes, int] = {}  # key of a spelling to row of the table, last used last
        self.computed = 0

    def __len__(self) -> int:
        """Number of forms held."""
        return len(self._rows)

    @torch.no_grad()
    def vectors(self, indexer: Indexer, forms: NDArray[np.int64]) -> Tensor:
        """CharLSTM output of distinct forms, ``[forms, d_model / 2]``.

        Args:
            indexer: whose form table ``forms`` are rows of; another one in each call will do.
            forms: int64 ``[forms]``, no row twice.
        """
        spellings = [_key(indexer.spelling(row)) for row in forms.tolist()]
        # Forms with characters that the parser does not know can be spelt alike.
        place = dict(zip(reversed(spellings), reversed(range(len(forms))), strict=True))
        known = [key for key in place if key in self._rows]
        missing = [key for key in place if key not in self._rows]
        fresh = self._compute(indexer, forms[[place[key] for key in missing]])
        if self._table is None:
            self._table = fresh.new_empty(self._capacity, self._width)
        found = torch.cat((self._table[self._index([self._rows[key] for key in known])], fresh))
        self._remember(known, missing, fresh)
        row = {key: number for number, key in enumerate((*known, *missing))}
        return found[self._index([row[spelling] for spelling in spellings])]

    def _index(self, rows: list[int]) -> Tensor:
        return torch.tensor(rows, dtype=torch.int64, device=self._device)

    def _compute(self, indexer: Indexer, forms: NDArray[np.int64]) -> Tensor:
        """Vectors of the forms, through the LSTM in groups of like lengths."""
        self.computed += len(forms)
        lengths = [len(indexer.spelling(row)) for row in forms.tolist()]
        groups = list(sub_batches(lengths, CHARACTERS))
        if not groups:
            assert self._table is not None  # without it every form is missing
            return self._table.new_empty(0, self._width)
        parts = [
            self._char_lstm(*indexer.spellings(forms[group], self._device)) for group in groups
        ]
        found = torch.cat(parts)
        result = torch.empty_like(found)
        result[self._index([place for group in groups for place in group])] = found
        return result

    def _remember(self, known: list[bytes], fresh: list[bytes], vectors: Tensor) -> None:
        """Take new forms in, in place of those whose last use is longest ago."""
        assert self._table is not None
        for key in known:
            self._rows[key] = self._rows.pop(key)
        first = max(0, len(fresh) - self._capacity)
        rows = []
        for key in fresh[first:]:
            if len(self._rows) < self._capacity:
                row = len(self._rows)
            else:
                row = self._rows.pop(next(iter(self._rows)))
            self._rows[key] = row
            rows.append(row)
        self._table[self._index(rows)] = vectors[first:]
