"""Trains the chart parser of benepar's package and parses with it.

The package has the network, its loss and its decoder, but not the loop that trains them, which is
only in its repository (``src/main.py``): what that does by default is done here. Adam with a
warm-up, a rate that is halved when dev has not risen for more than five epochs, an
end after eighteen without a better dev score, no clipping, and the weights that were best on dev.
Dev is scored by labelled brackets below the root, counted here.
"""

import functools
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import nltk
import torch
from benepar import char_lstm, decode_chart, nkutil, parse_chart
from benepar.parse_base import BaseInputExample
from benepar.ptb_unescape import guess_space_after, ptb_unescape
from transformers import PreTrainedTokenizerFast

# It asks the tokenizer of an encoder what stands around a sentence; that which reads any
# tokenizer.json does not say.
PreTrainedTokenizerFast.build_inputs_with_special_tokens = lambda self, ids, other=None: [
    self.cls_token_id,
    *ids,
    self.sep_token_id,
]

PATIENCE = 5  # epochs without a better score before the rate is halved
LAST = 18  # epochs without one before the end
TOKENS = 2000  # that go through the network at once
ROOTS = ("ROOT", "TOP", "S1", "VROOT")


@dataclass
class Example(BaseInputExample):
    """A sentence; without a tree it is to be parsed."""

    words: list
    space_after: list
    tree: Any
    tagged: list

    def leaves(self):
        return [word for word, _ in self.tagged]

    def pos(self):
        return self.tagged

    def without_tree(self):
        return Example(self.words, self.space_after, None, self.tagged)


def read(path):
    """The trees of a file, one a line."""
    found = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        tree = nltk.Tree.fromstring(line)
        leaves = tree.leaves()
        words, spaces = ptb_unescape(leaves), guess_space_after(leaves)
        found.append(Example(words, spaces, tree, tree.pos()))
    return found


def brackets(tree):
    def children(node):
        return None if isinstance(node[0], str) else (node.label(), node)

    return common.brackets(tree, children, ROOTS)


def build(options, examples):
    """A parser with the labels and characters of the training split."""
    trees = [example.tree for example in examples]
    decoder = decode_chart.ChartDecoder
    tags = sorted({tag for example in examples for _, tag in example.pos()})
    settings = nkutil.HParams(
        use_chars_lstm=not options.encoder,
        d_char_emb=64,
        char_lstm_input_dropout=options.char_dropout,
        use_pretrained=bool(options.encoder),
        pretrained_model=options.encoder,
        use_encoder=True,
        d_model=options.width,
        num_layers=options.layers,
        num_heads=options.heads,
        d_kv=64,
        d_ff=options.ff,
        encoder_max_len=512,
        morpho_emb_dropout=options.form_dropout,
        attention_dropout=options.dropout,
        relu_dropout=options.relu_dropout,
        residual_dropout=options.dropout,
        force_root_constituent=decoder.infer_force_root_constituent(trees),
        predict_tags=False,
        d_label_hidden=options.hidden,
    )
    return parse_chart.ChartParser(
        tag_vocab={tag: number for number, tag in enumerate(["UNK", *tags])},
        label_vocab=decoder.build_vocab(trees),
        char_vocab=char_lstm.RetokenizerForCharLSTM.build_vocab([one.words for one in examples]),
        hparams=settings,
    )


def save(parser, path):
    """The parser as a whole file, whenever training is stopped."""
    new = path.with_suffix(".new")
    torch.save({"config": parser.config, "state_dict": parser.state_dict()}, new)
    os.replace(new, path)


def train(options):
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    examples, dev = read(options.train), read(options.dev)
    given, gold = [one.without_tree() for one in dev], [brackets(one.tree) for one in dev]
    parser = build(options, examples).to(options.device)
    adam = torch.optim.Adam(parser.parameters(), lr=options.rate, betas=(0.9, 0.98), eps=1e-9)
    path = Path(options.model, "parser.pt")
    steps = bad_looks = looks_since_best = 0
    best, factor = -1.0, 1.0
    per_epoch = -(-len(examples) // options.batch)
    looks = {round(per_epoch * (k + 1) / options.checks) for k in range(options.checks)}
    for epoch in range(1, options.epochs + 1):
        random.shuffle(examples)
        for batch in range(1, per_epoch + 1):
            start = (batch - 1) * options.batch
            parts = parser.encode_and_collate_subbatches(
                examples[start : start + options.batch], subbatch_max_tokens=TOKENS
            )
            parser.train()
            adam.zero_grad()
            for _, part in parts:
                parser.compute_loss(part).backward()
            steps += 1
            for group in adam.param_groups:
                group["lr"] = options.rate * factor * min(1.0, steps / options.warmup)
            adam.step()
            if batch not in looks:
                continue
            found = map(brackets, parser.parse(given, subbatch_max_tokens=TOKENS))
            score = common.f1([*zip(gold, found, strict=True)])
            print(f"epoch {epoch} batch {batch} dev F1 {score:.2f}", flush=True)
            looks_since_best += 1
            bad_looks += steps > options.warmup
            if score > best:
                best, looks_since_best, bad_looks = score, 0, 0
                save(parser, path)
            if bad_looks > PATIENCE * options.checks:
                factor, bad_looks = factor / 2, 0
        if looks_since_best > LAST * options.checks:
            return


def parse(options):
    # Its checkpoint is a pickle, the one just written.
    torch.load = functools.partial(torch.load, weights_only=False)
    parser = parse_chart.ChartParser.from_trained(str(Path(options.model, "parser.pt")))
    parser.to(options.device)
    given = [one.without_tree() for one in read(options.input)]
    with Path(options.output).open("w", encoding="utf-8") as out:
        for tree in parser.parse(given, subbatch_max_tokens=TOKENS):
            tree.set_label("ROOT")  # which it calls TOP; a treebank may have one of its own below
            out.write(tree.pformat(margin=10**9) + "\n")


common.main(
    train=(
        train,
        "train dev model device encoder",
        "seed epochs batch checks warmup width layers heads ff hidden",
        "rate dropout relu-dropout form-dropout char-dropout",
    ),
    parse=(parse, "model input output device"),
)
