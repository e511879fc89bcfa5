"""NLTK's trees as ours and ours as NLTK's, for people whose programs hold ``nltk.Tree``s.

NLTK's trees stay at the edge of this program. They are nested lists whose methods recurse: at
a depth of some hundred nodes comparing, copying and printing them fails. Reading and making them
here needs no recursion, so that any tree gets across; reading does not need NLTK.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from spmrl_bench.errors import SpmrlError, TreeError
from spmrl_bench.trees.brackets import decode_label, escapes_named
from spmrl_bench.trees.tree import Tree, frozen

if TYPE_CHECKING:
    from nltk.tree import Tree as NltkTree

_END = object()


def is_nltk(value: object) -> TypeGuard[NltkTree]:
    """Whether a value is a tree of NLTK: a list of children with a ``label()``."""
    return isinstance(value, list) and callable(getattr(value, "label", None))


def from_nltk(tree: NltkTree, escapes: str | None = None) -> Tree:
    """A tree of NLTK as one of ours.

    A node whose only child is a leaf is the tag of a word, every other node a constituent. A
    tree without leaves, as ``nltk.Tree("", [])``, is the tree without words.

    Args:
        tree: its labels and leaves are strings.
        escapes: name of the escape policy (see :mod:`spmrl_bench.trees.brackets`) of a tree
            that ``nltk.Tree.fromstring`` read from a treebank's file; NLTK leaves ``-LRB-`` as
            it is. None where leaves are the words themselves.

    Raises:
        TreeError: a leaf has no tag of its own, a constituent holds no word, or a label or leaf
            is no string.
        SpmrlError: the escape policy is unknown.
    """
    policy = None if escapes is None else escapes_named(escapes)
    words: list[str] = []
    tags: list[str] = []
    labels: list[str] = []
    bounds: list[list[int]] = []  # start and end of each row of labels
    pending: list[tuple[int, Iterator[Any]]] = []  # row and children to come of the open nodes
    node: Any = tree
    while True:
        if is_nltk(node):
            label = _text(node.label(), "label")
            label = decode_label(label) if policy else label
            if len(node) == 1 and not is_nltk(node[0]):
                word = _text(node[0], "leaf")
                tags.append(label)
                words.append(policy.decode_word(word) if policy else word)
            else:
                pending.append((len(labels), iter(node)))
                labels.append(label)
                bounds.append([len(words), 0])
        else:
            _fail_leaf(node, labels[pending[-1][0]] if pending else None)
        while pending:
            row, children = pending[-1]
            node = next(children, _END)
            if node is not _END:
                break
            bounds[row][1] = len(words)
            pending.pop()
        else:
            break
    if not words:
        return Tree.build([], [], [])
    for (start, end), label in zip(bounds, labels, strict=True):
        if start == end:
            raise TreeError(f"the constituent '{label}' of an nltk tree holds no word")
    return Tree(tuple(words), tuple(tags), tuple(labels), frozen(bounds, -1, 2))


def to_nltk(tree: Tree) -> NltkTree:
    """One of our trees as a tree of NLTK, whose leaves are the words as they are.

    A tree of several constituents or words side by side gets a root without a label, and so does
    one without words.

    Raises:
        SpmrlError: NLTK is not installed.
    """
    try:
        from nltk.tree import Tree as NltkTree
    except ImportError:
        raise SpmrlError(
            "trees of NLTK need it: pip install nltk, or pip install 'spmrl-bench[nltk]'"
        ) from None
    top = NltkTree("", [])
    opened: list[tuple[int, NltkTree]] = [(len(tree) + 1, top)]
    rows = tree.constituents()
    row = next(rows, None)
    for place, (word, tag) in enumerate(zip(tree.words, tree.tags, strict=True)):
        while opened[-1][0] <= place:
            opened.pop()
        while row is not None and row[0] == place:
            node = NltkTree(row[2], [])
            opened[-1][1].append(node)
            opened.append((row[1], node))
            row = next(rows, None)
        opened[-1][1].append(NltkTree(tag, [word]))
    return top[0] if len(top) == 1 else top


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise TreeError(f"a {what} of an nltk tree must be a string, found {value!r}")
    return value


def _fail_leaf(leaf: object, label: str | None) -> None:
    if label is None:
        raise TreeError(f"expected an nltk tree, found {type(leaf).__name__}")
    raise TreeError(
        f"the leaf {_text(leaf, 'leaf')!r} below '{label}' of an nltk tree has no tag: expected a "
        "node of its own around each word"
    )
