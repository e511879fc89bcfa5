"""Any parser on any split of a treebank: parsed, counted and signed.

The dev score of training and the final score both come from here.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from spmrl_bench.errors import SentenceTooLongError
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.leaderboard.environment import find_commit, find_versions
from spmrl_bench.leaderboard.record import MetricResult, Record, SplitResult, TreebankInfo
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.kinds import baselines_for, kind_named
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.scoring.signature import settings_text, sign
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import LAYERS, Layer, Parse


class Evaluated(NamedTuple):
    """Counts of a parser's parses against gold, by metric, and how fast it parsed."""

    counts: Mapping[str, Counts]
    parses: Sequence[Parse]  # as they were counted, with the treebank's tags
    tokens_per_second: float
    tag_accuracy: float | None = None  # in percent; None if the parser does not tag

    def score(self, criterion: SelectionMetric) -> float:
        """What a criterion makes of it; 0 for figures of nothing."""
        return criterion.score(
            {name: metric_named(name).values(counts) for name, counts in self.counts.items()}
        )


def rules_of(bank: Treebank, metrics: Sequence[str]) -> dict[str, Any]:
    """What decides the counts of each metric on a treebank."""
    return {name: metric_named(name).rules(bank.rules.get(name, {})) for name in metrics}


def gold_parses(bank: Treebank, split: str, metrics: Sequence[str]) -> list[Parse]:
    """The sentences of a split with the layers that the metrics compare."""
    wanted = set(chain.from_iterable(metric_named(name).layers for name in metrics))
    return bank.examples(split, [layer for layer in LAYERS if layer in wanted] or bank.layers[:1])


def check_lengths(parser: Parser, bank: Treebank, split: str, examples: Sequence[Parse]) -> None:
    """Raise a SentenceTooLongError for a sentence that the parser has no room for."""
    for number, example in enumerate(examples, start=1):
        if problem := parser.problem(example.words):
            raise SentenceTooLongError(f"{bank.name}, split {split}, sentence {number}: {problem}")


def evaluate_parser(parser: Parser, gold: Sequence[Parse], rules: Mapping[str, Any]) -> Evaluated:
    """Parse the words of gold; count by each metric's rules (:func:`rules_of`), and right tags."""
    # The treebank's tags are copied into the parses, whether or not the parser reads them:
    # parameter sets delete punctuation by tag, and tags that differ would hide sentences.
    tags = [parse.tags for parse in gold]
    begun = time.perf_counter()
    given = None if parser.predicts_tags else tags
    parses = list(parser.parse([parse.words for parse in gold], given))
    seconds = time.perf_counter() - begun
    tokens, accuracy = sum(map(len, gold)), None
    if parser.predicts_tags:
        pairs = zip(chain.from_iterable(parse.tags for parse in parses), chain(*tags), strict=True)
        accuracy = 100 * sum(found == right for found, right in pairs) / tokens
        parses = [parse.with_tags(row) for parse, row in zip(parses, tags, strict=True)]
    counts = {name: metric_named(name).count(gold, parses, own) for name, own in rules.items()}
    return Evaluated(counts, parses, tokens / seconds, accuracy)


def score_split(
    parser: Parser,
    bank: Treebank,
    split: str,
    config: RunConfig | None = None,
    *,
    seeds: Sequence[int] = (),
    saved: SavedParses | None = None,
) -> SplitResult:
    """The scores of a parser on a split, with their signatures, as a record keeps them. ``config``
    is None for a baseline, ``seeds`` are those of the members of an ensemble. A SpmrlError says
    that the parser has no room for a sentence, or parses cannot be ``saved``."""
    kind = kind_named(parser.kind)
    rules = rules_of(bank, kind.metrics)
    gold = gold_parses(bank, split, kind.metrics)
    check_lengths(parser, bank, split, gold)
    found = evaluate_parser(parser, gold, rules)
    if saved is not None:
        saved.write(split, gold, found.parses)
    source: dict[str, Any] = {"variant": parser.kind}
    if config is not None:
        source = {
            "variant": config.variant,
            "settings": settings_text(config.overrides),
            "ensemble": len(seeds) or None,
            "size": config.size,
            "precision": config.model.precision.replace("float32", ""),  # the usual one
            "seed": "+".join(map(str, seeds)) or config.seed,
            "learns": "tags" if parser.predicts_tags else None,
            "encoder": "+".join(sorted(encoders_of(config.model))),
        }
    source["tags"] = bank.manifest.tags if parser.reads_tags else "none"
    return SplitResult(
        sentences=len(gold),
        metrics={
            name: metric_result(bank, split, name, counts, rules[name], source)
            for name, counts in found.counts.items()
        },
        tokens_per_second=found.tokens_per_second if config else None,
        tag_accuracy=found.tag_accuracy,
    )


def encoders_of(model: Any) -> set[str]:
    """Return the names of the pretrained encoders that a parser of these settings reads."""
    files = (own.files() for own in getattr(model, "inputs", {}).values())
    return {Path(own["name"]).name for own in files if "name" in own}


def metric_result(
    bank: Treebank, split: str, name: str, counts: Counts, rules: Any, source: Mapping[str, Any]
) -> MetricResult:
    """The result that the counts of a metric give, signed; ``source`` has the keys of the signature
    that say where the parses come from, None or empty where one does not apply."""
    metric = metric_named(name)
    fingerprint = "+".join(bank.fingerprint_of(layer) for layer in metric.layers)
    values = {
        "treebank": f"{bank.name}({fingerprint[:8]})" if fingerprint else bank.name,
        "split": split,
        "transforms": "+".join(bank.manifest.transforms),
        **source,
    }
    also = {key: str(value) for key, value in values.items() if value not in (None, "")}
    signature = sign(metric, counts, rules, **also)
    return MetricResult(
        counts=counts.to_columns(),
        figures=metric.values(counts),
        signature=signature.short(),
        signature_long=signature.long(),
    )


def baseline_results(bank: Treebank, metrics: Sequence[str]) -> dict[str, SplitResult]:
    """The scores on test of all baselines for these metrics, by the name of their kind."""
    found = {}
    for name, kind in baselines_for(metrics).items():
        made, examples = kind.parser_class, bank.examples("train", kind.layers)
        found[name] = score_split(made.build(made.Config(), examples), bank, "test")
    return found


def record_of(bank: Treebank, layers: Sequence[Layer], **fields: Any) -> Record:
    """A record of a treebank, made now by this program; ``fields`` say what of."""
    own, content = bank.manifest.origin
    treebank = TreebankInfo(
        name=bank.name,
        track=bank.track,
        language=bank.language,
        fingerprints={layer: bank.fingerprint_of(layer) for layer in layers},
        manifest=f"{'own' if own else 'shipped'} {content}",
    )
    made = {"finished": datetime.datetime.now(datetime.UTC), "commit": find_commit()}
    return Record(treebank=treebank, **({"versions": find_versions()} | made | fields))
