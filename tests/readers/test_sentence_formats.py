"""Formats of graphs and dependencies: ways to write a file, mistakes and their places, damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import OnError
from spmrl_bench.trees.graph import to_tree
from tests.readers.damage import damaged, read_both_ways
from tests.readers.described import cases
from tests.readers.sentence_formats import SentenceFormat
from tests.readers.test_alpino import ALPINO
from tests.readers.test_conll import CONLL
from tests.readers.test_dp import DP
from tests.readers.test_negra_export import NEGRA
from tests.readers.test_tigerxml import TIGER

SENTENCE_FORMATS = (ALPINO, CONLL, DP, NEGRA, TIGER)
each_format = pytest.mark.parametrize("form", SENTENCE_FORMATS, ids=lambda form: form.name)
MISTAKES = pytest.mark.parametrize(
    ("form", "name"), cases(SENTENCE_FORMATS, lambda form: form.malformed)
)


@pytest.mark.parametrize(("form", "way"), cases(SENTENCE_FORMATS, lambda form: form.ways))
def test_one_sentence_in_many_ways(form: SentenceFormat, way: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(form.ways[way])
    assert [form.content(sentence) for sentence in form.read(path)] == [form.expected(1)]


@MISTAKES
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_malformed(form: SentenceFormat, name: str, line_end: str, tmp_path: Path) -> None:
    bad, line, problem = form.malformed[name]
    path = tmp_path / "f"
    line += (form.head + form.good).count("\n")
    expected = str(ReadError(problem, path=path, line=line, sentence=form.bad_name))

    def write(*sentences: str) -> None:
        path.write_bytes(form.file(*sentences).replace("\n", line_end).encode())

    def check(error: ReadError) -> None:
        assert str(error)[: None if form.whole_problems else len(expected)] == expected

    def check_first_mistake() -> None:
        sentences = form.read(path)
        assert form.content(next(sentences)) == form.expected(1)
        with pytest.raises(ReadError) as caught:
            list(sentences)
        check(caught.value)

    if form.open_end:
        write(form.good, bad.rstrip("\n"))
        check_first_mistake()
    write(form.good, bad, form.good)
    check_first_mistake()
    # The sentence is left out, and reported once, if the caller wishes; the next one is read.
    errors: list[ReadError] = []
    found = [form.content(sentence) for sentence in form.read(path, on_error=errors.append)]
    assert found == [form.expected(1), form.expected(3)]
    (error,) = errors
    check(error)


@pytest.mark.parametrize(
    "form", [form for form in SENTENCE_FORMATS if form.ending], ids=lambda form: form.name
)
def test_what_ends_the_file(form: SentenceFormat, tmp_path: Path) -> None:
    assert form.ending is not None
    bad, problem = form.ending
    errors: list[ReadError] = []
    sentences = form.read_file(tmp_path, form.good, bad, form.good, on_error=errors.append)
    assert [form.content(sentence) for sentence in sentences] == [form.expected(1)]
    assert [str(error) for error in errors] == [f"{tmp_path}/file:{problem}"]


@pytest.mark.parametrize(
    "form", [form for form in SENTENCE_FORMATS if form.deep], ids=lambda form: form.name
)
def test_deep_nodes(form: SentenceFormat, tmp_path: Path) -> None:
    assert form.deep is not None
    text, labels = form.deep
    (graph,) = form.read_file(tmp_path, text)
    assert to_tree(graph).labels == tuple(labels)


@each_format
@given(data=st.data())
def test_damaged_files_never_cause_another_error(form: SentenceFormat, data: st.DataObject) -> None:
    def read_to_trees(path: Path, on_error: OnError) -> Iterator[Any]:
        for sentence in form.read(path, on_error=on_error):
            yield form.to_tree(sentence)

    whole = form.damage or form.file(form.good, form.good)
    read_both_ways(read_to_trees, data.draw(damaged(whole.encode())))
