"""What tests of many folders build: tiny parsers of every kind, commands, records, servers.

A tiny parser is untrained, of a few thousand weights, and knows the words of :data:`TREES`. A
record is made by hand, from counts of sentences. For runs of real commands on treebanks in files
see :mod:`tests.laboratory`.
"""

from __future__ import annotations

import http.server
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from typer.testing import CliRunner, Result

from spmrl_bench.cli import app
from spmrl_bench.leaderboard.record import (
    Hardware,
    MetricResult,
    Record,
    SplitResult,
    Training,
    TreebankInfo,
    load_records,
)
from spmrl_bench.parsers.config import parts
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.legacy import chosen, in_tables, leaves, places_of, short
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring.counts import Status
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from tests.conftest import PATIENCE

ROOT = Path(__file__).resolve().parents[1]

# ---- Sentences ---------------------------------------------------------------------------

TREES = [
    parse_brackets(text)
    for text in (
        "(S (NP (D the) (N dog)) (VP (V barks)))",
        "(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (N dog))))",
        "(S (NP (D a) (A big) (N cat)) (VP (V sleeps)) (P .))",
        "(S (VP (V sleep)))",
        "(NP (N dogs))",
        "(NP (NP (D the) (N dog)) (PP (I in) (NP (D the) (N house))))",
        "(S (NP (N dogs)) (VP (V see) (NP (NP (N cats)) (PP (I in) (NP (N houses))))) (P .))",
        "(S (NP (D the) (N house)) (VP (V is) (AP (A big))))",
        "(S (S (NP (N cats)) (VP (V sleep))) (C and) (S (NP (N dogs)) (VP (V bark))))",
        "(S (NP (N cats)) (VP (V bark)))",
    )
]


def chained(trees: Iterable[Tree] = TREES) -> list[Parse]:
    """Both layers: each word hangs from the one before it, as a subject if it is a noun."""
    return [
        Parse.of(
            tree,
            DependencyTree.build(
                tree.words,
                tree.tags,
                range(len(tree)),
                ["root", *("subj" if tag[0] == "N" else "dep" for tag in tree.tags[1:])],
            ),
        )
        for tree in trees
    ]


def of_layers(examples: Iterable[Parse], layers: Iterable[str]) -> list[Parse]:
    """The same sentences with some of their layers alone."""
    return [
        Parse.of(
            each.tree if "constituents" in layers else None,
            each.dependencies if "dependencies" in layers else None,
        )
        for each in examples
    ]


def words_of(examples: Iterable[Parse]) -> list[tuple[str, ...]]:
    """What a parser is given of sentences."""
    return [example.words for example in examples]


# ---- Parsers -----------------------------------------------------------------------------

LEXICAL = {"charlstm": ("charlstm",), "word-charlstm": ("word", "charlstm")}
SETTINGS: dict[str, Any] = {
    "lexical": ("word", "charlstm"), "d_model": 32, "layers": 2, "heads": 2, "d_kv": 8,
    "d_ff": 32, "d_label_hidden": 16, "d_char": 8, "max_positions": 20, "d_arc": 16,
    "d_relation": 8, "d_decoder": 8, "decoder_layers": 1, "d_action": 4, "d_attention": 8,
    **{f"{name}_dropout": 0.0 for name in ("attention", "residual", "relu", "word", "form", "char",
                                           "tag", "biaffine", "decoder")},
}  # fmt: skip
"""Of a very small parser without dropout, whatever its kind."""


def config(kind: str = "chart", /, **changes: Any) -> Any:
    """The settings of a tiny parser by their short names: those of :data:`SETTINGS`, changed."""
    config_class = kind_named(kind).parser_class.Config
    tables = parts(config_class)
    known = {
        key: value for key, value in SETTINGS.items() if key == "d_model" or places_of(key, tables)
    }
    return config_class.model_validate(
        chosen(in_tables(known | changes, tables)) if tables else changes
    )


def flat(settings: Any) -> dict[str, Any]:
    """The settings of a parser by their short names, those of parts that it has."""
    return short(leaves(settings.model_dump(mode="json")))


