"""Trains UDPipe 1 and parses with it, through its Python module, which has no command for that."""

import sys
import time
from pathlib import Path

import common
from ufal import udpipe

#: How much of the time is planned, as heldout scores take some too, and what the tagger may have.
SAFE, TAGGER = 0.75, 0.07
#: Oracles of transition systems that have no dynamic one.
ORACLES = {"swap": "static_lazy"}


def read(path, tags):
    """The sentences of a CoNLL-U file, with the tags of column XPOS in column UPOS too."""
    error = udpipe.ProcessingError()
    reader = udpipe.InputFormat.newConlluInputFormat()
    reader.setText(Path(path).read_text(encoding="utf-8"))
    sentences = udpipe.Sentences()
    while True:
        sentence = udpipe.Sentence()
        if not reader.nextSentence(sentence, error):
            break
        for number in range(1, len(sentence.words)):
            word = sentence.words[number]
            word.upostag = word.xpostag if tags else ""
            word.xpostag = ""
            # It refuses trees without relations, and roots of another name.
            word.deprel = word.deprel or ("dep" if word.head else "root")
        sentences.push_back(sentence)
    if error.occurred():
        sys.exit(f"{path}: {error.message}")
    return sentences


def learn(options, train, dev, tagger_iterations, iterations):
    """A model as bytes, with no parser for 0 iterations of it."""
    error = udpipe.ProcessingError()
    oracle = ORACLES.get(options.transitions, "dynamic")
    model = udpipe.Trainer.train(
        "morphodita_parsito",
        train,
        dev,
        udpipe.Trainer.NONE,
        f"iterations={tagger_iterations};models=1;provide_lemma=0;use_lemma=0;provide_xpostag=0;"
        "use_xpostag=0;provide_feats=0;use_feats=0;guesser_suffix_rules=8;"
        "guesser_enrich_dictionary=6",
        f"iterations={iterations};embedding_upostag=20;embedding_feats=0;embedding_xpostag=0;"
        f"embedding_form={options.form_embedding};embedding_lemma=0;embedding_deprel=20;"
        f"learning_rate=0.02;learning_rate_final=0.001;l2=0.5;hidden_layer={options.hidden_layer};"
        f"batch_size=10;transition_system={options.transitions};transition_oracle={oracle};"
        f"structured_interval=10;single_root=1;use_gold_tags=0;run=1;run_seed={options.seed}"
        if iterations
        else udpipe.Trainer.NONE,
        error,
    )
    if error.occurred():
        sys.exit(error.message)
    return model


def within(options, train):
    """The iterations of tagger and parser that the time allows, measured on a part of the data.

    What one iteration costs is the difference of runs with one and with three: what they cost
    before the first does not grow with the sentences.
    """
    asked = options.tagger_iterations, options.iterations
    if not options.seconds:
        return asked
    part, nothing = udpipe.Sentences(), udpipe.Sentences()
    for number in range(0, len(train), max(20, len(train) // 100)):
        part.push_back(train[number])
    share = len(train) / len(part)
    took = []
    for iterations in ((1, 0), (3, 0), (1, 1), (1, 3)):
        begun = time.process_time()
        learn(options, part, nothing, *iterations)
        took.append(time.process_time() - begun)
    tagger = max((took[1] - took[0]) / 2, 0.01) * share
    parser = max((took[3] - took[2]) / 2, 0.01) * share
    tagging = max(1, min(asked[0], int(TAGGER * options.seconds / tagger)))
    left = SAFE * options.seconds - sum(took) - tagging * tagger - took[0] - took[2]
    iterations = max(1, min(asked[1], int(left / parser)))
    print(f"{tagger:.1f} s an iteration of the tagger, so {tagging} of {asked[0]}")
    print(f"{parser:.1f} s an iteration, so {iterations} of {asked[1]}", flush=True)
    return tagging, iterations


def train(options):
    data = read(options.train, tags=True)
    counts = within(options, data)
    model = learn(options, data, read(options.dev, tags=True), *counts)
    Path(options.model, "model.udpipe").write_bytes(model)


def parse(options):
    model = udpipe.Model.load(str(Path(options.model, "model.udpipe")))
    if model is None:
        sys.exit(f"{options.model}: no model of UDPipe")
    error = udpipe.ProcessingError()
    writer = udpipe.OutputFormat.newConlluOutputFormat()
    with open(options.output, "w", encoding="utf-8") as out:
        for sentence in read(options.input, tags=False):
            model.tag(sentence, udpipe.Pipeline.DEFAULT, error)
            model.parse(sentence, udpipe.Pipeline.DEFAULT, error)
            out.write(writer.writeSentence(sentence))


common.main(
    train=(
        train,
        "train dev model transitions",
        "seed iterations tagger-iterations hidden-layer form-embedding seconds",
    ),
    parse=(parse, "model input output"),
)
