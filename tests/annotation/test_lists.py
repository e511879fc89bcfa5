"""Lists of suspicious sentences as text, pages and tables."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from spmrl_bench.annotation import disagreement_list, variation_list
from spmrl_bench.annotation.differences import Disagreement
from spmrl_bench.annotation.listing import Heading, check_ending, write_list
from spmrl_bench.annotation.tree_text import columns, side_by_side, tree_lines
from spmrl_bench.annotation.treebank_variation import suspects
from spmrl_bench.errors import RecordError, SpmrlError
from spmrl_bench.parsers.base import Margin
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.reading import SentencePlace
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree

GOLD = parse_brackets("(S (NP (P we)) (VP (V saw) (NP (NP (N dogs)) (PP (I in) (NP (N town))))))")
FOUND = parse_brackets("(S (NP (P we)) (VP (V saw) (NP (N dogs)) (PP (I in) (NP (N town)))))")
HEADING = Heading(
    "A <title>", ("One note.",), "tiny", "dev", [SentencePlace(Path("x/a&b.mrg"), "s7")] * 3
)
SPANS = (
    Margin("constituents", 2, 5, "NP", "", 1.5),
    Margin("constituents", 0, 1, "N<P>", "NP", 0.25, known=False),
)


def spans_differ() -> Disagreement:
    return Disagreement(2, Parse.of(GOLD), Parse.of(FOUND), SPANS)


def words_differ() -> Disagreement:
    words = ("<b>", "saw", "\u05d0\u05d1")
    gold = DependencyTree.build(words, ["N", "V", "N"], [2, 0, 2], ["subj", "root", "obj"])
    found = DependencyTree.build(words, ["N", "V", "N"], [2, 0, 1], ["subj", "root", "mod"])
    one = Margin("dependencies", 2, 3, "obj", "mod", 2.0, gold_head=2, predicted_head=1)
    return Disagreement(1, Parse.of(dependencies=gold), Parse.of(dependencies=found), (one,))


class Balanced(HTMLParser):
    """Fails where an element is not closed; keeps the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_trees_stand_side_by_side_with_what_differs_marked() -> None:
    assert list(side_by_side(GOLD, FOUND, {(2, 5)}, 51)) == [
        "gold                     | parser",
        "(S                       | (S",
        "  (NP we)                |   (NP we)",
        "  (VP                    |   (VP",
        "    saw                  |     saw",
        "    (*NP                 |     (NP dogs)",
        "      (NP dogs)          |     (PP in (NP town))))",
        "      (PP                |",
        "        in               |",
        "        (NP town)))))    |",
    ]


def test_trees_that_are_too_wide_stand_below_each_other() -> None:
    lines = list(side_by_side(GOLD, FOUND, (), 20))
    assert lines[0] == "gold"
    assert "parser" in lines
    assert tree_lines(GOLD, (), 1000) == ["(S (NP we) (VP saw (NP (NP dogs) (PP in (NP town)))))"]


def test_trees_without_a_root_and_very_deep_ones_are_shown() -> None:
    forest = Tree.build(["a", "b", "c"], "TTT", [(0, 1, "X"), (2, 3, "Y")])
    assert tree_lines(forest, (), 1000) == ["(X a) b (Y c)"]
    assert tree_lines(forest, (), 3) == ["(X", "  a)", "b", "(Y", "  c)"]
    n = 1500
    deep = Tree.build(["w"] * n, ["T"] * n, [(k, n, "X") for k in range(n)])
    assert len(tree_lines(deep, {(7, n)}, 40)) > n
    one = Disagreement(
        1, Parse.of(deep), Parse.of(deep), (Margin("constituents", 7, n, "X", "", 1.0),)
    )
    Balanced(disagreement_list.as_page(replace(HEADING, origins=None), [one]))


def test_ideographs_are_two_columns_wide() -> None:
    assert columns("犬が") == 4
    assert columns("e\u0301") == 1


