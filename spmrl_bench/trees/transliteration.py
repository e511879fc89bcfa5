"""Words of Arabic and Hebrew treebanks in Latin letters, and in their own script.

The shared-task releases spell Arabic in Buckwalter's transliteration and Hebrew in the one of
its treebank. A parser with character input of its own does not care, but a pre-trained encoder
knows these languages in their own script only. The transforms here undo the transliteration,
character by character.

Both schemes give every word of a sentence the same treatment, digits and punctuation being left
as they are. Latin words in an Arabic text therefore change as well; nothing in the releases
tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree

Sentence = TypeVar("Sentence", Tree, DependencyTree)

#: Buckwalter's character for each Arabic one; the last four are for foreign sounds.
BUCKWALTER: dict[str, str] = {
    "\u0621": "'", "\u0622": "|", "\u0623": ">", "\u0624": "&", "\u0625": "<", "\u0626": "}",
    "\u0627": "A", "\u0628": "b", "\u0629": "p", "\u062a": "t", "\u062b": "v", "\u062c": "j",
    "\u062d": "H", "\u062e": "x", "\u062f": "d", "\u0630": "*", "\u0631": "r", "\u0632": "z",
    "\u0633": "s", "\u0634": "$", "\u0635": "S", "\u0636": "D", "\u0637": "T", "\u0638": "Z",
    "\u0639": "E", "\u063a": "g", "\u0640": "_", "\u0641": "f", "\u0642": "q", "\u0643": "k",
    "\u0644": "l", "\u0645": "m", "\u0646": "n", "\u0647": "h", "\u0648": "w", "\u0649": "Y",
    "\u064a": "y", "\u064b": "F", "\u064c": "N", "\u064d": "K", "\u064e": "a", "\u064f": "u",
    "\u0650": "i", "\u0651": "~", "\u0652": "o", "\u0670": "`", "\u0671": "{",
    "\u067e": "P", "\u0686": "J", "\u06a4": "V", "\u06af": "G",
}  # fmt: skip

# Some releases avoid the characters that mean something in XML.
_BUCKWALTER_FOR_XML = {"O": "\u0623", "W": "\u0624", "I": "\u0625"}

# Words that are no transliteration: the names of signs, left by or undone besides the reader's.
_ARABIC_SIGNS = {"-PLUS-": "+", "-MINUS-": "-", "-LRB-": "(", "-RRB-": ")"}
_NAMES_KEPT = frozenset({"-LCB-", "-RCB-", "-LSB-", "-RSB-"})

#: The Hebrew treebank's letter for each Hebrew one that is no final form, and for two signs
#: that stand inside words.
HEBREW_LETTERS: dict[str, str] = {
    "\u05d0": "A", "\u05d1": "B", "\u05d2": "G", "\u05d3": "D", "\u05d4": "H", "\u05d5": "W",
    "\u05d6": "Z", "\u05d7": "X", "\u05d8": "J", "\u05d9": "I", "\u05db": "K", "\u05dc": "L",
    "\u05de": "M", "\u05e0": "N", "\u05e1": "S", "\u05e2": "E", "\u05e4": "P", "\u05e6": "C",
    "\u05e7": "Q", "\u05e8": "R", "\u05e9": "F", "\u05ea": "T", '"': "U", "%": "O",
}  # fmt: skip

#: The form of a Hebrew letter at the end of a word, where it has one of its own.
HEBREW_FINALS: dict[str, str] = {
    "\u05db": "\u05da", "\u05de": "\u05dd", "\u05e0": "\u05df", "\u05e4": "\u05e3",
    "\u05e6": "\u05e5",
}  # fmt: skip

#: The Hebrew treebank's names of punctuation; each is a whole word.
HEBREW_SIGNS: dict[str, str] = {
    "yyCLN": ":", "yyCM": ",", "yyDASH": "-", "yyDOT": ".", "yyELPS": "...", "yyEXCL": "!",
    "yyLRB": "(", "yyQM": "?", "yyQUOT": '"', "yyRRB": ")", "yySCLN": ";",
}  # fmt: skip

_FROM_BUCKWALTER = str.maketrans(
    {latin: arabic for arabic, latin in BUCKWALTER.items()} | _BUCKWALTER_FOR_XML
)
_FROM_HEBREW_LATIN = str.maketrans({latin: hebrew for hebrew, latin in HEBREW_LETTERS.items()})


@lru_cache(maxsize=1 << 17)
def from_buckwalter(word: str) -> str:
    """A word in Arabic script. O, W and I are read as the >, & and < that they stand for.

    Bracket names such as -LSB- stay; -PLUS- and -MINUS- become the signs.
    """
    if word in _NAMES_KEPT:
        return word
    return _ARABIC_SIGNS.get(word) or word.translate(_FROM_BUCKWALTER)


@lru_cache(maxsize=1 << 17)
def from_hebrew_latin(word: str) -> str:
    """A word of the Hebrew treebank in Hebrew script, with the final form of its last letter.

    A word without a letter of the transliteration stays, so that releases that are in Hebrew
    script already come out unchanged.
    """
    if word in HEBREW_SIGNS:
        return HEBREW_SIGNS[word]
    hebrew = word.translate(_FROM_HEBREW_LATIN)
    if hebrew == word:
        return word
    return hebrew[:-1] + HEBREW_FINALS.get(hebrew[-1], hebrew[-1])


def arabic_script(tree: Sentence) -> Sentence:
    """Write the words in Arabic script instead of Buckwalter's transliteration.

    Words that are not Arabic change as well where they have letters of the scheme.
    """
    return _with_words(tree, from_buckwalter)


def hebrew_script(tree: Sentence) -> Sentence:
    """Write the words in Hebrew script instead of the transliteration of the Hebrew treebank.

    The last letter of a word gets its final form. Words in Hebrew script stay as they are.
    """
    return _with_words(tree, from_hebrew_latin)


def _with_words(tree: Sentence, change: Callable[[str], str]) -> Sentence:
    words = tuple(map(change, tree.words))
    return tree if words == tree.words else replace(tree, words=words)


#: Every transform of words, of constituency and dependency trees alike; the name is the
#: function's, with hyphens.
WORD_TRANSFORMS = (arabic_script, hebrew_script)
