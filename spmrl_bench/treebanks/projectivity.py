"""How far from projective are the dependencies of a treebank, and what does it cost a parser?

A projective parser cannot find arcs that cross others. If it learns from encoded trees
(:mod:`spmrl_bench.trees.projective`) it can, but for those that even the encoding of the
right tree does not bring back. How many these are, and how many more relations there are to learn,
says which encoding a treebank wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.projective import ENCODINGS, nonprojective_words


@dataclass
class Projectivity:
    """Figures of some dependency trees; :meth:`add` takes them one by one.

    Attributes:
        sentences, arcs: how many; a word has one arc, that to its head or to the root.
        crossing_sentences: sentences that are not projective.
        crossing_arcs: arcs that are not projective.
        lifted_arcs: arcs that every encoding lifts: these, and few that are in the way of others.
        recovered: by encoding, the lifted arcs that come back with head and relation when the
            encoded tree is decoded. All other arcs always come back.
        relations: by encoding, the relations of the encoded trees.
    """

    sentences: int = 0
    arcs: int = 0
    crossing_sentences: int = 0
    crossing_arcs: int = 0
    lifted_arcs: int = 0
    recovered: Counter[str] = field(default_factory=Counter)
    relations: dict[str, set[str]] = field(
        default_factory=lambda: {name: set() for name in ENCODINGS}
    )

    def add(self, tree: DependencyTree) -> None:
        """Count a tree."""
        self.sentences += 1
        self.arcs += len(tree)
        crossing = len(nonprojective_words(tree.heads.tolist()))
        self.crossing_sentences += crossing > 0
        self.crossing_arcs += crossing
        encoded = {name: encoding.encode(tree) for name, encoding in ENCODINGS.items()}
        for name, found in encoded.items():
            self.relations[name].update(found.relations)
        if not crossing:
            return
        lifted = int((encoded["projectivise"].heads != tree.heads).sum())
        self.lifted_arcs += lifted
        for name, found in encoded.items():
            back = _arcs(ENCODINGS[name].decode(found))
            lost = sum(arc != gold for arc, gold in zip(back, _arcs(tree), strict=True))
            self.recovered[name] += lifted - lost

    def add_figures(self, other: Projectivity) -> None:
        """Count all that another counted."""
        self.sentences += other.sentences
        self.arcs += other.arcs
        self.crossing_sentences += other.crossing_sentences
        self.crossing_arcs += other.crossing_arcs
        self.lifted_arcs += other.lifted_arcs
        self.recovered.update(other.recovered)
        for name, relations in other.relations.items():
            self.relations[name] |= relations

    def recovery(self, name: str) -> float:
        """Percentage of all arcs that come back from an encoding."""
        lost = self.lifted_arcs - self.recovered[name]
        return 100 * (self.arcs - lost) / max(1, self.arcs)


def projectivity(trees: Iterable[DependencyTree]) -> Projectivity:
    """The figures of dependency trees."""
    found = Projectivity()
    for tree in trees:
        found.add(tree)
    return found


def _arcs(tree: DependencyTree) -> Iterator[tuple[int, str]]:
    """Head and relation of each word."""
    return zip(tree.heads.tolist(), tree.relations, strict=True)
