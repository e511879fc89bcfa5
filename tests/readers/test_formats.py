"""All formats: what is recognised as each, encodings, layouts, mistakes, damage."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.readers import formats
from spmrl_bench.readers.formats import FORMATS, Format, guess_format
from spmrl_bench.registry import Registry
from spmrl_bench.trees.graph import (
    add_vroot,
    attach_loose_tokens,
    raise_crossing_branches,
    split_crossing_branches,
    to_tree,
)
from tests.builders import ROOT
from tests.conftest import shared_data
from tests.readers.cases import DEEP, FormatCase, SentenceFormat, TextFormat, brackets, read_all
from tests.readers.test_bracket_formats import BRACKETED_WORDS, BRACKETS, PSD, SINICA, TBF, VISL
from tests.readers.test_conll import CONLL, DP
from tests.readers.test_graph_formats import ALPINO, NEGRA, TIGER
from tests.reliability.tally import Tally
from tests.trees.graphs import gaps

TEXT = (BRACKETS, BRACKETED_WORDS, PSD, SINICA, TBF, VISL)
SENTENCES = (ALPINO, CONLL, DP, NEGRA, TIGER)


def each(cases: Sequence[FormatCase]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("form", cases, ids=lambda form: form.name)


def test_every_format_is_described() -> None:
    assert {form.name for form in (*TEXT, *SENTENCES)} == set(FORMATS.names())


@each((*TEXT, *SENTENCES))
def test_recognised(form: FormatCase) -> None:
    looks_like = FORMATS.get(form.name).looks_like
    assert [text for text in form.recognised if not looks_like(text)] == []
    assert [text for text in form.others if looks_like(text)] == []


def test_plain_brackets_are_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind the formats of packages, which may be such brackets too."""
    found = guess_format("( (S (A a)) (ID 1))")
    assert found.name == "psd"
    own = {name: FORMATS.get(name) for name in FORMATS.names()}
    plain = "(S (A a))"
    other = Format("other", "", "trees", list, lambda text: text == plain, {})
    monkeypatch.setattr(formats, "FORMATS", Registry("format", "none", own | {"other": other}))
    assert guess_format(plain) is other


def test_a_package_can_add_a_format(tmp_path: Path) -> None:
    """As the page on treebanks says."""
    page = (ROOT / "docs/treebanks.md").read_text(encoding="utf-8")
    code, entry = re.findall(
        r"```(?:python|toml)\n(from functools.*?|\[project.*?)```", page, re.DOTALL
    )
    exec(code, package := {})
    points = {"spmrl_bench.formats": {"equals": "my_package:FORMAT"}}
    assert tomllib.loads(entry)["project"]["entry-points"] == points
    (tmp_path / "f").write_text("(S (NN=dog)\n (VB=barks))")
    assert [*map(str, package["FORMAT"].read(tmp_path / "f"))] == ["(S (NN dog) (VB barks))"]


