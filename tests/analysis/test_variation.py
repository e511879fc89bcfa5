"""Variation: stretches that occur twice, and the places that others speak against."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from spmrl_bench.analysis.variation import (
    Annotation,
    Place,
    Row,
    Suspicion,
    find_variation,
    variation,
)
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse


def corpus_of(seed: int, words: str = "abc", sentences: int = 25) -> list[list[str]]:
    choose = random.Random(seed)
    return [[choose.choice(words) for _ in range(choose.randint(0, 9))] for _ in range(sentences)]


def rows_of(sentences: Sequence[Sequence[str]], seed: int) -> list[list[Row]]:
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
        sentences = corpus_of(seed, words="abcd", sentences=14)
        around = [["v" if w in "ad" else "c" for w in words] for words in sentences]
        around = around if coarse else sentences
        rows = rows_of(sentences, seed)
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
