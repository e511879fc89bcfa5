"""Words that another annotation takes for one, or one that it takes for several.

Treebanks of the same sentences do not always cut them into the same words. Universal Dependencies
make two words of an amalgam (French *du*: *de* and *le*) and several of a compound that trees have
as one word. The finer of two annotations can be brought to the words of the coarser one: the parts
of a word are merged, and the part nearest to the root gives it head, relation and tag. What hung
from any part hangs from the word.

No cycle can come of that. The part that is chosen hangs from a word nearer to the root than all
parts, so every step upwards leads to a word whose chosen part is nearer to the root than that of
the word before.

Where the other annotation is the finer one (*ex-* and *ministre*) a word can be divided: the last
part stands for the word, and the parts before it hang from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import frozen


def merged(tree: DependencyTree, sizes: Sequence[int], words: Sequence[str]) -> DependencyTree:
    """The tree with neighbouring words merged.

    Args:
        tree: of ``n`` words.
        sizes: of each word of the result, how many words of the tree it is made of; each is at
            least 1, and they sum to ``n``.
        words: the words of the result.

    Returns:
        A tree of ``len(sizes)`` words. Of parts that are as near to the root the first is chosen.

    Raises:
        ValueError: the sizes do not fit the tree or the words.
    """
    _check(sizes, len(words), len(tree))
    heads = tree.heads.tolist()
    depths = _depths(heads)
    word_of = [0, *(number for number, size in enumerate(sizes, 1) for _ in range(size))]
    ends = list(accumulate(sizes))
    chosen = [
        min(range(end - size, end), key=depths.__getitem__)
        for size, end in zip(sizes, ends, strict=True)
    ]
    return DependencyTree(
        tuple(words),
        tuple(tree.tags[part] for part in chosen),
        frozen([word_of[heads[part]] for part in chosen]),
        tuple(tree.relations[part] for part in chosen),
    )


def parted(
    tree: DependencyTree, sizes: Sequence[int], words: Sequence[str], relation: str
) -> DependencyTree:
    """The tree with words divided.

    Args:
        tree: of ``n`` words.
        sizes: of each word, how many parts it has; each is at least 1.
        words: the parts of all words.
        relation: of a part to the last part of its word.

    Returns:
        A tree of ``sum(sizes)`` words.

    Raises:
        ValueError: the sizes do not fit the tree or the words.
    """
    _check(sizes, len(tree), len(words))
    ends = [0, *accumulate(sizes)]  # of each word its last part, from 1; 0 for the root
    owners = [word for word, size in enumerate(sizes) for _ in range(size)]
    is_last = [part == ends[owner + 1] for part, owner in enumerate(owners, start=1)]
    heads = tree.heads.tolist()
    return DependencyTree(
        tuple(words),
        tuple(tree.tags[owner] for owner in owners),
        frozen(
            [
                ends[heads[owner]] if last else ends[owner + 1]
                for owner, last in zip(owners, is_last, strict=True)
            ]
        ),
        tuple(
            tree.relations[owner] if last else relation
            for owner, last in zip(owners, is_last, strict=True)
        ),
    )


def _check(sizes: Sequence[int], words: int, parts: int) -> None:
    """Make sure that so many words have so many parts."""
    if sum(sizes) != parts or len(sizes) != words or min(sizes, default=1) < 1:
        raise ValueError(f"{words} words of {list(sizes)} parts are not {parts} parts")


def _depths(heads: Sequence[int]) -> list[int]:
    """Of each word the number of arcs between it and the root."""
    depths = [0] * (len(heads) + 1)  # of the root and of words 1 to n; 0 for those not known yet
    for word in range(1, len(heads) + 1):
        path = []
        while word and not depths[word]:
            path.append(word)
            word = heads[word - 1]
        for step, passed in enumerate(reversed(path), start=1):
            depths[passed] = depths[word] + step
    return depths[1:]
