"""Properties of Korean that the generated trees must have, checked without the engine."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import Language
from tests.treebanks.mini.nodes import Node

LABELS = {"TOP", "S", "NP", "VP", "ADJP", "AUXP", "ADVP", "MODP", "IP"}
PARTICLES = {"jcs", "jco", "jcc", "jcm", "jca", "jcj", "jct", "jcr", "jxt", "jxc"}
ENDINGS = {"ef", "ecc", "ecs", "ecx", "etm", "etn"}
MARKS = {"sf", "sp", "sl", "sr"}
MORPHEMES = PARTICLES | ENDINGS | MARKS | {
    "ncn", "ncpa", "ncps", "nq", "npp", "npd", "nbn", "nbu", "nnc", "nno", "pvg", "paa", "pad",
    "px", "mag", "maj", "mma", "mmd", "ii", "xsn", "xsv", "xsm", "xsa", "jp", "ep",
}  # fmt: skip
# What makes the sentences grammatical is a matter of the grammar, not of the program.
pytestmark = pytest.mark.campaign

LANGUAGE = Language(
    name="korean", root="TOP", labels=LABELS, tags=MORPHEMES, joint="+", shortest=(1, 2),
    mean=(10, 16), known=5000, unseen=(0.10, 0.18), capitals=False,
)  # fmt: skip
# Constituent -> first morpheme of its last eojeol.
HEADS = {
    "VP": {"pvg", "ncpa", "ncn", "nbn", "px"},
    "ADJP": {"paa", "ncps", "pad", "px"},
    "AUXP": {"px"},
    "NP": {"ncn", "ncpa", "nq", "npp", "npd", "nbn", "nbu", "nnc", "nno"},
    "ADVP": {"mag", "maj", "ncps"},
    "MODP": {"mma", "mmd"},
    "IP": {"ii"},
}
CODA_N, CODA_RIEUL, CODA_PAST = 4, 8, 20
HONORIFIC = set("시신실십셨셔세")


def last(node: Node) -> Node:
    """The last eojeol that is no punctuation mark."""
    while node.below:
        node = [part for part in node.below if part.label not in MARKS][-1]
    return node


def coda(word: str) -> int:
    """Number of the final consonant of the last syllable; 0 means a vowel."""
    assert "가" <= word[-1] <= "힣", word
    return (ord(word[-1]) - ord("가")) % 28


def test_number_of_tags(trees: list[Tree]) -> None:
    assert 150 <= len({tag for tree in trees for tag in tree.tags}) <= 230


def test_tags_are_stem_then_endings_then_particles(trees: list[Tree]) -> None:
    for tag in {tag for tree in trees for tag in tree.tags}:
        parts = tag.split("+")
        kinds = ["p" if p in PARTICLES else "e" if p in ENDINGS else "s" for p in parts]
        assert kinds == sorted(kinds, key="sep".index), tag
        assert ("ep" in parts) <= bool(ENDINGS & set(parts)), tag
        assert parts[0] in MARKS or len(parts) == 1 or kinds[0] == "s", tag


def test_every_eojeol_has_its_phrase_and_phrases_are_binary(nodes: list[Node]) -> None:
    binary = 0
    for node in nodes:
        if not node.below or node.label == "TOP":
            continue
        phrases = [d for d in node.below if d.label not in MARKS and d.label != "jcr"]
        if phrases and not phrases[0].below:
            assert len(phrases) == 1
            assert node.label not in {"TOP", "S"}
        elif "sl" in node.labels:
            assert node.labels == ["sl", "S", "sf", "sr", "jcr"]
        else:
            assert 1 <= len(phrases) <= 2
            binary += len(phrases) == 2
        assert not (len(phrases) == 1 and phrases[0].label == node.label == "VP")
    assert binary > 15000


def test_the_last_eojeol_gives_the_label(nodes: list[Node]) -> None:
    seen: Counter[str] = Counter()
    for node in nodes:
        if not node.below or node.label in {"TOP", "S"}:
            continue
        first = last(node).label.split("+")[0]
        endings = ENDINGS & set(last(node).label.split("+"))
        seen[node.label] += 1
        assert bool(endings) == (node.label in {"VP", "ADJP", "AUXP"}), last(node)
        assert first in HEADS[node.label], last(node)
    assert all(seen[label] > 300 for label in ("VP", "ADJP", "AUXP", "NP", "ADVP", "MODP"))


def test_predicates_come_last(nodes: list[Node]) -> None:
    """A clause ends in its predicate; a complement of a verb stands before it."""
    clauses = 0
    for node in nodes:
        if node.label == "S" and node.below[-1].label != "jcr":
            phrases = [d for d in node.below if d.below]
            assert phrases[-1].label in {"S", "VP", "ADJP"}
            assert last(phrases[-1]).label.split("+")[0] not in {"mag", "maj"}
            clauses += 1
        if node.label in {"VP", "ADJP"} and sum(d.label not in MARKS for d in node.below) == 2:
            assert node.below[1].label in {"VP", "ADJP", "AUXP"}
    assert clauses > 5000


def test_particles_fit_the_final_sound(trees: list[Tree]) -> None:
    shapes = {
        "jcs": ("이", "가"), "jcc": ("이", "가"), "jco": ("을", "를"), "jxt": ("은", "는"),
        "jcj": ("과 이나", "와 나"), "jct": ("과", "와"),
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            stem, _, particle = tag.rpartition("+")
            if particle in shapes and "j" not in stem and word not in {"뭘", "께서는"}:
                if "jcs" in tag and word.endswith("께서"):
                    continue
                closed, opened = (tuple(part.split()) for part in shapes[particle])
                endings = closed + opened
                found = [ending for ending in endings if word.endswith(ending)]
                assert found, (word, tag)
                ending = max(found, key=len)
                has_coda = coda(word[: -len(ending)]) > 0
                assert has_coda == (ending in closed), word
                checked[particle + ending] += 1
            if particle == "jca" and "nno" not in tag and "etn" not in tag and word[-1] == "로":
                stem_coda = coda(word.removesuffix("로").removesuffix("으"))
                assert (word[-2] == "으") == (stem_coda not in {0, CODA_RIEUL}), word
                checked["로"] += 1
    assert all(checked[key] > 40 for key in ("jcs이", "jcs가", "jco을", "jco를", "jxt은", "jxt는"))
    assert all(checked[key] > 20 for key in ("jcj과", "jcj와", "jct과", "jct와", "jcc이", "jcc가"))
    assert checked["로"] > 100


def test_the_past_is_a_final_double_s(trees: list[Tree]) -> None:
    """받았다, 갔다, 먹겠다: a prefinal ending is 시 or closes its syllable with ㅆ."""
    checked = 0
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            if "+ep+" not in f"{tag}+":
                continue
            past = [place for place in range(1, len(word) + 1) if coda(word[:place]) == CODA_PAST]
            checked += 1
            assert past or HONORIFIC & set(word), word
            for place in past:
                syllable = word[place - 1]
                before = word[: place - 1]
                # 었 and 았 follow a consonant or a vowel that does not contract, by harmony.
                vowel = (ord(before[-1]) - ord("가")) // 28 % 21 if before else -1
                if syllable == "았":
                    assert vowel in {0, 2, 8}, word
                if syllable == "었":
                    assert vowel not in {0, 8} or coda(before) == 0, word
    assert checked > 1000


def test_plain_present_differs_in_verbs_and_adjectives(trees: list[Tree]) -> None:
    """간다 and 먹는다, but 크다 and 좋다."""
    checked: Counter[str] = Counter()
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            if tag in {"pvg+ef", "ncpa+xsv+ef"} and word.endswith("다") and word[-2:] != "니다":
                assert coda(word[:-1]) == CODA_N, word
                checked["verb"] += 1
            if tag in {"paa+ef", "ncps+xsm+ef"} and word.endswith("다") and word[-2:] != "니다":
                assert coda(word[:-1]) != CODA_N, word
                checked["adjective"] += 1
            if tag.endswith("etm") and tag.split("+")[0] == "paa":
                assert not word.endswith("는") or word[:-1].endswith(("있", "없", "다", "라", "가"))
    assert min(checked["verb"], checked["adjective"]) > 150


def test_sentences_end_in_a_final_ending_and_their_mark(roots: list[Node]) -> None:
    kinds: Counter[str] = Counter()
    for root in roots:
        (top,) = root.below
        if top.label in {"NP", "IP"}:
            continue
        mark, final = top.below[-1], last(top)
        assert mark.label == "sf"
        assert final.label.split("+")[-1] == "ef", final
        asks = final.word.endswith(("까", "가", "나요", "지요"))
        assert asks if mark.word == "?" else final.word[-1] in "다요자라오", final
        kinds[mark.word] += 1
    assert kinds["."] > 10 * kinds["!"] > 100
    assert kinds["?"] > 100


def test_persons_of_respect_have_honorific_predicates(nodes: list[Node]) -> None:
    checked = 0
    for node in nodes:
        if node.label != "S" or len(node.below) < 2 or node.below[0].label != "NP":
            continue
        subject, predicate = last(node.below[0]), last(node.below[1])
        if not subject.word.endswith(("님이", "님은", "께서", "께서는")):
            continue
        if node.below[1].label == "S" or predicate.label.split("+")[-1] != "ef":
            continue
        assert HONORIFIC & set(predicate.word), (subject.word, predicate.word)
        checked += 1
    assert checked > 40


def test_auxiliaries_choose_the_ending_before_them(nodes: list[Node]) -> None:
    before = {
        **dict.fromkeys("있계싶", "고"), **dict.fromkeys("않못", "지는"),
        **dict.fromkeys("되된될됐", "게야"), **dict.fromkeys("하한했", "야"),
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for node in nodes:
        if len(node.below) == 2 and node.below[1].label == "AUXP":
            main, auxiliary = (last(daughter) for daughter in node.below)
            assert main.label.endswith(("ecx", "ecx+jxt")), main
            if auxiliary.word[0] in before:
                assert main.word[-1] in before[auxiliary.word[0]], (main.word, auxiliary.word)
                checked[auxiliary.word[0]] += 1
    assert min(checked["있"], checked["않"]) > 200
    assert checked["못"] > 60
    assert sum(checked[first] for first in "되된될됐하한했") > 60


def test_adnominal_clauses_stand_before_nouns(nodes: list[Node]) -> None:
    """What ends in an adnominal ending is the left part of NP, or goes with 것이다."""
    checked = 0
    for node in nodes:
        phrases = [d for d in node.below if d.below]
        for place, daughter in enumerate(phrases):
            if last(daughter).label.endswith("etm") and place + 1 < len(phrases):
                assert node.label in {"NP", "VP"}
                follower = last(phrases[place + 1]).label
                assert node.label == "NP" or "jp" in follower, (last(daughter), follower)
                checked += 1
    assert checked > 2000


def test_case_government(nodes: list[Node]) -> None:
    checked: Counter[str] = Counter()
    for node in nodes:
        if len(node.below) != 2 or not node.below[1].below:
            continue
        left, right = last(node.below[0]), last(node.below[1])
        if left.label.endswith("jcc"):
            become = right.word[0] in "되된될됐됩돼"
            negative = right.word[:2] in {"아니", "아닌", "아닐", "아닙"}
            assert become or negative or right.label.startswith("px"), right
            checked["jcc"] += 1
        single = node.below[1].below[0] is right
        if single and right.word in {"대한", "관한", "의한", "대해", "의해", "관해"}:
            assert left.label.endswith("jca")
            assert left.word.endswith("에"), left
            checked["에"] += 1
        if single and right.word in {"통한", "통해", "위한", "둘러싼"}:
            assert left.label.endswith("jco"), left
            checked["를"] += 1
    assert min(checked["jcc"], checked["에"]) > 60
    assert checked["를"] > 30


def test_quotations_depend_on_verbs_of_saying(nodes: list[Node]) -> None:
    """다고 after verbs and adjectives, 라고 after the copula; the clause stands in VP."""
    checked = 0
    for node in nodes:
        for daughter in node.below:
            final = last(daughter)
            if daughter.label == "S" and final.label.endswith("ef+jcr"):
                assert node.label in {"VP", "S"}
                copula = "jp" in final.label or final.word.startswith("아니라")
                past = coda(final.word[:-2]) == CODA_PAST
                assert final.word.endswith("라고" if copula and not past else ("다고", "냐고"))
                checked += 1
    assert checked > 100


def test_counters_follow_numerals(trees: list[Tree]) -> None:
    counters = {"명", "마리", "권", "개", "그루", "잔"}
    checked = 0
    for tree in trees:
        for (_, tag), (word, following) in pairwise(zip(tree.words, tree.tags, strict=True)):
            if tag == "nnc":
                assert following.split("+")[0] == "nbu", tree.words
                assert any(word.startswith(counter) for counter in counters), word
                checked += 1
    assert checked > 80


def test_word_order_is_free_before_the_predicate(nodes: list[Node]) -> None:
    """Objects come after the subject, and sometimes before it."""
    orders: Counter[str] = Counter()
    for node in nodes:
        if node.label == "S" and len(node.below) >= 2 and node.below[0].label == "NP":
            first = last(node.below[0]).label
            rest = node.below[1]
            if rest.label == "VP" and rest.below[0].below:
                second = last(rest.below[0]).label
                if first.endswith(("jcs", "jxt")) and second.endswith("jco"):
                    orders["subject object"] += 1
            if first.endswith("jco") and rest.label == "S":
                orders["object subject"] += 1
    assert orders["subject object"] > 400
    assert 60 < orders["object subject"] < orders["subject object"]


def test_punctuation_and_spelling(trees: list[Tree]) -> None:
    for tree in trees:
        for word, tag in zip(tree.words, tree.tags, strict=True):
            assert not set("+|~ ") & set(word), word
            assert (word in {".", "?", "!", ",", '"'}) == (tag in MARKS)
            hangul = all("가" <= letter <= "힣" or letter.isdigit() for letter in word)
            assert tag in MARKS or hangul, word
        for left, right in pairwise(tree.tags):
            assert not (left == "sp" and right in {"sp", "sf"}), tree.words
        assert "sp" not in (tree.tags[0], tree.tags[-1])
