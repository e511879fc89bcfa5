"""Which words are punctuation: the rules under which attachment scores are published.

Scores "without punctuation" differ by which words that leaves out. English and Chinese tables
go by a list of tags, others by the characters of the word, and scores over Universal
Dependencies keep every word. Each rule has a name, and the name is part of the signature.

``none``
    No word is punctuation: every word is scored.
``ptb-ctb``
    By the gold tag: ``.``, ``,``, ``:``, ``` `` ``` and ``''`` of the Penn Treebank and ``PU``
    of the Chinese Treebank. This is the set behind the English and Chinese tables of Zhou & Zhao
    2019 (P19-1230) and Mrini et al. 2020; brackets, ``$`` and ``#`` are scored.
``unicode``
    By the form: every character has one of Unicode's general categories P*. That includes
    brackets and ``%`` but neither ``$`` nor the backquote, which Unicode counts as symbols.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

PTB_CTB_TAGS = frozenset({".", ",", ":", "``", "''", "PU"})


@dataclass(frozen=True, slots=True)
class PunctuationRule:
    """A way to tell punctuation.

    Attributes:
        holds: whether a word with its gold tag is punctuation.
        foreign_tags: tags with which the rule cannot work, because they show that the tags are
            of another tag set: it would leave out nothing. Empty for a rule that needs no tags.
    """

    holds: Callable[[str, str], bool]
    foreign_tags: frozenset[str] = frozenset()


def _none(word: str, tag: str) -> bool:
    return False


def _ptb_ctb(word: str, tag: str) -> bool:
    return tag in PTB_CTB_TAGS


def _unicode(word: str, tag: str) -> bool:
    return _all_punctuation(word)


@lru_cache(maxsize=1 << 16)
def _all_punctuation(word: str) -> bool:
    return word != "" and all(unicodedata.category(char).startswith("P") for char in word)


PUNCTUATION_RULES = {
    "none": PunctuationRule(_none),
    # "_" is a column without tags; "PUNCT" is of Universal Dependencies.
    "ptb-ctb": PunctuationRule(_ptb_ctb, foreign_tags=frozenset({"_", "PUNCT"})),
    "unicode": PunctuationRule(_unicode),
}
