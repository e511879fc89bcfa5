"""The same words annotated in different ways: inconsistent places of a treebank, without a parser.

An n-gram that is annotated differently in several places, a *variation nucleus*, is either
ambiguous, or wrong somewhere. The more words around it are the same, too, the less it can be
ambiguous (Dickinson & Meurers 2003, Detecting errors in part-of-speech annotation, EACL; for
constituents, Detecting inconsistencies in treebanks, TLT). What an n-gram is annotated as is

- for tags, the tag of a single word;
- for constituents, the label of the constituent over it, a unary chain as one label, or that there
  is none (NIL; section 3 of the second paper);
- for dependencies, the relation between its first and its last word and which of the two is the
  head, or that there is none (Boyd, Dickinson & Meurers 2008, On detecting errors in dependency
  treebanks; the words between the two are the same, which is its internal context).

By the *non-fringe heuristic* a nucleus counts only with a shared word on either side, because many
phrases can be told to end only by the next word. The ends of a sentence are shared words, too.

The papers list n-grams. Here each place is judged on its own: among the places that share so many
words with it, how many are annotated as this one, and how many in the other way that is most
frequent? :func:`suspicion` weighs that against how many words are shared, and of every number of
shared words the most suspicious counts. That needs no threshold of length, and of two places that
differ in a long context the one is named that shorter contexts speak against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import collapsed_spans

Annotation = Literal["tags", "constituents", "dependencies"]
#: What has to be the same: the words, or only the tags of those around, or of all.
Context = Literal["words", "tags", "only-tags"]

#: Words of context on either side that are looked at: what is alike in so many is alike.
WIDEST = 12
#: Places of a nucleus beyond which only those of rare annotations are judged, and how rare.
MANY, RARE = 400, 0.05
#: Pairs of places that are compared at once.
PAIRS = 1 << 18
#: Places with the other annotation that are named.
COUNTEREXAMPLES = 3

#: Start, end and annotation of an n-gram.
Row = tuple[int, int, str]
Numbers = NDArray[np.int64]

#: The token between two sentences.
BOUNDARY = 0


class Place(NamedTuple):
    """An n-gram: the number of its sentence, from 1, and its fenceposts."""

    sentence: int
    start: int
    end: int


class Suspicion(NamedTuple):
    """A place whose annotation other places with the same words do not have."""

    score: float  # of `suspicion`
    place: Place
    found: str  # how it is annotated; empty for not at all
    others: str  # how most of the others are
    # Of the places that share as many words, how many are annotated as this one, itself included,
    # and how many in the other way.
    same: int
    differing: int
    shared: int  # words around the nucleus that all these share, ends of a sentence among them
    counterexamples: tuple[Place, ...]  # some of the others, those that share the most first

    @property
    def length(self) -> int:
        """Words of the variation n-gram: the nucleus and the words that are shared around it."""
        return self.place.end - self.place.start + self.shared


def variation(
    sentences: Sequence[Parse], annotation: Annotation, context: Context = "words"
) -> list[list[Suspicion]]:
    """The suspicious places of a treebank's sentences by sentence, the worst first."""
    words, tags = [each.words for each in sentences], [each.tags for each in sentences]
    found = find_variation(
        tags if context == "only-tags" else words,
        (_rows(parse, annotation) for parse in sentences),
        words if context == "words" else tags,
    )
    by_sentence: dict[int, list[Suspicion]] = {}
    for one in sorted(found, key=lambda one: (-one.score, -one.length, one.place)):
        by_sentence.setdefault(one.place.sentence, []).append(one)
    return list(by_sentence.values())


def _rows(parse: Parse, annotation: Annotation) -> Iterator[Row]:
    if annotation == "tags":
        for place, tag in enumerate(parse.tags):
            yield place, place + 1, tag
    elif annotation == "constituents" and parse.tree is not None:
        for start, end, label in collapsed_spans(parse.tree):
            yield start, end, "+".join(label)
    elif annotation == "dependencies" and (tree := parse.dependencies) is not None:
        for word, (head, relation) in enumerate(zip(tree.heads, tree.relations, strict=True), 1):
            if head:
                side = "<" if word < head else ">"  # the arrow points to the dependent
                yield min(word, int(head)) - 1, max(word, int(head)), f"{side}{relation}"


