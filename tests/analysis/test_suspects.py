"""Sentences on which gold and parser differ or that vary, in their order, and lists of them."""

from __future__ import annotations

import csv
import io
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.analysis.suspects import (
    Difference,
    Disagreement,
    SuspectList,
    check_ending,
    differences,
    disagreement_item,
    disagreements,
    variation_item,
)
from spmrl_bench.analysis.variation import (
    Annotation,
    Place,
    Row,
    Suspicion,
    find_variation,
    variation,
)
from spmrl_bench.errors import SpmrlError, UnsupportedError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.treebanks.reading import SentencePlace
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.draw import boxes
from spmrl_bench.trees.parse import LEAST, Parse, Probabilities
from spmrl_bench.trees.tree import Tree
from tests.builders import TREES, chained, enlarge, tiny


def difference(*chances: float) -> Difference:
    return Difference("constituents", 0, 1, "", "NP", *chances)


def disagreement(*chances: tuple[float, float]) -> Disagreement:
    parse = Parse.of(TREES[0])
    return Disagreement(1, parse, parse, [difference(*own) for own in chances])


def test_odds_count_less_the_more_decisions_differ() -> None:
    assert difference(0.1, 0.8).odds == pytest.approx(math.log(8))
    assert difference(0.0, 1.0).odds == pytest.approx(-math.log(LEAST["constituents"]))
    assert difference(0.6, 0.3).odds < 0
    even, sure = (0.5, 0.5), (0.01, 0.9)
    assert disagreement(sure).suspicion == pytest.approx(math.log(90) / 1.1)
    assert disagreement(*[even] * 9, sure).suspicion == pytest.approx(math.log(90) / 2)


