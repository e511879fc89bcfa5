"""Writing CoNLL: what comes out, and what it refuses; reading it back is in tests/readers."""

from __future__ import annotations

import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.conll import TagColumn
from spmrl_bench.trees.dependencies import DependencyTree
from tests.trees.dependency_strategies import write_conll


@pytest.mark.parametrize(("tags", "columns"), [("xpos", "_\t_\tNN"), ("upos", "_\tNN\t_")])
def test_ten_columns_and_a_blank_line(tags: TagColumn, columns: str) -> None:
    tree = DependencyTree.build(["10 000", "dogs"], ["NN", "NN"], [2, 0], ["nummod", "root"])
    assert write_conll(tree, tags=tags) == (
        f"1\t10 000\t{columns}\t_\t2\tnummod\t_\t_\n2\tdogs\t{columns}\t_\t0\troot\t_\t_\n\n"
    )


@pytest.mark.parametrize("text", ["", " ", " a", "a ", "a\tb", "a\nb", "a\r", "\n"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_texts_that_the_format_cannot_hold(text: str, place: int) -> None:
    columns = ["w", "T", "r"]
    columns[place] = text
    word, tag, relation = columns
    tree = DependencyTree.build(["w", word], ["T", tag], [0, 1], ["r", relation])
    with pytest.raises(TreeError, match="word 2: CoNLL cannot hold"):
        write_conll(tree)
