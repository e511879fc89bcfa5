"""A parser's words in an order that tells nothing of the text that they come from.

Training numbers words as they first occur, so the list of them begins with the first sentence of
the treebank, nearly word by word. Whoever hands a parser on may have no right to hand that on. In
the order of their characters the words stand for the same rows of the same table, and every parse
stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.parsers.vocabulary import FIRST_WORD


def sort_words(parser: NeuralParser) -> None:
    """Number the words of a parser, which is not in use yet, in the order of their characters."""
    before = parser.vocabulary
    words = {word: before.words[word] for word in sorted(before.words)}
    if (table := parser.lexical.words) is not None:
        rows = [*range(FIRST_WORD), *(before.word_ids[word] for word in words)]
        with torch.no_grad():
            table.weight = torch.nn.Parameter(table.weight[torch.tensor(rows)])
    parser.vocabulary = replace(before, words=words)
