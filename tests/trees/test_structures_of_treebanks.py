"""Sentences of treebanks as head-driven structures and as division spans, and back.

Their constituents come back as they were, and all heads but those that are counted.
"""

from __future__ import annotations

from collections import Counter

import pytest

from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Parse
from spmrl_bench.trees.division_span import divided, undivided
from spmrl_bench.trees.head_driven import HeadDriven, head_driven, several_headed, to_parse
from tests.conftest import shared_data

SENTENCES = 100

#: Sub-heads in as many sentences of the mini treebanks.
MINI = {
    "arabic": 67,
    "basque": 70,
    "chinese": 82,
    "english": 45,
    "french": 34,
    "german": 84,
    "hebrew": 75,
    "hungarian": 66,
    "korean": 12,
    "polish": 51,
    "swedish": 75,
}


def there_and_back(parses: list[Parse]) -> Counter[str]:
    """Check sentences, and count what happened in them."""
    seen: Counter[str] = Counter()
    for parse in parses:
        tree, dependencies = parse.tree, parse.dependencies
        assert tree is not None
        assert dependencies is not None
        found = head_driven(tree, dependencies)
        rows, heads = undivided(divided(found), len(parse))
        assert HeadDriven.build(rows, heads).row_heads.tolist() == found.row_heads.tolist()
        assert (tuple(rows), heads) == (found.rows, found.heads.tolist())
        back = to_parse(parse.words, parse.tags, rows, heads, dependencies.relations)
        assert back.tree == tree
        assert back.dependencies is not None
        differ = back.dependencies.heads != dependencies.heads
        assert differ.tolist() == (found.changes != 0).tolist()
        seen["sub-heads"] += found.sub_heads
        seen["several heads"] += len(several_headed(tree, dependencies))
        seen.update(change.name for change in found.changed().elements())
    return +seen


@pytest.mark.parametrize("language", MINI)
def test_mini_treebanks(language: str) -> None:
    parses = open_treebank(f"{language}-mini").examples("dev")[:SENTENCES]
    assert there_and_back(parses) == {"sub-heads": MINI[language]}


def test_heads_of_constituents_by_rule() -> None:
    bank = open_treebank("english-wsj-sample", shared_data("treebanks"))
    assert not there_and_back(bank.examples("dev")[:SENTENCES])


def test_constituents_and_dependencies_of_two_schemes() -> None:
    bank = open_treebank("french-sequoia", shared_data("treebanks"))
    assert there_and_back(bank.examples("dev")) == {
        "sub-heads": 522,
        "several heads": 53,
        "SHARED_GOVERNOR": 47,
        "INSIDE": 24,
        "LOST_HEAD": 2,
        "OTHER_GOVERNOR": 7,
        "CROSSING": 7,
    }
