"""Properties of Basque that the generated trees must have, checked without the engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.tree import Tree

LABELS = {"ROOT", "S", "AS", "SN", "SP", "SADV", "SADJ", "SDET", "ADI-KAT"}
TAGS = {
    "IZE", "ADJ", "DET", "IOR", "ADB", "LOT", "PRT", "ADI", "ADL", "ADT", "PUNT", "BEREIZ",
    "IZE_IZEELI", "ADL_IZEELI", "ADT_IZEELI", "ADI_IZEELI", "ADB_IZEELI", "IOR_IZEELI",
}  # fmt: skip
FINITE = {"ADL", "ADT", "ADL_IZEELI", "ADT_IZEELI"}
# Independent forms of the auxiliary by the argument they show in the third person.
ABS_SG = "da zen daiteke litzateke"
ABS_PL = "dira ziren daitezke lirateke"
ERG_SG = "du ditu zuen zituen luke lituzke dezake ditzake nau gaitu zaitu ninduen gintuen"
ERG_PL = "dute dituzte zuten zituzten lukete lituzkete dezakete ditzakete naute gaituzte"
ERG_PL += " ninduten gintuzten"
NUMERALS = {"bi", "hiru", "lau", "bost", "sei", "zazpi", "zortzi", "hamar", "hogei"}


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Tree]]:
    return generate("basque", {"train": 2000, "dev": 300, "test": 300}, seed=1)


@pytest.fixture(scope="module")
def trees(splits: dict[str, list[Tree]]) -> list[Tree]:
    return [tree for part in splits.values() for tree in part]


def below(tree: Tree, row: int) -> list[tuple[str, int, int, int]]:
    """Label or tag, start, end and row (-1 for words) of what stands below a constituent."""
    start, end = tree.spans[row].tolist()
    found = []
    position, inner = start, row + 1
    while position < end:
        if inner < len(tree.labels) and tree.spans[inner][0] == position:
            stop = int(tree.spans[inner][1])
            found.append((tree.labels[inner], position, stop, inner))
            position = stop
            while inner < len(tree.labels) and tree.spans[inner][0] < position:
                inner += 1
        else:
            found.append((tree.tags[position], position, position + 1, -1))
            position += 1
    return found


def constituents(trees: list[Tree], label: str) -> Iterator[tuple[Tree, int]]:
    for tree in trees:
        for row, name in enumerate(tree.labels):
            if name == label:
                yield tree, row


def simple_clauses(
    trees: list[Tree],
) -> Iterator[tuple[list[str], str, list[tuple[str, str]]]]:
    """Verb chains with an auxiliary: its tags and words, the auxiliary, the phrases around.

    A phrase is its first word, if that is its determiner, and its last one. Coordinations,
    which are plural, are left out, and so are clauses with a clause among their daughters.
    """
    for tree, row in constituents(trees, "S"):
        parts = below(tree, row)
        chains = [part for part in parts if part[0] == "ADI-KAT"]
        if len(chains) != 1 or any(part[0] in {"S", "AS"} for part in parts):
            continue
        inside = below(tree, chains[0][3])
        finite = [tree.words[start] for tag, start, _, _ in inside if tag == "ADL"]
        if finite:
            kind = [tag for tag, _, _, _ in inside]
            kind += [tree.words[start].lower() for _, start, _, _ in inside]
            around = []
            for tag, start, end, inner in parts:
                tags = [part[0] for part in below(tree, inner)] if tag == "SN" else ["LOT"]
                if "LOT" not in tags:
                    first = tree.words[start].lower() if tags[0] == "DET" else ""
                    around.append((first, tree.words[end - 1].lower()))
            yield kind, finite[0].lower(), around


def test_inventory(trees: list[Tree]) -> None:
    assert {label for tree in trees for label in tree.labels} == LABELS
    assert {tag for tree in trees for tag in tree.tags} == TAGS
    assert all(tree.labels[0] == "ROOT" and tree.labels.count("ROOT") == 1 for tree in trees)


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree) for tree in trees]
    assert min(lengths) == 1
    assert 36 <= max(lengths) <= 40
    assert 12 <= sum(lengths) / len(lengths) <= 16


def test_part_of_dev_and_test_is_unseen(splits: dict[str, list[Tree]]) -> None:
    known = {word for tree in splits["train"] for word in tree.words}
    assert len(known) > 4000
    for split in ("dev", "test"):
        words = [word for tree in splits[split] for word in tree.words]
        assert 0.04 <= sum(word not in known for word in words) / len(words) <= 0.15


def test_auxiliaries_agree_with_ergatives(trees: list[Tree]) -> None:
    """``batek`` takes ``du`` and never ``dute``; ``batzuek``, ``hiru ...ek`` the reverse."""
    singular, plural = set(ERG_SG.split()), set(ERG_PL.split())
    checked: Counter[str] = Counter()
    for kind, finite, around in simple_clauses(trees):
        if finite not in singular | plural:
            continue
        for first, last in around:
            if last in {"batek", "honek", "horrek", "hark"}:
                checked["singular"] += 1
                assert finite in singular, (kind, finite, around)
            if last in {"batzuek", "askok"} or (first in NUMERALS and last.endswith("ek")):
                checked["plural"] += 1
                assert finite in plural, (kind, finite, around)
    assert checked["singular"] > 60
    assert checked["plural"] > 15


def test_auxiliaries_agree_with_absolutives(trees: list[Tree]) -> None:
    """Beside an intransitive participle ``bat`` takes ``da``, ``batzuk`` takes ``dira``."""
    singular, plural = set(ABS_SG.split()), set(ABS_PL.split())
    other_case = re.compile("(n|ra|tik|dik|z|zat|ri|ei|ko|go|ik)$")
    checked: Counter[str] = Counter()
    for kind, finite, around in simple_clauses(trees):
        if finite not in singular | plural or {"ari", "ariko"} & set(kind):
            continue
        for first, last in around:
            if last in {"bat", "hau", "hori", "hura"}:
                checked["singular"] += 1
                assert finite in singular, (kind, finite, around)
            if last in {"batzuk", "asko", "hauek", "horiek", "haiek"} or (
                first in NUMERALS and not other_case.search(last)
            ):
                checked["plural"] += 1
                assert finite in plural, (kind, finite, around)
    assert checked["singular"] > 50
    assert checked["plural"] > 10


def test_datives_show_in_the_auxiliary(trees: list[Tree]) -> None:
    """``bati`` and ``honi`` need an auxiliary in -o-, ``batzuei`` and ``hauei`` one in -e-."""
    marks = dict.fromkeys(("bati", "honi", "horri", "hari"), "o")
    marks |= dict.fromkeys(("batzuei", "hauei", "horiei", "haiei"), "e")
    checked: Counter[str] = Counter()
    for kind, finite, around in simple_clauses(trees):
        form = re.sub("^(bait(?=z)|ba(?!it))", "", finite).replace("bait", "d")
        for _, last in around:
            if last in marks:
                dative = re.match(
                    "(zai|zaizki|zitzai|zitzaizki|di|dizki|(z|n|zen|gen)i|(z|n|zen|gen)izki)([oe])",
                    form,
                )
                checked[marks[last]] += 1
                assert dative, (kind, finite, around)
                assert dative.group(4) == marks[last], (kind, finite, around)
    assert checked["o"] > 40
    assert checked["e"] > 10


def test_negation_fronts_the_auxiliary_of_main_clauses(trees: list[Tree]) -> None:
    """``ez du ikusi`` and ``ez du ... ikusi`` in main clauses, ``ikusi ez duen`` below them."""
    checked: Counter[str] = Counter()
    for tree, row in constituents(trees, "S"):
        parts = below(tree, row)
        for place, (label, start, end, _) in enumerate(parts):
            tags = list(tree.tags[start:end])
            if label != "ADI-KAT" or "PRT" not in tags or "ADL" not in tags:
                continue
            position = start + tags.index("PRT")
            if tree.words[position].lower() != "ez":
                continue
            assert tree.tags[position + 1] == "ADL", tree.words
            finite = tree.words[position + 1]
            if position > start:
                checked["after"] += 1
                assert tags == ["ADI", "PRT", "ADL"]
                assert re.search("(n|la|lako|nean|nez)$|^ba", finite), tree.words
            else:
                checked["before"] += 1
                assert not re.search("(la|lako|nean|nez)$|^bait", finite), tree.words
                later = tags + [part[0] for part in parts[place + 1 :]]
                assert "ADI" in later, tree.words
    assert checked["before"] > 150
    assert checked["after"] > 30


def test_relative_clauses_precede_their_noun_and_end_in_n(trees: list[Tree]) -> None:
    checked = 0
    for tree, row in constituents(trees, "SN"):
        parts = below(tree, row)
        for place, (label, _, end, inner) in enumerate(parts):
            if label == "S" and len(parts) > 1:
                checked += 1
                assert tree.words[end - 1].endswith("n"), tree.words
                assert tree.tags[end - 1] in {"ADL", "ADT"}
                assert place < len(parts) - 1
                assert below(tree, inner)[-1][0] == "ADI-KAT"
    assert checked > 300


def test_subordinate_auxiliaries_stay_out_of_main_clauses(trees: list[Tree]) -> None:
    """``-ela``, ``-elako``, ``-enean`` and ``-enez`` mark clauses that depend on others."""
    checked: Counter[str] = Counter()
    marked = re.compile("(la|lako|nean|nez)$|^bait")
    for tree, row in constituents(trees, "S"):
        parts = below(tree, row)
        for label, _, end, _inner in parts:
            ending = marked.search(tree.words[end - 1].lower())
            if label == "ADI-KAT" and tree.tags[end - 1] in {"ADL", "ADT"} and ending:
                checked[ending.group()] += 1
                holders = [
                    tree.labels[other]
                    for other in range(row)
                    if tree.spans[other][0] <= tree.spans[row][0]
                    and tree.spans[other][1] >= tree.spans[row][1]
                ]
                assert "S" in holders, tree.words
    assert all(checked[ending] > 10 for ending in ("la", "lako", "nean", "nez", "bait"))


def test_postpositions_govern_their_case(trees: list[Tree]) -> None:
    """``buruz`` takes the dative, ``arabera`` the genitive, ``gabeko`` the partitive, ..."""
    cases = {
        "buruz": "i", "buruzko": "i", "esker": "i", "begira": "i",
        "arabera": "n", "aurka": "n", "aurkako": "n", "alde": "n", "aldeko": "n", "bidez": "n",
        "ordez": "n", "artean": "n", "kontrako": "n",
        "gabeko": "ik", "urrun": "tik", "hurbil": "tik", "zehar": "n", "arte": "ra",
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for tree, row in constituents(trees, "SP"):
        parts = below(tree, row)
        assert len(parts) == 2
        assert parts[1][0] in {"ADB", "IZE"}
        last = tree.words[parts[1][1]].lower()
        before = tree.words[parts[1][1] - 1]
        if last in cases and parts[0][0] == "SN" and before != "ere":
            checked[last] += 1
            ending = cases[last]
            voiced = ending == "tik" and before.endswith("dik")
            pronoun = before.lower() in {"nire", "zure", "gure", "bere", "inor", "ezer"}
            assert before.endswith(ending) or voiced or pronoun, tree.words
    assert sum(checked.values()) > 300
    assert len(checked) > 14


def test_case_stands_once_at_the_end_of_the_noun_phrase(trees: list[Tree]) -> None:
    """A noun before its adjective or before ``bat`` and ``hori`` has no ending."""
    endings = re.compile("(engan|engandik|etan|etara|etatik|etako|rekin|rentzat|aren|ean)$")
    bare = {"bat", "batek", "batean", "hori", "horrek", "batzuk", "batzuek", "asko"}
    checked: Counter[str] = Counter()
    for tree, row in constituents(trees, "SN"):
        parts = below(tree, row)
        for left, right in pairwise(parts):
            word = tree.words[left[1]].lower()
            if left[0] == "IZE" and right[0] in {"ADJ", "SADJ"}:
                checked["adjective"] += 1
            elif left[0] in {"IZE", "ADJ"} and tree.words[right[1]] in bare:
                checked["determiner"] += 1
            else:
                continue
            assert not endings.search(word), tree.words
    assert checked["adjective"] > 600
    assert checked["determiner"] > 500


def test_local_cases_of_towns_are_voiced_after_n_and_l(trees: list[Tree]) -> None:
    """Irundik and Irungo, but Paristik and Bilboko; e only after consonants."""
    after_n = re.compile("^(Irun|Beasain|Berlin|Madril|Portugal|Andoain)(.*)$")
    after_vowel = re.compile("^(Bilbo|Donostia|Getxo|Durango|Bermeo|Europa|Kuba|Peru)(.*)$")
    legal_n = {"", "ek", "i", "en", "ekin", "entzat", "ez", "era", "dik", "go"}
    legal_vowel = {"", "k", "ri", "ren", "rekin", "rentzat", "z", "n", "ra", "tik", "ko"}
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            if tag != "IZE":
                continue
            for pattern, legal in ((after_n, legal_n), (after_vowel, legal_vowel)):
                match = pattern.match(word)
                if match:
                    checked[match.group(2)] += 1
                    assert match.group(2) in legal, word
    assert checked["go"] + checked["dik"] > 10
    assert checked["ko"] + checked["tik"] > 30


def test_strong_r_doubles_before_vowels_only(trees: list[Tree]) -> None:
    stems = "txakur ederr eder haur zahar piper biltzar beldur gezur labur gogor lapur nafar"
    pattern = re.compile(f"^({'|'.join(s.rstrip('r') for s in stems.split())})(r+)([aei].*)?$")
    checked = 0
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            match = pattern.match(word.lower())
            if match and tag in {"IZE", "ADJ"}:
                checked += 1
                assert len(match.group(2)) == (2 if match.group(3) else 1), word
    assert checked > 80


def test_bait_changes_the_auxiliary(trees: list[Tree]) -> None:
    """bait- devoices d and g and loses its t before n and l: baita, baikara, bainaiz."""
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            form = word.lower()
            if tag in {"ADL", "ADT"} and form.startswith("bai"):
                checked[form[3]] += 1
                assert form[3] in "tkn" or form.startswith("bail"), word
                assert not re.match("bait[dgnl]", form), word
    assert checked["t"] > 40
    assert sum(checked.values()) - checked["t"] > 3


def test_words_with_a_hidden_noun_stack_cases(trees: list[Tree]) -> None:
    """etxeko + ak, Mikelen + a, duen + ari: a genitive or relative and then another case."""
    endings = "(a|ak|ari|aren|arekin|ek|ei|en|ekin)$"
    before = {
        "IZE_IZEELI": "(ko|go|en)", "ADB_IZEELI": "(ko|go)", "ADI_IZEELI": "(ta|da)ko",
        "ADL_IZEELI": "n", "ADT_IZEELI": "n", "IOR_IZEELI": "(re|en)",
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            if tag in before:
                checked[tag] += 1
                assert re.search(before[tag] + endings, word), word
    assert set(checked) == set(before)
    assert checked["IZE_IZEELI"] > 50
    assert checked["ADL_IZEELI"] > 50


def test_tree_shape(trees: list[Tree]) -> None:
    chains = 0
    for tree in trees:
        for row, label in enumerate(tree.labels):
            tags = [part[0] for part in below(tree, row)]
            if label == "ADI-KAT":
                chains += 1
                assert sum(tag in FINITE for tag in tags) == 1, tree.words
                assert set(tags) <= FINITE | {"ADI", "IZE", "PRT"}, tree.words
            if label == "AS":
                assert not FINITE & set(tags)
                assert tags[-1] == "ADI", tree.words
            if label in {"SP", "SDET"}:
                assert len(tags) > 1
            if label == "SN":
                assert not {"ADL", "ADT", "ADI", "ADI-KAT"} & set(tags)
            if label == "SADV":
                assert set(tags) <= {"ADB", "LOT"}
    assert chains > 4000


def test_numerals_and_partitives(trees: list[Tree]) -> None:
    """``zenbait`` and ``edozein`` take a noun without article; -rik follows negation."""
    checked: Counter[str] = Counter()
    for tree in trees:
        for position in range(len(tree) - 1):
            word, following = tree.words[position].lower(), tree.words[position + 1]
            if word in {"zenbait", "hainbat", "edozein"} and tree.tags[position + 1] == "IZE":
                checked[word] += 1
                assert not re.search("(ean|ei|eek|een)$", following), following
            if word in {"inor", "ezer"}:
                checked["partitive"] += 1
                context = [w.lower() for w in tree.words]
                assert "ez" in context or "gabe" in context or "gabeko" in context
    assert checked["zenbait"] > 10
    assert checked["edozein"] > 10
    assert checked["partitive"] > 3


def test_punctuation_and_capitals(trees: list[Tree]) -> None:
    for tree in trees:
        first = next(word for word in tree.words if word[0].isalnum())
        assert first[0].isupper() or first[0].isdigit()
        for word in tree.words:
            assert "+" not in word
            assert " " not in word
        for left, right in pairwise(tree.words):
            assert not (left == "," and right in {",", "."}), tree.words
