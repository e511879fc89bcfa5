"""A kind of parser, an encoder, an input, a format, a metric of a package go all the way.

They become known through entry points, as those of an installed package do. The kind gives flat
trees and chains of heads; what it learns is nothing, and which way its chains go is a setting. The
metric counts the words that both layers of a parse agree on with gold: those inside a constituent
and with the right head.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spmrl_bench.readers.brackets import read_brackets_file
from spmrl_bench.readers.conll import conll_lines
from spmrl_bench.scoring.counts import Counts, percent
from spmrl_bench.scoring.metric import Figure, Metric
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.parse import Parse
from tests.builders import ROOT, cli, cli_process, environment, refused, works
from tests.laboratory import Laboratory, build_laboratory


class WordColumn(IntEnum):
    """Words of a sentence, and those that are right in both layers."""

    ALL = 0
    BOTH = 1


class WordCounts(Counts):
    """One row of these for each sentence."""

    what = "word"
    columns = WordColumn


class WordsInBoth(Metric[WordCounts, None]):
    """The share of words inside a constituent and with the right head."""

    name = "words"
    layers = ("constituents", "dependencies")
    counts = WordCounts
    figures = {  # noqa: RUF012
        "both": Figure(
            "words in both", lambda c: percent(c.total(WordColumn.BOTH), c.total(WordColumn.ALL))
        )
    }
    headline = "both"
    tabled = ("both",)

    def rules(self, options: Mapping[str, Any]) -> None:
        return None

    def count(self, gold: Sequence[Parse], test: Sequence[Parse], rules: None) -> WordCounts:
        rows = []
        for one, other in zip(gold, test, strict=True):
            inside = {k for i, j, _ in other.tree.constituents() for k in range(i, j)}
            right = np.flatnonzero(one.dependencies.heads == other.dependencies.heads)
            rows.append((len(one), len(inside & set(right.tolist()))))
        return WordCounts.from_rows(rows)

    def ratios(self, counts: WordCounts) -> list[Ratio]:
        return [Ratio("both", counts.column(WordColumn.BOTH), counts.column(WordColumn.ALL))]


METRIC = WordsInBoth()


ENTRY_POINTS = f"""\
[spmrl_bench.parsers]
flat = tests.plugin_parser:KIND
[spmrl_bench.encoders]
convolutions = tests.plugin_encoder:Convolutions
[spmrl_bench.inputs]
suffix = tests.plugin_input:Suffix
[spmrl_bench.formats]
tagged-phrases = tests.plugin_format:FORMAT
[spmrl_bench.metrics]
words = {__name__}:METRIC
"""
LAYER = '[dependencies]\nformat = "conll"\nending = ".conll"\n'
FLAT: dict[str, Mapping[str, Any]] = {
    "variants.to-the-left": {"kind": "flat"},
    "variants.to-the-right": {"kind": "flat"},
    "variants.to-the-right.model": {"head": "right"},
    "size.small.model": {"width": 3, "d_model": 64},
}
PARTS: dict[str, Mapping[str, Any]] = {
    "variants.plain": {"inputs": ["word"]},
    "variants.plain.model": {"encoder": "convolutions", "word_dropout": 0.2},
    "variants.plain.model.convolutions": {"layers": 2},
    "variants.plain.model.scorer": {"d_hidden": 16},
    "variants.endings": {"like": "plain", "inputs": ["word", "suffix"]},
    "variants.endings.model.suffix": {"letters": 2},
    "size.small.model": {"d_model": 64},
}
RECIPE, RUNS = Path("recipes", "elvish.toml"), Path("runs", "tiny-open")


def prepare(folder: Path) -> Laboratory:
    """A laboratory with a second layer of a treebank, in which all hangs from the first word."""
    laboratory = build_laboratory(folder)
    manifest = laboratory.manifests / "tiny-open.toml"
    manifest.write_text(manifest.read_text() + LAYER)
    for path in (laboratory.treebanks / "tiny-open").glob("*.mrg"):
        lines = []
        for tree in read_brackets_file(path):
            heads = ["0", *["1"] * (len(tree) - 1)]
            lines.append(conll_lines(tree.words, tree.tags, heads, ["dep"] * len(tree)))
        path.with_suffix(".conll").write_text("".join(lines))
    return laboratory


def write_recipe(laboratory: Laboratory, select: str, variants: dict[str, Any]) -> None:
    laboratory.write_base(variants={}, size__published__model={}, **variants)
    laboratory.write_recipe(["tiny-open"])
    laboratory.recipe.write_text(f'select = "{select}"\n{laboratory.recipe.read_text()}')


def use(folder: str) -> None:
    """What a user does where the package is installed."""
    laboratory = Laboratory(Path(folder))
    with pytest.MonkeyPatch.context() as patch:
        laboratory.in_use(patch)
        write_recipe(laboratory, "words.both", FLAT)
        use_kind_and_metric()
        use_format_and_system(laboratory)
        write_recipe(laboratory, "brackets.f1", PARTS)
        use_part("plain", "convolutions.neighbours", 2, "input should")
        use_part("endings", "suffix.letters", 4, "input should be less than")


def use_kind_and_metric() -> None:
    works("train", RECIPE, "--seeds", 2)
    assert sorted(path.name for path in RUNS.iterdir()) == [
        f"small-to-the-{side}-seed{seed}" for side in ("left", "right") for seed in (1, 2)
    ]
    printed = works("eval", RECIPE, "--seeds", 2).stdout
    rows = ("to-the-left", "to-the-right", "right-branching", "attach-neighbour")
    for text in ("dev words in both", "test words in both", "test F1", "test LAS", *rows):
        assert text in printed, text
    assert "to-the-left" in works("results", "table").stdout

    first, second = (RUNS / f"small-to-the-{side}-seed1" for side in ("left", "right"))
    compared = works("compare", first, second, "--split", "dev").stdout
    assert "words in both" in compared
    assert "match:words" in compared
    options = ("--split", "dev", "--metric", "attachment")
    assert "LAS" in works("compare", first, second, *options).stdout

    trees = works("parse", "--model", first, stdin="the elf sleeps\n\nyes\n").stdout
    assert trees == "(S (XX the) (XX elf) (XX sleeps))\n\n(S (XX yes))\n"
    arcs = works("parse", "--model", second, "--output", "conllu", stdin="the elf\n").stdout
    heads = [line.split("\t")[6:8] for line in arcs.splitlines() if line]
    assert heads == [["2", "dep"], ["0", "dep"]]

    # Of a chain to the left the first two words are right, of one to the right none.
    records = [json.loads(path.read_text()) for path in Path("results", "runs").glob("*.json")]
    assert {(one["kind"], one["select"]) for one in records} == {("flat", "words.both")}
    lengths = list(map(len, open_treebank("tiny-open").examples("dev")))
    for record in records:
        counts = record["dev"]["metrics"]["words"]["counts"]
        assert counts["all"] == lengths
        right = 2 if record["variant"] == "to-the-left" else 0
        assert counts["both"] == [right] * len(lengths)


def use_format_and_system(laboratory: Laboratory) -> None:
    """The same trees in the form of the format; a recipe whose only parser is the system."""
    manifest = (laboratory.manifests / "tiny-open.toml").read_text().partition(LAYER)[0]
    for old, new in ("tiny-open", "phrases"), ('"brackets"', '"tagged-phrases"'), (".mrg", ".txt"):
        manifest = manifest.replace(old, new)
    manifest = manifest.replace('escapes = "ptb"\n', "")
    (laboratory.manifests / "phrases.toml").write_text(manifest)
    (laboratory.treebanks / "phrases").mkdir()
    for path in (laboratory.treebanks / "tiny-open").glob("*.mrg"):
        lines = []
        for tree in read_brackets_file(path):
            pairs = " ".join(map("/".join, zip(tree.words, tree.tags, strict=True)))
            lines.append(f"S({pairs})\n")
        target = laboratory.treebanks / "phrases" / path.with_suffix(".txt").name
        target.write_text("".join(lines))
    assert "8" in works("treebanks", "check", "phrases").stdout
    laboratory.write_recipe(["phrases"])
    chosen = (RECIPE, "--system", ROOT / "tests" / "plugin_system.toml")
    works("train", *chosen)
    # Every sentence of the treebank is one phrase, and so is every answer.
    assert "100.00" in works("eval", *chosen).stdout
    (laboratory.treebanks / "phrases" / "dev.txt").write_text("the/D dog/N\n" * 8)
    assert "dev.txt:1: no LABEL(word/TAG" in cli("treebanks", "check", "phrases").stderr


def use_part(variant: str, key: str, value: int, wrong: str) -> None:
    """Trained, named by what was changed, found again, scored, loaded and asked."""
    chosen = (RECIPE, "--variant", variant, "--set")
    setting = f"model.{key}={value}"
    for _ in range(2):
        works("train", *chosen, setting)
    run = RUNS / f"small-{variant}-{key}={value}-seed1"
    content = json.loads((run / "run.json").read_text())
    assert content["settings"] == {f"model.{key}": value}
    model, (table, _, name) = content["model"], key.partition(".")
    assert (model["inputs"] | model["encoder"])[table][name] == value
    assert model["encoder"]["convolutions"]["layers"] == 2
    assert [*model["inputs"]] == ["word", "suffix"][: 1 + (variant == "endings")]
    works("eval", *chosen, setting)
    assert f"{variant} ({key}={value})" in works("results", "table").stdout
    assert "elf)" in works("parse", "--model", run, stdin="the elf\n").stdout
    assert f"model.{key}: {wrong}" in refused("train", *chosen, f"model.{key}=99")


def test_a_package_goes_all_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process that finds it installed, and then in this one, which does not."""
    laboratory = prepare(tmp_path / "work")
    info = tmp_path / "flat-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flat\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    done = cli_process(
        laboratory.folder,
        code=f"import sys, {__name__} as tests; tests.use(sys.argv[1])",
        cwd=laboratory.folder,
        env=environment(PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)])),
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(laboratory.folder)
    laboratory.in_use(monkeypatch)
    runs = ("to-the-left", "plain-convolutions.neighbours=2", "endings-suffix.letters=4")
    for variant in runs:
        asked = ("parse", "--model", RUNS / f"small-{variant}-seed1")
        assert "Install the package that adds it" in refused(*asked, stdin="the elf\n")
        assert variant.partition("-")[0] in works("results", "table").stdout
