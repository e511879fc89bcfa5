"""Whether lines of text are what a parser expects: words with spaces between them.

Whatever stands on a line can be taken for words and parsed, be it a row of CoNLL-U, a tree in
brackets or a sentence whose full stop sticks to its last word. The parses are worthless then, and
nothing else would say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from spmrl_bench.parsers.streams import Given

#: Sentences that are looked at, from the beginning.
LOOKED_AT = 100
_ROW = re.compile(r"[1-9][0-9]*(-[0-9]+|\.[0-9]+)?")
_CELLS = 8  # CoNLL has 8 columns at least
_SHARE = 0.8  # of lines that are rows or trees
_STUCK = re.compile(r"\w[.!?]+")


def watched(given: Iterable[Given], warn: Callable[[str], None]) -> Iterator[Given]:
    """The same sentences; ``warn`` is told once what is wrong with the first of them, if anything.

    It is told after :data:`LOOKED_AT` sentences, or after the last.
    """
    seen: list[Sequence[str]] = []
    told = False
    for sentence in given:
        yield sentence
        if told:
            continue
        if sentence.words:
            seen.append(sentence.words)
        if len(seen) == LOOKED_AT:
            told = True
            _tell(seen, warn)
    if not told:
        _tell(seen, warn)


def _tell(seen: Sequence[Sequence[str]], warn: Callable[[str], None]) -> None:
    if problem := text_problem(seen):
        warn(problem)


def text_problem(sentences: Sequence[Sequence[str]]) -> str:
    """What is wrong with sentences that were read as words; empty if nothing seems to be."""
    if not sentences:
        return ""
    rows = [words for words in sentences if not words[0].startswith("#")]
    cells = sum(len(words) >= _CELLS and bool(_ROW.fullmatch(words[0])) for words in rows)
    if rows and cells >= _SHARE * len(rows):
        return "the input looks like CoNLL-U, but its lines are parsed as words: --input conllu"
    trees = sum(words[0].startswith("(") and words[-1].endswith("))") for words in sentences)
    if trees >= _SHARE * len(sentences):
        return "the input looks like trees, but its brackets are parsed as words: --input brackets"
    stuck = [words[-1] for words in sentences if _STUCK.search(words[-1][-4:])]
    if len(stuck) > len(sentences) / 2:
        return (
            f"most sentences end in a word such as '{stuck[0][-40:]}': the parser was trained on "
            "words and punctuation apart, with a space between them"
        )
    return ""
