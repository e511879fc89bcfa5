"""A trained parser as a component of spaCy: what documents get, and what survives saving."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import shutil
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import spacy
import torch
from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import filter_spans

from spmrl_bench.errors import CheckpointError, SentenceTooLongError, SpmrlError
from spmrl_bench.integrations.spacy_component import (
    NAME,
    SPANS_KEY,
    Annotated,
    ParserComponent,
    sentences_of,
    write_parses,
)
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.trees import Parse, Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from tests.builders import ROOT, cli_process, environment, tiny
from tests.reliability.kinds import KINDS

LIMIT = 8
TEXT = "the dog barks . the cat sees a dog ."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser of constituents that predicts tags."""
    return saved(tiny(seed=3, max_positions=LIMIT + 2, predict_tags=True), tmp_path_factory)


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser of both layers."""
    parser = tiny("joint", seed=1, layers=1, max_positions=LIMIT + 2)
    with torch.no_grad():
        for weight in parser.dependencies.parameters():
            weight.normal_(std=0.7)
    return saved(parser, tmp_path_factory)


def saved(parser: Any, places: pytest.TempPathFactory) -> Path:
    folder = places.mktemp("parser")
    parser.save(folder)
    return folder


@cache
def pipeline(model: Path, *before: str, **settings: Any) -> Language:
    nlp = spacy.blank("en")
    for name in before:
        nlp.add_pipe(name)
    nlp.add_pipe(NAME, config={"model": str(model), "device": "cpu", **settings})
    return nlp


def rows(doc: Doc) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label_) for span in doc.spans[SPANS_KEY]]


def dependencies(doc: Doc) -> list[tuple[int, str]]:
    return [(token.head.i, token.dep_) for token in doc]


def parses(model: Path, *sentences: str) -> list[Parse]:
    return list(load_parser(model, "cpu").parse([sentence.split() for sentence in sentences]))


# What a document gets ------------------------------------------------------------------------


def test_spans_are_those_of_the_parser(model: Path) -> None:
    doc = pipeline(model, "sentencizer")(TEXT)
    first, second = parses(model, "the dog barks .", "the cat sees a dog .")
    expected = list(first.tree.constituents())
    expected += [(start + 4, end + 4, label) for start, end, label in second.tree.constituents()]
    assert rows(doc) == expected
    assert doc._.parse_constituents == [
        [list(row) for row in expected if row[1] <= 4],
        [list(row) for row in expected if row[0] >= 4],
    ]
    assert doc._.parse_status == [[0, 4, "parsed"], [4, 10, "parsed"]]
    untagged = [parse.with_tags(["XX"] * len(parse)) for parse in (first, second)]
    assert doc._.parse_trees == [str(parse) for parse in untagged]
    assert [sent._.parse_tree for sent in doc.sents] == doc._.parse_trees
    assert [token.tag_ for token in doc] == [""] * 10
    assert not doc.has_annotation("DEP")


def test_spans_have_their_probabilities_if_asked_for(model: Path) -> None:
    plain = pipeline(model)("the dog sees a cat")
    assert {span._.probability for span in plain.spans["constituents"]} == {None}
    doc = Doc(plain.vocab).from_bytes(pipeline(model, scores=True)("the dog sees a cat").to_bytes())
    assert rows(doc) == rows(plain)
    (parse,) = load_parser(model, "cpu").parse([[token.text for token in doc]], scored=True)
    for span in doc.spans["constituents"]:
        assert span._.probability == parse.probability(span.start, span.end, span.label_)
    assert doc[1:3]._.probability is None


def test_heads_and_relations_are_those_of_the_parser(joint: Path) -> None:
    doc = pipeline(joint, "sentencizer")(TEXT)
    expected: list[tuple[int, str]] = []
    for parse in parses(joint, "the dog barks .", "the cat sees a dog ."):
        tree, start = parse.dependencies, len(expected)
        for word, head in enumerate(tree.heads.tolist()):
            place = word if head == 0 else head - 1
            expected.append((start + place, tree.relations[word]))
    assert dependencies(doc) == expected
    assert [(sent.start, sent.end) for sent in doc.sents] == [(0, 4), (4, 10)]
    assert {span.label_ for span in doc.spans[SPANS_KEY]}


SPACED = "  the dog \n barks .\n\n the  cat sees a dog . "


def test_white_space_is_not_seen_and_changes_nothing(joint: Path) -> None:
    nlp = pipeline(joint, "sentencizer")
    plain, spaced = nlp(TEXT), nlp(SPACED)
    assert spaced.text == SPACED
    places = [token.i for token in spaced if not token.is_space]
    assert len(places) == len(plain) < len(spaced)
    assert rows(spaced) == [
        (places[start], places[end - 1] + 1, label) for start, end, label in rows(plain)
    ]
    assert spaced._.parse_trees == plain._.parse_trees
    assert [row[2] for row in spaced._.parse_status] == ["parsed", "parsed"]
    words = [(places.index(spaced[k].head.i), spaced[k].dep_) for k in places]
    assert words == dependencies(plain)
    for token in spaced:
        if token.is_space:
            before = [k for k in places if token.sent.start <= k < token.i]
            within = [k for k in places if token.sent.start <= k < token.sent.end]
            assert (token.head.i, token.dep_) == ((before or [within[0]])[-1], "dep")
    starts = [k for k, token in enumerate(spaced) if token.is_sent_start]
    assert starts == [row[0] for row in spaced._.parse_status]


def test_what_has_no_words(joint: Path) -> None:
    nlp = pipeline(joint, "sentencizer")
    assert [len(nlp(text)) for text in ("", " ", "\n\n ")] == [0, 1, 1]
    assert (rows(nlp("")), nlp("")._.parse_trees, nlp("")._.parse_status) == ([], [], [])
    doc = nlp(" ")
    assert (rows(doc), doc._.parse_trees, doc._.parse_status) == ([], [""], [[0, 1, "empty"]])
    assert nlp("dog")._.parse_status == [[0, 1, "parsed"]]


def annotated(parse: Parse) -> Doc:
    doc = Doc(spacy.blank("en").vocab, words=list(parse.words))
    found = [Annotated(sentence, parse, "parsed") for sentence in sentences_of(doc)]
    write_parses(doc, found, name=NAME, layers=parse.layers, key=SPANS_KEY, tags=True)
    return doc


def test_a_bracket_without_a_label_stays_one() -> None:
    tree = Tree.build(["a", "b", "c"], ["A", "B", "C"], [(0, 3, ""), (0, 3, "S"), (1, 2, "")])
    doc = annotated(Parse.of(tree))
    assert rows(doc) == [(0, 3, ""), (0, 3, "S"), (1, 2, "")]
    assert doc._.parse_trees == [str(tree)]
    assert rows(Doc(doc.vocab).from_bytes(doc.to_bytes())) == rows(doc)
    assert "mark" not in displacy.render(doc, style="span", options={"spans_key": SPANS_KEY})


def test_heads_that_cross_keep_their_sentence() -> None:
    tree = DependencyTree.build(
        ["a", "b", "c", "d", "e"], ["A", "B", "C", "D", "E"], [3, 5, 0, 1, 3], "rstuv"
    )
    doc = annotated(Parse.of(dependencies=tree))
    assert [token.head.i for token in doc] == [2, 4, 2, 0, 2]
    assert [token.is_sent_start for token in doc] == [True, False, False, False, False]
    again = Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert dependencies(again) == dependencies(doc)
    assert len(list(again.sents)) == 1


def test_tags_come_only_if_asked_for(model: Path, joint: Path) -> None:
    doc = pipeline(model, "sentencizer", set_tags=True)(SPACED)
    (first, second) = parses(model, "the dog barks .", "the cat sees a dog .")
    assert [token.tag_ for token in doc if not token.is_space] == [*first.tags, *second.tags]
    assert {token.tag_ for token in doc if token.is_space} == {""}
    assert doc._.parse_trees == [str(first), str(second)]
    with pytest.raises(SpmrlError, match="set_tags asks for tags, but this parser predicts none"):
        pipeline(joint, set_tags=True)("dog")


def test_tags_are_read_where_the_parser_reads_them(neighbours: Path) -> None:
    nlp = pipeline(neighbours)
    words = ["the", "dog"]
    (tagged, untagged) = nlp.pipe(
        [Doc(nlp.vocab, words=words, tags=["D", "N"]), Doc(nlp.vocab, words=words)]
    )
    assert dependencies(tagged) == [(1, "det"), (1, "root")]
    assert dependencies(untagged) == [(1, "dep"), (1, "root")]
    assert SPANS_KEY not in tagged.spans


# Sentences -----------------------------------------------------------------------------------


def test_without_boundaries_a_text_is_one_sentence_or_an_error(model: Path) -> None:
    short = "the dog barks . cats sleep"
    assert pipeline(model)(short)._.parse_status == [[0, 6, "parsed"]]
    nlp = pipeline(model, unsplit="error")
    with pytest.raises(SpmrlError, match="nobody has told the sentences of the text 'the dog b"):
        nlp(short)
    assert nlp("dog")._.parse_status == [[0, 1, "parsed"]]


LONG = " ".join(["dog"] * (LIMIT + 1))


def test_long_sentences_follow_the_policy(joint: Path) -> None:
    text = f"cats sleep . {LONG} . dogs bark ."
    with pytest.raises(SentenceTooLongError, match=r"spmrl_bench: a sentence of 10 words.*on_long"):
        pipeline(joint, "sentencizer")(text)
    around = rows(pipeline(joint, "sentencizer")("cats sleep ."))
    for policy, tree in (("skip", "(())"), ("flat", f"{'(XX dog) ' * 9}(XX .))")):
        doc = pipeline(joint, "sentencizer", on_long=policy)(text)
        assert [row[2] for row in doc._.parse_status] == ["parsed", "too long", "parsed"]
        assert doc._.parse_trees[1].endswith(tree)
        assert [row for row in rows(doc) if row[1] <= 3] == around
        for document in (doc, Doc(doc.vocab).from_bytes(doc.to_bytes())):
            assert [(sent.start, sent.end) for sent in document.sents] == [
                (0, 3),
                (3, 13),
                (13, 16),
            ]
        assert {token.head.i for token in doc[3:13]} == {3}
        assert (doc[4].dep_ == "_") is (policy == "skip")


def test_an_error_handler_loses_only_the_document_at_fault(model: Path) -> None:
    nlp = pipeline.__wrapped__(model)
    seen: list[str] = []
    nlp.set_error_handler(lambda name, proc, docs, error: seen.extend(doc.text for doc in docs))
    assert [doc.text for doc in nlp.pipe(["cats", LONG, "dogs"])] == ["cats", "dogs"]
    assert seen == [LONG]


def test_documents_come_one_by_one_or_together_and_as_they_are_needed(joint: Path) -> None:
    nlp = pipeline(joint, "sentencizer")
    texts = [TEXT, SPACED, "", "dogs", "cats sleep ."] * 3
    alone = [nlp(text) for text in texts]
    for size in (1, 4, 1000):
        for one, other in zip(alone, nlp.pipe(texts, batch_size=size), strict=True):
            assert (rows(one), dependencies(one)) == (rows(other), dependencies(other))
    endless = (Doc(nlp.vocab, words=["dogs"]) for _ in itertools.count())
    component = nlp.get_pipe(NAME)
    assert len(list(itertools.islice(component.pipe(endless, batch_size=2), 3))) == 3


# Settings ------------------------------------------------------------------------------------


def test_a_parser_that_is_missing_is_named_when_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SpmrlError, match=r"the component spmrl_bench has no parser: name the fold"):
        ParserComponent()(spacy.blank("en")("dog"))
    nlp = pipeline(tmp_path / "gone")
    for needing in (lambda: nlp("dog"), nlp.initialize):
        with pytest.raises(CheckpointError, match=r"gone: no trained parser here"):
            needing()
    with pytest.raises(ValueError, match="on_long"):
        pipeline(tmp_path, on_long="perhaps")


def test_documents_that_an_earlier_version_saved(model: Path) -> None:
    doc = pipeline(model, "sentencizer")(TEXT)
    trees = doc._.parse_trees
    doc.user_data[NAME] = (SPANS_KEY, ((0, 4, "parsed"), (4, 10, "parsed")))
    assert (doc._.parse_trees, doc._.parses[NAME].trees) == (trees, trees)
    doc.user_data.clear()
    assert doc._.parse_trees == trees


def test_without_spacy_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "spmrl_bench.integrations.spacy_component"
    monkeypatch.delitem(sys.modules, place)
    monkeypatch.setitem(sys.modules, "spacy.language", None)
    with pytest.raises(SpmrlError, match=r"spaCy needs it: pip install 'spmrl-bench\[spacy\]'"):
        __import__(place)


# Saving --------------------------------------------------------------------------------------


def test_bytes_that_are_no_parser_are_refused(model: Path) -> None:
    component = ParserComponent(model=model, device="cpu")
    data = component.to_bytes()
    assert b"parser.json" in data
    for wrong in (b"", b"\xc1", b"\x01", data[:-9], data.replace(b"parser.json", b"../ser.json")):
        with pytest.raises(CheckpointError):
            ParserComponent().from_bytes(wrong)


def test_a_component_can_be_pickled(model: Path) -> None:
    component = ParserComponent(model=model, device="cpu", on_long="skip")
    doc = component(spacy.blank("en")("the dog barks"))
    again = pickle.loads(pickle.dumps(component))
    assert again.on_long == "skip"
    assert rows(again(spacy.blank("en")("the dog barks"))) == rows(doc)
    assert pickle.loads(pickle.dumps(ParserComponent(model=model))).model == model


def test_saving_leaves_alone_what_lies_beside(model: Path, tmp_path: Path) -> None:
    component = ParserComponent(model=model, device="cpu")
    (tmp_path / "mine").write_text("kept")
    component.to_disk(tmp_path)
    component.to_disk(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "parser"]
    again = ParserComponent(device="cpu").from_disk(tmp_path)
    assert again.parser.kind == load_parser(tmp_path / "parser", "cpu").kind == "chart"
    with pytest.raises(CheckpointError, match="no trained parser here"):
        ParserComponent().from_disk(tmp_path / "parser")


FRESH = """
import json, sys
from pathlib import Path
import spacy
from spacy.tokens import DocBin

