"""Whether the trees of a text begin at the beginning of a line, and nothing else does.

A tree that lost its last bracket takes the next ones in, until somewhere a bracket too many
closes it: what comes out is sound brackets, and two trees are gone. All that gives it away is
the layout, because another bracket stands in the first column while the tree is open. But
layouts are free, and there are files that begin each constituent in the first column. So a text
is judged as a whole, by what its trees look like that are not in doubt, and one that may be
sound is left alone.
"""

from __future__ import annotations

import re

from spmrl_bench.readers.bracket_text import regions_at_margin
from spmrl_bench.trees.escapes import ASCII_SPACE
from spmrl_bench.trees.transforms import OUTER_BRACKETS

_TOKEN = re.compile(rf"[{ASCII_SPACE}]*([^()\[\]{{}}<>{ASCII_SPACE}]*)")

# So many whole trees must stand against one in doubt.
_WHOLE = 8
# So many in doubt are enough to see whether there are too many of them.
_ENOUGH = 32


def trees_begin_at_margin(text: str, opening: str = "(", closing: str = ")") -> bool:
    """Whether a bracket in the first column always begins a tree, so that one inside is a mistake.

    The text is cut into entries, each from one bracket in the first column to the next. Entries
    with as many opening brackets as closing ones are whole trees. An entry that leaves a bracket
    open makes a group with all up to the one that closes it: an unclosed tree and what it took
    in, or a sound tree whose constituents stand in the first column. It is taken for the first if

    - no group begins with an entry without words, such as ``(S`` on a line of its own;
    - no entry inside a group begins otherwise than some tree of the text does, as ``(NP`` would;
    - there are eight entries that are whole trees for each group; or every entry of the text has
      the same outer bracket: none, TOP, ROOT, S1 or VROOT.
    """
    depth = whole = groups = 0
    roots: set[str] = set()
    inside: set[str] = set()
    group: list[tuple[str, bool]] = []  # of each entry inside: its first label, whether it is whole
    for start, end in regions_at_margin(text, opening):
        balance = text.count(opening, start, end) - text.count(closing, start, end)
        if not text.startswith(
            opening, start
        ):  # what comes before the first bracket in that column
            depth = max(0, balance)
            continue
        if depth:
            group.append((_token(text, start), balance == 0))
        else:
            roots.add(_token(text, start))
            if balance > 0:
                groups += 1
                if text.find(closing, start, end) < 0:
                    return False
            elif balance == 0:
                whole += 1
        depth = max(0, depth + balance)
        if group and not depth:
            inside.update(token for token, _ in group)
            whole += sum(is_whole for _, is_whole in group)
            group.clear()
            if groups >= _ENOUGH and whole < _WHOLE * groups:
                return False
    # What a tree took in that is open at the end was never part of it.
    roots.update(token for token, is_whole in group if is_whole)
    whole += sum(is_whole for _, is_whole in group)
    if not inside <= roots:
        return False
    return whole >= _WHOLE * groups or (len(roots) == 1 and roots <= OUTER_BRACKETS)


def _token(text: str, start: int) -> str:
    """The label of the bracket at an offset."""
    found = _TOKEN.match(text, start + 1)
    return found[1] if found else ""
