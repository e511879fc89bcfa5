"""Best dependency trees under arc scores, with exactly one child of the root.

A tree with several children of the root is never returned, however high its arcs score.

**Projective trees** (Eisner 1996; notation of McDonald, Crammer & Pereira 2005, section 3.1). A
complete part is a word with all its descendants on one side, an incomplete part an arc with all
that lies between its words:

    joined(i, j) = max over i <= k < j of  right(i, k) + left(k + 1, j)
    arc_right(i, j) = joined(i, j) + score(i -> j)        arc_left(i, j) = joined + score(j -> i)
    right(i, j) = max over i < k <= j of  arc_right(i, k) + right(k, j)
    left(i, j) = max over i <= k < j of  left(i, k) + arc_left(k, j)

where ``right(i, j)`` has its head at i and ``left(i, j)`` at j. The chart is over the words alone.
The one child r of the root is the best of ``left(first, r) + right(r, last) + score(root -> r)``.
A tree is the sum of one sequence of joins only, so that ties can be decided by these: the lowest
child of the root wins, then, from the top down, the lowest k.

**Spanning trees** (Chu & Liu 1965, Edmonds 1967, in the dense form of Tarjan 1977 and the order of
Gabow, Galil, Spencer & Tarjan 1986). A path of components grows from word 1 backwards: its last
component takes its best incoming arc; the component where that comes from becomes the last, or,
if it is on the path already, all from there on form a cycle and are contracted into one
component, whose incoming arcs are worth what they gain over the arcs that they would replace. Each
of at most 2n - 1 components costs O(n). Ties go to the lowest head, then to the lowest dependent.

Arcs from the root take no part until all words are one component; then the best of them enters
it, and one arc goes from each cycle, down to the words. This makes exactly one child of the root:
subtract a constant c from all arcs from the root (Gabow & Tarjan 1984; Stanojević & Cohen 2021).
Trees with one child of the root keep their order, and those with more lose by at least c more; so
if c is large enough the best tree of all is the best with one child. What the algorithm does to
values is subtract arcs of cycles, which are never from the root; so with c beyond all bounds an arc
from the root loses every comparison with one between words, and their comparisons with each other
do not depend on c. Hence c need not be chosen, and costs no digits. O(n^2) in time and memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import kernels
from spmrl_bench.chart.arrays import arc_offsets, checked_arcs, checked_lengths, starts

Scores = NDArray[np.float64]


def decode_dependencies(
    arcs: ArrayLike, lengths: ArrayLike, *, projective: bool, threads: int | None = None
) -> NDArray[np.int32]:
    """Find the dependency tree of highest score of every sentence of a batch.

    Args:
        arcs: float64 or float32 [sum of n(n + 1)], packed as in :mod:`spmrl_bench.chart.arrays`.
            The score of a word as its own head may be anything. Sums are double.
        lengths, threads: as of :func:`spmrl_bench.chart.span_trees.decode_spans`.
        projective: whether only trees without crossing arcs are searched.

    Returns:
        The head of each word [words]: 0 is the root, 1..n are the words of its sentence.
    """
    words = checked_lengths(lengths)
    scores = checked_arcs(arcs, words)
    rows, offsets = arc_offsets(words), starts(words)
    heads = np.empty(int(offsets[-1]), dtype=np.int32)
    kernel, size = kernels.load("_dependencies"), words.astype(np.float64)
    work = (size**3 / 2 if projective else 16 * size**2).sum()
    team = kernels.threads_for(kernel, threads, words, work)
    if kernel is None:
        search = _projective_heads if projective else _spanning_heads
        for b, n in enumerate(words.tolist()):
            table = scores[rows[b] : rows[b + 1]].reshape(n, n + 1)
            heads[offsets[b] : offsets[b + 1]] = search(table)
    else:
        order = np.argsort(-words, kind="stable")
        kernel.decode(scores, words, rows, offsets, heads, order, team, projective)
    return heads


# The twins of the kernels -----------------------------------------------------------------


def _projective_heads(arcs: Scores) -> list[int]:
    """Return the head of each word, given its arcs [n, n + 1]; here words count from 0.

    Charts are of words, where parts begin or where they end, and widths.
    """
    n = len(arcs)
    right_from, right_to, left_from, left_to = np.zeros((4, n, n))
    arc_right_from, arc_left_to = np.zeros((2, n, n))
    # Which part of a sum is the shorter one, [n, n] by first word and width.
    joined_at, right_at, left_at = np.zeros((3, n, n), dtype=np.int64)
    for width in range(1, n):
        first = np.arange(n - width)
        last = first + width
        sums = right_from[:-width, :width] + left_to[width:, :width][:, ::-1]
        joined_at[first, width] = sums.argmax(axis=1)
        joined = sums.max(axis=1)
        arc_right_from[first, width] = joined + arcs[last, first + 1]
        arc_left_to[last, width] = joined + arcs[first, last + 1]
        sums = arc_right_from[:-width, 1 : width + 1] + right_to[width:, :width][:, ::-1]
        right_at[first, width] = sums.argmax(axis=1)
        right_from[first, width] = right_to[last, width] = sums.max(axis=1)
        sums = left_from[:-width, :width] + arc_left_to[width:, 1 : width + 1][:, ::-1]
        left_at[first, width] = sums.argmax(axis=1)
        left_from[first, width] = left_to[last, width] = sums.max(axis=1)

    words = np.arange(n)
    top = int((left_from[0, words] + right_from[words, n - 1 - words] + arcs[:, 0]).argmax())
    heads = [0] * n
    waiting = [(0, top, False), (top, n - 1, True)]
    while waiting:
        i, j, headed_left = waiting.pop()
        if i == j:
            continue
        k = i + (1 + int(right_at[i, j - i]) if headed_left else int(left_at[i, j - i]))
        heads[k] = 1 + (i if headed_left else j)
        part, low, high = ((k, j), i, k) if headed_left else ((i, k), k, j)
        split = low + int(joined_at[low, high - low])
        waiting += [(*part, headed_left), (low, split, True), (split + 1, high, False)]
    return heads


def _spanning_heads(arcs: Scores) -> list[int]:
    n = len(arcs)
    # For each word, later for each component, which has the row of one of its words: the value
    # of its best arc from each head (0 is the root), and which word that enters.
    values = arcs.copy()
    enters = np.repeat(np.arange(n), n + 1).reshape(n, n + 1)
    values[np.arange(n), np.arange(1, n + 1)] = -np.inf
    row, component = list(range(n)), list(range(n))  # of each component; of each word
    words = [[word] for word in range(n)]
    parent: dict[int, int] = {}
    taken: dict[int, tuple[int, int]] = {}  # arc (head, dependent) into each component
    path = [0]
    while len(words[path[-1]]) < n:
        last = path[-1]
        head = 1 + int(values[row[last], 1:].argmax())
        taken[last] = head, int(enters[row[last], head])
        source = component[head - 1]
        if source not in path:
            path.append(source)
            continue
        new, target = len(row), row[last]
        row.append(target)
        words.append([])
        while new not in path:
            part = path.pop()
            at = row[part]
            values[at] -= values[at, taken[part][0]]
            if at != target:
                better = values[at] > values[target]
                better |= (values[at] == values[target]) & (enters[at] < enters[target])
                values[target] = np.where(better, values[at], values[target])
                enters[target] = np.where(better, enters[at], enters[target])
            parent[part] = new
            words[new] += words[part]
            if part == source:
                path.append(new)
        for word in words[new]:
            component[word] = new
            values[target, word + 1] = -np.inf

    taken[path[0]] = 0, int(enters[row[path[0]], 0])
    # An arc into a component replaces those that enter the parts of it that it goes into.
    heads, entered = [0] * n, set[int]()
    for each in reversed(range(len(row))):
        if each not in entered:
            head, part = taken[each]
            heads[part] = head
            while part != each:
                entered.add(part)
                part = parent[part]
    return heads
