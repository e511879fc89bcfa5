"""The moves of transition systems for dependency trees.

A state has a stack of words, of which the top is called s0 and the next s1, a buffer of the words
that wait, of which the front is called b0, and the arcs made so far. At first the stack holds the
root (0) and the buffer the words 1..n; at last all words have heads and the stack holds the root
again. Two systems are known:

========== ==================================== ====================================
move       arc-standard (Nivre 2004)            arc-hybrid (Kuhlmann et al. 2011)
========== ==================================== ====================================
SHIFT      b0 goes to the stack                 b0 goes to the stack
LEFT-ARC   s0 governs s1, which is removed;     b0 governs s0, which is removed;
           s1 is a word                         s0 is a word, and b0 is there
RIGHT-ARC  s1 governs s0, which is removed      s1 governs s0, which is removed
========== ==================================== ====================================

(Nivre 2004: Incrementality in Deterministic Dependency Parsing, in the form that works on the two
topmost words of the stack; Kuhlmann, Gómez-Rodríguez & Satta 2011: Dynamic Programming Algorithms
for Transition-Based Dependency Parsers.) Every word is shifted once and gets its head
once, so that every sequence of legal moves is of 2n moves; a word is removed when it gets its head,
and whatever is made is a projective tree.

The root may take exactly one word, or several. If it takes one, this is the last move of all:
taken while a word waits, it would leave that word without a head. No sequence of legal moves
leads to a state without one.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

SystemName = Literal["arc-standard", "arc-hybrid"]
#: The known systems; kernels know them by their place here.
SYSTEMS: Final[tuple[SystemName, ...]] = get_args(SystemName)

SHIFT: Final = 0
LEFT_ARC: Final = 1
RIGHT_ARC: Final = 2
MOVES: Final = ("SHIFT", "LEFT-ARC", "RIGHT-ARC")

#: In arrays of words: there is no such word. In arrays of heads and relations: not known yet.
NONE: Final = -1
#: In arrays of actions: what stands behind the last action of a sentence.
NO_ACTION: Final = -1
