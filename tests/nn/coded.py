"""Sentences as the parser hands them to its lexical inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from spmrl_bench.nn.inputs import Boundary, Codes, LexicalInput, Tokens
from tests.nn.plain import layout_of


def batch(module: LexicalInput, sentences: Sequence[Sequence[str]]) -> tuple[Tokens, Codes]:
    """Tokens and codes of sentences, START and STOP added."""
    tokens = [token for words in sentences for token in (Boundary.START, *words, Boundary.STOP)]
    lengths = [len(words) + 2 for words in sentences]
    forms: list[str | Boundary] = list(dict.fromkeys(tokens))
    found = [np.asarray(module.codes(form)) for form in forms]
    values = np.zeros((len(forms), max(map(len, found))), dtype=np.int64)
    for row, codes in zip(values, found, strict=True):
        row[: len(codes)] = codes
    rows = torch.tensor([forms.index(token) for token in tokens])
    of_forms = torch.tensor([len(codes) for codes in found])
    unused = torch.zeros(len(tokens), dtype=torch.int64)
    return (
        Tokens(layout_of(lengths), unused, unused, rows),
        Codes(torch.from_numpy(values), of_forms, rows),
    )


def apply(module: LexicalInput, sentences: Sequence[Sequence[str]]) -> Tensor:
    """``[tokens, width]`` of sentences, START and STOP among the tokens."""
    found: Tensor = module(*batch(module, sentences))
    return found
