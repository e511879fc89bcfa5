"""What is written is read as it was, whatever the words are, and written again as it was.

``make campaign`` does so with a hundred thousand trees.
"""

from __future__ import annotations

import random
import unicodedata
from itertools import product
from pathlib import Path

import pytest

from spmrl_bench.readers.brackets import parse_brackets, read_brackets_file
from spmrl_bench.readers.conll import UNWRITABLE, conll_lines, read_conll_file
from spmrl_bench.trees import Tree
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.escapes import write_brackets
from tests.reliability.tally import Tally

NUMBERS = [2_000, pytest.param(100_000, marks=pytest.mark.campaign)]
SEPARATE = 500  # trees in one file
_TRICKY = ("-LRB-", "-RRB-", "-NONE-", *"()\\/*#_0 \xa0\u3000")
_RANGES = (
    (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x590, 0x7FF), (0x1100, 0x11FF),
    (0x2000, 0x206F), (0x3000, 0x30FF), (0xAC00, 0xD7A3), (0xE000, 0xFFFD), (0x10000, 0x10FFFF),
)  # fmt: skip

#: Words that programs have lost, split or changed.
NAMED = {
    "a no-break space": "a\xa0b",
    "no-break spaces at the ends": "\xa0a\xa0",
    "an ideographic space": "a\u3000b",
    "an ideographic space alone": "\u3000",
    "a byte order mark": "\ufeff",
    "a byte order mark in front": "\ufeffa",
    "a letter and its mark": "e\u0301",
    "a letter with its mark": "\u00e9",
    "Hangul in parts": "\u1112\u1161\u11ab",
    "a line separator": "a\u2028b",
    "a paragraph separator": "a\u2029b",
    "letters beyond the first plane": "\U00010330\U0001f600",
    "characters joined by nothing": "\U0001f468\u200d\U0001f469",
    "text from the right": "\u202eabc\u202c",
    "a soft hyphen": "a\xadb",
    "the last character": "\U0010ffff",
    "no character": "\uffff",
    "a bracket's name": "-LRB-",
    "a bracket": "(",
    "a backslash": "\\",
}


def text(choose: random.Random) -> str:
    """A word of any characters but controls and halves of surrogate pairs."""
    parts = []
    for _ in range(choose.randint(1, 5)):
        if choose.random() < 0.2:
            parts.append(choose.choice(_TRICKY))
        else:
            low, high = choose.choice(_RANGES)
            parts.append(chr(choose.randint(low, high)))
    return "".join(part for part in parts if unicodedata.category(part[0]) not in ("Cc", "Cs"))


def tree(choose: random.Random) -> Tree:
    """A tree of up to a dozen words, with chains of constituents."""
    n = choose.randint(1, 12)
    rows = [(0, n, text(choose))]
    spans = [(0, n)]
    while spans:
        start, end = spans.pop()
        rows += [(start, end, text(choose)) for _ in range(choose.choice((0, 0, 0, 1, 2)))]
        if end - start > 1 and choose.random() < 0.8:
            cut = choose.randint(start + 1, end - 1)
            for part in ((start, cut), (cut, end)):
                if choose.random() < 0.7:
                    rows.append((*part, text(choose)))
                    spans.append(part)
    rows.sort(key=lambda row: (row[0], -row[1]))
    return Tree.build([text(choose) for _ in range(n)], [text(choose) for _ in range(n)], rows)


def column(choose: random.Random) -> str:
    """A text that a column of CoNLL can hold."""
    while UNWRITABLE.search(found := text(choose)):
        pass
    return found


def dependencies(choose: random.Random) -> DependencyTree:
    """A tree of any shape, crossing arcs included."""
    n = choose.randint(1, 12)
    order = list(range(1, n + 1))
    choose.shuffle(order)
    heads = [0] * n
    for place, word in enumerate(order[1:], start=1):
        heads[word - 1] = choose.choice(order[:place])
    columns = [[column(choose) for _ in range(n)] for _ in range(3)]
    return DependencyTree.build(columns[0], columns[1], heads, columns[2])


def lines_of(one: DependencyTree) -> str:
    return conll_lines(one.words, one.tags, map(str, one.heads.tolist()), one.relations)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("policy", ["ptb", "brackets"])
def test_trees(policy: str, number: int, tmp_path: Path, tally: Tally) -> None:
    held = tally("R12", f"trees in brackets, escapes {policy}")
    choose = random.Random(policy)
    path = tmp_path / "trees"
    for _ in range(number // 2 // SEPARATE):
        trees = [tree(choose) for _ in range(SEPARATE)]
        content = "".join(f"{write_brackets(one, policy)}\n" for one in trees).encode()
        path.write_bytes(content)
        found = list(read_brackets_file(path, escapes=policy))
        held.add(SEPARATE)
        assert found == trees
        again = "".join(f"{write_brackets(one, policy)}\n" for one in found).encode()
        assert again == content


@pytest.mark.parametrize("number", NUMBERS)
def test_dependency_trees(number: int, tmp_path: Path, tally: Tally) -> None:
    held = tally("R12", "dependency trees in CoNLL columns")
    choose = random.Random(0)
    path = tmp_path / "trees"
    for _ in range(number // 2 // SEPARATE):
        trees = [dependencies(choose) for _ in range(SEPARATE)]
        content = "".join(map(lines_of, trees)).encode()
        path.write_bytes(content)
        found = [sentence.tree for sentence in read_conll_file(path)]
        held.add(SEPARATE)
        assert found == trees
        assert "".join(map(lines_of, found)).encode() == content


def test_named_words(tmp_path: Path, tally: Tally) -> None:
    """With either end of lines, without the last one, and behind a byte order mark."""
    held, path = tally("R12", "words that programs have lost, by name"), tmp_path / "trees"
    for word, ends, last in product(NAMED.values(), ("\n", "\r\n"), (False, True)):
        held.add(2)
        one = Tree.build([word, "b"], ["N", "N"], [(0, 2, "S")])
        text = ends.join([write_brackets(one)] * 2) + ends * last
        path.write_bytes(text.encode())
        assert list(read_brackets_file(path, escapes="ptb")) == [one, one]
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert list(read_brackets_file(path, escapes="ptb")) == [one, one]
        assert parse_brackets(write_brackets(one)) == one
        other = DependencyTree.build([word, "b"], ["N", "N"], [2, 0], ["x", "root"])
        lines = lines_of(other).replace("\n", ends).encode()
        path.write_bytes(lines * 2 if last else lines.rstrip())
        found = [sentence.tree for sentence in read_conll_file(path)]
        assert found == [other] * (1 + last)
