"""What every parser is given: lists of words, never a text, whose letters would pass for words."""

from __future__ import annotations

from typing import Any

import pytest

from spmrl_bench.errors import SpmrlError, TokensError
from spmrl_bench.parsers.config import ParserConfig
from spmrl_bench.parsers.right_branching import RightBranching
from spmrl_bench.trees import Parse
from tests.builders import tiny
from tests.laboratory import make_trees

EXAMPLES = [Parse.of(tree) for tree in make_trees(8, 1)]
PARSERS = {
    "trained": tiny("chart", EXAMPLES),
    "baseline": RightBranching.build(ParserConfig(), EXAMPLES),
}


@pytest.mark.parametrize("kind", PARSERS)
@pytest.mark.parametrize("sentences", ["the dog", ["the dog"], [["the"], "the dog"], [b"the dog"]])
def test_a_text_is_no_sentence(kind: str, sentences: Any) -> None:
    with pytest.raises(TokensError, match=r"expected a list of words, .* found the text b?'t"):
        list(PARSERS[kind].parse(sentences))


@pytest.mark.parametrize("kind", PARSERS)
def test_a_text_is_no_row_of_tags(kind: str) -> None:
    with pytest.raises(TokensError, match="sentence 1: expected a list of tags"):
        list(PARSERS[kind].parse([["a", "b"]], ["XY"]))
    with pytest.raises(TypeError):  # as Python calls it
        list(PARSERS[kind].parse("ab"))
    assert issubclass(TokensError, SpmrlError)
