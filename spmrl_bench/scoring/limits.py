"""What EVALB and EVALB_SPMRL have room for, checked before they run.

Both keep sentences in arrays of fixed sizes and never look where these end. A sentence beyond
them ends in a crash in one build and in a plausible wrong score in another, so it must not
reach the program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.prm import Parameters, Program


@dataclass(frozen=True, slots=True)
class _Room:
    """Sizes in a program's source. Those of text are in bytes, without the final zero.

    Attributes:
        words: words of a sentence (``MAX_WORD_IN_SENT``).
        brackets: constituents of a tree, the root included (``MAX_BRACKET_IN_SENT``).
        label: a label or tag (``MAX_LABEL_LEN``).
        word: a word (``MAX_WORD_LEN``).
        line: a tree with its end of line (``MAX_SENT_LEN``).
        entries: parameters under one key (``MAX_DELETE_LABEL``, ``MAX_EQ_LABEL``).
        quotes: quotation marks of a sentence, and their tags (``MAX_QUOTE_TERM``).
    """

    words: int
    brackets: int
    label: int
    word: int
    line: int
    entries: int
    quotes: int


_ROOM = {
    Program.EVALB: _Room(200, 200, 29, 99, 4_999, 100, 20),
    Program.EVALB_SPMRL: _Room(1_000, 2_000, 299, 99, 49_999, 1_000, 20),
}
_PIECE = re.compile(rb"\(\s*([^()\s]*)(?:\s+([^()\s]+))?")  # a label, and a word if it is a tag
_QUOTES = frozenset((b"'", b'"', b"/"))


def check_room(path: str, lines: Sequence[bytes], prm: Parameters) -> None:
    """Refuse trees that a program has no room for.

    Args:
        path: the file, for messages.
        lines: its trees, one per line.
        prm: the parameters; they name the program.

    Raises:
        ScoreError: a sentence is too large; the message names it and the limit.
    """
    room = _ROOM[prm.program]
    quote_tags = {label.encode() for label in prm.quote_labels}
    for number, line in enumerate(lines, start=1):
        pieces: list[tuple[bytes, bytes]] = _PIECE.findall(line)
        leaves = [(tag, word) for tag, word in pieces if word]
        quotes = sum(word in _QUOTES and tag in quote_tags for tag, word in leaves)
        for what, found, most in (
            ("words", len(leaves), room.words),
            ("brackets", len(pieces) - len(leaves), room.brackets),
            ("bytes in a label", max((len(label) for label, _ in pieces), default=0), room.label),
            ("bytes in a word", max((len(word) for _, word in pieces), default=0), room.word),
            ("quotation marks", quotes, room.quotes),
            ("bytes on a line", len(line) + 1, room.line),
            ("zero bytes", line.count(b"\0"), 0),
        ):
            if found > most:
                raise ScoreError(
                    f"{path}: sentence {number} has {found} {what}; {_advice(prm.program, most)}"
                )


def check_room_for_parameters(prm: Parameters) -> None:
    """Refuse parameters that a program has no room for.

    Raises:
        ScoreError: there are too many of one kind, or one is too long.
    """
    room = _ROOM[prm.program]
    values = {value for pair in prm.eq_labels | prm.eq_words for value in pair}
    for what, found, most in (
        ("DELETE_LABEL lines", len(prm.delete_labels), room.entries),
        ("DELETE_LABEL_FOR_LENGTH lines", len(prm.delete_labels_for_length), room.entries),
        ("QUOTE_LABEL lines", len(prm.quote_labels), room.quotes),
        ("EQ_LABEL lines", len(prm.eq_labels), room.entries),
        ("EQ_WORD lines", len(prm.eq_words), room.entries),
        ("bytes in an equivalent label or word", _longest(values), room.label),
    ):
        if found > most:
            raise ScoreError(f"{prm.name} has {found} {what}; {_advice(prm.program, most)}")


def _longest(values: set[str]) -> int:
    return max((len(value.encode()) for value in values), default=0)


def _advice(program: Program, most: int) -> str:
    return (
        f"{program} has room for {most} and would crash or count something else. Use the"
        " internal scorer, which has no limits (leave out --official)"
    )
