"""A treebank and a recipe so small that a test can train a parser in a second.

The treebanks lie in files with manifests of their own, and the recipe stands on a ``base.toml``
beside it, as a user's would; only the folder of manifests has to be pointed to.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.training.schedule import TrainConfig
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets

SIZES = {"train": 40, "dev": 8, "test": 6}

MODEL = {
    "d_model": 16,
    "layers": 1,
    "heads": 1,
    "d_kv": 4,
    "d_ff": 16,
    "d_label_hidden": 8,
    "d_char": 8,
    "max_positions": 32,
    **dict.fromkeys(
        (f"{name}_dropout" for name in ("attention", "residual", "relu", "word", "form", "char")),
        0.1,
    ),
}
TRAIN = {
    "learning_rate": 0.01,
    "adam_betas": [0.9, 0.98],
    "adam_epsilon": 1e-9,
    "batch_size": 8,
    "sub_batch_tokens": 100,
    "warmup_batches": 2,
    "evaluations_per_epoch": 2,
    "decay_patience": 5,
    "decay_factor": 0.5,
    "stop_patience": 16,
    "max_epochs": 2,
}

# For tests that need a trained parser, however bad.
QUICK = {"batch_size": 20, "evaluations_per_epoch": 1, "max_epochs": 1}

#: What a manifest says beside its name, its path and its splits.
MANIFEST: dict[str, object] = {
    "title": "Forty sentences",
    "language": "elvish",
    "track": "open",
    "format": "brackets",
    "escapes": "ptb",
    "transforms": [],
    "tags": "gold",
    "prm": "spmrl",
    "licence": "MIT",
    "citation": "none",
    "source": "none",
    "obtain": "Ask the elves.",
}


def train_config(**changes: object) -> TrainConfig:
    """Settings of a training of seconds."""
    return TrainConfig.model_validate(TRAIN | changes)


def make_trees(number: int, seed: int) -> list[Tree]:
    """Sentences of a grammar with attachment ambiguity, two to about twenty words."""
    choose = random.Random(seed)

    def noun_phrase(depth: int) -> str:
        noun = choose.choice(("dog", "elf", "ring", "tower", "river"))
        phrase = f"(NP (DT {choose.choice(('the', 'a'))}) (NN {noun}))"
        if depth and choose.random() < 0.3:
            phrase = f"(NP {phrase} {prepositional(depth - 1)})"
        return phrase

    def prepositional(depth: int) -> str:
        return f"(PP (IN {choose.choice(('in', 'near'))}) {noun_phrase(depth)})"

    def sentence() -> str:
        verb = choose.choice(("sees", "finds", "wants"))
        inner = f"(VBZ {verb}) {noun_phrase(2)}"
        if choose.random() < 0.4:
            inner += f" {prepositional(1)}"
        return f"(S {noun_phrase(1)} (VP {inner}))"

    return [parse_brackets(sentence()) for _ in range(number)]


@dataclass(frozen=True)
class Laboratory:
    """Where things are; ``recipe`` is what ``train`` and ``eval`` are given as language."""

    folder: Path

    @property
    def recipe(self) -> Path:
        """Trains on ``tiny-licensed`` (absent), else ``tiny-open``, else ``tiny-mini``."""
        return self.folder / "recipes" / "elvish.toml"

    @property
    def manifests(self) -> Path:
        return self.folder / "manifests"

    @property
    def treebanks(self) -> Path:
        """What the environment variable TREEBANKS should name."""
        return self.folder / "treebanks"

    def in_use(self, patch: pytest.MonkeyPatch) -> None:
        """Have the program find the treebanks."""
        patch.setattr("spmrl_bench.treebanks.catalogue.data_dirs", lambda _: [self.manifests])
        patch.setenv("TREEBANKS", str(self.treebanks))

    def in_use_by_processes(self, patch: pytest.MonkeyPatch) -> None:
        """Have processes that begin elsewhere find the program and the treebanks."""
        home = self.folder / "home"
        home.mkdir()
        (home / "treebanks").symlink_to(self.manifests)
        patch.setenv("SPMRL_BENCH_HOME", str(home))
        patch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))

    def write_treebank(self, name: str, track: str, language: str = "elvish") -> None:
        """Make a treebank present, with trees of its own."""
        self.write_manifest(name, track, language)
        folder = self.treebanks / name
        folder.mkdir(parents=True)
        for seed, (split, size) in enumerate(SIZES.items()):
            trees = make_trees(size, 100 * len(name) + seed)
            text = "".join(f"{write_brackets(tree)}\n" for tree in trees)
            (folder / f"{split}.mrg").write_text(text, encoding="utf-8")

    def lengthen(self, name: str, split: str = "train") -> None:
        """End a split of a treebank with a sentence that no model here can take."""
        path = self.treebanks / name / f"{split}.mrg"
        lines = path.read_text(encoding="utf-8").splitlines()
        lines[-1] = f"(S (NP {'(DT the) ' * 40}(NN dog)) (VBZ sees))"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def write_manifest(self, name: str, track: str, language: str = "elvish") -> None:
        """Make a treebank known."""
        own = {"name": name, "path": name, "track": track, "language": language}
        text = table(MANIFEST | own | {"redistributable": True})
        for split, size in SIZES.items():
            text += f'[splits.{split}]\nfiles = ["{split}.mrg"]\nsentences = {size}\n'
        (self.manifests / f"{name}.toml").write_text(text, encoding="utf-8")

    def write_recipe(
        self, treebanks: Iterable[str], language: str = "elvish", **sections: Mapping[str, object]
    ) -> None:
        """The language's recipe; keywords are its ``model`` and ``train`` sections."""
        text = table({"base": "base", "language": language, "treebanks": list(treebanks)})
        text += "".join(f"[{section}]\n{table(values)}" for section, values in sections.items())
        self.recipe.with_name(f"{language}.toml").write_text(text, encoding="utf-8")

    def write_base(self, **sections: Mapping[str, object]) -> None:
        """The base recipe; keywords replace or add sections (dots written as ``__``)."""
        tracks = ("spmrl", "ptb", "ctb", "open", "mini")
        tables: dict[str, Mapping[str, object]] = {
            "variants": {"charlstm": ["charlstm"], "word-charlstm": ["word", "charlstm"]},
            "default_size": dict.fromkeys(tracks, "small"),
            "size.published.model": dict(MODEL),
            "size.published.train": TRAIN | QUICK,
            "size.small.model": dict(MODEL),
            "size.small.train": TRAIN | QUICK,
        }
        tables |= {name.replace("__", "."): values for name, values in sections.items()}
        text = "".join(f"[{name}]\n{table(values)}" for name, values in tables.items())
        self.recipe.with_name("base.toml").write_text(text, encoding="utf-8")


def toml(value: object) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(k)} = {toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return value.isoformat() if isinstance(value, date) else json.dumps(value)


def table(values: Mapping[str, object]) -> str:
    """The lines of a TOML table."""
    return "".join(f"{key} = {toml(value)}\n" for key, value in values.items())


def build_laboratory(folder: Path) -> Laboratory:
    """Treebanks, manifests and recipes of the tests under ``folder``."""
    laboratory = Laboratory(folder)
    laboratory.manifests.mkdir(parents=True)
    laboratory.recipe.parent.mkdir()
    laboratory.write_manifest("tiny-licensed", "spmrl")
    laboratory.write_treebank("tiny-open", "open")
    laboratory.write_treebank("tiny-mini", "mini")
    laboratory.write_base()
    laboratory.write_recipe(["tiny-licensed", "tiny-open", "tiny-mini"])
    return laboratory
