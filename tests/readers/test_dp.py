"""Reading dependencies in three columns: words as in the trees, and a place for mistakes."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

from spmrl_bench.trees.dependencies import DependencyTree
from tests.readers.cases import Encoded, SentenceFormat, ways_of_text

GOOD = "She\tPRP\t2\nate\tVBD\t0\n1\\/2\tCD\t2\n-LRB-\t-LRB-\t3\n\n"
TREE = DependencyTree.build(
    ["She", "ate", "1/2", "("], ["PRP", "VBD", "CD", "-LRB-"], [2, 0, 2, 3], ["_"] * 4
)
_FLAW = "expected '_' or a text without spaces at its ends and without carriage returns"

# A bad sentence, the line of the mistake in it, the problem.
MALFORMED = {
    "1 column": ("a b c\n", 1, "found 1 column, expected 3 separated by tabs"),
    "2 columns": ("a\tNN\n", 1, "found 2 columns, expected 3 separated by tabs"),
    "4 columns": ("a\tNN\t0\tnsubj\n", 1, "found 4 columns, expected 3 separated by tabs"),
    "a line of spaces": ("a\tNN\t0\n  \n", 2, "found 1 column, expected 3 separated by tabs"),
    "no word": ("\tNN\t0\n", 1, f"column 1 is '', {_FLAW}"),
    "no tag": ("a\t\t0\n", 1, f"column 2 is '', {_FLAW}"),
    "no head": ("a\tNN\t\n", 1, f"column 3 is '', {_FLAW}"),
    "space before a word": (" a\tNN\t0\n", 1, f"column 1 is ' a', {_FLAW}"),
    "space after a tag": ("a\tNN \t0\n", 1, f"column 2 is 'NN ', {_FLAW}"),
    "carriage return in a word": ("a\rb\tNN\t0\n", 1, rf"column 1 is 'a\rb', {_FLAW}"),
    "head is no number": ("a\tNN\tb\n", 1, "head 'b', expected a number from 0"),
    "negative head": ("a\tNN\t-1\n", 1, "head '-1', expected a number from 0"),
    "head with other digits": ("a\tNN\t\u0661\n", 1, "head '\u0661', expected a number from 0"),
    "head of 10 digits": ("a\tNN\t4294967296\n", 1, "head '4294967296', expected a number from 0"),
    "head beyond": ("a\tNN\t0\nb\tNN\t3\n", 2, "head 3 is not one of 0..2"),
    "own head": ("a\tNN\t0\nb\tNN\t2\n", 2, "the heads form a cycle: 2 -> 2"),
    "no root": ("a\tNN\t2\nb\tNN\t1\n", 1, "the heads form a cycle: 1 -> 2 -> 1"),
    "two roots": ("a\tNN\t0\nb\tNN\t0\n", 2, "a second root; 2 words have head 0, expected one"),
}

DP = SentenceFormat(
    name="dp",
    good=GOOD,
    expected=lambda number: (str(number), TREE),
    content=attrgetter("name", "tree"),
    ways={
        **ways_of_text(GOOD),
        "no blank line": GOOD.removesuffix("\n\n").encode(),
        "more blank lines": ("\n\n" + GOOD + "\n\n").encode(),
        "windows, no blank line": GOOD.removesuffix("\n\n").replace("\n", "\r\n").encode(),
    },
    malformed={
        name: (bad + "\n", line, problem) for name, (bad, line, problem) in MALFORMED.items()
    },
    bad_name="2",
    open_end=True,
    encoded=Encoded("été\tNN\t0\n", {"latin-1": ("été",)}, "1: byte 0xe9 is not utf-8 text"),
    recognised=(GOOD, "\n" + GOOD.replace("\n", "\r\n"), GOOD[:20], "a\tNN\t0"),
    others=(
        "a\tNN\t0\nb\tNN\n",
        "a\tNN\tNN\n",
        "1\ta\ta\tN\tN\t_\t0\troot\t_\t_\n",
        "(S (NP a))\n",
        "\n\n",
        "",
    ),
)


def test_names_and_lines(tmp_path: Path) -> None:
    first, second = DP.read_file(tmp_path, "\n" + GOOD + "\na\tNN\t0\n")
    assert (first.name, first.lines) == ("1", (2, 3, 4, 5))
    assert (second.name, second.lines) == ("2", (8,))