def test_a_list_of_disagreements_as_text() -> None:
    text = disagreement_list.as_text(HEADING, [spans_differ(), words_differ()], 80)
    lines = text.splitlines()
    assert lines[:2] == ["A <title>", "One note."]
    assert "1. tiny dev, sentence 2 (a&b.mrg, sentence s7): margin 1.50, 2 spans differ" in lines
    assert "  2:5 NP, parser no constituent, 1.50: dogs in town" in lines
    assert "  0:1 N<P>, parser NP, 0.25 or more (label unknown): we" in lines
    assert "2. tiny dev, sentence 1 (a&b.mrg, sentence s7): margin 2.00, 1 word differs" in lines
    assert lines[-1].split() == ["*", "3", "אב", "obj", "2", "saw", "mod", "1", "<b>", "2.00"]


def test_a_page_is_whole_and_what_is_from_files_is_escaped() -> None:
    page = disagreement_list.as_page(HEADING, [spans_differ(), words_differ()])
    found = Balanced(page)
    assert "1 <b>" in found.text  # the word
    assert "A <title>" in found.text
    assert "http" not in page  # nothing comes from elsewhere
    assert "prefers-color-scheme: dark" in page
    assert page.count('class="node mark"') == 3  # NP of gold; NP over the first word on both sides
    assert '<tr class="differs">' in page


def test_a_table_has_a_row_for_each_difference() -> None:
    text = disagreement_list.as_table(HEADING, [words_differ(), spans_differ()])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["rank"] for row in rows] == ["1", "2", "2"]
    assert (rows[0]["gold_head"], rows[0]["parser_head"], rows[0]["margin"]) == ("2", "1", "2")
    assert (rows[1]["start"], rows[1]["end"], rows[1]["words"]) == ("2", "5", "dogs in town")
    assert (rows[1]["gold"], rows[1]["parser"], rows[1]["gold_head"]) == ("NP", "", "")
    assert [row["known"] for row in rows] == ["yes", "yes", "no"]
    assert rows[2]["place"] == "a&b.mrg, sentence s7"


def test_lists_of_variation_in_all_forms() -> None:
    right = "(S (P <we>) (V saw) (NP (D the) (N dog)) (A then))"
    wrong = "(S (P <we>) (V saw) (D the) (N dog) (A then))"
    sentences = [Parse.of(parse_brackets(text)) for text in (right, wrong, right)]
    found = suspects(sentences, "constituents")
    words = [each.words for each in sentences]
    text = variation_list.as_text(HEADING, found, words)
    assert text.splitlines()[2:] == [
        "",
        "1. tiny dev, sentence 2 (a&b.mrg, sentence s7)",
        "  2:4 is not annotated; with 5 words around it the same, 2 other places are NP",
        "    <we> saw [the dog] then",
        "    <we> saw [the dog] then   sentence 1, 2:4",
        "    <we> saw [the dog] then   sentence 3, 2:4",
    ]
    page = Balanced(variation_list.as_page(HEADING, found, words))
    assert page.text.count("not annotated") == 1
    (row,) = csv.DictReader(io.StringIO(variation_list.as_table(HEADING, found, words)))
    assert (row["sentence"], row["start"], row["end"], row["found"]) == ("2", "2", "4", "")
    assert (row["others"], row["same"], row["differing"], row["shared"]) == ("NP", "1", "2", "5")
    assert row["witnesses"] == "1:2:4 3:2:4"


def test_the_ending_of_a_file_says_what_it_holds(tmp_path: Path) -> None:
    forms = {"text": lambda: "t", "page": lambda: "p", "table": lambda: "c"}
    for ending, content in ((".txt", "t"), (".HTML", "p"), (".csv", "c")):
        write_list(tmp_path / f"x{ending}", forms)
        assert (tmp_path / f"x{ending}").read_text() == content
    with pytest.raises(SpmrlError, match=r"x\.pdf: what is written follows from the ending"):
        check_ending(Path("x.pdf"))
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be written"):
        write_list(tmp_path / "file" / "x.txt", forms)
