"""Properties of Hungarian that the generated trees must have, checked without the engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.trees.tree import Tree

LABELS = {
    "ROOT", "CP", "NP", "ADJP", "ADVP", "PP", "XP", "V_", "V0", "INF_", "INF0", "PA_", "PA0",
    "C0", "NEG", "PREVERB",
}  # fmt: skip
TAGS = {"N", "V", "A", "T", "R", "C", "S", "P", "M", "O", "I", "Y", "PUNC"}
CHAINS = {
    "V_": ["V0"], "V0": ["V"], "INF_": ["INF0"], "INF0": ["V"], "PA_": ["PA0"], "PA0": ["R"],
    "C0": ["C"], "NEG": ["R"], "PREVERB": ["R"],
}  # fmt: skip
PREVERBS = {
    "meg", "el", "ki", "be", "le", "fel", "át", "vissza", "össze", "alá", "hozzá", "rá", "bele",
    "oda", "haza", "végig",
}  # fmt: skip
BACK, FRONT = "aáoóuú", "eéiíöőüű"
VOWELS = BACK + FRONT
# Forms of the definite conjugation that no indefinite form looks like.
DEFINITE = re.compile(r"(?:[tj][ae]|[tj][áé]k|nák|[tj][uü]k|ná|né|ssa|zza|sza|i|ik)$")
ACCUSATIVE = re.compile(r"(?:aki|amely|ami)(?:k[ae])?[te]?t$")
# Nouns whose singular looks like a plural.
ENDS_IN_K = re.compile(
    r"(?:diák|gyerek|(?:el|mér|fő|ügy)nök|ablak|ajándék|vidék|érdek|sarok|szék|cikk|ok|százalék)"
)


class Daughter(NamedTuple):
    """A constituent or a word directly below a constituent, with its fenceposts."""

    label: str
    start: int
    end: int
    row: int


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Tree]]:
    return generate("hungarian", {"train": 2000, "dev": 300, "test": 300}, seed=1)


@pytest.fixture(scope="module")
def trees(splits: dict[str, list[Tree]]) -> list[Tree]:
    return [tree for part in splits.values() for tree in part]


def daughters(tree: Tree, row: int) -> list[Daughter]:
    start, end = tree.spans[row].tolist()
    found = []
    position, inner = start, row + 1
    while position < end:
        if inner < len(tree.labels) and tree.spans[inner][0] == position:
            stop = int(tree.spans[inner][1])
            found.append(Daughter(tree.labels[inner], position, stop, inner))
            position = stop
            inner += 1
            while inner < len(tree.labels) and tree.spans[inner][1] <= stop:
                inner += 1
        else:
            found.append(Daughter(tree.tags[position], position, position + 1, -1))
            position += 1
    return found


def constituents(trees: list[Tree], label: str) -> Iterator[tuple[Tree, list[Daughter]]]:
    for tree in trees:
        for row, found in enumerate(tree.labels):
            if found == label:
                yield tree, daughters(tree, row)


def names(below: list[Daughter]) -> list[str]:
    return [daughter.label for daughter in below]


def words(trees: list[Tree], tag: str) -> Iterator[str]:
    for tree in trees:
        for word, found in zip(tree.words, tree.tags, strict=True):
            if found == tag:
                yield word.lower()


def test_inventory(trees: list[Tree]) -> None:
    assert {label for tree in trees for label in tree.labels} == LABELS
    assert {tag for tree in trees for tag in tree.tags} == TAGS
    for tree in trees:
        assert tree.labels[:2] == ("ROOT", "CP")
        assert tree.labels.count("ROOT") == 1
        assert tree.spans[0].tolist() == tree.spans[1].tolist()


def test_lengths(trees: list[Tree]) -> None:
    lengths = [len(tree) for tree in trees]
    assert 1 <= min(lengths) <= 3
    assert 36 <= max(lengths) <= 40
    assert 11 <= sum(lengths) / len(lengths) <= 15


def test_part_of_dev_and_test_is_unseen(splits: dict[str, list[Tree]]) -> None:
    known = {word for tree in splits["train"] for word in tree.words}
    assert len(known) > 4000
    for split in ("dev", "test"):
        tokens = [word for tree in splits[split] for word in tree.words]
        assert 0.07 <= sum(word not in known for word in tokens) / len(tokens) <= 0.15


def test_szeged_shape(trees: list[Tree]) -> None:
    """Unary chains over verbs and function words; PP is NP and postposition; clauses flat."""
    checked: Counter[str] = Counter()
    for label, expected in CHAINS.items():
        for tree, below in constituents(trees, label):
            assert names(below) == expected, tree.words
            checked[label] += 1
    assert all(checked[label] > 40 for label in CHAINS)
    for tree, below in constituents(trees, "PP"):
        assert names(below) == ["NP", "S"], tree.words
        checked["PP"] += 1
    assert checked["PP"] > 250
    for tree, below in constituents(trees, "ADJP"):
        assert below[-1].label in {"A", "ADJP"}, tree.words
    for tree, below in constituents(trees, "NP"):
        assert not {"V", "V_", "PREVERB", "NEG", "R", "A"} & set(names(below)), tree.words


def test_article_by_the_next_sound(trees: list[Tree]) -> None:
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag, following in zip(tree.words, tree.tags, tree.words[1:], strict=False):
            if tag == "T" and word.lower() != "egy":
                vowel = following[0].lower() in VOWELS or re.match(r"5|1(?:$|,|\d{3}$)", following)
                assert word.lower() == ("az" if vowel else "a"), (word, following)
                checked[word.lower()] += 1
    assert checked["a"] > 2000
    assert checked["az"] > 500


def test_two_and_three_way_harmony(trees: list[Tree]) -> None:
    """Endings follow the vowels of stems that are not mixed; híd and cél are exceptions."""
    checked: Counter[str] = Counter()
    for word in words(trees, "N"):
        match = re.fullmatch(r"(.+?)(n[ae]k|b[ae]n|b[óő]l|r[óő]l|t[óő]l|h[oeö]z)", word)
        if match is None or match[1] in {"híd", "cél"}:
            continue
        vowels = [letter for letter in match[1] if letter in VOWELS]
        ending = next(letter for letter in match[2] if letter in VOWELS)
        if all(vowel in BACK for vowel in vowels):
            assert ending in BACK, word
            checked["back"] += 1
        if all(vowel in FRONT for vowel in vowels):
            assert ending in FRONT, word
            checked["front"] += 1
        if match[2].startswith("h") and ending in FRONT:
            assert (ending == "ö") == (vowels[-1] in "öőüű"), word
            checked["three"] += 1
    assert checked["back"] > 200
    assert checked["front"] > 200
    assert checked["three"] > 6


def test_v_is_assimilated_and_final_vowels_are_long(trees: list[Tree]) -> None:
    checked: Counter[str] = Counter()
    digraphs = "ssz zzs ccs ggy nny lly tty"
    for word in words(trees, "N"):
        if re.search(r".v[ae]l$", word):
            checked["vowel"] += 1
            assert word[-4] in VOWELS + "v", word
            assert word[-4] not in "ae", word
        assert not re.search(r"(?:szsz|zszs|cscs|gygy|nyny|lyly|tyty)[ae]l$", word), word
        if word[-5:-2] in digraphs.split() and word.endswith(("al", "el")):
            checked["digraph"] += 1
        short = re.search(r"[ae](?:n[ae]k|b[ae]n|b[óő]l|r[óő]l|t[óő]l|h[oeö]z)$", word)
        assert short is None or word == "tehenek", word
        if re.search(r"[áé](?:n[ae]k|b[ae]n|b[óő]l|r[óő]l|t[óő]l|h[oeö]z)$", word):
            checked["long"] += 1
    assert checked["vowel"] > 25
    assert checked["digraph"] > 10
    assert checked["long"] > 100


def test_preverbs_leave_the_verb(trees: list[Tree]) -> None:
    """Right after the verb, or before an auxiliary whose infinitive or participle follows."""
    checked: Counter[str] = Counter()
    for tree, below in constituents(trees, "CP"):
        labels = names(below)
        for place, daughter in enumerate(below):
            if daughter.label != "PREVERB":
                continue
            preverb = tree.words[daughter.start].lower()
            assert preverb in PREVERBS
            after = labels[place + 1 : place + 3]
            if after in (["V_", "INF_"], ["V_", "PA_"]):
                checked["auxiliary"] += 1
            else:
                assert labels[place - 1] == "V_", tree.words
                verb = tree.words[below[place - 1].start].lower()
                assert not verb.startswith(preverb) or verb.startswith(("elem", "kezd")), verb
                checked["negation"] += labels[place - 2] == "NEG"
                checked["focus"] += labels[place - 2] in {"NP", "ADVP"}
        for place, label in enumerate(labels):
            if label == "NEG":
                assert labels[place + 1] in {"V_", "ADJP"}, tree.words
                checked["NEG"] += 1
    assert all(checked[kind] > 40 for kind in ("auxiliary", "negation", "focus", "NEG"))


def test_subject_pronouns_agree_with_the_verb(trees: list[Tree]) -> None:
    endings = {"én": r"[mk]$", "mi": r"nk$|[uü]k$", "ők": r"[kn][aáeéiu]?k$|[taáeéij]k$"}
    checked: Counter[str] = Counter()
    for tree, below in constituents(trees, "CP"):
        verbs = [tree.words[d.start] for d in below if d.label == "V_"]
        for daughter in below:
            word = tree.words[daughter.start].lower()
            alone = daughter.label == "NP" and daughter.end == daughter.start + 1
            if alone and tree.tags[daughter.start] == "P" and len(verbs) == 1:
                if word in endings:
                    assert re.search(endings[word], verbs[0]), (verbs, tree.words)
                    checked[word] += 1
                if word in {"ő", "ki", "aki", "senki", "mindenki"}:
                    assert not re.search(r"(?:n[ae]k|t[aáeé]k|[^i]nk)$", verbs[0]), (
                        verbs,
                        tree.words,
                    )
                    checked["singular"] += 1
    assert sum(checked[word] for word in endings) > 40
    assert checked["singular"] > 150


def test_relative_objects_take_the_indefinite_conjugation(trees: list[Tree]) -> None:
    checked = 0
    for tree, below in constituents(trees, "CP"):
        first = tree.words[below[0].start].lower()
        if below[0].label == "NP" and (ACCUSATIVE.match(first) or first in {"kit", "mit"}):
            verb = next(tree.words[d.start] for d in below if d.label == "V_")
            assert not DEFINITE.search(verb), (first, verb)
            checked += 1
    assert checked > 50


def test_definite_verbs_have_definite_objects(trees: list[Tree]) -> None:
    """Plural ``-ták/-ték``: an accusative that is definite, or an object clause, is there."""
    definite = {"a", "az", "ezt", "azt", "ezeket", "azokat", "őt", "őket", "melyiket"}
    definite |= {"ennek", "annak", "ezeknek", "azoknak"}
    checked = 0
    for tree, below in constituents(trees, "CP"):
        verbs = [d for d in below if d.label == "V_"]
        if len(verbs) != 1 or not re.search(r"t[áé]k$", tree.words[verbs[0].start]):
            continue
        checked += 1
        objects = [d for d in below if d.label == "NP" and tree.words[d.end - 1].endswith("t")] + [
            d for d in below if d.label == "NP" and "," in tree.words[d.start : d.end]
        ]
        objects += [
            d
            for d in below
            if d.label == "NP" and {"és", "vagy", "valamint"} & set(tree.words[d.start : d.end])
        ]
        found = any(
            tree.words[d.start].lower() in definite
            or tree.words[d.start][0].isupper()
            or tree.tags[d.start] == "Y"
            for d in objects
        )
        assert found or "CP" in names(below) or below[0].label == "PUNC", [
            tree.words[d.start : d.end] for d in below
        ]
    assert checked > 40


def test_numerals_take_the_singular(trees: list[Tree]) -> None:
    case = re.compile(r"(?:[ae]t|n[ae]k|k[ae]l|b[ae]n?|r[ae]|r[óő]l|t[óő]l|h[oeö]z|n[áé]l|ért|ig)$")
    checked = 0
    for tree, below in constituents(trees, "NP"):
        labels = [label for label in names(below) if label not in {"T", "ADJP"}]
        if labels[:2] == ["M", "N"]:
            noun = next(tree.words[d.start] for d in below if d.label == "N")
            checked += 1
            bare = case.sub("", noun)
            assert not re.search(r"[aáeéiíoóöőuúüű]k$", bare) or ENDS_IN_K.match(noun), noun
    assert checked > 200


def test_demonstratives_share_the_case_of_the_noun(trees: list[Tree]) -> None:
    endings = {
        "t": r"t", "nek": r"n[ae]k", "nak": r"n[ae]k", "ben": r"b[ae]n", "ban": r"b[ae]n",
        "ről": r"r[óő]l", "ról": r"r[óő]l", "re": r"r[ae]", "ra": r"r[ae]", "vel": r".*[ae]l",
        "zel": r".*[ae]l", "zal": r".*[ae]l", "től": r"t[óő]l", "tól": r"t[óő]l",
    }  # fmt: skip
    checked = 0
    for tree, below in constituents(trees, "NP"):
        if names(below)[:2] != ["P", "T"]:
            continue
        demonstrative = tree.words[below[0].start].lower()
        noun = next(tree.words[d.start] for d in below if d.label == "N")
        for ending, pattern in endings.items():
            if demonstrative.endswith(ending):
                assert re.search(pattern + "$", noun), tree.words
                checked += 1
    assert checked > 40


def test_adjectives_as_predicates_agree(trees: list[Tree]) -> None:
    """Adjectives agree in number with the subject, with a copula or, in the present, none."""
    checked: Counter[str] = Counter()
    for tree, below in constituents(trees, "CP"):
        labels = [label for label in names(below) if label != "ADVP"]
        subject, *rest = below
        inside = [tree.tags[place] for place in range(subject.start, subject.end)]
        if (
            labels[:2] != ["NP", "ADJP"]
            or not set(labels[2:]) <= {"V_", "PUNC"}
            or (re.fullmatch("T(?: A)* N", " ".join(inside)) is None)
        ):
            continue
        noun = tree.words[subject.end - 1]
        adjective = next(tree.words[d.end - 1] for d in rest if d.label == "ADJP")
        if ENDS_IN_K.match(noun) or re.search(r"(?:nk|[uü]k|i[mk]?)$", noun):
            continue
        plural = bool(re.search(r"[aáeéiíoóöőuúüű]k$", noun))
        assert adjective.endswith("k") == plural or adjective in {"kék", "halk"}, tree.words
        checked["plural" if plural else "singular"] += 1
        checked["verbless"] += "V_" not in labels
    assert checked["plural"] > 10
    assert checked["singular"] > 30
    assert checked["verbless"] > 25


def test_possessors_and_the_possessed(trees: list[Tree]) -> None:
    """A noun right after its possessor has a possessive ending of the third person singular."""
    case = r"(?:t|n[ae]k|v[ae]l|b[ae]n?|b[óő]l|r[ae]|r[óő]l|n|n[áé]l|t[óő]l|h[oeö]z|ért|ig)?"
    owned = re.compile(rf"(?:[aáeé]|i){case}$")
    checked = 0
    for tree, below in constituents(trees, "NP"):
        if names(below) in (["NP", "N"], ["NP", "T", "N"]):
            assert owned.search(tree.words[below[-1].start]), tree.words
            checked += 1
    assert checked > 250


def test_infinitives_and_relative_clauses(trees: list[Tree]) -> None:
    infinitives = 0
    for tree, below in constituents(trees, "INF0"):
        assert re.search(r"ni(?:[ae]|uk|ük)?$", tree.words[below[0].start].lower()), tree.words
        infinitives += 1
    assert infinitives > 200
    relatives = 0
    for tree, below in constituents(trees, "NP"):
        if "CP" in names(below):
            place = names(below).index("CP")
            assert below[place - 1].label == "PUNC"
            first = tree.words[below[place].start]
            assert re.match(r"(?:aki|amely|amely|amellyel|ami|ahol)", first), tree.words
            relatives += 1
    assert relatives > 200


def test_no_notation_is_left(trees: list[Tree]) -> None:
    letters = set("aábcdeéfghiíjklmnoóöőpqrstuúüűvwxyz0123456789,.-%")
    for tree in trees:
        first = next(word for word in tree.words if word[0].isalnum())
        assert first[0].isupper() or first[0].isdigit()
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert tag == "PUNC" or set(word.lower()) <= letters, word
        for left, right in zip(tree.words, tree.words[1:], strict=False):
            assert not (left == "," and right in {",", ".", "?"}), tree.words