def suspicion(
    same: NDArray[np.integer], differing: NDArray[np.integer], length: NDArray[np.integer]
) -> NDArray[np.float64]:
    """How suspicious places are: how lopsided the annotation is (``same`` places are annotated
    alike, ``differing`` in one other way), and of how long an n-gram with its shared context."""
    # A half more or less keeps one against two apart from ten against twenty.
    odds = np.log2((differing + 0.5) / (np.maximum(same, 1) - 0.5))
    return odds + np.log2(length)


class _Corpus(NamedTuple):
    """Sentences as one row of numbers."""

    tokens: Numbers  # [words + sentences + 1], boundaries before, between and behind sentences
    context: Numbers  # what is compared around a nucleus, likewise
    starts: Numbers  # [sentences], where the first word of each is
    ends: Numbers  # likewise the boundary behind the last

    def place(self, first: int, length: int) -> Place:
        sentence = int(np.searchsorted(self.ends, first, side="right"))
        start = first - int(self.starts[sentence])
        return Place(sentence + 1, start, start + length)


def _tokens(sentences: Sequence[Sequence[str]]) -> Numbers:
    row = [None, *(token for words in sentences for token in (*words, None))]
    return pd.factorize(np.array(row, dtype=object))[0] + 1  # of None it is -1


def find_variation(
    sentences: Sequence[Sequence[str]],
    rows: Iterable[Iterable[Row]],
    around: Sequence[Sequence[str]],
) -> list[Suspicion]:
    """The suspicious places of a corpus, in no particular order, one for each n-gram. Sentences are
    words, or what stands for them; ``rows`` their annotated n-grams (all others are not annotated),
    and ``around`` what is compared around a nucleus."""
    lengths = np.array([len(words) for words in sentences], dtype=np.int64)
    ends = np.cumsum(lengths + 1)
    corpus = _Corpus(_tokens(sentences), _tokens(around), ends - lengths, ends)
    by_length, names = _annotated(corpus, rows)
    labels = np.zeros(len(corpus.tokens), dtype=np.int64)
    found: list[Suspicion] = []
    for length, places, ngram in _repeated(corpus.tokens):
        own = by_length.get(length)
        if own is None:
            continue
        labels[own[0]] = own[1]
        left, right = corpus.context[places - 1], corpus.context[places + length]
        order = np.lexsort((right, left, ngram))
        places = places[order]
        beside = np.stack((ngram, left, right))[:, order]
        firsts = np.flatnonzero(np.append(True, (np.diff(beside) != 0).any(axis=0)))
        annotated = labels[places]
        lowest, highest = (of.reduceat(annotated, firsts) for of in (np.minimum, np.maximum))
        lasts = np.append(firsts[1:], len(places))
        for group in np.flatnonzero(lowest != highest).tolist():
            some = slice(firsts[group], lasts[group])
            found += _judged(corpus, places[some], length, annotated[some], names)
        labels[own[0]] = 0
    return found


def _annotated(
    corpus: _Corpus, rows: Iterable[Iterable[Row]]
) -> tuple[dict[int, Numbers], list[str]]:
    """By length, where n-grams are annotated and with what number, ``[2, rows]``; their names."""
    numbers: dict[str, int] = {"": 0}
    found: dict[int, list[tuple[int, int]]] = {}
    for first, own in zip(corpus.starts.tolist(), rows, strict=True):
        for start, end, name in own:
            label = numbers.setdefault(name, len(numbers))
            found.setdefault(end - start, []).append((first + start, label))
    arrays = {length: np.array(pairs, dtype=np.int64).T for length, pairs in found.items()}
    return arrays, list(numbers)


