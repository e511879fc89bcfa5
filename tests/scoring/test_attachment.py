"""Attachment scores against a count word by word, and everything that cannot be compared."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.attachment import AttachmentRules, score_dependencies
from spmrl_bench.scoring.counts import AttachmentColumn
from spmrl_bench.trees.dependencies import DependencyTree
from tests.trees.dependency_strategies import head_lists

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
    # Rows that come from trees are rows that from_rows accepts.
    assert type(counts).from_rows(counts.rows.tolist()).rows.tolist() == counts.rows.tolist()


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


@pytest.mark.parametrize(
    ("gold", "test", "rules", "problem"),
    [
        ([tree()], [], AttachmentRules(), "gold has 1 sentences, test has 0"),
        (
            [tree(), tree()],
            [tree(), tree("a B c")],
            AttachmentRules(),
            "test sentence 2: word 2 is 'B', in gold 'b'",
        ),
        (
            [tree()],
            [tree("a b", "T T", "2 0", "x root")],
            AttachmentRules(),
            r"test sentence 1: word 3 is missing, in gold 'c' \(2 words, in gold 3\)",
        ),
        (
            [tree("a b", "T T", "2 0", "x root")],
            [tree()],
            AttachmentRules(),
            r"test sentence 1: word 3 is 'c', in gold missing \(3 words, in gold 2\)",
        ),
        (
            [tree(tags="T _ .")],
            [tree()],
            AttachmentRules("ptb-ctb"),
            "gold sentence 1: word 2 has the tag '_', to which the punctuation rule 'ptb-ctb'",
        ),
        (
            [tree(tags="NOUN VERB PUNCT")],
            [tree()],
            AttachmentRules("ptb-ctb"),
            "gold sentence 1: word 3 has the tag 'PUNCT'",
        ),
        (
            [tree(relations="x root _")],
            [tree()],
            AttachmentRules(relations="universal"),
            r"gold sentence 1: word 3 has no relation \('_'\)",
        ),
    ],
)
def test_what_cannot_be_compared(
    gold: list[DependencyTree], test: list[DependencyTree], rules: AttachmentRules, problem: str
) -> None:
    with pytest.raises(ScoreError, match=problem):
        score_dependencies(gold, test, rules)


def test_missing_tags_and_relations_where_nothing_needs_them() -> None:
    bare = tree(tags="_ _ _", relations="_ _ _")
    assert score_dependencies([bare], [tree()], AttachmentRules("unicode", relations="none")).words
    # A parse without tags is scored by those of gold, one without relations has them wrong.
    counts = score_dependencies([tree()], [bare], AttachmentRules("ptb-ctb"))
    assert counts.rows.tolist() == [[2, 2, 0, 0, 3, 3, 0, 0]]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ({"punctuation": "ptb"}, "unknown punctuation rule 'ptb'. .*Known: none, ptb-ctb, unicode"),
        ({"tags": "pos"}, "unknown column of tags 'pos'"),
        ({"relations": "all"}, "unknown way to compare relations 'all'"),
        ({"roots": "two"}, "unknown policy for roots 'two'. .*Known: one, several"),
    ],
)
def test_unknown_names(names: dict[str, str], problem: str) -> None:
    with pytest.raises(ScoreError, match=problem):
        AttachmentRules(**names)  # type: ignore[arg-type]