def test_a_side_is_as_likely_as_what_tells_it_from_the_other() -> None:
    words, tags = ["a", "b", "c"], ["T"] * 3
    gold = Tree.build(words, tags, [(0, 3, "S"), (0, 2, "NP"), (0, 2, "XP")])
    own = Tree.build(words, tags, [(0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")])
    known = {(0, 3, "S"): 1.0, (0, 2, "NP"): 0.9, (0, 2, "XP"): 0.2, (2, 3, "VP"): 0.7}
    parse = replace(Parse.of(own), probabilities=Probabilities(0.0, known))
    assert [one[1:] for one in differences(Parse.of(gold), parse)] == [
        (0, 2, "NP+XP", "NP", 0.2, 0.8, None, None),
        (2, 3, "", "VP", pytest.approx(0.3), 0.7, None, None),
    ]
    right, found = (
        DependencyTree.build(words, tags, heads, names)
        for heads, names in (([2, 0, 2], "xrx"), ([2, 0, 1], "yrx"))
    )
    chances = {(1, 2, "x"): 0.25, (1, 2, "y"): 0.6, (3, 1, "x"): 0.5}
    parse = replace(
        Parse.of(dependencies=found), probabilities=Probabilities(0.0, None, {}, chances)
    )
    assert [one[1:] for one in differences(Parse.of(dependencies=right), parse)] == [
        (0, 1, "x", "y", 0.25, 0.6, 2, 2),
        (2, 3, "x", "x", 0.0, 0.5, 2, 1),
    ]


def test_sentences_have_their_numbers_and_one_layer_may_be_left_out() -> None:
    parser, gold = enlarge(tiny("joint")), chained()
    found = disagreements(parser, gold)
    assert all(each.gold is gold[each.number - 1] for each in found)
    suspicions = [each.suspicion for each in found]
    assert suspicions == sorted(suspicions, reverse=True)
    for layer in ("constituents", "dependencies"):
        only = disagreements(parser, gold, layer)
        assert {one.layer for each in only for one in each.differences} == {layer}
    division = enlarge(tiny("joint", structure="division"))
    assert disagreements(division, gold, "constituents")
    with pytest.raises(UnsupportedError, match="'--of constituents'"):
        disagreements(division, gold)


# ---- Lists -------------------------------------------------------------------------------

GOLD = parse_brackets("(S (NP (P we)) (VP (V saw) (NP (NP (N dogs)) (PP (I in) (NP (N town))))))")
FOUND = parse_brackets("(S (NP (P we)) (VP (V saw) (NP (N dogs)) (PP (I in) (NP (N town)))))")


def spans_differ() -> Disagreement:
    spans = [
        Difference("constituents", 2, 5, "NP", "", 0.25, 0.75),
        Difference("constituents", 0, 1, "N<P>", "NP", 0.1, 0.125),
    ]
    return Disagreement(2, Parse.of(GOLD), Parse.of(FOUND), spans)


def words_differ() -> Disagreement:
    words = ("<b>", "saw", "\u05d0\u05d1")
    gold = DependencyTree.build(words, ["N", "V", "N"], [2, 0, 2], ["subj", "root", "obj"])
    found = DependencyTree.build(words, ["N", "V", "N"], [2, 0, 1], ["subj", "root", "mod"])
    one = Difference("dependencies", 2, 3, "obj", "mod", 0.0, 0.5, 2, 1)
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
    where = "(a&b.mrg, sentence s7): gold"
    assert f"1. tiny dev, sentence 2 {where} 0.250, parser 0.750, 2 spans other than gold" in lines
    assert f"2. tiny dev, sentence 1 {where} 0.000, parser 0.500, 1 word other than gold" in lines
    cells = [line.split() for line in lines]
    assert ["2:5", "dogs", "in", "town", "NP", "0.250", "no", "constituent", "0.750"] in cells
    assert cells[-1] == ["2:3", "אב", "obj", "2", "saw", "0.000", "mod", "1", "<b>", "0.500"]
    page = found.page()
    assert "mod 1 &lt;b&gt;</td>" in page  # the word
    assert "<h1>A &lt;title&gt;</h1>" in page
    assert "http" not in page  # nothing comes from elsewhere
    assert page.count('class="node mark"') == 3  # NP of gold; NP over the first word on both sides
    first, second, word = rows_of(found.table())
    assert (first["start"], first["end"], first["words"]) == ("2", "5", "dogs in town")
    assert (first["gold"], first["predicted"], first["gold_head"]) == ("NP", "", "")
    assert (word["gold_head"], word["predicted_head"]) == ("2", "1")
    assert (word["gold_probability"], word["predicted_probability"]) == ("0", "0.5")
    assert [row["rank"] for row in (first, second, word)] == ["1", "1", "2"]
    assert second["place"] == "a&b.mrg, sentence s7"


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


# ---- Variation: stretches that occur twice, and the places that others speak against --------


def random_rows(sentences: Sequence[Sequence[str]], seed: int) -> list[list[Row]]:
    choose = random.Random(seed)
    return [
        [
            (start, end, choose.choice("XXXY"))
            for start in range(len(words))
            for end in range(start + 1, len(words) + 1)
            if choose.random() < 0.5
        ]
        for words in sentences
    ]


def plainly(
    sentences: Sequence[Sequence[str]],
    rows: Sequence[Sequence[Row]],
    around: Sequence[Sequence[str]],
) -> dict[Place, tuple[str, int, int, int, float]]:
    """As it is defined: every place, every other place of the same words, every context."""
    places = {
        Place(number, start, end): ""
        for number, words in enumerate(sentences, 1)
        for start in range(len(words))
        for end in range(start + 1, len(words) + 1)
    }
    for number, own in enumerate(rows, 1):
        for start, end, name in own:
            places[Place(number, start, end)] = name

    def shared(one: Place, other: Place) -> tuple[int, int]:
        found = []
        for step in (-1, 1):
            sides = []
            for place in (one, other):
                words = ["<>", *around[place.sentence - 1], "<>"]
                sides.append(words[place.start :: -1] if step < 0 else words[place.end + 1 :])
            number = 0
            while number < min(map(len, sides)) and sides[0][number] == sides[1][number]:
                number += 1
            found.append(number)
        return found[0], found[1]

    def text(place: Place) -> tuple[str, ...]:
        return tuple(sentences[place.sentence - 1][place.start : place.end])

    result = {}
    for one, name in places.items():
        length = one.end - one.start
        others = {}
        for other, label in places.items():
            if other != one and text(other) == text(one):
                left, right = shared(one, other)
                if left and right:
                    others[other] = (left + right, label)
        best = None
        for level in range(2, 30):
            counts = Counter(label for number, label in others.values() if number >= level)
            same = 1 + counts.pop(name, 0)
            differing = max(counts.values(), default=0)
            if differing >= same:
                score = math.log2((differing + 0.5) / (same - 0.5)) + math.log2(length + level)
                if best is None or score > best[-1] + 1e-12:
                    best = (name, same, differing, level, score)
        if best is not None:
            result[one] = best
    return result


@pytest.mark.parametrize("coarse", [False, True])
def test_suspicions_are_those_of_the_definition(coarse: bool) -> None:
    number = 0
    for seed in range(3):
        choose = random.Random(seed)
        sentences = [choose.choices("abcd", k=choose.randint(0, 9)) for _ in range(14)]
        around = [["v" if w in "ad" else "c" for w in words] for words in sentences]
        around = around if coarse else sentences
        rows = random_rows(sentences, seed)
        found = find_variation(sentences, rows, around)
        expected = plainly(sentences, rows, around)
        assert {one.place for one in found} == expected.keys()
        for one in found:
            name, same, differing, level, score = expected[one.place]
            assert (one.found, one.same, one.differing) == (name, same, differing)
            assert one.shared == level
            assert one.score == pytest.approx(score)
            assert one.others != one.found
            assert 1 <= len(one.counterexamples) <= 3
        number += len(found)
    assert number > 50


def trees(*texts: str) -> list[Parse]:
    return [Parse.of(parse_brackets(text)) for text in texts]


def numbers(sentences: Sequence[Parse], annotation: Annotation, context: Any = "words") -> Any:
    """The suspicious sentences in their order."""
    return [own[0].place.sentence for own in variation(sentences, annotation, context)]


def test_of_constituents_the_odd_one_out_is_named() -> None:
    right = "(S (NP (P we)) (VP (V saw) (NP (D the) (N dog)) (PP (I in) (NP (N town))) (A then)))"
    wrong = "(S (NP (P we)) (VP (V saw) (NP (D the) (N dog) (PP (I in) (NP (N town)))) (A then)))"
    (suspicions,) = variation(trees(right, right, wrong, right), "constituents")
    assert {(one.place, one.found, one.others, one.differing) for one in suspicions} == {
        (Place(3, 2, 4), "", "NP", 3),
        (Place(3, 2, 6), "NP", "", 3),
    }
    assert all(one.shared > 3 for one in suspicions)
    first = suspicions[0]
    assert first.counterexamples == tuple(Place(n, *first.place[1:]) for n in (1, 2, 4))


def test_tags_and_dependencies_vary_too() -> None:
    def parse(tags: str, heads: list[int], relations: str) -> Parse:
        words = ["we", "can", "fish", "here"]
        return Parse.of(
            dependencies=DependencyTree.build(words, tags.split(), heads, relations.split())
        )

    one = parse("P M V A", [3, 3, 0, 3], "subj aux root adv")
    tag = parse("P V V A", [3, 3, 0, 3], "subj aux root adv")
    moved = parse("P M V A", [2, 0, 2, 3], "subj root xcomp adv")
    ((wrong,),) = variation([one, one, tag], "tags")
    assert (wrong.place, wrong.found, wrong.others) == (Place(3, 1, 2), "V", "M")
    (found,) = variation([one, one, moved], "dependencies")
    assert {(each.place, each.found, each.others) for each in found} == {
        (Place(3, 0, 2), "<subj", ""),
        (Place(3, 0, 3), "", "<subj"),
        (Place(3, 1, 3), ">xcomp", "<aux"),
    }


def test_in_a_small_corpus_tags_may_stand_for_words() -> None:
    corpus = trees(
        "(S (NP (D the) (N dog)) (V ran))",
        "(S (NP (D an) (N elf)) (V sang))",
        "(S (X (D a) (N ring)) (V fell))",
    )
    assert not numbers(corpus, "constituents")
    assert not numbers(corpus, "constituents", "tags")
    assert numbers(corpus, "constituents", "only-tags") == [3]


def test_many_places_of_one_nucleus_are_judged_by_the_rare_ones() -> None:
    sentences = [["so", "it", "is"]] * 1500
    rows: list[list[Row]] = [[(1, 2, "NP")] for _ in sentences]
    rows[700] = []
    begun = time.process_time()
    (one,) = find_variation(sentences, rows, sentences)
    assert time.process_time() - begun < 5  # all pairs would be two millions
    assert isinstance(one, Suspicion)
    assert (one.place, one.same, one.differing) == (Place(701, 1, 2), 1, 1499)
