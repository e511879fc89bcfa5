"""Records of generated runs and systems, with parses where a test wants them at hand."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from spmrl_bench.leaderboard.record import (
    Output,
    Record,
    System,
    document_name,
    write_record,
)
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


def random_counts(quality: float, sentences: int, seed: int, corpus: int = 0) -> BracketCounts:
    """Brackets of a parser that finds this share of them; the gold sides are those of a corpus."""
    gold_side, own = np.random.default_rng(corpus), np.random.default_rng((seed, corpus))
    gold = gold_side.integers(2, 25, sentences)
    length = gold + gold_side.integers(1, 20, sentences)
    matched = own.binomial(gold, quality)
    test = matched + own.binomial(gold, 1 - quality)
    columns = [length, np.full(sentences, Status.VALID), matched, gold, test, gold - matched,
               length, length]  # fmt: skip
    return BracketCounts(np.stack(columns, axis=1))


def run_record(
    treebank: str,
    variant: str,
    seed: int,
    quality: float,
    *,
    track: str = "mini",
    language: str = "",
    sentences: int = 40,
    corpus: int = 0,
    tested: bool = True,
    moment: int = 0,
    **changes: Any,
) -> Record:
    """A run with counts of its own on dev and, where dev chose it, on test."""
    bank = make_treebank(treebank, track, language=language or treebank.partition("-")[0])
    stream = random.Random(f"{treebank} {variant} {seed}").randrange(2**31)
    test = None
    if tested:
        test = signed(random_counts(quality, sentences, stream + 1, corpus + 1), "test", treebank)
    recipe = {"kind": "chart", "variant": variant, "size": "small", "seed": seed, "settings": {}}
    return make_record(
        treebank=bank,
        lang=bank.language,
        variant=variant,
        seed=seed,
        selected=tested,
        weights=f"{stream:064x}",
        finished=START + timedelta(minutes=moment),
        recipe=recipe | changes.pop("recipe", {}),
        dev=signed(random_counts(quality, sentences, stream, corpus), "dev", treebank),
        test=test,
        baselines={},
        **changes,
    )


def system_record(treebank: str, name: str, quality: float, **changes: Any) -> Record:
    """A system of somebody else, on test."""
    record = run_record(treebank, name, 0, quality, **changes)
    about = System(
        name=name,
        version="2",
        url="javascript:alert(1)",
        paper="https://example.org/paper",
        training_data="its train split",
        notes="A <b>note</b>.",
        outputs={"test": Output(sha256={"constituents": "ab" * 32}, policy="missing",
                                handled={"malformed": 2})},
        tested=1,
    )  # fmt: skip
    update = {"system": about, "kind": "system", "size": "", "dev": None, "training": None,
              "hardware": None, "recipe": {"kind": "system"}, "variant": about.title}  # fmt: skip
    return record.model_copy(update=update)


def write_many(number: int, systems: int, treebanks: Sequence[str], results: Path) -> None:
    """Write so many records of so many systems, spread over treebanks and seeds.

    Every tenth system is one of somebody else, without seeds. The records are made from the texts
    of two, which is ten times as fast as making each.
    """
    choose = random.Random(number)
    qualities = [choose.uniform(0.7, 0.95) for _ in range(systems)]
    folder = results / "runs"
    folder.mkdir(parents=True)
    places = [(seed, bank, k) for seed in range(1, number) for bank in range(len(treebanks))
              for k in range(systems) if seed == 1 or k % 10 != 9]  # fmt: skip
    for made, (seed, bank, k) in enumerate(places[:number]):
        entered = k % 10 == 9
        make = system_record if entered else run_record
        name = f"System {k}" if entered else f"variant-{k:02d}"
        content = _plain(make, treebanks[bank], name)
        for place, split in enumerate(("dev", "test")):
            if content[split] is not None:
                counts = random_counts(qualities[k], 300, 7 * made + place, 2 * bank + place)
                content[split] = signed(counts, split, treebanks[bank]).model_dump(mode="json")
        content["finished"] = (START + timedelta(minutes=made)).isoformat()
        content["seed"], content["weights"] = 0 if entered else seed, f"{made:064x}"
        data = f"{json.dumps(content, separators=(',', ':'))}\n".encode()
        (folder / document_name(data)).write_bytes(data)


@cache
def _template(make: Any, treebank: str, name: str) -> dict[str, Any]:
    more = [1] if make is run_record else []
    content: dict[str, Any] = make(treebank, name, *more, 0.5).model_dump(mode="json")
    return content


def _plain(make: Any, treebank: str, name: str) -> dict[str, Any]:
    return dict(_template(make, treebank, name))


def write_all(records: Iterable[Record], results: Path) -> None:
    for record in records:
        write_record(record, results / "runs")


# ---- Runs whose parses are at hand ----


def spoilt(tree: Tree, share: float, choose: random.Random) -> Tree:
    """A tree without some of its constituents, and with other labels on some."""
    rows = []
    for place, (start, end, label) in enumerate(tree.constituents()):
        if place and choose.random() < share:
            if choose.random() < 0.5:
                continue
            label = "XP"
        rows.append((start, end, label))
    return Tree.build(tree.words, tree.tags, rows)


def chain(tree: Tree, share: float, choose: random.Random) -> DependencyTree:
    """Words that hang from their left neighbours, some from the first."""
    heads = [0, *(1 if choose.random() < share else k for k in range(1, len(tree)))]
    return DependencyTree.build(tree.words, tree.tags, heads, ["dep"] * len(tree))


def run_with_parses(
    treebank: str,
    variant: str,
    seed: int,
    share: float,
    results: Path,
    *,
    gold: Sequence[Tree] | None = None,
    layer: str = "constituents",
    **changes: Any,
) -> Record:
    """A run that was scored on dev by the rules of the treebank, and whose parses were kept."""
    choose = random.Random(f"{variant} {seed}")
    trees = list(gold or make_trees(12, 5))
    manifest = load_manifest(treebank)
    metric = "brackets" if layer == "constituents" else "attachment"
    if layer == "constituents":
        sides = ([Parse.of(tree) for tree in trees],
                 [Parse.of(spoilt(tree, share, choose)) for tree in trees])  # fmt: skip
    else:
        sides = ([Parse.of(dependencies=chain(tree, 0.0, choose)) for tree in trees],
                 [Parse.of(dependencies=chain(tree, share, choose)) for tree in trees])  # fmt: skip
    scorer = metric_named(metric)
    counts = scorer.count(*sides, scorer.rules(manifest.rules[metric]))
    record = run_record(
        treebank, variant, seed, 0.5, track=manifest.track, language=manifest.language,
        tested=False, **changes,
    )  # fmt: skip
    result = signed(counts, "dev", treebank, metric=metric)
    select = f"{metric}.{scorer.headline}"
    record = record.model_copy(update={"dev": result, "select": select})
    name = run_name(record.size, record.variant, record.settings, record.seed)
    SavedParses(results / "parses" / treebank, name).write("dev", *sides)
    write_record(record, results / "runs")
    return record
