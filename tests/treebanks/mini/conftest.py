"""The mini treebank of the language that a test module describes in ``LANGUAGE``."""

from __future__ import annotations

import pytest

from spmrl_bench.trees.tree import Tree
from tests.treebanks.mini.language import splits_of, trees_of
from tests.treebanks.mini.nodes import Node, lowered, nested


@pytest.fixture(scope="module")
def splits(request: pytest.FixtureRequest) -> dict[str, list[Tree]]:
    return splits_of(request.module.LANGUAGE.name)


@pytest.fixture(scope="module")
def trees(request: pytest.FixtureRequest) -> list[Tree]:
    return trees_of(request.module.LANGUAGE.name)


@pytest.fixture(scope="module")
def roots(request: pytest.FixtureRequest, trees: list[Tree]) -> list[Node]:
    """The sentences as linked nodes."""
    return [
        nested(tree) for tree in (map(lowered, trees) if request.module.LANGUAGE.lower else trees)
    ]


@pytest.fixture(scope="module")
def nodes(roots: list[Node]) -> list[Node]:
    """Every constituent and every token."""
    return [node for root in roots for node in root.walk()]
