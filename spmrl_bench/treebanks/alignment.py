"""The sentences and words of a second layer, one by one, beside those of the trees.

Two layers of a treebank are of the same sentences, but they come in files of their own. These may
lack sentences that are of no use, have them in another order under the same names, or cut them into
smaller words. What may differ is said by the manifest; everything else that does is an error, since
a tree beside the dependencies of another sentence would be learnt and scored like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spmrl_bench.errors import TreebankError
from spmrl_bench.readers.conll import DependencySentence
from spmrl_bench.trees.dependencies import DependencyTree, merge_words, split_words
from spmrl_bench.trees.tree import Tree


def by_number(
    layer: Sequence[DependencySentence], kinds: Sequence[Sequence[int]]
) -> list[DependencySentence]:
    """The sentences that are left, found by how many the layer has.

    Args:
        layer: all sentences of the layer's files, in the order of the trees.
        kinds: numbers of sentences in the trees' files: all of them; those that any layer can have;
            and so on, each holding the next, to those that are left.

    Raises:
        TreebankError: the layer has as many sentences as none of them.
    """
    numbers = next((numbers for numbers in kinds if len(numbers) == len(layer)), None)
    if numbers is None:
        expected = " or ".join(map(str, dict.fromkeys(map(len, kinds))))
        raise TreebankError(f"there are {expected} and {len(layer)} sentences")
    found = dict(zip(numbers, layer, strict=True))
    return [found[number] for number in kinds[-1]]


def by_name(layer: Sequence[DependencySentence], names: Sequence[str]) -> list[DependencySentence]:
    """The sentences with these names, in their order.

    Raises:
        TreebankError: one is not there, or is there twice.
    """
    found = {sentence.name: sentence for sentence in layer}
    if len(found) < len(layer):
        seen: set[str] = set()
        twice = next(s.name for s in layer if s.name in seen or seen.add(s.name))  # type: ignore[func-returns-value]
        raise TreebankError(f"two sentences of the dependencies are called '{twice}'")
    missing = [name for name in names if name not in found]
    if missing:
        raise TreebankError(
            f"{len(missing)} of {len(names)} sentences are not among the {len(layer)} of the "
            f"dependencies, '{missing[0]}' first"
        )
    return [found[name] for name in names]


def aligned(
    number: int,
    tree: Tree,
    dependencies: DependencyTree,
    *,
    merge: bool = False,
    parts: str | None = None,
    respelt: Mapping[str, str] | None = None,
) -> DependencyTree:
    """The dependencies of a sentence, over the words of its tree.

    Args:
        number: of the sentence, for error messages.
        tree: its tree.
        dependencies: with the words of the tree, or with words to be merged or divided.
        merge: whether words may have to be merged. Spaces and underscores, which join the parts
            of a word, then do not count.
        parts: the relation of the parts of a word that is to be divided; none may be without it.
        respelt: words of the dependencies, after merging, that the tree spells otherwise.

    Raises:
        TreebankError: the words are others.
    """
    if tree.words == dependencies.words:
        return dependencies
    if not merge:
        raise TreebankError(_difference(number, tree.words, dependencies.words))
    spellings = {_joined(word): _joined(other) for word, other in (respelt or {}).items()}
    blocks: list[tuple[int, int]] = []  # words of the tree and of the dependencies, side by side
    place = at = 0
    while place < len(tree) and at < len(dependencies):
        coarse, fine = 1, 1
        while True:
            wanted = "".join(map(_joined, tree.words[place : place + coarse]))
            found = "".join(map(_joined, dependencies.words[at : at + fine]))
            if wanted == found or spellings.get(found) == wanted:
                break
            coarse, fine = (coarse, fine + 1) if len(found) < len(wanted) else (coarse + 1, fine)
            if (coarse > 1 and (fine > 1 or parts is None)) or (
                place + coarse > len(tree) or at + fine > len(dependencies)
            ):
                pieces = " ".join(dependencies.words[at : at + fine])
                raise TreebankError(
                    f"word {place + 1} of sentence {number} is '{tree.words[place]}' and '{pieces}'"
                )
        blocks.append((coarse, fine))
        place, at = place + coarse, at + fine
    if place < len(tree) or at < len(dependencies):
        raise TreebankError(_difference(number, tree.words, dependencies.words))
    coarse_sizes, fine_sizes = zip(*blocks, strict=True)
    whole = merge_words(dependencies, fine_sizes, [""] * len(blocks))
    return split_words(whole, coarse_sizes, tree.words, parts or "")


def _joined(word: str) -> str:
    """A word without what joins its parts."""
    return word.replace("_", "").replace(" ", "") or word


def _difference(number: int, words: Sequence[str], others: Sequence[str]) -> str:
    """The first place where a sentence has not the same words in two layers."""
    pairs = enumerate(zip(words, others, strict=False), start=1)
    for place, (word, other) in pairs:
        if word != other:
            return f"word {place} of sentence {number} is '{word}' and '{other}'"
    return f"sentence {number} has {len(words)} and {len(others)} words"
