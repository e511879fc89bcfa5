"""Records of generated runs and systems, with parses where a test wants them at hand; and pages."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from spmrl_bench.leaderboard.documents import write_document
from spmrl_bench.leaderboard.record import Output, Record, System
from spmrl_bench.leaderboard.saved_parses import SavedParses, run_name
from spmrl_bench.scoring.counts import BracketCounts, Status
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.builders import make_record, make_treebank, signed
from tests.laboratory import make_trees

NASTY = """Pars<er> & "Söhne" `7` | ../x"""
START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
VOID = {"meta", "link", "br", "input"}


def random_counts(quality: float, sentences: int, seed: int, corpus: int = 0) -> BracketCounts:
    """Brackets of a parser that finds this share of them; the gold sides are those of a corpus."""
    gold_side, own = np.random.default_rng(corpus), np.random.default_rng((seed, corpus))
    gold = gold_side.integers(2, 25, sentences)
    length = gold + gold_side.integers(1, 20, sentences)
    matched = own.binomial(gold, quality)
    test = matched + own.binomial(gold, 1 - quality)
    valid = np.full(sentences, Status.VALID)
    rows = [length, valid, matched, gold, test, test - matched, length, length]
    return BracketCounts(np.stack(rows, axis=1))


def run_record(
    treebank: str, variant: str, seed: int, quality: float, *, track: str = "mini",
    language: str = "", tested: bool = True, moment: int = 0, **changes: Any,
) -> Record:  # fmt: skip
    """A run with counts of its own on dev and, where dev chose it, on test."""
    bank = make_treebank(treebank, track, language=language or treebank.partition("-")[0])
    stream = random.Random(f"{treebank} {variant} {seed}").randrange(2**31)
    dev, test = (signed(random_counts(quality, 40, stream + k, k), split, treebank)
                 for k, split in enumerate(("dev", "test")))  # fmt: skip
    recipe = {"kind": "chart", "variant": variant, "size": "small", "seed": seed, "settings": {}}
    about = {"treebank": bank, "lang": bank.language, "variant": variant, "seed": seed,
             "selected": tested, "weights": f"{stream:064x}", "dev": dev,
             "test": test if tested else None, "finished": START + timedelta(minutes=moment),
             "recipe": recipe | changes.pop("recipe", {}), "baselines": {}}  # fmt: skip
    return make_record(**about | changes)


def system_record(treebank: str, name: str, quality: float, **changes: Any) -> Record:
    """A system of somebody else, on dev and test."""
    record = run_record(treebank, name, 0, quality, **changes)
    output = Output(sha256={"constituents": "ab" * 32}, policy="missing", handled={"malformed": 2})
    about = System(name=name, version="2", url="javascript:alert(1)", notes="A <b>note</b>.",
                   paper="https://a.org/b", outputs={"test": output}, tested=1)  # fmt: skip
    update = {"system": about, "kind": "system", "size": "", "training": None, "hardware": None,
              "recipe": {"kind": "system"}, "variant": about.title}  # fmt: skip
    return record.model_copy(update=update)


def spoilt(tree: Tree, share: float, choose: random.Random) -> Tree:
    """A tree with other labels on some of its constituents."""
    rows = [(start, end, label if choose.random() >= share else "XP")
            for start, end, label in tree.constituents()]  # fmt: skip
    return Tree.build(tree.words, tree.tags, rows)


def chain(tree: Tree, share: float, choose: random.Random) -> DependencyTree:
    """Words that hang from their left neighbours, some from the first."""
    heads = [0, *(1 if choose.random() < share else k for k in range(1, len(tree)))]
    return DependencyTree.build(tree.words, tree.tags, heads, ["dep"] * len(tree))


def run_with_parses(
    treebank: str, variant: str, seed: int, share: float, results: Path, *,
    word: str = "", metric: str = "brackets", **changes: Any,
) -> Record:  # fmt: skip
    """A run that was scored on dev by the rules of the treebank, and whose parses were kept."""
    choose, manifest, scorer = random.Random(variant), load_manifest(treebank), metric_named(metric)
    trees = [Tree.build([word or own for own in tree.words], tree.tags, tree.constituents())
             for tree in make_trees(12, 5)]  # fmt: skip
    sides = tuple(
        [
            Parse.of(spoilt(tree, errors, choose))
            if metric == "brackets"
            else Parse.of(dependencies=chain(tree, errors, choose))
            for tree in trees
        ]
        for errors in (0.0, share)
    )
    counts = scorer.count(*sides, scorer.rules(manifest.rules[metric]))
    about = {"track": manifest.track, "language": manifest.language, "tested": False,
             "dev": signed(counts, "dev", treebank, metric=metric),
             "select": f"{metric}.{scorer.headline}"}  # fmt: skip
    record = run_record(treebank, variant, seed, 0.5, **about, **changes)
    name = run_name(record.size, record.variant, record.settings, record.seed)
    SavedParses(results / "parses" / treebank, name).write("dev", *sides)
    write_document(record, results / "runs")
    return record


class Structure(HTMLParser):
    """The elements of a page; fails where they are not nested."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == [], path

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self) -> str:
        return " ".join(text for _, text in self.texts)
