"""The scorer keeps its name as long as it counts alike.

A signature names the scorer. Counts that are corrected give another score for the same parses, so
the sentences below, with what scorers differ about, are counted under each shipped parameter set
and policy, and under each rule for punctuation. Where a digest changes on purpose, raise
``scorer`` of the metric (``own2``) and put the new digest here; a new set or rule adds a line.
"""

from __future__ import annotations

import hashlib
import json
from itertools import product
from typing import get_args

from spmrl_bench.scoring import (
    AttachmentRules,
    BracketCounts,
    MissingParse,
    Policy,
    Punctuation,
    count_brackets,
    load_prm,
    score_dependencies,
    score_trees,
)
from spmrl_bench.scoring.attachment import ATTACHMENT, PUNCTUATION_RULES, Relations
from spmrl_bench.scoring.bracket_metric import BRACKETS
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.trees.dependencies import DependencyTree
from tests.scoring.hostile import as_trees

RAISE = "counts have changed: raise the `scorer` of the metric, see the top of this file"
SCORERS = {"brackets": "own", "attachment": "own"}
BRACKET_DIGESTS = {
    "COLLINS": "c7142cca",
    "new": "6976aad7",
    "nk": "6976aad7",
    "spmrl": "fa694b42",
    "spmrl_hebrew": "cfa5b110",
}
ATTACHMENT_DIGESTS = {"none": "b90478e1", "ptb-ctb": "4b920845", "unicode": "5fc1f37f"}

#: Gold and test; an empty text is a failed parse.
TREES = (
    (
        "(S (NP-SBJ (D a) (N b)) (VP (V c) (ADVP (R d)))) ",
        "(S (NP=1 (D a) (N b) (V c)) (PRT (R d)))",
    ),
    ("(TOP (NP (NP (NP (N a)))) (. .))", "(TOP (NP (NP (N a))) (. .))"),
    ("(S (NP (N a) (, ,)) (VP (V b) (. .)))", "(S (NP (N a)) (VP (, ,) (V b) (N .)))"),
    ("(S (`` \") (N a) ('' '))", "(S (`` \") (N a) (POS '))"),
    ("(S (X (N a) (N b)) (X (N c) (N d)))", "(S (N a) (X (N b) (N c)) (N d))"),
    ("(S (-NONE- *) (VP (V a)))", "(S (VP (V a)))"),
    ("(S (N a) (N b))", ""),
    ("(S (N a) (N b))", "(S (N a) (N c))"),
    ("(S (N a) (N b))", "(S (N a))"),
    ("(ROOT (S1 (VROOT (SYN_NN (N a)) (N b))))", "(VROOT (SYN_NN (N a)) (SYN_VB-X (N b)))"),
    ("(S (NP##n=s## (N##n=s a)) (X|Y (ADVP b)))", "(S (NP (N a)) (X (PRT b)))"),
    ("(S (. .) (? ?))", "(S (. .) (? ?))"),
    ("( (-Z (N a)) (=Y (N b)) (# (: -)))", "( (-W (N a)) (=Y (N b)) ('' (: -)))"),
    ("(N a)", "(NP (N a))"),
)
#: Sentences of words: form, gold tag, gold head and relation, then those of the test side.
WORDS = (
    "The DT 2 det 2 det|dog NN 3 nsubj:pass 3 nsubj|barks VBZ 0 root 0 root|( -LRB- 3 punct 2 punct"
    "|% NN 3 dep 3 obj|-- : 5 punct 3 punct|` `` 3 punct 3 punct|. . 3 punct 3 dep",
    "。 PU 0 root 0 root",
    "go VB 0 root 0 root|$ $ 1 obl:arg 1 obl:tmod|, , 1 punct 2 punct|U.S. NNP 1 obj 1 obj",
    "a , 0 x 2 x|b N 1 x 0 x",
)


def arcs(sentence: str, side: int) -> DependencyTree:
    rows = [word.split(" ") for word in sentence.split("|")]
    heads, relations = [int(row[2 + side]) for row in rows], [row[3 + side] for row in rows]
    return DependencyTree.build(
        [row[0] for row in rows], [row[1] for row in rows], heads, relations
    )


def digest(corpora: list[Counts]) -> str:
    content = json.dumps([counts.rows.tolist() for counts in corpora])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def test_brackets_are_counted_as_they_always_were() -> None:
    assert {path.stem for path in data_dir("evalb").glob("*.prm")} == set(BRACKET_DIGESTS)
    gold, test = (as_trees(side) for side in zip(*TREES, strict=True))
    for name, expected in BRACKET_DIGESTS.items():
        prm = load_prm(name)
        policies = [Policy(*choices) for choices in product(MissingParse, Punctuation)]
        assert digest([score_trees(gold, test, prm, each) for each in policies]) == expected, RAISE
        plain = [
            BracketCounts.from_rows(
                count_brackets(*pair, prm, each) for pair in zip(gold, test, strict=True)
            )
            for each in policies
        ]
        assert digest(plain) == expected, RAISE
    assert BRACKETS.scorer == SCORERS["brackets"]


def test_arcs_are_counted_as_they_always_were() -> None:
    assert set(PUNCTUATION_RULES) == set(ATTACHMENT_DIGESTS)
    gold, test = ([arcs(sentence, side) for sentence in WORDS] for side in (0, 2))
    for name, expected in ATTACHMENT_DIGESTS.items():
        rules = [AttachmentRules(name, relations=relations) for relations in get_args(Relations)]
        assert digest([score_dependencies(gold, test, each) for each in rules]) == expected, RAISE
    assert ATTACHMENT.scorer == SCORERS["attachment"]
