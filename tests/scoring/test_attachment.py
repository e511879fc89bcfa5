"""Attachment scores: counted once more word by word, rules, reports, files, and what is refused."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ReadError, ScoreError
from spmrl_bench.scoring.attachment import (
    ATTACHMENT,
    PTB_CTB_TAGS,
    PUNCTUATION_RULES,
    UNSUPPORTED_TAGS,
    AttachmentRules,
    score_dependencies,
    score_dependency_files,
)
from spmrl_bench.scoring.counts import AttachmentColumn, AttachmentCounts
from spmrl_bench.trees.dependencies import DependencyTree
from tests.trees.strategies import head_lists

Pair = tuple[DependencyTree, DependencyTree]


def plain_row(pair: Pair, rules: AttachmentRules) -> list[int]:
    """The row of a sentence, one word at a time."""
    gold, test = pair
    row = dict.fromkeys(AttachmentColumn, 0)
    for k, word in enumerate(gold.words):
        punctuation = {
            "none": False,
            "ptb-ctb": gold.tags[k] in [".", "``", "''", ":", ",", "PU"],
            "unicode": not [c for c in word if unicodedata.category(c)[0] != "P"],
        }[rules.punctuation]
        one, other = gold.relations[k], test.relations[k]
        if rules.relations == "universal":
            one, other = one.split(":")[0], other.split(":")[0]
        head = gold.heads[k] == test.heads[k]
        label = one == other or rules.relations == "none"
        for prefix in ["ALL_"] if punctuation else ["", "ALL_"]:
            row[AttachmentColumn[f"{prefix}WORDS"]] += 1
            row[AttachmentColumn[f"{prefix}HEADS"]] += head
            row[AttachmentColumn[f"{prefix}LABELS"]] += label
            row[AttachmentColumn[f"{prefix}BOTH"]] += head and label
    return [row[column] for column in AttachmentColumn]


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Two trees over the same words; tags of the test side do not matter."""
    n = draw(st.integers(1, 7))

    def texts(*choices: str) -> list[str]:
        return draw(st.lists(st.sampled_from(choices), min_size=n, max_size=n))

    words = texts("a", ".", "...", "``", "$", "%", "a.", "(")
    gold, test = (
        DependencyTree.build(
            words,
            texts(".", ",", ":", "``", "''", "PU", "NN", "-LRB-", "$"),
            draw(head_lists(n)),
            texts("nsubj", "nsubj:pass", "nsubj:", "obj", ":", "obj:x:y", "obj:x"),
        )
        for _ in range(2)
    )
    return gold, test


@given(
    st.lists(pairs(), max_size=5),
    st.sampled_from(["none", "ptb-ctb", "unicode"]),
    st.sampled_from(["whole", "universal", "none"]),
)
def test_counts_equal_those_word_by_word(
    corpus: list[Pair], punctuation: str, relations: str
) -> None:
    rules = AttachmentRules(punctuation, relations=relations)  # type: ignore[arg-type]
    counts = score_dependencies([one for one, _ in corpus], [two for _, two in corpus], rules)
    assert counts.rows.tolist() == [plain_row(pair, rules) for pair in corpus]
    assert counts.rows.shape == (len(corpus), len(AttachmentColumn))
    # Rows that come from trees are rows that from_rows accepts, and the figures are their sums.
    assert type(counts).from_rows(counts.rows.tolist()).rows.tolist() == counts.rows.tolist()
    for first, of_these in ((0, counts), (4, counts.with_punctuation())):
        scored = [row[first:][:4] for row in counts.rows.tolist() if row[first]]
        words, *right = map(sum, zip(*scored, strict=True)) if scored else (0, 0, 0, 0)
        names = ("uas", "label_accuracy", "las")
        shares = {name: share(part, words) for name, part in zip(names, right, strict=True)}
        assert ATTACHMENT.values(of_these) == shares | {
            "sentences": len(scored),
            "words": words,
            "unlabelled_match": share(sum(row[1] == row[0] for row in scored), len(scored)),
            "labelled_match": share(sum(row[3] == row[0] for row in scored), len(scored)),
        }


def share(part: int, whole: int) -> Any:
    return pytest.approx(100 * part / whole) if whole else None


def tree(
    words: str = "a b c", tags: str = "T T .", heads: str = "2 0 2", relations: str = "x root y"
) -> DependencyTree:
    return DependencyTree.build(
        words.split(), tags.split(), list(map(int, heads.split())), relations.split()
    )


