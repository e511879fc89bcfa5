"""All formats: what is recognised as each, other encodings, files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.formats import FORMATS
from tests.readers.described import DescribedFormat, cases
from tests.readers.test_sentence_formats import SENTENCE_FORMATS
from tests.readers.test_text_formats import TEXT_FORMATS

DESCRIBED: tuple[DescribedFormat, ...] = (*TEXT_FORMATS, *SENTENCE_FORMATS)
each_format = pytest.mark.parametrize("form", DESCRIBED, ids=lambda form: form.name)


def test_every_format_is_described() -> None:
    """Plain brackets have a reader of another kind, and tests of their own."""
    assert sorted([form.name for form in DESCRIBED] + ["brackets"]) == sorted(FORMATS.names())


@pytest.mark.parametrize(
    ("form", "number"), cases(DESCRIBED, lambda form: range(len(form.recognised)))
)
def test_recognised(form: DescribedFormat, number: int) -> None:
    assert FORMATS.get(form.name).looks_like(form.recognised[number]) is True


@pytest.mark.parametrize(("form", "number"), cases(DESCRIBED, lambda form: range(len(form.others))))
def test_not_recognised(form: DescribedFormat, number: int) -> None:
    assert FORMATS.get(form.name).looks_like(form.others[number]) is False


@pytest.mark.parametrize(
    "form", [form for form in DESCRIBED if form.encoded], ids=lambda form: form.name
)
def test_another_encoding(form: DescribedFormat, tmp_path: Path) -> None:
    assert form.encoded is not None
    path = tmp_path / "f"
    path.write_bytes(form.encoded.text.encode(next(iter(form.encoded.words))))
    for encoding, words in form.encoded.words.items():
        (sentence,) = form.read(path, encoding=encoding)
        assert getattr(sentence, "tree", sentence).words == words
    with pytest.raises(ReadError) as caught:
        list(form.read(path, on_error=lambda _: None))
    assert str(caught.value).startswith(f"{path}:{form.encoded.error}")


@each_format
def test_unreadable_file(form: DescribedFormat, tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ReadError) as caught:
            list(form.read(path, on_error=lambda _: None))
        assert str(caught.value).startswith(f"{path}: cannot be read: {problem}")
