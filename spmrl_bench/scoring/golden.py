"""What the scorer counts of a few sentences, as part of every signature.

Counts that are corrected give another score for the same parses. So that such scores are told
apart from those of before without anybody's doing, the sentences below, with what scorers differ
about, are counted under each shipped parameter set and policy, and under each rule for punctuation.
As long as the counts are those of the first version, the scorer is called ``own``; afterwards a
digest of what is counted now follows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import Any, get_args

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.scoring.attachment import AttachmentRules, Relations, score_dependencies
from spmrl_bench.scoring.corpus import score_trees
from spmrl_bench.scoring.policy import MissingParse, Policy, Punctuation
from spmrl_bench.scoring.prm import load_prm
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree

#: What was counted when the scorer was called ``own``: by metric, for each parameter set or rule
#: for punctuation. A line is never changed; a new set or rule adds its own.
FIRST_VERSION: Mapping[str, Mapping[str, str]] = {
    "brackets": {
        "COLLINS": "c7142cca", "new": "6976aad7", "nk": "6976aad7", "spmrl": "fa694b42",
        "spmrl_hebrew": "cfa5b110",
    },
    "attachment": {"none": "b90478e1", "ptb-ctb": "4b920845", "unicode": "5fc1f37f"},
}  # fmt: skip

#: How many columns of counts the first version had; later ones do not change a score.
_COLUMNS = 8

#: Gold and test; None stands for a failed parse.
_TREES: tuple[tuple[str, str | None], ...] = (
    (
        "(S (NP-SBJ (D a) (N b)) (VP (V c) (ADVP (R d)))) ",
        "(S (NP=1 (D a) (N b) (V c)) (PRT (R d)))",
    ),
    ("(TOP (NP (NP (NP (N a)))) (. .))", "(TOP (NP (NP (N a))) (. .))"),
    ("(S (NP (N a) (, ,)) (VP (V b) (. .)))", "(S (NP (N a)) (VP (, ,) (V b) (N .)))"),
    ("(S (`` \") (N a) ('' '))", "(S (`` \") (N a) (POS '))"),
    ("(S (X (N a) (N b)) (X (N c) (N d)))", "(S (N a) (X (N b) (N c)) (N d))"),
    ("(S (-NONE- *) (VP (V a)))", "(S (VP (V a)))"),
    ("(S (N a) (N b))", None),
    ("(S (N a) (N b))", "(S (N a) (N c))"),
    ("(S (N a) (N b))", "(S (N a))"),
    ("(ROOT (S1 (VROOT (SYN_NN (N a)) (N b))))", "(VROOT (SYN_NN (N a)) (SYN_VB-X (N b)))"),
    ("(S (NP##n=s## (N##n=s a)) (X|Y (ADVP b)))", "(S (NP (N a)) (X (PRT b)))"),
    ("(S (. .) (? ?))", "(S (. .) (? ?))"),
    ("( (-Z (N a)) (=Y (N b)) (# (: -)))", "( (-W (N a)) (=Y (N b)) ('' (: -)))"),
    ("(N a)", "(NP (N a))"),
)

#: Sentences of words: form, gold tag, gold head and relation, then those of the test side.
_WORDS = (
    "The DT 2 det 2 det|dog NN 3 nsubj:pass 3 nsubj|barks VBZ 0 root 0 root|( -LRB- 3 punct 2 punct"
    "|% NN 3 dep 3 obj|-- : 5 punct 3 punct|` `` 3 punct 3 punct|. . 3 punct 3 dep",
    "。 PU 0 root 0 root",
    "go VB 0 root 0 root|$ $ 1 obl:arg 1 obl:tmod|, , 1 punct 2 punct|U.S. NNP 1 obj 1 obj",
    "a , 0 x 2 x|b N 1 x 0 x",
)


@lru_cache(maxsize=8)
def scorer_version(metric: str) -> str:
    """What a signature calls this program as the scorer of a metric.

    Returns:
        ``own`` if the sentences of this module are counted as in the first version, or if the
        metric is none of those that they are counted by; else ``own(DIGEST)``.
    """
    first = FIRST_VERSION.get(metric, {})
    found = {name: counts_digest(metric, name) for name in first}
    return "own" if found == first else f"own({_digest(found)})"


def counts_digest(metric: str, name: str) -> str:
    """A digest of the counts under a parameter set (``brackets``) or rule for punctuation."""
    counts: list[Any] = []
    if metric == "brackets":
        (gold, test), prm = _trees(), load_prm(name)
        for missing, punctuation in product(MissingParse, Punctuation):
            counts.append(score_trees(gold, test, prm, Policy(missing, punctuation)))
    else:
        one, other = ([_tree(sentence, side) for sentence in _WORDS] for side in (0, 2))
        for relations in get_args(Relations):
            counts.append(
                score_dependencies(one, other, AttachmentRules(name, relations=relations))
            )
    return _digest([found.rows[:, :_COLUMNS].tolist() for found in counts])


@lru_cache(maxsize=1)
def _trees() -> tuple[list[Tree | None], ...]:
    """Both sides of :data:`_TREES`."""
    sides = zip(*_TREES, strict=True)
    return tuple([parse_brackets(text) if text else None for text in side] for side in sides)


def _tree(sentence: str, side: int) -> DependencyTree:
    rows = [word.split(" ") for word in sentence.split("|")]
    heads, relations = [int(row[2 + side]) for row in rows], [row[3 + side] for row in rows]
    return DependencyTree.build(
        [row[0] for row in rows], [row[1] for row in rows], heads, relations
    )


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
