"""All bracket-like text formats: layouts, mistakes and their places, damage, depth, time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.described import cases
from tests.readers.test_bracketed_words import BRACKETED_WORDS
from tests.readers.test_psd import PSD
from tests.readers.test_sinica import SINICA
from tests.readers.test_tbf import TBF
from tests.readers.test_visl import VISL
from tests.readers.text_formats import (
    DEEP,
    Big,
    TextFormat,
    brackets,
    check_whole,
    error_of,
    mutations,
    read_all,
    seconds,
)

TEXT_FORMATS = (BRACKETED_WORDS, PSD, SINICA, TBF, VISL)
each_format = pytest.mark.parametrize("form", TEXT_FORMATS, ids=lambda form: form.name)


@pytest.mark.parametrize(("form", "layout"), cases(TEXT_FORMATS, lambda form: form.layouts))
def test_layouts(form: TextFormat, layout: tuple[str, list[str]]) -> None:
    text, expected = layout
    assert brackets(form.read, text) == expected


@each_format
def test_ends_of_lines_and_a_byte_order_mark_do_not_matter(form: TextFormat) -> None:
    unix = form.sample.replace("\r\n", "\n")
    windows = unix.replace("\n", "\r\n")
    expected = brackets(form.read, unix)
    assert len(expected) > 1
    for text in (windows, "\ufeff" + unix, "\ufeff" + windows, unix.rstrip("\n")):
        assert brackets(form.read, text) == expected


@pytest.mark.parametrize(("form", "mistake"), cases(TEXT_FORMATS, lambda form: form.malformed))
def test_malformed(form: TextFormat, mistake: tuple[str, str], tmp_path: Path) -> None:
    text, message = mistake
    assert error_of(form.read, text, tmp_path / "f") == message


@each_format
def test_a_broken_tree_costs_itself_only(form: TextFormat) -> None:
    trees, errors = read_all(form.read, form.broken.text)
    assert [tree.words for tree in trees] == form.broken.words
    assert len(errors) == len(form.broken.errors)
    for error, beginning in zip(errors, form.broken.errors, strict=True):
        assert error.startswith(beginning)


@each_format
@given(data=st.data())
def test_any_text_gives_trees_or_errors(form: TextFormat, data: st.DataObject) -> None:
    text = data.draw(mutations(form.sample, form.pieces))
    options = data.draw(st.sampled_from(form.options))
    check_whole(read_all(form.read, text, **options)[0])


@pytest.mark.parametrize(("form", "big"), cases(TEXT_FORMATS, lambda form: form.big))
def test_depth_and_many_errors(form: TextFormat, big: Big) -> None:
    time, trees, errors = seconds(form.read, big.text)
    assert (trees, errors) == (big.trees, big.errors)
    assert time < (10 if errors < DEEP else 20)
