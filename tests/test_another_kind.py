"""A kind of parser, an encoder, an input and a metric of a package go all the way.

They become known through entry points, as those of an installed package do. The kind gives flat
trees and chains of heads; what it learns is nothing, and which way its chains go is a setting. The
metric counts the words that both layers of a parse agree on with gold: those inside a constituent
and with the right head.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pytest
import torch
from torch import nn

from spmrl_bench.parsers.base import MAX_TOKENS, Description, ParserConfig, Prediction, Words
from spmrl_bench.parsers.kinds import Kind
from spmrl_bench.parsers.neural import TrainedParser
from spmrl_bench.parsers.saved import load_saved, save_parser
from spmrl_bench.parsers.session import with_tags
from spmrl_bench.scoring.counts import Counts, percent
from spmrl_bench.scoring.metric import Figure, Metric
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.trees.parse import Parse
from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[1]

# What a package would bring ----------------------------------------------------------------


class FlatParser(TrainedParser):
    """Flat trees, chains of heads, and a few weights that approach one."""

    kind = "flat"

    class Config(ParserConfig):
        """Its settings."""

        head: Literal["left", "right"] = "left"
        """The neighbour that every word hangs from."""
        width: int
        """Weights."""

    def __init__(self, config: Config, label: str) -> None:
        super().__init__()
        self.config, self.label = config, label
        self.weight = nn.Parameter(torch.zeros(config.width))

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        assert all(len(example.layers) == 2 for example in examples)
        return cls(config, examples[0].tree.labels[0])

    def index(self, examples: Iterable[Parse]) -> Iterator[Words]:
        return (example.words for example in examples)

    def gradients(
        self, batch: Sequence[Words], random: np.random.Generator, max_tokens: int
    ) -> float:
        loss = ((self.weight - 1) ** 2).sum()
        loss.backward()
        return loss.item()

    def session(self, max_tokens: int = MAX_TOKENS) -> Self:
        return self

    def parse(self, sentences: Any, tags: Any = None, *, max_tokens: int = MAX_TOKENS) -> Any:
        return (self.predict(own).parse(own, row) for own, row in with_tags(sentences, tags))

    def flat(self, words: Words, tags: Words) -> Parse:
        return self.predict(words).parse(words, tags)

    def predict(self, words: Words) -> Prediction:
        n = len(words)
        heads = range(n) if self.config.head == "left" else [*range(2, n + 1), 0]
        return Prediction([(0, n, self.label)], heads, ["dep"] * n) if n else Prediction()

    def save(self, folder: Path) -> None:
        save_parser(self, self.config, {"labels": [self.label]}, folder)

    @classmethod
    def load(cls, folder: Path, description: Description | None = None) -> Self:
        return load_saved(folder, description, cls.Config, lambda c, v: cls(c, v["labels"][0]))

    def is_like(self, other: Self) -> bool:
        return self.config == other.config and self.label == other.label


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
        return [Ratio.of("both", counts.column(WordColumn.BOTH), counts.column(WordColumn.ALL))]


KIND = Kind(
    f"{__name__}:FlatParser",
    layers=("constituents", "dependencies"),
    metrics=("words", "brackets", "attachment"),
)
METRIC = WordsInBoth()

# Its use -----------------------------------------------------------------------------------

ENTRY_POINTS = f"""\
[spmrl_bench.parsers]
flat = {__name__}:KIND
[spmrl_bench.encoders]
convolutions = tests.plugin_encoder:Convolutions
[spmrl_bench.inputs]
suffix = tests.plugin_input:Suffix
[spmrl_bench.metrics]
words = {__name__}:METRIC
"""
MANIFEST = """\
name = "twenty-mini"
base = "german-mini"
title = "Twenty sentences"
[splits]
train = { range = "1..20", sentences = 20, tokens = 289 }
dev = { range = "1..12", sentences = 12, tokens = 141 }
test = { range = "1..12", sentences = 12, tokens = 129 }
"""
BASE = """\
select = "words.both"
[variants]
to-the-left = { kind = "flat" }
to-the-right = { kind = "flat", model = { head = "right" } }
[default_size]
mini = "small"
open = "small"
ptb = "small"
ctb = "small"
spmrl = "small"
[size.published]
[size.small.model]
width = 3
d_model = 64
[size.small.train]
learning_rate = 0.1
adam_betas = [0.9, 0.98]
adam_epsilon = 1e-9
batch_size = 8
sub_batch_tokens = 100
warmup_batches = 1
evaluations_per_epoch = 1
decay_patience = 5
decay_factor = 0.5
stop_patience = 16
max_epochs = 2
"""


@pytest.fixture
def command(tmp_path: Path) -> Any:
    """Runs the program where the package is installed; returns what it printed."""
    site = tmp_path / "site"
    info = site / "flat-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: flat\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    home = tmp_path / "home"
    (home / "treebanks").mkdir(parents=True)
    (home / "treebanks" / "twenty-mini.toml").write_text(MANIFEST)
    (tmp_path / "base.toml").write_text(BASE)
    recipe = 'base = "base"\nlanguage = "german"\ntreebanks = ["twenty-mini"]\n'
    (tmp_path / "tiny.toml").write_text(recipe)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
        "SPMRL_BENCH_HOME": str(home),
    }

    def run(*arguments: str, given: str = "", status: int = 0) -> str:
        code = "from spmrl_bench.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            input=given,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    return run


def test_a_kind_and_a_metric_of_a_package_go_all_the_way(command: Any, tmp_path: Path) -> None:
    command("train", "tiny.toml", "--seeds", "2", "--jobs", "2")
    folders = sorted(path.name for path in (tmp_path / "runs" / "twenty-mini").iterdir())
    assert folders == [
        f"small-to-the-{side}-seed{seed}" for side in ("left", "right") for seed in (1, 2)
    ]
    printed = command("eval", "tiny.toml", "--seeds", "2")
    rows = ("to-the-left", "to-the-right", "right-branching", "attach-neighbour")
    for text in ("dev words in both", "test words in both", "test F1", "test LAS", *rows):
        assert text in printed
    assert "to-the-left" in command("results", "table")

    first, second = (f"runs/twenty-mini/small-to-the-{side}-seed1" for side in ("left", "right"))
    compared = command("compare", first, second, "--split", "dev")
    assert "words in both" in compared
    assert "match:words" in compared
    by_las = command("compare", first, second, "--split", "dev", "--metric", "attachment")
    assert "LAS" in by_las

    trees = command("parse", "--model", first, given="Der Hund schläft\n\nJa\n")
    label = trees.split()[0]
    assert trees == f"{label} (XX Der) (XX Hund) (XX schläft))\n\n{label} (XX Ja))\n"
    rows = command("parse", "--model", second, "--output", "conllu", given="Der Hund\n")
    heads = [line.split("\t")[6:8] for line in rows.splitlines() if line]
    assert heads == [["2", "dep"], ["0", "dep"]]


def test_the_counts_in_the_record_are_those_of_gold(command: Any, tmp_path: Path) -> None:
    """The heads that are right are counted once more here, from the treebank itself."""
    command("train", "tiny.toml", "--variant", "to-the-left")
    command("eval", "tiny.toml", "--variant", "to-the-left")
    (record,) = (tmp_path / "results" / "runs").glob("*.json")
    content = json.loads(record.read_text())
    code = (
        "from spmrl_bench.treebanks.treebank import open_treebank\n"
        "for e in open_treebank('twenty-mini').examples('dev'):\n"
        "    print(sum(h == k for k, h in enumerate(e.dependencies.heads.tolist())), len(e))\n"
    )
    environment = {**os.environ, "SPMRL_BENCH_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    counts = content["dev"]["metrics"]["words"]["counts"]
    assert list(zip(counts["both"], counts["all"], strict=True)) == rows
    assert content["kind"] == "flat"
    assert content["select"] == "words.both"


PARTS = """\
select = "brackets.f1"
[variants.plain]
inputs = ["word"]
[variants.plain.model]
encoder = "convolutions"
convolutions = { layers = 2 }
scorer = { d_hidden = 16 }
word_dropout = 0.2
"""
ENDINGS = """\
[variants.endings]
like = "plain"
inputs = ["word", "suffix"]
[variants.endings.model.suffix]
letters = 2
"""


@pytest.mark.parametrize(
    ("variant", "key", "value", "wrong"),
    [
        pytest.param(  # the other has the encoder too
            *("plain", "convolutions.neighbours", 2, "model.convolutions.neighbours: input should"),
            marks=pytest.mark.campaign,
        ),
        ("endings", "suffix.letters", 4, "model.suffix.letters: input should be less than"),
    ],
)
def test_an_encoder_and_an_input_of_a_package_go_all_the_way(
    command: Any, tmp_path: Path, variant: str, key: str, value: int, wrong: str
) -> None:
    """Trained, named by what was changed, found again, scored, loaded and asked."""
    variants = PARTS if variant == "plain" else PARTS + ENDINGS
    sizes = BASE[BASE.index("[default_size]") :].replace("width = 3\n", "")
    (tmp_path / "base.toml").write_text(variants + sizes)
    setting = f"model.{key}={value}"
    for _ in range(2):
        command("train", "tiny.toml", "--variant", variant, "--set", setting)
    (run,) = (tmp_path / "runs" / "twenty-mini").iterdir()
    assert run.name == f"small-{variant}-{key}={value}-seed1"
    content = json.loads((run / "run.json").read_text())
    assert content["settings"] == {f"model.{key}": value}
    model, (table, _, name) = content["model"], key.partition(".")
    assert (model["inputs"] | model["encoder"])[table][name] == value
    assert model["encoder"]["convolutions"]["layers"] == 2
    assert [*model["inputs"]] == (["word"] if variant == "plain" else ["word", "suffix"])
    command("eval", "tiny.toml", "--variant", variant, "--set", setting)
    assert f"{variant} ({key}={value})" in command("results", "table")
    assert "Hund)" in command(
        "parse", "--model", f"runs/twenty-mini/{run.name}", given="Der Hund\n"
    )
    refused = command(
        "train", "tiny.toml", "--variant", variant, "--set", f"model.{key}=99", status=1
    )
    assert wrong in refused
    # Where the package is not installed, that is what is said.
    (tmp_path / "site" / "flat-1.0.dist-info" / "entry_points.txt").write_text("")
    asked = ("parse", "--model", f"runs/twenty-mini/{run.name}")
    assert "Install the package that adds it" in command(*asked, given="Der Hund\n", status=1)
    assert variant in command("results", "table")