folder, texts = Path(sys.argv[1]), json.loads(sys.argv[2])
assert "spmrl_bench" not in sys.modules

def shown(doc):
    rows = [[s.start, s.end, s.label_] for s in doc.spans["constituents"]]
    heads = [[t.head.i, t.dep_, t.is_sent_start] for t in doc]
    return [rows, heads, doc._.parse_trees, doc._.parse_status]

loaded = spacy.load(folder / "pipeline")
config = spacy.Config().from_disk(folder / "config.cfg")
of_bytes = spacy.util.get_lang_class(config["nlp"]["lang"]).from_config(config)
of_bytes.from_bytes((folder / "bytes").read_bytes())
vocab = spacy.blank("en").vocab
print(json.dumps({
    "disk": [shown(doc) for doc in loaded.pipe(texts)],
    "bytes": [shown(of_bytes(text)) for text in texts],
    "docbin": [shown(d) for d in DocBin().from_disk(folder / "docs.spacy").get_docs(vocab)],
    "processes": [shown(doc) for doc in loaded.pipe(texts, n_process=2, batch_size=2)],
}))
"""


def test_all_of_it_comes_back_in_another_process(joint: Path, tmp_path: Path) -> None:
    own = shutil.copytree(joint, tmp_path / "parser")
    nlp = pipeline(own, "sentencizer", on_long="skip")
    texts = [TEXT, SPACED, "", f"cats sleep . {LONG} . dogs bark ."]
    docs = list(nlp.pipe(texts))
    nlp.to_disk(tmp_path / "pipeline")
    nlp.to_disk(tmp_path / "pipeline")  # in place of what is there
    nlp.config.to_disk(tmp_path / "config.cfg")
    (tmp_path / "bytes").write_bytes(nlp.to_bytes())
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    shutil.rmtree(own)

    # As an installed package has it, wherever this one is.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (point,) = project["entry-points"]["spacy_factories"].items()
    info = tmp_path / "site" / "spmrl_bench_of_this_test-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: of-this-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[spacy_factories]\n{point[0]} = {point[1]}\n")

    places = environment(PYTHONPATH=os.pathsep.join([str(tmp_path / "site"), str(ROOT)]))
    found = cli_process(tmp_path, json.dumps(texts), code=FRESH, env=places, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    expected = [
        [
            [list(row) for row in rows(doc)],
            [[token.head.i, token.dep_, token.is_sent_start] for token in doc],
            doc._.parse_trees,
            doc._.parse_status,
        ]
        for doc in docs
    ]
    for way, answers in json.loads(found.stdout).items():
        assert answers == expected, way
    assert filter_spans(docs[0].spans[SPANS_KEY])  # what spaCy itself does with spans


SHOWN = ("parses", "parse_status", "parse_constituents", "parse_trees")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A parser of each kind."""
    return {kind: saved(tiny(kind, seed=1, layers=1), tmp_path_factory) for kind in KINDS}


