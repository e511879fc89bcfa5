"""What every parser is given: lists of words, never a text, whose letters would pass for words."""

from __future__ import annotations

from typing import Any

import pytest

from spmrl_bench.errors import TokensError
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.trees import Parse
from tests.builders import TREES, tiny


def test_a_text_is_no_sentence_and_no_row_of_tags() -> None:
    given: list[Any] = ["the dog", ["the dog"], [["the"], "the dog"], [b"the dog"]]
    for parser in (tiny(), RightBranching.build(ParserConfig(), [*map(Parse.of, TREES)])):
        for sentences in given:
            with pytest.raises(TokensError, match=r"list of words, .* found the text b?'t"):
                list(parser.parse(sentences))
        with pytest.raises(TokensError, match="sentence 1: expected a list of tags"):
            list(parser.parse([["a", "b"]], ["XY"]))
