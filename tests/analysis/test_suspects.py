"""Sentences on which gold and parser differ in their order, and lists of all suspicious ones."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.analysis.suspects import (
    Disagreement,
    SuspectList,
    check_ending,
    disagreement_item,
    disagreements,
    ranked,
    variation_item,
)
from spmrl_bench.analysis.variation import variation
from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsers.base import Margin
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.reading import SentencePlace
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.draw import boxes
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.builders import TREES, tiny


def disagreement(number: int, *margins: float, layer: Any = "constituents") -> Disagreement:
    parse = Parse.of(TREES[0])
    return Disagreement(number, parse, parse, [Margin(layer, 0, 1, "", "NP", m) for m in margins])


def order(*found: Disagreement) -> list[int]:
    return [each.number for each in ranked(found)]


def test_a_margin_counts_less_the_more_decisions_differ() -> None:
    margins = [4.0, *[1.0] * 9], [3.0], [2.5, 2.5], [3.0]
    # 4 of 10 differences counts as 2.
    assert order(*(disagreement(k, *own) for k, own in enumerate(margins, 1))) == [2, 4, 3, 1]


def test_margins_of_two_layers_are_compared_by_their_means() -> None:
    found = [disagreement(1, 1.0), disagreement(2, 3.0)]
    found += [disagreement(n, 10.0 * n, layer="dependencies") for n in (3, 4, 6)]
    # Means of 2 and 43.3: 0.5, 1.5; 0.69, 0.92, 1.38.
    assert order(*found) == [2, 6, 4, 3, 1]


def test_sentences_have_their_numbers_and_one_layer_may_be_left_out() -> None:
    parser, gold = tiny().eval(), [Parse.of(tree) for tree in TREES]
    found = disagreements(parser, gold)
    assert len(found) > 1
    assert all(each.gold is gold[each.number - 1] for each in found)
    assert disagreements(parser, gold, "constituents") == found
    assert disagreements(parser, gold, "dependencies") == []


# ---- Lists -------------------------------------------------------------------------------

GOLD = parse_brackets("(S (NP (P we)) (VP (V saw) (NP (NP (N dogs)) (PP (I in) (NP (N town))))))")
FOUND = parse_brackets("(S (NP (P we)) (VP (V saw) (NP (N dogs)) (PP (I in) (NP (N town)))))")


def spans_differ() -> Disagreement:
    spans = [
        Margin("constituents", 2, 5, "NP", "", 1.5),
        Margin("constituents", 0, 1, "N<P>", "NP", 0.25, known=False),
    ]
    return Disagreement(2, Parse.of(GOLD), Parse.of(FOUND), spans)


def words_differ() -> Disagreement:
    words = ("<b>", "saw", "\u05d0\u05d1")
    gold = DependencyTree.build(words, ["N", "V", "N"], [2, 0, 2], ["subj", "root", "obj"])
    found = DependencyTree.build(words, ["N", "V", "N"], [2, 0, 1], ["subj", "root", "mod"])
    one = Margin("dependencies", 2, 3, "obj", "mod", 2.0, gold_head=2, predicted_head=1)
    return Disagreement(1, Parse.of(dependencies=gold), Parse.of(dependencies=found), [one])


def listed(*items: Any) -> SuspectList:
    places = [SentencePlace(Path("x/a&b.mrg"), "s7")] * 3
    return SuspectList("A <title>", ["One note."], "tiny", "dev", places, items)


def of_differences(*found: Disagreement) -> SuspectList:
    return listed(*map(disagreement_item, found))


def rows_of(text: str) -> Sequence[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_disagreements_in_all_forms_with_what_is_from_files_escaped() -> None:
    found = of_differences(spans_differ(), words_differ())
    lines = found.text().splitlines()
    assert lines[:2] == ["A <title>", "One note."]
    where = "(a&b.mrg, sentence s7): margin"
    assert f"1. tiny dev, sentence 2 {where} 1.50, 2 spans other than gold" in lines
    assert f"2. tiny dev, sentence 1 {where} 2.00, 1 word other than gold" in lines
    cells = [line.split() for line in lines]
    assert ["2:5", "dogs", "in", "town", "NP", "no", "constituent", "1.50"] in cells
    assert ["0:1", "we", "N<P>", "NP", "0.25", "or", "more", "(label", "unknown)"] in cells
    assert cells[-1] == ["2:3", "אב", "obj", "2", "saw", "mod", "1", "<b>", "2.00"]
    page = found.page()
    assert "mod 1 &lt;b&gt;</td>" in page  # the word
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert "http" not in page  # nothing comes from elsewhere
    assert page.count('class="node mark"') == 3  # NP of gold; NP over the first word on both sides
    first, unknown, word = rows_of(found.table())
    assert (first["start"], first["end"], first["words"]) == ("2", "5", "dogs in town")
    assert (first["gold"], first["predicted"], first["gold_head"]) == ("NP", "", "")
    assert (word["gold_head"], word["predicted_head"], word["margin"]) == ("2", "1", "2")
    assert [row["rank"] for row in (first, unknown, word)] == ["1", "1", "2"]
    assert (unknown["known"], unknown["place"]) == ("False", "a&b.mrg, sentence s7")


def test_forests_and_very_deep_trees_are_drawn() -> None:
    n = 1500
    deep = Tree.build(["w"] * n, ["T"] * n, [(k, n, "X") for k in range(n)])
    assert boxes(deep, (), "gold").count("<b>X</b>") == n
    forest = Tree.build(["a", "b", "c", "d"], "TTTT", [(0, 2, "X"), (1, 2, "Z"), (3, 4, "<Y")])
    assert boxes(forest, {(0, 2)}, "gold", "one & two") == (
        '<div class="side gold" dir="auto"><h3>one &amp; two</h3>'
        '<span class="node mark"><b>X</b><span class="word">a</span>'
        '<span class="node"><b>Z</b><span class="word">b</span></span></span>'
        '<span class="word">c</span>'
        '<span class="node"><b>&lt;Y</b><span class="word">d</span></span></div>'
    )


def test_lists_of_variation_in_all_forms() -> None:
    right = "(S (P <we>) (V saw) (NP (D the) (N dog)) (A then))"
    wrong = "(S (P <we>) (V saw) (D the) (N dog) (A then))"
    sentences = [Parse.of(parse_brackets(text)) for text in (right, wrong, right)]
    words = [each.words for each in sentences]
    found = listed(*(variation_item(own, words) for own in variation(sentences, "constituents")))
    lines = found.text().splitlines()
    assert lines[3].startswith("1. tiny dev, sentence 2 (a&b.mrg, sentence s7): 1 place, suspicion")
    told = "2:4 is not annotated; with 5 words around it the same, 2 other places are NP"
    assert lines[5].strip() == told
    assert [line.split() for line in lines[7:]] == [
        f"{number} 2:4 <we> saw the dog then {label}".split()
        for number, label in ((2, "not annotated"), (1, "NP"), (3, "NP"))
    ]
    assert found.page().count('<td dir="auto">not annotated</td>') == 1
    (row,) = rows_of(found.table())
    assert (row["sentence"], row["start"], row["end"], row["found"]) == ("2", "2", "4", "")
    assert (row["others"], row["same"], row["differing"], row["shared"]) == ("NP", "1", "2", "5")
    assert row["counterexamples"] == "1:2:4 3:2:4"


def test_the_ending_of_a_file_says_what_it_holds() -> None:
    found = of_differences(words_differ())
    for name, text in (("x.txt", found.text()), ("x.HTML", found.page()), ("x.csv", found.table())):
        assert check_ending(Path(name))(found) == text
    with pytest.raises(SpmrlError, match=r"x\.pdf: what is written follows from the ending"):
        check_ending(Path("x.pdf"))