def test_a_sentence_worked_out_by_hand() -> None:
    gold = tree("He was seen .", "PRP VBD VBN .", "3 3 0 3", "nsubj:pass aux root punct")
    test = tree("He was seen .", "X X X X", "3 1 0 2", "nsubj aux root punct")
    counts = score_dependencies([gold], [test], AttachmentRules("ptb-ctb"))
    assert counts.rows.tolist() == [[3, 2, 2, 1, 4, 2, 3, 1]]
    assert counts.uas == pytest.approx(200 / 3)
    assert counts.las == pytest.approx(100 / 3)
    assert counts.with_punctuation().uas == 50
    cut = score_dependencies([gold], [test], AttachmentRules("none", relations="universal"))
    assert cut.rows.tolist() == [[4, 2, 4, 2, 4, 2, 4, 2]]
    heads = score_dependencies([gold], [test], AttachmentRules("unicode", relations="none"))
    assert heads.rows.tolist() == [[3, 2, 3, 2, 4, 2, 4, 2]]


def test_trees_that_cannot_be_compared() -> None:
    two, tags = tree("a b", "T T", "2 0", "x root"), AttachmentRules("ptb-ctb")
    for gold, test, rules, problem in (
        ([tree()], [], AttachmentRules(), "gold has 1 sentences, test has 0"),
        ([two, tree()], [two, tree("a B c")], AttachmentRules(), "test sentence 2: word 2 is 'B'"),
        ([two], [tree()], AttachmentRules(), r"word 3 is 'c', in gold missing \(3 words,"),
        ([tree(tags="T _ .")], [tree()], tags, "gold sentence 1: word 2 has the tag '_'"),
        ([tree(tags="NOUN VERB PUNCT")], [tree()], tags, "word 3 has the tag 'PUNCT'.* 'ptb-ctb'"),
        ([tree(relations="x root _")], [tree()], AttachmentRules(), "word 3 has no relation"),
    ):
        with pytest.raises(ScoreError, match=problem):
            score_dependencies(gold, test, rules)


def test_missing_tags_and_relations_where_nothing_needs_them() -> None:
    bare = tree(tags="_ _ _", relations="_ _ _")
    assert score_dependencies([bare], [tree()], AttachmentRules("unicode", relations="none")).words
    # A parse without tags is scored by those of gold, one without relations has them wrong.
    counts = score_dependencies([tree()], [bare], AttachmentRules("ptb-ctb"))
    assert counts.rows.tolist() == [[2, 2, 0, 0, 3, 3, 0, 0]]


def test_unknown_rules() -> None:
    for options, problem in (
        ({"punctuation": "ptb"}, "unknown punctuation rule 'ptb'. .*Known: none, ptb-ctb, unicode"),
        ({"tags": "pos"}, "unknown column of tags 'pos'"),
        ({"relations": "all"}, "unknown way to compare relations 'all'"),
        ({"roots": "two"}, "unknown policy for roots 'two'. .*Known: one, several"),
        ({"relation": "none"}, "'relation'.*relations"),
        ({"relations": ["none"]}, r"relations must be a name, found \['none'\]"),
    ):
        with pytest.raises(ScoreError, match=problem):
            ATTACHMENT.rules(options)
    ATTACHMENT.rules({"punctuation": "ptb-ctb", "relations": "universal"})


def test_tags_that_the_papers_leave_out() -> None:
    by_tag = PUNCTUATION_RULES["ptb-ctb"]
    left_out = [".", ",", ":", "``", "''", "PU"]
    # The papers' code tests for a substring of the concatenated tags; on real tags that is the set.
    scored = ["-LRB-", "-RRB-", "$", "#", "NN", "P", "U", "SYM", "LS", "PUNC", ".,", "'", "`", ""]
    tags = [*left_out, *scored]
    assert [tag for tag in tags if by_tag(".", tag)] == left_out
    assert {"ptb-ctb": {"_", "PUNCT"}} == UNSUPPORTED_TAGS
    assert not UNSUPPORTED_TAGS["ptb-ctb"] & PTB_CTB_TAGS
    assert not PUNCTUATION_RULES["none"](".", ".")