def tiny(
    kind: str = "chart",
    examples: Iterable[Tree | Parse] | None = None,
    *,
    seed: int = 0,
    **changes: Any,
) -> Any:
    """An untrained parser with the vocabulary of the examples, which are those of :data:`TREES`."""
    made = kind_named(kind)
    parses = [each if isinstance(each, Parse) else Parse.of(each) for each in examples or ()]
    if examples is None:
        parses = of_layers(chained(), made.layers)
    torch.manual_seed(seed)
    parser = made.parser_class.build(config(kind, **changes), parses)
    if made.trained:
        with torch.no_grad():
            # As initialised, attention is almost uniform; tests need it to matter.
            for name, weight in parser.encoder.named_parameters():
                if name.startswith("layers.") and ".attention." in name and weight.dim() == 2:
                    weight.normal_(std=0.5)
    return parser


def enlarge(parser: Any, *, seed: int = 1) -> Any:
    """The parser with weights so large that every input matters, and in evaluation."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, weight in parser.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=0.5)
            elif not name.endswith("norm.weight"):
                weight.normal_(std=0.2)
    return parser.eval()


def learn(
    parser: Any, examples: Sequence[Parse], steps: int, rate: float = 0.01, *, decay: bool = False
) -> list[float]:
    """The losses of steps of Adam over all examples at once; with ``decay``, ever smaller ones."""
    optimiser = torch.optim.Adam(parser.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: 1 - step / steps if decay else 1
    )
    indexed = list(parser.train().index(examples))
    losses = []
    for step in range(steps):
        optimiser.zero_grad()
        losses.append(parser.gradients(indexed, np.random.default_rng(step), 2000))
        optimiser.step()
        schedule.step()
    parser.eval()
    return losses


# ---- Commands ----------------------------------------------------------------------------


def cli(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run a command in this process."""
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, words, input=stdin, prog_name="spmrl-bench")


