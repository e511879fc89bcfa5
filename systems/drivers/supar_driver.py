"""Trains a parser of SuPar and parses with it, through its Python interface.

The command line of release 1.1.4 fails on Python 3.11, and its checkpoints, which are pickles of
its own, are refused by newer releases of torch unless they are told that the file is trusted: it is
the one just written.
"""

import functools
import re
import sys
from pathlib import Path

import common
import torch

torch.load = functools.partial(torch.load, weights_only=False)

import supar  # noqa: E402 (after the line above)

PARSERS = {
    "dependencies": supar.BiaffineDependencyParser,
    "constituents": supar.CRFConstituencyParser,
}


def train(options):
    torch.manual_seed(options.seed)
    kind = PARSERS[options.layer]
    # It scores a test split after each epoch too, for its log: one sentence is soon done.
    end = "\n\n" if options.layer == "dependencies" else "\n"
    first = Path(options.dev).read_text(encoding="utf-8").split(end, 1)[0]
    one = Path(options.model, "one").with_suffix(Path(options.dev).suffix)
    one.write_text(first + end, encoding="utf-8")
    own = {
        "train": options.train,
        "dev": options.dev,
        "test": str(one),
        "path": str(Path(options.model, "model.pt")),
        "encoder": "bert" if options.encoder else "lstm",
        "bert": options.encoder or None,
        "feat": [] if options.encoder else ["char"],
        "embed": None,
        "build": True,
        "checkpoint": False,
        "max_len": None,
        "min_freq": options.min_freq,
        "n_lstm_hidden": options.lstm,
        "n_lstm_layers": options.layers,
        "batch_size": options.batch,
        "epochs": options.epochs,
        "patience": 100,
        "buckets": 32,
        "lr": options.rate,
        "lr_rate": 20,  # of what is above an encoder
        "warmup": 0.1,
        "mu": 0.9,
        "nu": 0.9,
        "eps": 1e-12,
        "weight_decay": 0,
        "clip": 5.0,
        "decay": 0.75,
        "decay_steps": 5000,
        "update_steps": 1,
        "verbose": True,
        "punct": True,
        "tree": True,
        "proj": False,
        "partial": False,
        "mbr": True,
        "delete": set(),
        "equal": {},
    }
    parser = kind.build(**own)
    if options.encoder:
        sys.modules["transformers"].AdamW = torch.optim.AdamW  # which was there in its time
    parser.train(**own)


def parse(options):
    parser = PARSERS[options.layer].load(str(Path(options.model, "model.pt")))
    parser.predict(
        options.input, pred=options.output, verbose=False, tree=True, proj=False, mbr=True
    )
    path = Path(options.output)
    text = path.read_text(encoding="utf-8")
    if options.layer == "constituents":  # which it lays out over lines
        text = re.sub(r"\s*\n\s+", " ", text)
    path.write_text(text, encoding="utf-8")


common.main(
    train=(
        train,
        "train dev model layer encoder",
        "seed epochs batch lstm layers min-freq",
        "rate",
    ),
    parse=(parse, "model input output layer"),
)