def test_unicode_goes_by_every_character() -> None:
    is_punctuation = PUNCTUATION_RULES["unicode"]
    left_out = [".", "...", "\u2026", "\u00ab", "\u3002", "\u060c", "?!", "(", "%", "-", "_", "''"]
    words = [*left_out, "``", "$", "+", "-LRB-", "U.S.", "l'", "1", ". .", ""]
    assert [word for word in words if is_punctuation(word, ".")] == left_out
    categories = {"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}
    for code in range(0, sys.maxunicode + 1, 7):
        assert is_punctuation(chr(code), "") == (unicodedata.category(chr(code)) in categories)


COUNTS = AttachmentCounts.from_rows([(4, 3, 2, 1, 5, 4, 3, 2), (0, 0, 0, 0, 1, 1, 1, 1)])


def test_text_has_a_column_for_each_set_of_words() -> None:
    lines = ATTACHMENT.report(COUNTS, AttachmentRules("unicode")).splitlines()
    assert lines[0] == "Attachment scores: punctuation rule unicode, relations whole"
    assert [line.split("  ")[0] + "|" + "|".join(line.split()[-2:]) for line in lines[3:]] == [
        "sentences|1|2",
        "words|4|6",
        "UAS|75.00|83.33",
        "LAS|25.00|50.00",
        "label accuracy|50.00|66.67",
        "complete match, heads|0.00|50.00",
        "complete match, labelled|0.00|50.00",
    ]
    assert lines[2].split() == ["without", "punctuation", "all", "words"]


def test_dict_holds_rules_and_figures() -> None:
    rules = AttachmentRules("ptb-ctb", "upos")
    assert json.loads(json.dumps(ATTACHMENT.report_dict(COUNTS, rules))) == {
        **{"punctuation": "ptb-ctb", "tags": "upos", "relations": "whole", "roots": "one"},
        "sentences": 2,
        "without_punctuation": ATTACHMENT.values(COUNTS),
        "all_words": ATTACHMENT.values(COUNTS.with_punctuation()),
    }


def test_heads_alone_have_no_labelled_figures() -> None:
    rules = AttachmentRules(relations="none")
    assert ATTACHMENT.report_dict(COUNTS, rules)["all_words"] == {
        "sentences": 2,
        "words": 6,
        "uas": pytest.approx(500 / 6),
        "unlabelled_match": 50.0,
    }
    assert "LAS" not in ATTACHMENT.report(COUNTS, rules)
    assert "label" not in ATTACHMENT.report(COUNTS, rules)


def block(name: str, words: str, heads: str, tag: str = "X", relation: str = "r") -> str:
    lines = [f"# sent_id = {name}"]
    for k, (word, head) in enumerate(zip(words.split(), heads.split(), strict=True), start=1):
        lines.append(f"{k}\t{word}\t_\t_\t{tag}\t_\t{head}\t{relation}\t_\t_")
    return "\n".join(lines) + "\n\n"


GOOD = block("s1", "a b", "0 1")


def test_files_that_cannot_be_compared(tmp_path: Path) -> None:
    """Each is told with its place in the file, and the place of the twin."""
    paths = {"gold": tmp_path / "gold.conllu", "test": tmp_path / "test.conllu"}
    by_head, by_tag = AttachmentRules(), AttachmentRules("ptb-ctb")
    two, twin = GOOD + block("s2", "c", "0"), GOOD + block("p2", "c", "0")
    for gold, test, rules, problem in (
        ("", GOOD, by_head, "{gold}: holds no sentence"),
        (GOOD, "\n", by_head, "{test}: holds no sentence"),
        (
            two,
            "\n" + GOOD.replace("s1", "x") + block("p2", "C", "0"),
            by_head,
            "{test}:7: sentence p2: word 1 is 'C', in gold 'c'; gold is {gold}:6",
        ),
        (
            GOOD + block("s2", "c d e", "0 1 1"),
            GOOD + block("p2", "c d", "0 1"),
            by_head,
            "{test}:7: sentence p2: word 3 is missing, in gold 'e' (2 words, in gold 3); gold is"
            " {gold}:6",
        ),
        (
            two + block("s3", "d", "0"),
            GOOD + block("p2", "d", "0"),
            by_head,
            "{gold} has 3 sentences, {test} has 2; they must be the same sentences in the same"
            " order, and the first that differ are s2 at line 6 and p2 at line 6",
        ),
        (
            GOOD,
            GOOD + GOOD,
            by_head,
            "{gold} has 1 sentences, {test} has 2; they must be the same sentences in the same"
            " order, and the first 1 are",
        ),
        (GOOD + block("s2", "c", "0", tag="_"), twin, by_tag, "{gold}:6: sentence s2: word 1 has"),
        (GOOD + block("s2", "c", "0", relation="_"), twin, by_head, "{gold}:6: sentence s2: word"),
    ):
        paths["gold"].write_text(gold, encoding="utf-8")
        paths["test"].write_text(test, encoding="utf-8")
        with pytest.raises(ScoreError) as caught:
            score_dependency_files(paths["gold"], paths["test"], rules)
        assert str(caught.value).startswith(problem.format(**paths))


def test_a_mistake_at_the_end_of_either_file_prevents_any_score(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.conllu", tmp_path / "bad.conllu"
    good.write_text(GOOD * 9, encoding="utf-8")
    bad.write_text(GOOD * 8 + "1\ta\n", encoding="utf-8")
    for gold, test in ((good, bad), (bad, good)):
        with pytest.raises(ReadError, match=r"bad\.conllu:33: sentence 9: found 2 columns"):
            score_dependency_files(gold, test, AttachmentRules())


def test_roots_tags_and_encoding_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    lines = ["1\t\xe9\t_\tPU\t_\t_\t0\tr\t_\t_", "2\tb\t_\tNN\t_\t_\t0\tr\t_\t_", "", ""]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    rules = AttachmentRules("ptb-ctb", tags="upos", roots="several")
    counts = score_dependency_files(path, path, rules, encoding="latin-1")
    assert counts.rows.tolist() == [[1, 1, 1, 1, 2, 2, 2, 2]]
    with pytest.raises(ReadError, match="second root"):
        score_dependency_files(path, path, AttachmentRules(), encoding="latin-1")
