"""Properties of Polish that the generated trees must have, checked without the engine."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node, lowered, neighbours

LABELS = {
    "wypowiedzenie", "zdanie", "ff", "fwe", "formaczas", "przyzlo", "condaglt", "fw", "fl", "fno",
    "formarzecz", "zaimos", "zaimprzym", "flicz", "formalicz", "fpm", "fpmpt", "przyimek", "fpt",
    "formaprzym", "fps", "formaprzys", "modpart", "partykuła", "fzd", "korelat", "spójnik", "przec",
    "cudz", "pauza", "znakkonca",
}  # fmt: skip
TAGS = {
    "subst", "ger", "ppron12", "ppron3", "siebie", "num", "adj", "adja", "adjp", "pact", "ppas",
    "adv", "qub", "prep", "conj", "comp", "fin", "praet", "aglt", "bedzie", "inf", "impt", "imps",
    "pcon", "pant", "pred", "winien", "brev", "interp",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="polish", root="wypowiedzenie", labels=LABELS, tags=TAGS, shortest=(2, 4), mean=(10, 14),
    known=4500, unseen=(0.08, 0.15), lower=True,
)  # fmt: skip
# Endings of adjectives by the case that a preposition governs.
GENITIVE = "(ego|egoś|ej|ejś|ych|ich)$"
DATIVE = "(emu|emuś|ej|ejś|ym|im)$"
INSTRUMENTAL = "(ym|im|imś|ą|ąś|ymi|imi)$"
LOCATIVE = "(ym|im|imś|ej|ejś|ych|ich)$"
ACCUSATIVE = "(ego|egoś|ą|ąś|ę|[yi]|iś|e|eś|[yi]ch|to|en|ój|nasz)$"
GOVERNED = {
    "do": GENITIVE, "od": GENITIVE, "bez": GENITIVE, "dla": GENITIVE, "podczas": GENITIVE,
    "u": GENITIVE, "dzięki": DATIVE, "przeciwko": DATIVE, "nad": INSTRUMENTAL,
    "przed": INSTRUMENTAL, "przy": LOCATIVE, "przez": ACCUSATIVE,
}  # fmt: skip
GOVERNING = {"pięć", "sześć", "siedem", "osiem", "dziewięć", "dziesięć", "kilka", "wiele", "20"}
GOVERNING_PERSONS = {"dwóch", "trzech", "czterech", "pięciu", "sześciu", "kilku", "wielu"}
CONSONANT = "[bcćdfghjklłmnńprsśtwzźż]"


@pytest.fixture(scope="module")
def pairs(trees: list[Tree]) -> list[tuple[str, str, str, str]]:
    """Neighbours: word, tag, next word, next tag; the words in lower case."""
    return list(neighbours(map(lowered, trees)))


def is_negated(clause: Node) -> bool:
    return any(child.label == "ff" and child.words[0] == "nie" for child in clause.below)


def is_clitic(node: Node) -> bool:
    return node.label == "fw" and node.words == ("się",)


def test_shape_of_składnica(roots: list[Node], nodes: list[Node]) -> None:
    seen: Counter[str] = Counter()
    for root in roots:
        assert root.labels == ["zdanie", "znakkonca"]
    for node in nodes:
        seen[node.label] += 1
        if node.label == "zdanie":
            assert node.labels.count("ff") == 1 or "zdanie" in node.labels, str(node)
            if "zdanie" not in node.labels:
                assert {"ff", "fw", "fl", "spójnik", "partykuła", "pauza"} >= set(node.labels)
        elif node.label == "ff":
            assert node.labels == ["fwe"]
            assert node.below[0].labels == ["formaczas"]
        elif node.label == "fno":
            assert len(node.below) == 1 or {"fno", "adj"} & set(node.labels), str(node)
        elif node.label == "formarzecz":
            assert node.labels in (
                ["subst"], ["ger"], ["formarzecz", "formarzecz"], ["brev", "interp"],
            )  # fmt: skip
        elif node.label == "fpm":
            assert node.labels in (["przyimek", "fno"], ["modpart", "przyimek", "fno"])
        elif node.label == "fl":
            assert len(node.below) == 1
    assert all(seen[label] > 1000 for label in ("zdanie", "ff", "fno", "formarzecz", "fpm", "fpt"))


def test_personal_endings_are_tokens_after_participles(
    pairs: list[tuple[str, str, str, str]],
) -> None:
    """zbierał em, zbierała m, zbierali śmy, zbierał by m."""
    hosts = {
        "em": "(ł|powinien)$",
        "eś": "ł$",
        "m": "(ła|powinna|^by)$",
        "ś": "(ła|^by)$",
        "śmy": "(li|powinni|^by)$",
    }
    seen: Counter[str] = Counter()
    for word, tag, following, tag2 in pairs:
        if tag2 == "aglt":
            seen[following] += 1
            assert tag in {"praet", "winien"} or word == "by"
            assert re.search(hosts[following], word), (word, following)
    assert all(seen[ending] >= 5 for ending in hosts)
    assert sum(seen.values()) > 100


def test_verbs_agree_with_relative_pronouns(nodes: list[Node]) -> None:
    endings = {"która": "(ła|winna)$", "którzy": "(li|winni)$"}
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.label == "zdanie" and node.below[0].label == "fw":
            pronoun = node.below[0].words
            verbs = [child for child in node.below if child.label == "ff"]
            if pronoun[0] in endings and {"praet", "winien"} & set(verbs[0].tags):
                form = next(
                    leaf.word for leaf in verbs[0].walk() if leaf.label in {"praet", "winien"}
                )
                if "bedzie" not in verbs[0].tags:
                    seen[pronoun[0]] += 1
                    assert re.search(endings[pronoun[0]], form), str(node)
    assert seen["która"] > 15
    assert seen["którzy"] > 1


def test_relative_pronouns_agree_with_demonstratives(nodes: list[Node]) -> None:
    """``ta nowa kobieta , której``, but ``ten człowiek , którego``."""
    feminine = {"która", "której", "którą"}
    masculine = {"który", "którego", "któremu", "którym"}
    neuter = {"które", "którego", "któremu", "którym"}
    plural = {"które", "którzy", "których", "którym", "którymi"}
    legal = {
        "ta": feminine, "tę": feminine, "ten": masculine, "to": neuter, "tego": masculine | neuter,
        "ci": plural - {"które"}, "te": plural - {"którzy"}, "tych": plural,
    }  # fmt: skip
    seen = 0
    for node in nodes:
        if node.labels == ["fpt", "fno"] and node.below[1].labels == ["fno", "fzd"]:
            demonstrative = node.below[0].words[0]
            if demonstrative in legal:
                clause = node.below[1].below[1]
                pronoun = next(word for word in clause.words if word.startswith("któr"))
                seen += 1
                assert pronoun in legal[demonstrative], str(node)
    assert seen > 10


def test_negated_verbs_have_no_accusative(nodes: list[Node]) -> None:
    """Feminine nouns show it: ``czyta książkę``, but ``nie czyta książki``."""

    def accusatives(node: Node) -> int:
        found = 0
        for child in node.below:
            if child.label in {"fw", "fwe", "fno"}:
                found += accusatives(child)
            elif child.label == "formarzecz":
                found += sum(
                    word.endswith("ę") and word not in {"zwierzę", "szczenię", "cielę"}
                    for word in child.words
                )
        return found

    affirmative = negated = 0
    for node in nodes:
        if node.label == "zdanie" and "ff" in node.labels:
            if is_negated(node):
                negated += 1
                assert not accusatives(node), str(node)
            else:
                affirmative += accusatives(node)
    assert affirmative > 200
    assert negated > 350


def test_negative_pronouns_need_negated_verbs(nodes: list[Node]) -> None:
    negative = {"nikt", "nikogo", "nic", "niczego", "nigdy"}
    seen = 0
    for node in nodes:
        if node.label == "zdanie":
            for child in node.below:
                if child.label in {"fw", "fl"} and set(child.words) <= negative:
                    seen += 1
                    assert is_negated(node), str(node)
    assert seen > 60


def test_numerals_govern_genitive_plurals(pairs: list[tuple[str, str, str, str]]) -> None:
    governing = agreeing = 0
    for word, tag, following, tag2 in pairs:
        if tag == "num" and tag2 in {"adj", "ppas"}:
            if word in GOVERNING:
                governing += 1
                assert re.search("[yi]ch$", following), (word, following)
            elif word in {"dwa", "dwie", "trzy", "cztery"}:
                agreeing += 1
                assert following.endswith("e"), (word, following)
            elif word == "dwaj":
                agreeing += 1
                assert re.search("[yi]$", following), (word, following)
    assert governing > 20
    assert agreeing > 15


def test_numeral_subjects_have_neuter_verbs(nodes: list[Node]) -> None:
    """``pięć kobiet było zmęczonych``: only a subject stands beside such a predicate."""
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.label == "zdanie" and node.labels.count("fw") == 2:
            phrases = [child for child in node.below if child.label == "fw"]
            predicate = [child for child in phrases if child.labels == ["fpt"]]
            subject = [child for child in phrases if child.labels == ["fno"]]
            if predicate and subject and subject[0].words[0] in GOVERNING | GOVERNING_PERSONS:
                form = next(child for child in node.below if child.label == "ff").words
                form = form[1:] if form[0] == "nie" else form
                seen["verb"] += 1
                assert form[0] in {"jest", "było", "będzie", "zostało", "zostanie"}, str(node)
                assert re.search("[yi]ch$", predicate[0].words[-1]), str(node)
    assert seen["verb"] > 5


def test_prepositions_govern_their_case(pairs: list[tuple[str, str, str, str]]) -> None:
    seen: Counter[str] = Counter()
    for word, tag, following, tag2 in pairs:
        if tag == "prep" and word in GOVERNED and tag2 in {"adj", "ppas"}:
            seen[word] += 1
            assert re.search(GOVERNED[word], following), (word, following)
    assert len(seen) >= len(GOVERNED) - 1
    assert sum(seen.values()) > 200


def test_demonstratives_agree_with_adjectives(pairs: list[tuple[str, str, str, str]]) -> None:
    endings = {
        "ten": "[yi]$", "ta": "a$", "to": "e$", "tego": "ego$", "tej": "ej$", "tę": "ą$",
        "tym": "[yi]m$", "tych": "[yi]ch$", "te": "e$", "tymi": "[yi]mi$", "ci": "[yi]$",
        "temu": "emu$",
    }  # fmt: skip
    seen: Counter[str] = Counter()
    for word, tag, following, tag2 in pairs:
        if tag == "adj" and tag2 in {"adj", "ppas"} and word in endings:
            seen[word] += 1
            assert re.search(endings[word], following), (word, following)
    assert len(seen) >= 10
    assert sum(seen.values()) > 60


def test_short_prepositions_grow_before_clusters(pairs: list[tuple[str, str, str, str]]) -> None:
    seen: Counter[str] = Counter()
    for word, tag, following, _ in pairs:
        if tag == "prep" and word in {"w", "we", "z", "ze"}:
            seen[word] += 1
            if re.match(f"[wf]{CONSONANT}", following):
                assert word not in {"w"}, (word, following)
            if word == "we":
                assert re.match(f"[wf]{CONSONANT}|mnie$", following), (word, following)
            if word == "z":
                assert not re.match("st|sk|sp|szk|szp|św|śl|wsi|wsp|zd|zw|źr|ż[dn]", following)
            if word == "ze":
                assert re.match(f"[sśzźżw]{CONSONANT}|mną$", following), (word, following)
    assert all(seen[word] >= 10 for word in ("w", "we", "z", "ze"))


def test_reflexive_clitics_stand_beside_verbs(roots: list[Node], nodes: list[Node]) -> None:
    seen: Counter[str] = Counter()
    for node in nodes:
        for place, child in enumerate(node.below):
            if is_clitic(child):
                around = node.labels[max(place - 1, 0) : place + 2]
                assert {"ff", "formaczas"} & set(around), str(node)
                before = place > 0 and node.labels[place - 1] in {"ff", "formaczas"}
                seen["after" if before else "before"] += 1
    for root in roots:
        assert root.words[0] != "się"
        assert root.words[:2] != ("„", "się")
    assert seen["after"] > 80
    assert seen["before"] > 80


def test_clauses_of_purpose_have_participles(nodes: list[Node]) -> None:
    purpose = 0
    for node in nodes:
        if node.label == "fzd" and {"żeby", "aby", "by"} & set(node.words[1:2]):
            purpose += 1
            assert node.labels == ["przec", "spójnik", "zdanie"]
            verb = next(child for child in node.below[2].below if child.label == "ff")
            assert verb.tags == ("praet",), str(node)
    assert purpose > 15


def test_phasal_verbs_take_imperfective_infinitives(nodes: list[Node]) -> None:
    perfective = re.compile("^(na|prze|z|s|u|za|po|wy|o|od)(pisać|czytać|robić|budować|badać)$")
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.label == "zdanie":
            for left, right in pairwise(node.below):
                if left.label == "ff" and right.label == "fw" and "inf" in right.tags:
                    start = right.words[right.tags.index("inf")]
                    seen["inf"] += 1
                    if re.match("zacz|przesta|będ|zaczyna", left.words[-1]):
                        seen["phasal"] += 1
                        assert not perfective.match(start), str(node)
    assert seen["inf"] > 150
    assert seen["phasal"] > 25


def test_commas_and_notation(trees: list[Tree], nodes: list[Node]) -> None:
    for word, _, following, _ in neighbours(trees):
        assert not re.search("[+EIõ]", word[1:]), word
        assert (word, following) != (",", "”")
    seen = 0
    for node in nodes:
        if node.label == "fzd":
            seen += 1
            assert "przec" in node.labels
            assert node.labels.count("przec") == 2 or node.labels[0] != node.labels[-1]
    assert seen > 400
