"""The parses that were scored, in files beside the gold trees that they were compared with.

The files are what the scoring commands read, with the treebank's tags, by which parses are scored:
whoever scores them again gets the figures of the record. Answers of a parser of somebody else that
could not be scored are ``(())``, or words without heads, and count as such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmrl_bench.errors import ReadError, ScoreError, SpmrlError
from spmrl_bench.leaderboard.record import Record, SplitResult
from spmrl_bench.readers.brackets import read_brackets
from spmrl_bench.readers.conll import UNSPECIFIED, conll_lines, read_conll_file
from spmrl_bench.readers.text import read_text
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.scoring.signature import settings_folder
from spmrl_bench.storage.files import write_text
from spmrl_bench.storage.paths import path_fault
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import Tree, readonly_int32

#: The endings of the files of each layer.
ENDINGS: dict[Layer, str] = {"constituents": "mrg", "dependencies": "conllu"}
GOLD = "gold"
_MINUTES = "train.max_minutes"


def run_name(size: str, variant: str, settings: Mapping[str, object], seed: int) -> str:
    """Name of a run's folder: it has the settings that were changed, but for its time."""
    changed = settings_folder({key: settings[key] for key in settings if key != _MINUTES})
    return "-".join(filter(None, (size, variant, changed, f"seed{seed}")))


def empty_parse(gold: Parse, layer: Layer) -> Parse:
    """A parse of which nothing is right: no constituent, or no head (-1) and no relation."""
    if layer == "constituents":
        return Parse.of(Tree.build(gold.words, gold.tags, []))
    heads = readonly_int32([-1] * len(gold))
    return Parse.of(dependencies=DependencyTree(gold.words, gold.tags, heads, ("",) * len(gold)))


@dataclass(frozen=True)
class SavedParses:
    """Where the parses of one run, or of an ensemble of runs, are kept."""

    folder: Path  # of the treebank; the gold trees are there once for all its runs
    run: str  # its name

    @classmethod
    def of_record(cls, results_dir: Path, record: Record) -> SavedParses:
        """Those of the run of a record; a ScoreError where its names are none of files."""
        name = run_name(record.size, record.variant, record.settings, record.seed)
        if record.system is not None:
            # The hash of its answers, and what became of them: no two outputs ever meet.
            policies = {output.policy for output in record.system.outputs.values()}
            name = "-".join(("system", record.weights[:16], *sorted(policies)))
        elif record.ensemble:
            name += f"-ensemble-of-{len(record.ensemble)}"
        if any("/" in part or path_fault(part) for part in (record.treebank.name, name)):
            raise ScoreError(f"no parses can be kept for {record.variant}")
        return cls(results_dir / "parses" / record.treebank.name, name)

    def path(self, split: str, layer: Layer, *, gold: bool = False) -> Path:
        return self.folder / f"{GOLD if gold else self.run}.{split}.{ENDINGS[layer]}"

    def write(self, split: str, gold: Sequence[Parse], parses: Sequence[Parse]) -> None:
        """Write parses and gold trees, every layer that the gold trees have. A SpmrlError where a
        file cannot be written, or has no way to write a word, tag or label."""
        for layer in gold[0].layers if gold else ():
            write_text(self.path(split, layer, gold=True), _text(layer, gold))
            write_text(self.path(split, layer), _text(layer, parses))

    def read(self, split: str, layer: Layer) -> tuple[list[Parse], list[Parse]]:
        """Gold trees and parses of a split; a SpmrlError where these are not what was written."""
        path = self.path(split, layer)
        gold = [one for one in _read(layer, self.path(split, layer, gold=True)) if one]
        parses = _read(layer, path)
        if len(gold) != len(parses):
            raise ScoreError(f"{path}: not parses of the gold trees beside it")
        pairs = zip(parses, gold, strict=True)
        return gold, [parse or empty_parse(sentence, layer) for parse, sentence in pairs]

    def are_of(
        self,
        split: str,
        result: SplitResult,
        rules: Mapping[str, Any],
        gold: Sequence[Parse] | None = None,
    ) -> bool:
        """Whether a split's files give what a record says, by this gold or that beside them."""
        try:
            for name, own in rules.items():
                metric = metric_named(name)
                (layer,) = metric.layers
                beside, parses = self.read(split, layer)
                counts = metric.count(gold or beside, parses, own)
                if counts.to_columns() != result.counts(name).to_columns():
                    return False
        except SpmrlError:
            return False
        return True


def _text(layer: Layer, parses: Sequence[Parse]) -> str:
    if layer == "constituents":
        return "".join(
            f"{'(())' if len(tree) > 1 and not tree.labels else write_brackets(tree)}\n"
            for parse in parses
            if (tree := parse.tree) is not None
        )
    return "".join(
        conll_lines(
            arcs.words,
            arcs.tags,
            (UNSPECIFIED if head < 0 else str(head) for head in arcs.heads.tolist()),
            (relation or UNSPECIFIED for relation in arcs.relations),
        )
        for parse in parses
        if (arcs := parse.dependencies) is not None
    )


def _read(layer: Layer, path: Path) -> list[Parse | None]:
    if layer == "constituents":
        trees = read_brackets(read_text(path, "utf-8"), path=path, blank="tree")
        return [Parse.of(tree) if len(tree) else None for tree in trees]
    found: list[Parse | None] = []

    def note(error: ReadError) -> None:
        found.append(None)

    for one in read_conll_file(path, roots="several", on_error=note):
        found.append(Parse.of(dependencies=one.tree))
    return found
