"""Trains Stanza's constituency parser and parses with it, without what it takes from elsewhere.

Two things are put in the place of what a training would need: word vectors, which are random here
and learnt with the rest for frequent words, and the score on dev, for which Stanza starts a Java
program (CoreNLP): it is counted here, as labelled brackets of all constituents below the root.
"""

import random
import re
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import common
from stanza.models import constituency_parser
from stanza.models.common.pretrain import Pretrain
from stanza.models.constituency import parser_training

WIDTH = 100


class Score:
    """What Stanza reads of the answer of the Java program."""

    kbestF1 = None  # noqa: N815 (its name there)

    def __init__(self, results):
        both = [(one.gold, best(one.predictions[0])) for one in results]
        pairs = [tuple(common.brackets(tree, children) for tree in trees) for trees in both]
        self.treeF1 = [common.f1([pair]) for pair in pairs]
        self.f1 = common.f1(pairs)

    def HasField(self, name):  # noqa: N802 (its name there)
        return False


class EvaluateParser(nullcontext):
    """In the place of the class that talks to the Java program."""

    def __init__(self, *args, **options):
        super().__init__(self)

    def process(self, results):
        return Score(results)


def best(prediction):
    return getattr(prediction, "tree", prediction)


def children(node):
    return None if node.is_preterminal() or node.is_leaf() else (node.label, node.children)


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


def run(options, mode, *more):
    parser_training.EvaluateParser = EvaluateParser
    constituency_parser.main(
        [
            f"--mode={mode}",
            "--shorthand=xx_treebank",
            f"--save_dir={options.model}",
            "--save_name=parser.pt",
            f"--wordvec_pretrain_file={Path(options.model, 'vectors.pt')}",
            f"--device={options.device}",
            "--no_retag",
            *more,
        ]
    )


def train(options):
    vectors = Path(options.model, "vectors.pt")
    if not vectors.exists():
        write_vectors(options.train, vectors, options.seed)
    run(
        options,
        "train",
        f"--train_file={options.train}",
        f"--eval_file={options.dev}",
        f"--seed={options.seed}",
        "--tag_embedding_dim=0",
        "--no_check_valid_states",
        "--no_strict_check_constituents",
        "--no_multistage",
        f"--epochs={options.epochs}",
        f"--epoch_size={options.epoch_size}",
        f"--hidden_size={options.hidden}",
        f"--train_batch_size={options.batch}",
        f"--optim={options.optimiser}",
        *([f"--learning_rate={options.rate}"] if options.rate else []),
        *([f"--bert_model={options.encoder}"] if options.encoder else []),
    )


def parse(options):
    lines = Path(options.input).read_text("utf-8").splitlines()
    with TemporaryDirectory(dir=Path(options.output).parent) as name:
        given = Path(name, "given.mrg")  # its reader wants one constituent below the root
        trees = (f"(ROOT (S {line.removeprefix('(ROOT ')})" for line in lines)
        given.write_text("".join(f"{tree}\n" for tree in trees), encoding="utf-8")
        files = (f"--eval_file={given}", f"--predict_dir={name}", "--predict_file=out")
        run(options, "predict", *files, "--predict_format={:O}")
        Path(name, "out.pred.mrg").replace(options.output)


common.main(
    train=(
        train,
        "train dev model device encoder optimiser",
        "seed epochs epoch-size hidden batch",
        "rate",
    ),
    parse=(parse, "model input output device"),
)