@pytest.mark.parametrize("second", [None, *KINDS])
@pytest.mark.parametrize("first", KINDS)
def test_kinds_in_a_pipeline(models: dict[str, Path], first: str, second: str | None) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    parts = {f"my-{kind}-{place}": kind for place, kind in enumerate((first, second)) if kind}
    for name, kind in parts.items():
        settings = {"model": str(models[kind]), "device": "cpu", "spans_key": f"spans of {name}"}
        nlp.add_pipe(NAME, name=name, config=settings)
    words = [Doc(nlp.vocab, TEXT.split())]
    doc = nlp(words[0])
    sentences = [sent.text for sent in doc.sents]
    finding = [name for name, kind in parts.items() if "constituents" in kind_named(kind).layers]
    trees = {
        name: [write_brackets(one.with_tags(["XX"] * len(one)).tree) for one in found]
        for name in finding
        for found in [parses(models[parts[name]], *sentences)]
    }
    expected = trees[finding[-1]] if finding else ["(())"] * len(sentences)
    assert doc._.parse_trees == [sent._.parse_tree for sent in doc.sents] == expected
    for document in (doc, Doc(doc.vocab).from_bytes(doc.to_bytes())):
        assert list(document._.parses) == list(parts)
        for name, one in document._.parses.items():
            assert one.trees == trees.get(name, ["(())"] * len(sentences))
            assert [one.tree(sent) for sent in document.sents] == one.trees
            assert {row[2] for row in one.status} == {"parsed"}
    doc.to_json(underscore=list(SHOWN[1:]))
    assert doc[2:6]._.parse_tree == "(())"  # of two sentences
    for copy in (doc.copy(), *(sent.as_doc(copy_user_data=True) for sent in doc.sents)):
        assert all(getattr(copy._, name) is not None for name in SHOWN)
    figures = nlp.evaluate([Example(doc, doc.copy())])
    arcs = any("dependencies" in kind_named(kind).layers for kind in parts.values())
    assert (figures.get("dep_las") == 1.0) == arcs
    assert [figures[f"spans_spans of {name}_f"] for name in finding] == [1.0] * len(finding)
