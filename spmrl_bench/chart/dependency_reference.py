"""Dependency decoding in plain Python: oracle of the compiled kernel and its fallback.

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
of at most 2n - 1 components costs O(n): one search of its row of incoming arcs, and one merge of
the row with others. Ties go to the lowest governor, then to the lowest dependent.

Arcs from the root take no part until all words are one component; then the best of them enters
it, and one arc goes from each cycle, down to the words. This makes exactly one child of the root:
subtract a constant c from all arcs from the root (Gabow & Tarjan 1984; Stanojević & Cohen 2021).
Trees with one child of the root keep their order, and those with more lose by at least c more; so
if c is large enough the best tree of all has one child, and is the best such tree. There is one,
as each word may govern each other. What the algorithm does to values is subtract arcs of cycles,
which are never from the root; so with c beyond all bounds an arc from the root loses every
comparison with one between words, and their comparisons with each other do not depend on c. Hence
c need not be chosen, and costs no digits. O(n^2) in time and memory.

Scores are added and subtracted in exactly this order in ``_dependency.pyx`` too, so both return the
same bits. The score of a tree is the sum of its arcs in the order of its words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


def decode_projective(
    arcs: Scores,
    lengths: NDArray[np.int32],
    arc_offsets: NDArray[np.int64],
    word_offsets: NDArray[np.int64],
    heads: NDArray[np.int32],
    best: Scores,
    order: NDArray[np.int64],
    threads: int,
) -> None:
    """Decode the sentences ``order`` of a batch into ``heads`` [words] and ``best`` [B].

    ``arcs`` is packed as in :mod:`spmrl_bench.chart.packing`; offsets are [B + 1]. ``threads`` is
    for the compiled kernel: Python would only take turns.
    """
    for b in order.tolist():
        n = int(lengths[b])
        table = arcs[arc_offsets[b] : arc_offsets[b + 1]].reshape(n, n + 1)
        found = projective_heads(table)
        heads[word_offsets[b] : word_offsets[b + 1]] = found
        best[b] = tree_score(table, found)


def decode_spanning(
    arcs: Scores,
    lengths: NDArray[np.int32],
    arc_offsets: NDArray[np.int64],
    word_offsets: NDArray[np.int64],
    heads: NDArray[np.int32],
    best: Scores,
    order: NDArray[np.int64],
    threads: int,
) -> None:
    """As :func:`decode_projective`, for trees whose arcs may cross."""
    for b in order.tolist():
        n = int(lengths[b])
        table = arcs[arc_offsets[b] : arc_offsets[b + 1]].reshape(n, n + 1)
        found = spanning_heads(table)
        heads[word_offsets[b] : word_offsets[b + 1]] = found
        best[b] = tree_score(table, found)


def tree_score(arcs: Scores, heads: list[int]) -> float:
    """Sum of the arcs [n, n + 1] of a tree, from the first word to the last."""
    total = 0.0
    for word, head in enumerate(heads):
        total += float(arcs[word, head])
    return total


def projective_heads(arcs: Scores) -> list[int]:
    """Head of each word in the best projective tree, given its arcs [n, n + 1].

    Here words count from 0. Charts have a row for each word and a column for each width: parts
    are found by the word where they begin, or by that where they end.
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
        if headed_left:
            k = i + 1 + int(right_at[i, j - i])
            heads[k] = i + 1
            waiting.append((k, j, True))
            low, high = i, k
        else:
            k = i + int(left_at[i, j - i])
            heads[k] = j + 1
            waiting.append((i, k, False))
            low, high = k, j
        split = low + int(joined_at[low, high - low])
        waiting += [(low, split, True), (split + 1, high, False)]
    return heads


def spanning_heads(arcs: Scores) -> list[int]:
    """Head of each word in the best tree, given its arcs [n, n + 1]; here words count from 0."""
    n = len(arcs)
    # For each word, later for each component, which has the row of one of its words: the value
    # of its best arc from each governor (0 is the root), and which word that enters.
    values = arcs.copy()
    enters = np.repeat(np.arange(n), n + 1).reshape(n, n + 1)
    values[np.arange(n), np.arange(1, n + 1)] = -np.inf
    row = list(range(n))
    words = [[word] for word in range(n)]
    component = list(range(n))  # of each word
    parent = [-1] * n
    taken: list[tuple[int, int]] = [(0, 0)] * n  # arc (governor, dependent) into each component
    path, on_path = [0], [True] + [False] * (n - 1)

    while len(words[path[-1]]) < n:
        last = path[-1]
        governor = 1 + int(values[row[last], 1:].argmax())
        taken[last] = governor, int(enters[row[last], governor])
        source = component[governor - 1]
        if not on_path[source]:
            on_path[source] = True
            path.append(source)
            continue
        new, target = len(parent), row[last]
        parent.append(-1)
        taken.append((0, 0))
        on_path.append(True)
        row.append(target)
        words.append([])
        while True:
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
                break
        for word in words[new]:
            component[word] = new
            values[target, word + 1] = -np.inf
        path.append(new)

    taken[path[0]] = 0, int(enters[row[path[0]], 0])
    # An arc into a component replaces those that enter the parts of it that it goes into.
    heads = [0] * n
    entered = [False] * len(parent)
    for each in range(len(parent) - 1, -1, -1):
        if entered[each]:
            continue
        governor, word = taken[each]
        heads[word] = governor
        part = word
        while part != each:
            entered[part] = True
            part = parent[part]
    return heads