@each([form for form in (*TEXT, *SENTENCES) if form.encoded])
def test_another_encoding(form: FormatCase, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(form.encoded.text.encode(next(iter(form.encoded.words))))
    for encoding, words in form.encoded.words.items():
        found = form.read(path, encoding=encoding)
        assert [w for each in found for w in getattr(each, "tree", each).words] == [*words]
    with pytest.raises(ReadError) as caught:
        list(form.read(path, on_error=lambda _: None))
    assert str(caught.value).startswith(f"{path}:{form.encoded.error}")


@each((*TEXT, *SENTENCES))
def test_unreadable_file(form: FormatCase, tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ReadError) as caught:
            list(form.read(path, on_error=lambda _: None))
        assert str(caught.value).startswith(f"{path}: cannot be read: {problem}")


@each(TEXT)
def test_layouts(form: TextFormat) -> None:
    assert [(text, brackets(form.read, text)) for text, _ in form.layouts] == list(form.layouts)
    unix = form.sample.replace("\r\n", "\n")
    windows = unix.replace("\n", "\r\n")
    for text in (unix, windows, "\ufeff" + unix, "\ufeff" + windows, unix.rstrip("\n")):
        assert brackets(form.read, text) == form.trees


@each(TEXT)
def test_malformed_text(form: TextFormat, tmp_path: Path, tally: Tally) -> None:
    held, wrong = tally("R11", "malformed"), []
    path = tmp_path / "f"
    for text, place, word in form.malformed:
        held.add()
        path.write_bytes(text.encode())
        try:
            found = f"no error: {list(form.read(path))}"
        except ReadError as error:
            found = str(error)
        if not (found.startswith(f"{path}:{place}: ") and word in found):
            wrong.append((text, place, word, found))
    assert wrong == []


@each(TEXT)
def test_a_broken_tree_costs_itself_only(form: TextFormat) -> None:
    trees, errors = read_all(form.read, form.broken.text)
    assert [tree.words for tree in trees] == form.broken.words
    expected = form.broken.errors
    assert [e[: len(begin)] for e, begin in zip(errors, expected, strict=True)] == expected


@each(TEXT)
def test_depth_and_many_errors(form: TextFormat) -> None:
    for big in form.big:
        start = time.process_time()
        trees, errors = read_all(form.read, big.text)
        assert (len(trees), len(errors)) == (big.trees, big.errors)
        assert time.process_time() - start < (10 if big.errors < DEEP else 20)


@each(SENTENCES)
def test_one_sentence_in_many_ways(form: SentenceFormat, tmp_path: Path) -> None:
    path = tmp_path / "f"
    for way, data in form.ways.items():
        path.write_bytes(data)
        assert [form.content(found) for found in form.read(path)] == [form.expected(1)], way


@each(SENTENCES)
def test_malformed_sentences(form: SentenceFormat, tally: Tally) -> None:
    """One is left out, and reported once; the next one is read."""
    heads = form in (CONLL, DP)
    held = tally(*(("R13", "dependency files with a mistake") if heads else ("R11", "malformed")))
    wrong = []
    for name, (bad, line, problem) in form.malformed.items():
        held.add()
        line += (form.head + form.good).count("\n")
        place = f"{line}: sentence {form.bad_name}: "
        files = [(form.file(form.good, bad, form.good), [1, 3])]
        files.append((files[0][0].replace("\n", "\r\n"), [1, 3]))
        if form.open_end:
            files.append((form.file(form.good, bad.rstrip("\n")), [1]))
        for text, numbers in files:
            found, errors = read_all(form.read, text)
            good = [form.content(sentence) for sentence in found] == list(
                map(form.expected, numbers)
            )
            if not (
                good and len(errors) == 1 and errors[0].startswith(place) and problem in errors[0]
            ):
                wrong.append((name, place, problem, errors))
    assert wrong == []


@each([form for form in SENTENCES if form.ending])
def test_what_ends_the_file(form: SentenceFormat) -> None:
    bad, problem = form.ending
    found, errors = read_all(form.read, form.file(form.good, bad, form.good))
    assert (list(map(form.content, found)), errors) == ([form.expected(1)], [problem])


@each([form for form in SENTENCES if form.deep])
def test_deep_nodes(form: SentenceFormat, tmp_path: Path) -> None:
    text, labels = form.deep
    (graph,) = form.read_file(tmp_path, text)
    assert to_tree(graph).labels == tuple(labels)


CP = {"encoding": "cp1252"}
#: Files of a format, the options they are read with; sentences, words, empty elements, errors, and
#: of graphs the nodes with gaps and how many sentences have some.
RELEASES = [
    # three lines have two trees; the number 0 in a CD is a word, not an empty element
    ("bracketed-words", "idn_id/Indonesian_Treebank_ID.bracket", {}, 1033, 27115, 2730, 0, 0, 0),
    # entries have unbalanced brackets, and #9348 a node with what is left of a tag
    ("visl", "floresta_pt/Floresta_7.4.part8870-9369.ptb", CP, 485, 8641, 0, 15, 0, 0),
    ("tiger-xml", "smultron_sv_de_en/smultron_sv_banana.xml", {}, 93, 1731, 0, 0, 2, 2),
    ("tiger-xml", "smultron_sv_de_en/smultron_de_banana.xml", {}, 86, 1906, 0, 0, 39, 22),
    ("tiger-xml", "smultron_sv_de_en/smultron_en_banana.xml", {}, 79, 1786, 90, 0, 0, 0),
    ("tiger-xml", "squoia_de/*.xml", {}, 2824, 46857, 0, 0, 701, 480),
    ("negra-export", "alpino_nl/alpinosample.export", {}, 3, 76, 0, 0, 2, 2),
    ("alpino-xml", "alpino_nl/alpino.first1200.xml", {}, 1200, 23629, 0, 0, 2964, 816),
]


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release[1])
def test_releases_hold_what_they_say(release: tuple[str, str, dict[str, Any], int]) -> None:
    name, files, options, *numbers = release
    errors: list[ReadError] = []
    read = FORMATS.get(name).read
    found = [
        sentence
        for path in sorted(shared_data("treebanks").glob(files))
        for sentence in read(path, on_error=errors.append, **options)
    ]
    empty = sum(sentence.tags.count("-NONE-") for sentence in found)
    total = sum(len(sentence.words) for sentence in found)
    crossing = []
    for graph in found if FORMATS.get(name).yields == "graphs" else []:
        crossing.append(gaps(graph))
        attached = attach_loose_tokens(add_vroot(graph))
        split = split_crossing_branches(attached)
        assert (split is attached) == (not crossing[-1])
        assert len(to_tree(raise_crossing_branches(attached)).labels) == len(graph.labels) + 1
    of_graphs = [sum(crossing), sum(map(bool, crossing))]
    assert [len(found), total - empty, empty, len(errors), *of_graphs] == numbers