def works(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run a command that succeeds."""
    result = cli(*arguments, stdin=stdin)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def refused(*arguments: object, stdin: str | bytes | None = None) -> str:
    """Run a command that fails; return the one line that says why."""
    result = cli(*arguments, stdin=stdin)
    assert result.exit_code == 1, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)  # anything else is a traceback
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("spmrl-bench: ")
    return line.removeprefix("spmrl-bench: ")


MAIN = "from spmrl_bench.cli import main; main()"


def environment(**changes: str) -> dict[str, str]:
    """Of a process that finds this program, wherever it begins."""
    return os.environ | {"PYTHONPATH": str(ROOT)} | changes


def cli_process(
    *arguments: object, code: str = MAIN, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, or other code with its arguments, in a process of its own."""
    return process(sys.executable, "-c", code, *arguments, **options)


def process(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, and keep what it writes."""
    given: dict[str, Any] = {
        "env": environment(), "text": True, "encoding": "utf-8", "timeout": PATIENCE,
        "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
    }  # fmt: skip
    return subprocess.run([*map(str, command)], check=False, **given | options)


# ---- Records -----------------------------------------------------------------------------

# Counts of sentences: brackets, then attachment (of the scored words, of all words).
PERFECT = (3, Status.VALID, 2, 2, 2, 0, 3, 3)
HALF = (4, Status.VALID, 1, 2, 2, 1, 4, 4)
ATTACHED = (4, 4, 4, 4, 4, 4, 4, 4)
LOOSE = (4, 2, 3, 1, 4, 2, 3, 1)
SKIPPED = (5, Status.WORDS_UNMATCH, 0, 0, 0, 0, 0, 0)


def noisy(errors: float, seed: int, sentences: int) -> list[tuple[int, ...]]:
    """Counts of sentences of the same lengths, with about this share of wrong brackets."""
    lengths, chance = random.Random(0), random.Random(seed)
    made = []
    for _ in range(sentences):
        size = lengths.randint(2, 9)
        right = sum(chance.random() > errors for _ in range(size))
        made.append((size + 1, Status.VALID, right, size, size, size - right, size + 1, size + 1))
    return made


def make_result(
    *rows: tuple[int, ...], split: str = "dev", metric: str = "brackets", **changes: str
) -> SplitResult:
    """A result with these rows of counts; keywords change keys of the long signature."""
    return signed(metric_named(metric).counts.from_rows(rows), split, metric=metric, **changes)


def signed(
    counts: Any, split: str, treebank: str = "german-mini", *, metric: str = "brackets", **more: str
) -> SplitResult:
    """The result of counts."""
    scorer = metric_named(metric)
    parts = {
        "scorer": "own",
        **({"prm": "spmrl"} if metric == "brackets" else {"match": metric}),
        "treebank": treebank,
        "split": split,
        "sentences": str(len(counts)),
        "skipped": str(counts.skipped),
        "seed": "1",
        "version": "0.1.0",
    } | more
    scored = MetricResult(
        counts=counts.to_columns(),
        figures=scorer.values(counts),
        signature="|".join(f"{key}:{parts[key]}" for key in ("prm", "match") if key in parts),
        signature_long="|".join(f"{key}:{value}" for key, value in parts.items()),
    )
    return SplitResult(sentences=len(counts), metrics={metric: scored}, tokens_per_second=900.0)


def joined(*results: SplitResult) -> SplitResult:
    """One result with the metrics of several."""
    metrics = {name: found for result in results for name, found in result.metrics.items()}
    return results[0].model_copy(update={"metrics": metrics})


def make_record(**changes: Any) -> Record:
    """A selected German run; keywords replace fields."""
    fields: dict[str, Any] = {
        "finished": datetime(2020, 5, 1, 12, 0, tzinfo=UTC),
        "lang": "german",
        "treebank": make_treebank(),
        "variant": "charlstm",
        "size": "small",
        "seed": 1,
        "selected": True,
        "weights": "cd" * 32,
        "recipe": {"variant": "charlstm", "learning_rate": 0.0008},
        "dev": make_result(PERFECT, HALF),
        "test": make_result(PERFECT, PERFECT, HALF, split="test"),
        "baselines": {"right-branching": make_result(HALF, HALF, HALF, split="test")},
        "training": Training(
            epochs=3, updates=24, parameters=1000, wall_seconds=60, tokens_per_second=1234.5
        ),
        "hardware": Hardware(
            device="cpu", platform="Linux x86_64", processor="", cpu_count=2, threads=2
        ),
        "versions": {"spmrl_bench": "0.1.0"},
    }
    fields |= changes
    bank = fields["treebank"].name
    for key in ("dev", "test"):
        fields[key] = fields[key] and resigned(fields[key], bank)
    fields["baselines"] = {k: resigned(one, bank) for k, one in fields["baselines"].items()}
    return Record(**fields)


def records_in(folder: Path) -> list[Record]:
    """All records of a folder, oldest first; none of its files is broken."""
    records, mistakes = load_records(folder)
    assert mistakes == []
    return records


def resigned(result: SplitResult, treebank: str) -> SplitResult:
    """A result that was signed for german-mini, for another treebank."""
    old, new = "treebank:german-mini|", f"treebank:{treebank}|"
    metrics = {
        name: one.model_copy(update={"signature_long": one.signature_long.replace(old, new)})
        for name, one in result.metrics.items()
    }
    return result.model_copy(update={"metrics": metrics})


def make_treebank(name: str = "german-mini", track: str = "mini", **changes: str) -> TreebankInfo:
    """A treebank of a record."""
    fields = {"language": "german", "fingerprint": "ab" * 32} | changes
    fingerprint = fields.pop("fingerprint")
    layers = {"constituents": fingerprint, "dependencies": fingerprint[::-1]}
    return TreebankInfo(name=name, track=track, fingerprints=layers, **fields)


# ---- Servers -----------------------------------------------------------------------------


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[int]:
    """The port of a server of this machine that runs as long as the context does, without a log."""
    handler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
