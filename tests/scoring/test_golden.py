"""The scorer keeps its name as long as it counts alike.

A signature names the scorer. Counts that are corrected give another score for the same parses, so
sentences with what scorers differ about are counted under each shipped parameter set and policy,
and under each rule for punctuation. Where a digest changes on purpose, raise ``scorer`` of the
metric (``own2``) and put the new digest here; a new set or rule adds a line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from itertools import product
from typing import get_args

from spmrl_bench.scoring import (
    AttachmentRules,
    MissingParse,
    Policy,
    Punctuation,
    load_prm,
    score_dependencies,
    score_trees,
)
from spmrl_bench.scoring.attachment import ATTACHMENT, PUNCTUATION_RULES, Relations
from spmrl_bench.scoring.bracket_metric import BRACKETS
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.trees.dependencies import DependencyTree
from tests.scoring.hostile import hostile_trees

RAISE = "counts have changed: raise the `scorer` of the metric, see the top of this file"
BRACKET_DIGESTS = {
    "COLLINS": "8bedce79", "new": "cadc7d0a", "nk": "cadc7d0a", "spmrl": "de73bf4a",
    "spmrl_hebrew": "bc6ff6df",
}  # fmt: skip
ATTACHMENT_DIGESTS = {"none": "b90478e1", "ptb-ctb": "4b920845", "unicode": "5fc1f37f"}

#: Sentences of words: form, gold tag, gold head and relation, then those of the test side.
WORDS = (
    "The DT 2 det 2 det|dog NN 3 nsubj:pass 3 nsubj|barks VBZ 0 root 0 root|( -LRB- 3 punct 2 punct"
    "|% NN 3 dep 3 obj|-- : 5 punct 3 punct|` `` 3 punct 3 punct|. . 3 punct 3 dep",
    "。 PU 0 root 0 root",
    "go VB 0 root 0 root|$ $ 1 obl:arg 1 obl:tmod|, , 1 punct 2 punct|U.S. NNP 1 obj 1 obj",
    "a , 0 x 2 x|b N 1 x 0 x",
)


def arcs(sentence: str, side: int) -> DependencyTree:
    columns = list(zip(*(word.split(" ") for word in sentence.split("|")), strict=True))
    heads = list(map(int, columns[2 + side]))
    return DependencyTree.build(columns[0], columns[1], heads, columns[3 + side])


def digest(corpora: Iterable[Counts]) -> str:
    content = json.dumps([counts.rows.tolist() for counts in corpora])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def test_brackets_are_counted_as_they_always_were() -> None:
    assert {path.stem for path in data_dir("evalb").glob("*.prm")} == {*BRACKET_DIGESTS}
    gold, test = hostile_trees(200, seed=5)
    policies = [Policy(*choices) for choices in product(MissingParse, Punctuation)]
    found = {
        name: digest(score_trees(gold, test, load_prm(name), policy) for policy in policies)
        for name in BRACKET_DIGESTS
    }
    assert found == BRACKET_DIGESTS, RAISE
    assert BRACKETS.scorer == "own"


def test_arcs_are_counted_as_they_always_were() -> None:
    gold, test = ([arcs(sentence, side) for sentence in WORDS] for side in (0, 2))
    rules = {
        name: [AttachmentRules(name, relations=relations) for relations in get_args(Relations)]
        for name in PUNCTUATION_RULES
    }
    found = {
        name: digest(score_dependencies(gold, test, rule) for rule in rules[name]) for name in rules
    }
    assert found == ATTACHMENT_DIGESTS, RAISE
    assert ATTACHMENT.scorer == "own"
