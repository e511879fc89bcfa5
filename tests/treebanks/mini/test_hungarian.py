"""Properties of Hungarian that the generated trees must have, checked without the engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, labelled, neighbours

LABELS = {
    "ROOT", "CP", "NP", "ADJP", "ADVP", "PP", "XP", "V_", "V0", "INF_", "INF0", "PA_", "PA0",
    "C0", "NEG", "PREVERB",
}  # fmt: skip
TAGS = {"N", "V", "A", "T", "R", "C", "S", "P", "M", "O", "I", "Y", "PUNC"}
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="hungarian", root="ROOT", labels=LABELS, tags=TAGS, shortest=(1, 3), mean=(11, 15),
    known=4000, unseen=(0.07, 0.15),
)  # fmt: skip
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


def words(trees: list[Tree], tag: str) -> Iterator[str]:
    for tree in trees:
        for word, found in zip(tree.words, tree.tags, strict=True):
            if found == tag:
                yield word.lower()


def test_every_sentence_is_a_clause(roots: list[Node]) -> None:
    for root in roots:
        assert root.below[0].label == "CP"
        assert root.below[0].end == root.end


def test_szeged_shape(nodes: list[Node]) -> None:
    """Unary chains over verbs and function words; PP is NP and postposition; clauses flat."""
    checked: Counter[str] = Counter()
    for label, expected in CHAINS.items():
        for node in labelled(nodes, label):
            assert node.labels == expected, str(node)
            checked[label] += 1
    assert all(checked[label] > 40 for label in CHAINS)
    for node in labelled(nodes, "PP"):
        assert node.labels == ["NP", "S"], str(node)
        checked["PP"] += 1
    assert checked["PP"] > 250
    for node in labelled(nodes, "ADJP"):
        assert node.labels[-1] in {"A", "ADJP"}, str(node)
    for node in labelled(nodes, "NP"):
        assert not {"V", "V_", "PREVERB", "NEG", "R", "A"} & set(node.labels), str(node)


def test_article_by_the_next_sound(trees: list[Tree]) -> None:
    checked: Counter[str] = Counter()
    for word, tag, following, _ in neighbours(trees):
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


def test_preverbs_leave_the_verb(nodes: list[Node]) -> None:
    """Right after the verb, or before an auxiliary whose infinitive or participle follows."""
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "CP"):
        below, labels = node.below, node.labels
        for place, daughter in enumerate(below):
            if daughter.label != "PREVERB":
                continue
            preverb = daughter.word.lower()
            assert preverb in PREVERBS
            after = labels[place + 1 : place + 3]
            if after in (["V_", "INF_"], ["V_", "PA_"]):
                checked["auxiliary"] += 1
            else:
                assert labels[place - 1] == "V_", str(node)
                verb = below[place - 1].word.lower()
                assert not verb.startswith(preverb) or verb.startswith(("elem", "kezd")), verb
                checked["negation"] += labels[place - 2] == "NEG"
                checked["focus"] += labels[place - 2] in {"NP", "ADVP"}
        for place, label in enumerate(labels):
            if label == "NEG":
                assert labels[place + 1] in {"V_", "ADJP"}, str(node)
                checked["NEG"] += 1
    assert all(checked[kind] > 40 for kind in ("auxiliary", "negation", "focus", "NEG"))


def test_subject_pronouns_agree_with_the_verb(nodes: list[Node]) -> None:
    endings = {"én": r"[mk]$", "mi": r"nk$|[uü]k$", "ők": r"[kn][aáeéiu]?k$|[taáeéij]k$"}
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "CP"):
        verbs = [part.word for part in node.below if part.label == "V_"]
        for part in node.below:
            word = part.word.lower()
            if part.label == "NP" and part.tags == ("P",) and len(verbs) == 1:
                if word in endings:
                    assert re.search(endings[word], verbs[0]), str(node)
                    checked[word] += 1
                if word in {"ő", "ki", "aki", "senki", "mindenki"}:
                    assert not re.search(r"(?:n[ae]k|t[aáeé]k|[^i]nk)$", verbs[0]), str(node)
                    checked["singular"] += 1
    assert sum(checked[word] for word in endings) > 40
    assert checked["singular"] > 150


def test_relative_objects_take_the_indefinite_conjugation(nodes: list[Node]) -> None:
    checked = 0
    for node in labelled(nodes, "CP"):
        first = node.word.lower()
        if node.labels[0] == "NP" and (ACCUSATIVE.match(first) or first in {"kit", "mit"}):
            verb = next(part.word for part in node.below if part.label == "V_")
            assert not DEFINITE.search(verb), (first, verb)
            checked += 1
    assert checked > 50


def test_definite_verbs_have_definite_objects(nodes: list[Node]) -> None:
    """Plural ``-ták/-ték``: an accusative that is definite, or an object clause, is there."""
    definite = {"a", "az", "ezt", "azt", "ezeket", "azokat", "őt", "őket", "melyiket"}
    definite |= {"ennek", "annak", "ezeknek", "azoknak"}
    checked = 0
    for node in labelled(nodes, "CP"):
        verbs = [part.word for part in node.below if part.label == "V_"]
        if len(verbs) != 1 or not re.search(r"t[áé]k$", verbs[0]):
            continue
        checked += 1
        joining = {",", "és", "vagy", "valamint"}
        found = any(
            part.word.lower() in definite or part.word[0].isupper() or part.tags[0] == "Y"
            for part in labelled(node.below, "NP")
            if part.words[-1].endswith("t") or joining & set(part.words)
        )
        assert found or "CP" in node.labels or node.labels[0] == "PUNC", str(node)
    assert checked > 40


def test_numerals_take_the_singular(nodes: list[Node]) -> None:
    case = re.compile(r"(?:[ae]t|n[ae]k|k[ae]l|b[ae]n?|r[ae]|r[óő]l|t[óő]l|h[oeö]z|n[áé]l|ért|ig)$")
    checked = 0
    for node in labelled(nodes, "NP"):
        labels = [label for label in node.labels if label not in {"T", "ADJP"}]
        if labels[:2] == ["M", "N"]:
            noun = next(part.word for part in node.below if part.label == "N")
            checked += 1
            bare = case.sub("", noun)
            assert not re.search(r"[aáeéiíoóöőuúüű]k$", bare) or ENDS_IN_K.match(noun), noun
    assert checked > 200


def test_demonstratives_share_the_case_of_the_noun(nodes: list[Node]) -> None:
    endings = {
        "t": r"t", "nek": r"n[ae]k", "nak": r"n[ae]k", "ben": r"b[ae]n", "ban": r"b[ae]n",
        "ről": r"r[óő]l", "ról": r"r[óő]l", "re": r"r[ae]", "ra": r"r[ae]", "vel": r".*[ae]l",
        "zel": r".*[ae]l", "zal": r".*[ae]l", "től": r"t[óő]l", "tól": r"t[óő]l",
    }  # fmt: skip
    checked = 0
    for node in labelled(nodes, "NP"):
        if node.labels[:2] != ["P", "T"]:
            continue
        demonstrative = node.word.lower()
        noun = next(part.word for part in node.below if part.label == "N")
        for ending, pattern in endings.items():
            if demonstrative.endswith(ending):
                assert re.search(pattern + "$", noun), str(node)
                checked += 1
    assert checked > 40


def test_adjectives_as_predicates_agree(nodes: list[Node]) -> None:
    """Adjectives agree in number with the subject, with a copula or, in the present, none."""
    checked: Counter[str] = Counter()
    for node in labelled(nodes, "CP"):
        labels = [label for label in node.labels if label != "ADVP"]
        subject, *rest = node.below
        if (
            labels[:2] != ["NP", "ADJP"]
            or not set(labels[2:]) <= {"V_", "PUNC"}
            or re.fullmatch("T(?: A)* N", " ".join(subject.tags)) is None
        ):
            continue
        noun = subject.words[-1]
        adjective = next(part.words[-1] for part in rest if part.label == "ADJP")
        if ENDS_IN_K.match(noun) or re.search(r"(?:nk|[uü]k|i[mk]?)$", noun):
            continue
        plural = bool(re.search(r"[aáeéiíoóöőuúüű]k$", noun))
        assert adjective.endswith("k") == plural or adjective in {"kék", "halk"}, str(node)
        checked["plural" if plural else "singular"] += 1
        checked["verbless"] += "V_" not in labels
    assert checked["plural"] > 10
    assert checked["singular"] > 30
    assert checked["verbless"] > 25


def test_possessors_and_the_possessed(nodes: list[Node]) -> None:
    """A noun right after its possessor has a possessive ending of the third person singular."""
    case = r"(?:t|n[ae]k|v[ae]l|b[ae]n?|b[óő]l|r[ae]|r[óő]l|n|n[áé]l|t[óő]l|h[oeö]z|ért|ig)?"
    owned = re.compile(rf"(?:[aáeé]|i){case}$")
    checked = 0
    for node in labelled(nodes, "NP"):
        if node.labels in (["NP", "N"], ["NP", "T", "N"]):
            assert owned.search(node.words[-1]), str(node)
            checked += 1
    assert checked > 250


def test_infinitives_and_relative_clauses(nodes: list[Node]) -> None:
    infinitives = 0
    for node in labelled(nodes, "INF0"):
        assert re.search(r"ni(?:[ae]|uk|ük)?$", node.word.lower()), node.word
        infinitives += 1
    assert infinitives > 200
    relatives = 0
    for node in labelled(nodes, "NP"):
        if "CP" in node.labels:
            place = node.labels.index("CP")
            assert node.labels[place - 1] == "PUNC"
            first = node.below[place].word
            assert re.match(r"(?:aki|amely|amely|amellyel|ami|ahol)", first), str(node)
            relatives += 1
    assert relatives > 200


def test_no_notation_is_left(trees: list[Tree]) -> None:
    letters = set("aábcdeéfghiíjklmnoóöőpqrstuúüűvwxyz0123456789,.-%")
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert tag == "PUNC" or set(word.lower()) <= letters, word
