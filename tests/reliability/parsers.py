"""A small parser of each kind over sentences of a mini treebank, with scores that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.parse import Parse
from tests.builders import enlarge, tiny

SMALL: dict[str, Any] = {"layers": 1, "d_model": 16, "d_kv": 4, "d_ff": 12, "d_label_hidden": 8,
                         "d_char": 4, "max_positions": 60}  # fmt: skip
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "chart": ("chart", {}),
    "chart over an LSTM": ("chart", {"encoder": "lstm"}),
    "chart over label attention": (
        "chart",
        {"label_attention": True, "label_heads": 3, "label_d_kv": 4, "label_d_proj": 4},
    ),
    "biaffine": ("biaffine", {"encoder": "lstm"}),
    "joint": ("joint", {}),
    "transition": (
        "transition",
        {"encoder": "gru", "decoder_layers": 2, "attention_layers": 2, "beam": 2},
    ),
}


def examples(count: int, longest: int = 13) -> list[Parse]:
    """The first sentences of the German mini treebank that are not longer, in both layers."""
    bank = open_treebank("german-mini")
    every = bank.examples("train", ["constituents", "dependencies"])
    return [each for each in every[:400] if len(each) <= longest][:count]


def parser_of(name: str, given: Sequence[Parse]) -> Any:
    """An untrained parser whose weights are large enough for every input to matter."""
    kind, changes = KINDS[name]
    small = {key: value for key, value in SMALL.items() if key != "d_label_hidden"
             or kind in ("chart", "joint")}  # fmt: skip
    return enlarge(tiny(kind, given, **small, **changes))