def _repeated(tokens: Numbers) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Yield the n-grams that occur twice or more by their length, as long as there are any.

    There are as many n-grams as a sentence has words squared, but few of the long ones occur
    twice, and none of which a shorter part does not. So those of m + 1 words are found among those
    of m words that are left, each as the pair of its first and its last m words. Beside a length
    is ``[occurrences]`` where each begins, and the number of its n-gram, in ascending order.
    """
    # The number of the n-gram at each place; -1 where it occurs once, or has a boundary.
    numbers = np.full(len(tokens), -1)
    places, keys = np.flatnonzero(tokens != BOUNDARY), tokens[tokens != BOUNDARY]
    length = 1
    while len(places):
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        ngram = np.cumsum(np.append(0, keys[1:] != keys[:-1]))
        kept = np.bincount(ngram)[ngram] > 1
        places, ngram = places[kept], ngram[kept]
        if len(places):
            yield length, places, ngram
        numbers.fill(-1)
        numbers[places] = ngram
        # The next longer ones are two of these, one word apart; the last place is a boundary.
        places = np.flatnonzero((numbers[:-1] >= 0) & (numbers[1:] >= 0))
        keys = numbers[places] * len(tokens) + numbers[places + 1]
        length += 1


def _judged(
    corpus: _Corpus, places: Numbers, length: int, labels: Numbers, names: Sequence[str]
) -> Iterator[Suspicion]:
    """The suspicious ones among the places of a nucleus, of which the words beside are the same."""
    sentences = np.searchsorted(corpus.ends, places, side="right")
    left = _around(corpus.context, places - 1, -1, corpus.starts[sentences] - 1)
    right = _around(corpus.context, places + length, 1, corpus.ends[sentences])
    kinds, own, frequency = np.unique(labels, return_inverse=True, return_counts=True)
    judged = np.arange(len(places))
    if len(judged) > MANY:
        judged = judged[frequency[own] <= max(1, RARE * len(judged))]
    at_once = max(1, PAIRS // (len(places) * WIDEST))
    for low in range(0, len(judged), at_once):
        rows = judged[low : low + at_once]
        # Words that each shares around the nucleus with each other place, [rows, places].
        shared = _alike(left, rows) + _alike(right, rows)
        levels = np.arange(2, max(2, int(shared.max())) + 1)
        # How many places of each label share as many words with each: [rows, kinds, levels].
        enough = shared[:, :, None] >= levels
        counts = np.stack([enough[:, own == kind].sum(axis=1) for kind in range(len(kinds))], 1)
        each = np.arange(len(rows))
        same = counts[each, own[rows]]
        counts[each, own[rows]] = -1
        other, differing = counts.argmax(axis=1), counts.max(axis=1)
        scores = suspicion(same, differing, levels + length)
        scores[differing < np.maximum(same, 1)] = -np.inf
        best = scores.argmax(axis=1)
        for row in np.flatnonzero(np.isfinite(scores.max(axis=1))).tolist():
            level = int(best[row])
            kind = int(other[row, level])
            against = np.flatnonzero((own == kind) & (shared[row] >= levels[level]))
            against = against[np.argsort(-shared[row, against], kind="stable")][:COUNTEREXAMPLES]
            yield Suspicion(
                float(scores[row, level]),
                corpus.place(int(places[rows[row]]), length),
                names[int(labels[rows[row]])],
                names[int(kinds[kind])],
                int(same[row, level]),
                int(differing[row, level]),
                int(levels[level]),
                tuple(corpus.place(first, length) for first in places[against].tolist()),
            )


def _around(context: Numbers, nearest: Numbers, step: int, last: Numbers) -> Numbers:
    """Tokens ``[places, WIDEST]`` from the nearest on; beyond the last ones -1."""
    where = nearest[:, None] + step * np.arange(WIDEST)
    inside = step * where <= step * last[:, None]
    return np.where(inside, context[np.where(inside, where, 0)], -1)


def _alike(tokens: Numbers, rows: Numbers) -> Numbers:
    """How many of the first tokens of some rows those of each row share, ``[rows, places]``."""
    equal = (tokens[rows, None] == tokens[None]) & (tokens[rows, None] >= 0)
    return np.minimum.accumulate(equal, axis=2).sum(axis=2)
