"""The outputs of parsers of others, kept among the results beside the gold trees.

A record has the counts of an output and its hash, not its trees. Kept as it came, in the folder
where ``eval --save-parses`` keeps the parses of ours, it can be shown beside them, also where some
of its answers could not be scored: what becomes of those is decided anew, by the policy of the
record. The hash is in the name of the file, so outputs of whatever system and version never meet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.record import Output, Record
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.readers.text import read_text
from spmrl_bench.storage.files import write_text
from spmrl_bench.systems.predictions import POLICIES, read_predictions
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import LAYERS, Layer, Parse

_DIGITS = 16
_HASH = re.compile("[0-9a-f]{64}")


def keep_output(
    path: Path,
    output: Output,
    bank: Treebank,
    split: str,
    results_dir: Path,
    *,
    encoding: str = "utf-8",
) -> None:
    """Keep a file of parses that was scored, and the gold trees of the split.

    Args:
        path: the file.
        output: what scoring has said of it.
        encoding: of the file; what is kept is UTF-8.

    Raises:
        SpmrlError: a file cannot be read or written.
    """
    text = read_text(path, encoding)
    (layer,) = (one for one in LAYERS if one in output.sha256)
    kept = _kept(results_dir, bank.name, output, layer)
    kept.write_gold(split, bank.examples(split, [layer]))
    write_text(kept.path(split, layer), text)


def kept_output(
    record: Record, split: str, layer: Layer, results_dir: Path, transforms: Sequence[str]
) -> tuple[list[Parse], list[Parse]]:
    """Gold trees and parses of a system's output.

    Args:
        record: of a system; its treebank's name is one of a folder.
        transforms: names of the treebank's.

    Raises:
        SpmrlError: they are not kept, or are not what they were.
    """
    output = record.system.outputs.get(split) if record.system else None
    policy = next((one for one in POLICIES if output and output.policy == one), None)
    if output is None or policy is None or not _HASH.fullmatch(output.sha256.get(layer, "")):
        raise ScoreError(f"nothing of {layer} of {split} can be kept for {record.variant}")
    kept = _kept(results_dir, record.treebank.name, output, layer)
    gold = kept.read_gold(split, layer)
    path = kept.path(split, layer)
    return gold, read_predictions(path, gold, transforms=transforms, policy=policy).parses


def is_kept(output: Output, treebank: str, split: str, results_dir: Path) -> bool:
    """Whether the files of an output are there, those of gold too."""
    return all(
        _kept(results_dir, treebank, output, layer).path(split, layer, gold=gold).is_file()
        for layer in LAYERS
        if layer in output.sha256
        for gold in (False, True)
    )


def _kept(results_dir: Path, treebank: str, output: Output, layer: Layer) -> SavedParses:
    name = f"output-{output.sha256[layer][:_DIGITS]}"
    return SavedParses(results_dir / "parses" / treebank, name)
