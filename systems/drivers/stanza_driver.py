"""Trains Stanza's constituency parser and parses with it, without what it takes from elsewhere.

It runs in the environment of Stanza, not in that of this project. Two things are put in the place
of what a training would need: word vectors, which are random here and learnt with the rest for
frequent words, and the score on dev, for which Stanza starts a Java program (CoreNLP): it is
counted here, as labelled brackets of all constituents below the root.
"""

import argparse
import random
import re
from collections import Counter
from pathlib import Path

from stanza.models import constituency_parser
from stanza.models.common.pretrain import Pretrain
from stanza.models.constituency import parser_training

WIDTH = 100


class Score:
    """What Stanza reads of the answer of the Java program."""

    kbestF1 = None  # noqa: N815 (its name there)

    def __init__(self, results):
        pairs = [(brackets(one.gold), brackets(best(one.predictions[0]))) for one in results]
        self.treeF1 = [f1([pair]) for pair in pairs]
        self.f1 = f1(pairs)

    def HasField(self, name):  # noqa: N802 (its name there)
        return False


class EvaluateParser:
    """In the place of the class that talks to the Java program."""

    def __init__(self, *args, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def process(self, results):
        return Score(results)


def best(prediction):
    return getattr(prediction, "tree", prediction)


def brackets(tree):
    """The labelled spans of a tree below its root, as a multiset."""
    found = Counter()

    def visit(node, start, depth):
        if node.is_preterminal() or node.is_leaf():
            return start + 1
        end = start
        for child in node.children:
            end = visit(child, end, depth + 1)
        if depth:
            found[node.label, start, end] += 1
        return end

    visit(tree, 0, 0)
    return found


def f1(pairs):
    same = sum((gold & found).total() for gold, found in pairs)
    all_of_both = sum(gold.total() + found.total() for gold, found in pairs)
    return 200 * same / all_of_both if all_of_both else 0.0


def write_vectors(train, path, seed):
    """Vectors of the training words, as Stanza keeps those that it was given."""
    words = sorted(set(re.findall(r"\(\S+ ([^\s()]+)\)", Path(train).read_text("utf-8"))))
    numbers = random.Random(seed)
    text = path.with_suffix(".txt")
    with text.open("w", encoding="utf-8") as out:
        out.write(f"{len(words)} {WIDTH}\n")
        for word in words:
            row = " ".join(f"{numbers.gauss(0, 0.1):.4f}" for _ in range(WIDTH))
            out.write(f"{word} {row}\n")
    Pretrain(str(path), str(text)).load()
    text.unlink()


def train(options):
    vectors = Path(options.model, "vectors.pt")
    if not vectors.exists():
        write_vectors(options.train, vectors, options.seed)
    parser_training.EvaluateParser = EvaluateParser
    constituency_parser.main(
        [
            "--mode=train",
            f"--train_file={options.train}",
            f"--eval_file={options.dev}",
            "--shorthand=xx_treebank",
            f"--save_dir={options.model}",
            "--save_name=parser.pt",
            f"--wordvec_pretrain_file={vectors}",
            f"--seed={options.seed}",
            f"--device={options.device}",
            "--no_retag",
            "--tag_embedding_dim=0",
            "--no_check_valid_states",
            "--no_strict_check_constituents",
            "--no_multistage",
            f"--epochs={options.epochs}",
            f"--epoch_size={options.epoch_size}",
            f"--hidden_size={options.hidden}",
            f"--train_batch_size={options.batch}",
        ]
    )


def parse(options):
    parser_training.EvaluateParser = EvaluateParser
    path = Path(options.output)
    folder = path.parent / f"{path.name}.stanza"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.mrg"):
        old.unlink()
    given = folder / "given.mrg"  # its reader wants one constituent below the root
    lines = Path(options.input).read_text("utf-8").splitlines()
    trees = (f"(ROOT (S {line.removeprefix('(ROOT ')})" for line in lines)
    given.write_text("".join(f"{tree}\n" for tree in trees), encoding="utf-8")
    constituency_parser.main(
        [
            "--mode=predict",
            f"--eval_file={given}",
            "--shorthand=xx_treebank",
            f"--save_dir={options.model}",
            "--save_name=parser.pt",
            f"--wordvec_pretrain_file={Path(options.model, 'vectors.pt')}",
            f"--device={options.device}",
            "--no_retag",
            f"--predict_dir={folder}",
            "--predict_file=out",
            "--predict_format={:O}",
        ]
    )
    (folder / "out.pred.mrg").replace(path)
    for left in folder.iterdir():
        left.unlink()
    folder.rmdir()


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("train")
    command.set_defaults(run=train)
    for name in ("train", "dev", "model", "device"):
        command.add_argument(f"--{name}", required=True)
    for name in ("seed", "epochs", "epoch-size", "hidden", "batch"):
        command.add_argument(f"--{name}", type=int, required=True)
    command = commands.add_parser("parse")
    command.set_defaults(run=parse)
    for name in ("model", "input", "output", "device"):
        command.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    options.run(options)


main()
