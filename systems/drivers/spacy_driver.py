"""Trains the dependency parser of spaCy on CoNLL-U and parses with it.

It does what `spacy train` does, after writing the files that this wants: data in its own format,
and a configuration.
"""

from pathlib import Path

import common
import spacy
from spacy.cli.init_config import init_config
from spacy.cli.train import train as train_pipeline
from spacy.tokens import Doc, DocBin


def read(path):
    """The sentences of a CoNLL-U file as rows of columns."""
    blocks = Path(path).read_text(encoding="utf-8").split("\n\n")
    for block in blocks:
        rows = [line.split("\t") for line in block.splitlines() if line and line[0] != "#"]
        if rows:
            yield rows


def convert(source, target, vocab):
    binary = DocBin()
    for rows in read(source):
        heads = [int(row[6]) - 1 if row[6] != "0" else number for number, row in enumerate(rows)]
        relations = ["ROOT" if row[6] == "0" else row[7] for row in rows]
        starts = [number == 0 for number in range(len(rows))]
        words = [row[1] for row in rows]
        binary.add(Doc(vocab, words=words, heads=heads, deps=relations, sent_starts=starts))
    binary.to_disk(target)


def root_relation(path):
    """The relation that most roots of the training data have, whose name spaCy does not keep."""
    names = [row[7] for rows in read(path) for row in rows if row[6] == "0"]
    return max(sorted(set(names)), key=names.count)


def train(options):
    folder = Path(options.model)
    vocab = spacy.blank("xx").vocab
    for split in ("train", "dev"):
        convert(getattr(options, split), folder / f"{split}.spacy", vocab)
    (folder / "root.txt").write_text(root_relation(options.train), encoding="utf-8")
    config = init_config(lang="xx", pipeline=["parser"], optimize="efficiency", gpu=False)
    config["nlp"]["batch_size"] = 256
    config["training"]["optimizer"]["learn_rate"] = options.rate
    path = folder / "config.cfg"
    config.to_disk(path)
    train_pipeline(
        path,
        folder,
        overrides={
            "paths.train": str(folder / "train.spacy"),
            "paths.dev": str(folder / "dev.spacy"),
            "training.seed": options.seed,
            "training.max_steps": options.steps,
            "training.patience": options.steps,
            "training.eval_frequency": options.every,
            "training.score_weights": {
                "dep_uas": 0.0, "dep_las": 1.0, "dep_las_per_type": None,
                "sents_p": None, "sents_r": None, "sents_f": None,
            },
            "components.tok2vec.model.encode.width": options.width,
            "components.tok2vec.model.encode.depth": options.depth,
            "components.tok2vec.model.embed.width": options.width,
            "components.parser.model.tok2vec.width": options.width,
            "components.parser.min_action_freq": 1,  # 30 makes rare relations into "dep"
        },
    )  # fmt: skip


def parse(options):
    folder = Path(options.model)
    nlp = spacy.load(folder / "model-best")
    root = (folder / "root.txt").read_text(encoding="utf-8")
    sentences = [[row[1] for row in rows] for rows in read(options.input)]
    docs = (Doc(nlp.vocab, words=words) for words in sentences)
    with open(options.output, "w", encoding="utf-8") as out:
        for doc in nlp.pipe(docs):
            for token in doc:
                head, relation = token.head.i + 1, token.dep_ or "dep"
                if token.head.i == token.i:
                    head, relation = 0, root
                row = (token.i + 1, token.text, "_", "_", "_", "_", head, relation, "_", "_")
                out.write("\t".join(map(str, row)) + "\n")
            out.write("\n")


common.main(
    train=(train, "train dev model", "seed steps every width depth", "rate"),
    parse=(parse, "model input output"),
)
