"""The parses that were scored, in files beside the gold trees that they were compared with.

A figure of a table does not say where a parser fails, and a record keeps counts, not trees. The
files are what the scoring commands read, with the treebank's tags, by which parses are scored:
whoever scores them again gets the figures of the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.leaderboard.record import SplitResult
from spmrl_bench.readers.brackets import read_brackets
from spmrl_bench.readers.conll import conll_lines, read_conll_file
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.scoring.settings_text import settings_folder
from spmrl_bench.storage.files import write_text
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse

#: The endings of the files of each layer.
ENDINGS: dict[Layer, str] = {"constituents": "mrg", "dependencies": "conllu"}
GOLD = "gold"
_MINUTES = "train.max_minutes"


def run_name(size: str, variant: str, settings: Mapping[str, object], seed: int) -> str:
    """Name of a run's folder: it has the settings that were changed, but for its time."""
    changed = settings_folder({key: settings[key] for key in settings if key != _MINUTES})
    return "-".join(filter(None, (size, variant, changed, f"seed{seed}")))


@dataclass(frozen=True)
class SavedParses:
    """Where the parses of one run, or of an ensemble of runs, are kept.

    Attributes:
        folder: of the treebank; the gold trees are there once for all its runs.
        run: name of the run.
    """

    folder: Path
    run: str

    @classmethod
    def of(cls, results_dir: Path, run_dir: Path, members: int = 1) -> SavedParses:
        """Those of the run in a folder, or of an ensemble of which it is the first."""
        name = run_dir.name if members == 1 else f"{run_dir.name}-ensemble-of-{members}"
        return cls(results_dir / "parses" / run_dir.parent.name, name)

    def path(self, split: str, layer: Layer, *, gold: bool = False) -> Path:
        """The file of one layer of a split's parses, or of its gold trees."""
        return self.folder / f"{GOLD if gold else self.run}.{split}.{ENDINGS[layer]}"

    def write(self, split: str, gold: Sequence[Parse], parses: Sequence[Parse]) -> None:
        """Write parses and gold trees, every layer that the gold trees have.

        Raises:
            TreeError: the format has no way to write a word, a tag or a label.
            SpmrlError: a file cannot be written.
        """
        self.write_gold(split, gold)
        for layer in gold[0].layers if gold else ():
            write_text(self.path(split, layer), _text(layer, parses))

    def write_gold(self, split: str, gold: Sequence[Parse]) -> None:
        """Write gold trees alone."""
        for layer in gold[0].layers if gold else ():
            write_text(self.path(split, layer, gold=True), _text(layer, gold))

    def read(self, split: str, layer: Layer) -> tuple[list[Parse], list[Parse]]:
        """Gold trees and parses of a split, with this layer.

        Raises:
            SpmrlError: a file is not there or not what was written.
        """
        return self.read_gold(split, layer), _read(layer, self.path(split, layer))

    def read_gold(self, split: str, layer: Layer) -> list[Parse]:
        """The gold trees alone."""
        return _read(layer, self.path(split, layer, gold=True))

    def are_of(self, split: str, result: SplitResult, rules: Mapping[str, Any]) -> bool:
        """Whether the files of a split are there and give what a record says of it."""
        try:
            for name, own in rules.items():
                metric = metric_named(name)
                (layer,) = metric.layers
                counts = metric.count(*self.read(split, layer), own)
                if counts.to_columns() != result.metrics[name].counts:
                    return False
        except SpmrlError:
            return False
        return True


def _text(layer: Layer, parses: Sequence[Parse]) -> str:
    if layer == "constituents":
        return "".join(
            f"{write_brackets(parse.tree)}\n" for parse in parses if parse.tree is not None
        )
    trees = (parse.dependencies for parse in parses if parse.dependencies is not None)
    return "".join(
        conll_lines(tree.words, tree.tags, map(str, tree.heads.tolist()), tree.relations)
        for tree in trees
    )


def _read(layer: Layer, path: Path) -> list[Parse]:
    if layer == "constituents":
        trees = read_brackets(read_text(path, "utf-8"), path=path, margin=False)
        return [Parse.of(tree) for tree in trees]
    return [Parse.of(dependencies=one.tree) for one in read_conll_file(path, roots="several")]
