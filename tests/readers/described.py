"""What every format is to the tests: its entry in the list of formats, and files to recognise.

Each test module of a format describes it once, by a :class:`~tests.readers.text_formats.TextFormat`
or a :class:`~tests.readers.sentence_formats.SentenceFormat`. The modules ``test_every_format``,
``test_text_formats`` and ``test_sentence_formats`` put the same questions to all of them; what is
true of one format only stays in its own module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from spmrl_bench.readers.formats import FORMATS


@dataclass(frozen=True)
class Encoded:
    """A text of one sentence that is not ASCII.

    Attributes:
        text: the text; it is written in the first encoding.
        words: the words of its sentence, by the encoding that it is read in.
        error: what reading it as UTF-8 says, without the file's name.
    """

    text: str
    words: Mapping[str, tuple[str, ...]]
    error: str


@dataclass(frozen=True, kw_only=True)
class DescribedFormat:
    """A format, and what looks like it.

    Attributes:
        name: as in the list of formats.
        recognised: beginnings of files that look like the format.
        others: beginnings of files that do not.
        encoded: absent where files declare their encoding themselves.
    """

    name: str
    recognised: Sequence[str]
    others: Sequence[str]
    encoded: Encoded | None = None

    @property
    def read(self) -> Callable[..., Iterator[Any]]:
        """``read(path, *, on_error, **options)``, an iterator over the sentences of a file."""
        return FORMATS.get(self.name).read


Described = TypeVar("Described", bound=DescribedFormat)


def cases(formats: Iterable[Described], items: Callable[[Described], Iterable[Any]]) -> list[Any]:
    """Parameters of a test: each format with each of its items, a key or a numbered thing."""
    return [
        pytest.param(form, item, id=f"{form.name}-{item if isinstance(item, str) else number}")
        for form in formats
        for number, item in enumerate(items(form))
    ]
