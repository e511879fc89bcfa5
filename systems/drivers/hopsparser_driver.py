"""Trains hopsparser and parses with it; its own command for training wants PyTorch Lightning.

Its parser has a loop of its own for that, with the same optimiser, rate and choice of the best on
dev (greedy heads), which is called here.
"""

import json
from pathlib import Path

import common
from hopsparser import parser as hops

#: It writes its weights before it has learnt: this says that they are of an epoch.
MARK = "scored.txt"


#: What stands for ``_``, by which it knows that there is no tag or relation, and fails.
NONE = "<none>"


def rewrite(source, target, change):
    """Copy a CoNLL-U file with a change to the columns of each word."""
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
        for line in lines:
            row = line.split("\t")
            if len(row) == 10:
                change(row)
            out.write("\t".join(row))


def to_learn(row):
    row[3] = NONE if row[4] == "_" else row[4]  # it learns the tags of column UPOS
    row[7] = NONE if row[7] == "_" else row[7]


def as_answered(row):
    row[7] = "_" if row[7] == NONE else row[7]


def train(options):
    folder = Path(options.model)
    files = {}
    for split in ("train", "dev"):
        files[split] = Path(getattr(options, split)).with_suffix(".learnt")
        rewrite(getattr(options, split), files[split], to_learn)
    lexers = [
        {"name": "words", "type": "words", "embedding_size": options.words,
         "word_dropout": options.word_dropout},
        {"name": "characters", "type": "chars_rnn", "embedding_size": 64,
         "lstm_output_size": 128},
    ]  # fmt: skip
    if options.encoder:
        bert = {"name": "encoder", "type": "bert", "model": options.encoder, "layers": "*"}
        lexers = [bert | {"subwords_reduction": "mean"}]
    config = folder / "config.yaml"  # of which JSON is a part
    config.write_text(
        json.dumps(
            {
                "mlp_input": options.hidden,
                "mlp_tag_hidden": 16,
                "mlp_arc_hidden": options.arc,
                "mlp_lab_hidden": options.relation,
                "lexers": lexers,
                "encoder_dropout": options.encoder_dropout,
                "mlp_dropout": options.dropout,
                "batch_size": options.batch,
                "epochs": options.epochs,
                "lr": {"base": options.rate, "shape": "constant"},
            }
        ),
        encoding="utf-8",
    )

    def log(epoch, figures):
        done = int(epoch) + 1  # it counts from zero
        print(done, figures, flush=True)
        (folder / MARK).write_text(f"{done}\n")

    hops.train(
        config,
        folder / "parser",
        files["train"],
        files["dev"],
        device=options.device,
        log_epoch=log,
        overwrite=True,
        rand_seed=options.seed,
    )


def parse(options):
    found = Path(options.output).with_suffix(".found")
    hops.parse(Path(options.model, "parser"), options.input, found, device=options.device)
    rewrite(found, options.output, as_answered)
    found.unlink()


common.main(
    train=(
        train,
        "train dev model device encoder",
        "seed epochs batch words hidden arc relation",
        "rate word-dropout encoder-dropout dropout",
    ),
    parse=(parse, "model input output device"),
)
