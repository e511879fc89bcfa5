"""How much memory a process holds while it works: a program of its own, where nothing else does.

``python -m tests.reliability.growth WORK AMOUNT`` does some work of :data:`WORK` and writes a JSON
list of ``[done, megabytes]`` as it goes. Its text has words in the letters of several languages,
one in ten of which was never there before; its sentences have ever other lengths.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

#: German, Hungarian, Arabic, Korean.
ALPHABETS = (
    "abdeghilmnorstuwäöüß",
    "aábdeéghiklmnoóöőtuúüűz",
    "ابتجدرسعفقكلمنهوي",
    "가나다라마바사아자하",
)
#: Words of the longest sentence: it comes early and often, and so does what it needs.
LONGEST = 40
Samples = Iterator[tuple[int, float]]


def held() -> float:
    """Megabytes of this process that are in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def sentences(amount: int) -> Iterator[list[str]]:
    """Tokenised text of which no two sentences are alike; the same in every process."""
    chance = random.Random(1)

    def word(alphabet: str) -> str:
        return "".join(chance.choices(alphabet, k=chance.randint(2, 12)))

    words = [word(alphabet) for alphabet in ALPHABETS for _ in range(1000)]
    for _ in range(amount):
        yield [
            word(chance.choice(ALPHABETS)) if chance.random() < 0.1 else chance.choice(words)
            for _ in range(chance.randint(1, LONGEST))
        ]


def parser_of(variant: str, **settings: object) -> Any:
    """A very small parser of a variant of the recipes, with random weights, on the CPU."""
    import torch

    from spmrl_bench.experiments.recipe import load_recipe
    from spmrl_bench.parsers.kinds import kind_named
    from spmrl_bench.treebanks.treebank import open_treebank

    torch.set_num_threads(1)
    torch.manual_seed(1)
    recipe = load_recipe("german")
    name = recipe.variant(variant).kind
    kind = kind_named(name)
    small = {"d_model": 32, "d_ff": 32, "layers": 1, "heads": 2, "d_kv": 8} | settings
    if name == "transition":
        small |= {"d_decoder": 32, "d_attention": 16, "beam": 2}
    config = recipe.resolve(
        treebank="german-mini",
        track="mini",
        fingerprints={"constituents": "-", "dependencies": "-"},
        variant=variant,
        settings={f"model.{key}": str(value) for key, value in small.items()},
    )
    examples = open_treebank("german-mini").examples("train", kind.layers)
    return kind.parser_class.build(config.model, examples).eval()


def parsing(variant: str, amount: int) -> Samples:
    """Bulk parsing, as of ``spmrl-bench parse``."""
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsing.bulk import Counts, ParseOptions, Worker, parse_input
    from spmrl_bench.parsing.streams import InputSentence

    prepare_process("cpu")
    answerer = Worker(parser_of(variant), ParseOptions())
    given = (
        InputSentence(words, None, f"text:{k}") for k, words in enumerate(sentences(amount), 1)
    )
    tally = Counts()
    for texts in parse_input(given, lambda windows: map(answerer, windows), tally, window=500):
        yield tally.sentences + len(texts), held()


def training(variant: str, amount: int) -> Samples:
    """Epochs of the trainer, each with an evaluation on dev."""
    from io import StringIO

    from rich.console import Console

    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsers.kinds import kind_named
    from spmrl_bench.training.report import Report
    from spmrl_bench.training.trainer import Trainer

    prepare_process("cpu", training=True)
    from spmrl_bench.treebanks.treebank import open_treebank
    from tests.laboratory import train_config

    parser = parser_of(variant)
    layers = kind_named(parser.kind).layers
    bank = open_treebank("german-mini")
    dev = [example.words for example in bank.examples("dev", layers)[:40]]
    samples: list[tuple[int, float]] = []

    def dev_score(model: Any) -> float:
        samples.append((len(samples), held()))  # of what was done before
        return float(sum(len(parse) for parse in model.parse(dev)))

    with TemporaryDirectory() as folder:
        run = Path(folder)
        config = train_config(batch_size=32, max_epochs=amount, stop_patience=amount)
        report = Report(run, "growth", "F1", Console(file=StringIO()))
        indexed = list(parser.index(bank.examples("train", layers)[:64]))
        with report:
            Trainer(
                parser,
                config,
                seed=1,
                sentences=indexed,
                dev_score=dev_score,
                run_dir=run,
                report=report,
            ).fit()
    yield from samples


def scoring(_: str, amount: int) -> Samples:
    """Scoring files of so many sentences, again and again."""
    from spmrl_bench.scoring.prm import load_prm
    from spmrl_bench.scoring.texts import score_files
    from spmrl_bench.treebanks.treebank import open_treebank
    from spmrl_bench.trees.escapes import write_brackets

    trees = [each.tree for each in open_treebank("german-mini").examples("dev", ("constituents",))]
    prm = load_prm("COLLINS")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trees"
        lines = [write_brackets(tree) + "\n" for tree in trees if tree is not None]
        path.write_text("".join((lines * 100)[:1000]), encoding="utf-8")
        for done in range(1000, amount + 1, 1000):
            score_files(path, path, prm)
            yield done, held()


def reading(_: str, amount: int) -> Samples:
    """Reading a treebank anew, so many times."""
    from spmrl_bench.treebanks.treebank import open_treebank

    for done in range(1, amount + 1):
        open_treebank("german-mini").examples("train", ("constituents", "dependencies"))
        yield done, held()


WORK: dict[str, Callable[[str, int], Samples]] = {
    "parsing": parsing,
    "training": training,
    "scoring": scoring,
    "reading": reading,
}


if __name__ == "__main__":
    work, variant, amount = sys.argv[1:]
    print(json.dumps(list(WORK[work](variant, int(amount)))))
