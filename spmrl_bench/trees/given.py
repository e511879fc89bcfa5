"""What a person has said of a sentence's annotation, and a parse is to hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from spmrl_bench.trees.dependencies import first_cycle
from spmrl_bench.trees.parse import Parse


@dataclass(frozen=True, slots=True)
class Given:
    """Some brackets and arcs of a sentence; all else is left to the parser.

    Attributes:
        constituents: ``(start, end, label)`` by fenceposts, as of a :class:`~spmrl_bench.trees.\
tree.Tree`; with None for the label any will do.
        not_constituents: what is none, likewise; with None for the label nothing is there.
        arcs: ``(word, head, relation)``, counted from 1, with 0 for the root; the head or the
            relation may be None, which leaves it open.
    """

    constituents: Sequence[tuple[int, int, str | None]] = ()
    not_constituents: Sequence[tuple[int, int, str | None]] = ()
    arcs: Sequence[tuple[int, int | None, str | None]] = ()

    def problem(self, n: int) -> str:
        """Return why no parse of ``n`` words can hold it, or '' if some can."""
        spans = {(start, end) for start, end, _ in self.constituents}
        for start, end, _ in (*self.constituents, *self.not_constituents):
            if not 0 <= start < end <= n:
                return f"[{start}, {end}] is no span of {n} words: 0 <= start < end <= {n}"
        for (i, j), (start, end) in combinations(sorted(spans), 2):
            if i < start < j < end:
                return f"[{i}, {j}] and [{start}, {end}] cross, and both are to be constituents"
        for start, end, label in self.not_constituents:
            if (start, end, label) in {*self.constituents, *((*span, None) for span in spans)}:
                return f"[{start}, {end}] is to be {label or 'a constituent'}, and is to be none"
        heads = dict[int, int]()
        for word, head, _ in self.arcs:
            if not 1 <= word <= n or not 0 <= (head or 0) <= n:
                return f"arc [{word}, {head}]: words are 1 to {n}, and the root is 0"
            if head is not None and heads.setdefault(word, head) != head:
                return f"word {word} is given two heads, {heads[word]} and {head}"
        roots = [word for word, head in heads.items() if head == 0]
        if len(roots) > 1:
            return f"words {roots[0]} and {roots[1]} are both given as the root"
        if cycle := first_cycle([heads.get(word, 0) for word in range(1, n + 1)]):
            return f"the heads of words {', '.join(map(str, sorted(cycle)))} make a circle"
        return ""

    def unmet(self, parse: Parse) -> str:
        """Return the first part that a parse does not hold, or ''."""
        of_tree = [] if parse.tree is None else parse.tree.constituents()
        found: set[tuple[int, int, str | None]] = {*of_tree}
        found |= {(start, end, None) for start, end, _ in found}
        for start, end, label in self.constituents:
            if (start, end, label) not in found:
                return f"constituent [{start}, {end}, {label or 'any'}]"
        for start, end, label in self.not_constituents:
            if (start, end, label) in found or parse.tree is None:
                return f"no constituent [{start}, {end}, {label or 'any'}]"
        tree = parse.dependencies
        for word, head, relation in self.arcs:
            own = (None, None) if tree is None else (tree.heads[word - 1], tree.relations[word - 1])
            if own[1] is None or head not in (None, own[0]) or relation not in (None, own[1]):
                return f"arc [{word}, {head}, {relation}]"
        return ""
