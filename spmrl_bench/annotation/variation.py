"""The same words annotated in different ways: inconsistent places of a treebank, without a parser.

A stretch of words that is annotated differently in several places, a *variation nucleus*, is either
ambiguous, or wrong somewhere. The more words around it are the same, too, the less it can be
ambiguous (Dickinson & Meurers 2003, Detecting errors in part-of-speech annotation, EACL; for
constituents, Detecting inconsistencies in treebanks, TLT). What a stretch is annotated as is

- for tags, the tag of a single word;
- for constituents, the label of the constituent over it, a unary chain as one label, or that there
  is none (NIL; section 3 of the second paper);
- for dependencies, the relation between its first and its last word and which of the two governs
  the other, or that there is none (Boyd, Dickinson & Meurers 2008, On detecting errors in
  dependency treebanks; the words between the two are the same, which is its internal context).

By the *non-fringe heuristic* a nucleus does not count where the shared words end with it on either
side, because many phrases can be told to end only by the next word. Here the beginning and the end
of a sentence are a shared word, too.

The papers list stretches. Here each place is judged on its own, as what is to be looked at is a
sentence: among the places that share so many words with it, how many are annotated as this one, and
how many in the other way that is most frequent? The place is suspicious as the second exceed the
first; :func:`suspicion` weighs that against how many words are shared, for every number of shared
words, and the most suspicious of them counts. That needs no threshold of length, and of two
places that differ in a long context the one is named that shorter contexts speak against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Words of context on either side that are looked at: what is alike in so many is alike.
WIDEST = 12
#: Places of a nucleus beyond which only those of rare annotations are judged, and how rare.
MANY, RARE = 400, 0.05
#: Pairs of places that are compared at once.
PAIRS = 1 << 18
#: Other places that a suspicion names.
WITNESSES = 3

#: Start, end and annotation of a stretch of words.
Row = tuple[int, int, str]


#: The token between two sentences.
BOUNDARY = 0


class Corpus(NamedTuple):
    """Sentences as one row of numbers.

    Attributes:
        tokens: int64 ``[words + sentences + 1]``, the number of each word from 1, and
            :data:`BOUNDARY` before, between and behind the sentences.
        starts: int64 ``[sentences]``, where the first word of each is.
        ends: likewise the boundary behind its last word.
    """

    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]]) -> Corpus:
        numbers: dict[str, int] = {}
        row = [BOUNDARY]
        for words in sentences:
            row += [numbers.setdefault(word, len(numbers) + 1) for word in words]
            row.append(BOUNDARY)
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        ends = np.cumsum(lengths + 1)
        return cls(np.array(row, dtype=np.int64), ends - lengths, ends)

    def sentence_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sentence, from 0, of each place of a word."""
        return np.searchsorted(self.ends, places, side="right")


class Repeated(NamedTuple):
    """The stretches of a length, in words, that occur twice or more.

    Attributes:
        places: int64 ``[occurrences]``, where each begins; equal ones follow each other, each of
            them in ascending order.
        stretch: int64 ``[occurrences]``, the number of the stretch at each, in ascending order.
    """

    length: int
    places: NDArray[np.int64]
    stretch: NDArray[np.int64]


def repeated(tokens: NDArray[np.int64]) -> Iterator[Repeated]:
    """Yield the repeated stretches of each length from 1 on, as long as there are any.

    There are as many stretches as a sentence has words squared, but few of the long ones occur
    twice, and none of which a shorter part does not. So those of m + 1 words are found among those
    of m words that are left, each as the pair of its first and its last m words.

    Args:
        tokens: of a :class:`Corpus`.
    """
    # The number of the stretch at each place; -1 where it occurs once, or has a boundary.
    numbers = np.full(len(tokens), -1)
    places, keys = np.flatnonzero(tokens != BOUNDARY), tokens[tokens != BOUNDARY]
    length = 1
    while len(places):
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        stretch = np.cumsum(np.append(0, keys[1:] != keys[:-1]))
        kept = np.bincount(stretch)[stretch] > 1
        places, stretch = places[kept], stretch[kept]
        yield Repeated(length, places, stretch)
        numbers.fill(-1)
        numbers[places] = stretch
        # The next longer ones are two of these, one word apart; the last place is a boundary.
        places = np.flatnonzero((numbers[:-1] >= 0) & (numbers[1:] >= 0))
        keys = numbers[places] * len(tokens) + numbers[places + 1]
        length += 1


class Place(NamedTuple):
    """A stretch of words: the number of its sentence, from 1, and its fenceposts."""

    sentence: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A place whose annotation other places with the same words do not have.

    Attributes:
        found: how it is annotated; empty for not at all.
        others: how most of the others are.
        same, differing: of the places that share as many words, how many are annotated in the
            one way, this one included, and in the other.
        shared: words around the nucleus that all these share, the ends of a sentence among them.
        score: of :func:`suspicion`.
        witnesses: some of the others, those that share the most words first.
    """

    place: Place
    found: str
    others: str
    same: int
    differing: int
    shared: int
    score: float
    witnesses: tuple[Place, ...]

    @property
    def length(self) -> int:
        """Words of the variation n-gram: the nucleus and the words that are shared around it."""
        return self.place.end - self.place.start + self.shared


def suspicion(
    same: NDArray[np.integer], differing: NDArray[np.integer], length: NDArray[np.integer]
) -> NDArray[np.float64]:
    """How suspicious places are: how lopsided the annotation is, and of how long a stretch.

    Args:
        same: places annotated alike, 1 or more, of any shape.
        differing: places annotated in one other way.
        length: words of the nucleus and of the shared context.
    """
    # A half more or less keeps one against two apart from ten against twenty.
    odds = np.log2((differing + 0.5) / (np.maximum(same, 1) - 0.5))
    found: NDArray[np.float64] = odds + np.log2(length)
    return found


def find_variation(
    sentences: Sequence[Sequence[str]],
    rows: Iterable[Iterable[Row]],
    *,
    around: Sequence[Sequence[str]] | None = None,
    min_length: int = 3,
    fringe: bool = False,
) -> list[Suspicion]:
    """The suspicious places of a corpus, in no particular order, one for each stretch of words.

    Args:
        sentences: the words of each, or what stands for them.
        rows: of each sentence its annotated stretches, one for each; all others have none.
        around: what is compared around a nucleus, where that is not the words.
        min_length: of a nucleus and the shared words around it, in words.
        fringe: whether a nucleus counts where no word is shared on one side of it.
    """
    corpus = Corpus.of(sentences)
    context = corpus.tokens if around is None else Corpus.of(around).tokens
    by_length, names = _annotated(corpus, rows)
    labels = np.zeros(len(corpus.tokens), dtype=np.int64)
    found: list[Suspicion] = []
    for each in repeated(corpus.tokens):
        own = by_length.get(each.length)
        if own is None:
            continue
        labels[own[0]] = own[1]
        places, group = (each.places, each.stretch) if fringe else _within(each, context)
        for chosen in _varied(places, group, labels):
            nucleus = _Nucleus(corpus, context, chosen, each.length, labels[chosen])
            found += nucleus.suspicions(names, 0 if fringe else 2, min_length)
        labels[own[0]] = 0
    return found


def _within(
    each: Repeated, context: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of stretches, and numbers that are equal where the words beside them are, too."""
    left, right = context[each.places - 1], context[each.places + each.length]
    order = np.lexsort((right, left, each.stretch))
    columns = np.stack((each.stretch, left, right))[:, order]
    return each.places[order], np.cumsum(np.append(0, (np.diff(columns) != 0).any(axis=0)))


def _varied(
    places: NDArray[np.int64], group: NDArray[np.int64], labels: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The places of each group that are not all annotated alike; ``group`` ascends."""
    if not len(places):
        return []
    firsts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    own = labels[places]
    varied = np.minimum.reduceat(own, firsts) != np.maximum.reduceat(own, firsts)
    lasts = np.append(firsts[1:], len(places))
    pairs = zip(firsts[varied].tolist(), lasts[varied].tolist(), strict=True)
    return [places[first:last] for first, last in pairs]


def _annotated(
    corpus: Corpus, rows: Iterable[Iterable[Row]]
) -> tuple[dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]], list[str]]:
    """By length, where stretches are annotated and with what number; the name of each number."""
    numbers: dict[str, int] = {"": 0}
    found: dict[int, tuple[list[int], list[int]]] = {}
    for first, own in zip(corpus.starts.tolist(), rows, strict=True):
        for start, end, name in own:
            places, labels = found.setdefault(end - start, ([], []))
            places.append(first + start)
            labels.append(numbers.setdefault(name, len(numbers)))
    arrays = {
        length: (np.array(places, dtype=np.int64), np.array(labels, dtype=np.int64))
        for length, (places, labels) in found.items()
    }
    return arrays, list(numbers)


class _Nucleus:
    """The places of one stretch of words, which are annotated in several ways."""

    def __init__(
        self,
        corpus: Corpus,
        context: NDArray[np.int64],
        places: NDArray[np.int64],
        length: int,
        labels: NDArray[np.int64],
    ) -> None:
        self.corpus, self.context, self.places = corpus, context, places
        self.length, self.labels = length, labels
        self.sentences = corpus.sentence_of(places)
        self.left = self._around(places - 1, -1, corpus.starts[self.sentences] - 1)
        self.right = self._around(places + length, 1, corpus.ends[self.sentences])

    def _around(
        self, nearest: NDArray[np.int64], step: int, last: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Tokens ``[places, WIDEST]`` from the nearest on; beyond the last ones -1."""
        where = nearest[:, None] + step * np.arange(WIDEST)
        inside = step * where <= step * last[:, None]
        return np.where(inside, self.context[np.where(inside, where, 0)], -1)

    def suspicions(self, names: Sequence[str], least: int, min_length: int) -> Iterator[Suspicion]:
        """The places against which others speak, which share so many words at least."""
        least = max(least, min_length - self.length)
        kinds, own, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        judged = np.arange(len(self.places))
        if len(judged) > MANY:
            judged = judged[counts[own] <= max(1, RARE * len(judged))]
        at_once = max(1, PAIRS // (len(self.places) * WIDEST))
        for low in range(0, len(judged), at_once):
            rows = judged[low : low + at_once]
            shared = _alike(self.left, rows) + _alike(self.right, rows)
            yield from self._judge(rows, shared, kinds, own, names, least)

    def _judge(
        self,
        rows: NDArray[np.int64],
        shared: NDArray[np.int64],
        kinds: NDArray[np.int64],
        own: NDArray[np.int64],
        names: Sequence[str],
        least: int,
    ) -> Iterator[Suspicion]:
        """The suspicious ones among the places ``rows``.

        They share words around the nucleus with each place, ``[rows, places]``; each place has its
        ``own`` of the ``kinds`` of labels.
        """
        levels = np.arange(least, max(least, int(shared.max())) + 1)
        # How many places of each label share as many words with each: [rows, kinds, levels].
        enough = shared[:, :, None] >= levels
        counts = np.stack([enough[:, own == kind].sum(axis=1) for kind in range(len(kinds))], 1)
        each = np.arange(len(rows))
        same = counts[each, own[rows]]
        counts[each, own[rows]] = -1
        other = counts.argmax(axis=1)
        differing = counts.max(axis=1)
        scores = np.where(
            differing >= np.maximum(same, 1),
            suspicion(same, differing, levels + self.length),
            -np.inf,
        )
        best = scores.argmax(axis=1)
        for row in np.flatnonzero(np.isfinite(scores.max(axis=1))).tolist():
            level = int(best[row])
            kind = int(other[row, level])
            against = np.flatnonzero((own == kind) & (shared[row] >= levels[level]))
            against = against[np.argsort(-shared[row, against], kind="stable")][:WITNESSES]
            yield Suspicion(
                self._place(int(rows[row])),
                names[int(kinds[own[rows[row]]])],
                names[int(kinds[kind])],
                int(same[row, level]),
                int(differing[row, level]),
                int(levels[level]),
                float(scores[row, level]),
                tuple(map(self._place, against.tolist())),
            )

    def _place(self, number: int) -> Place:
        sentence = int(self.sentences[number])
        start = int(self.places[number] - self.corpus.starts[sentence])
        return Place(sentence + 1, start, start + self.length)


def _alike(tokens: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the first tokens of some rows those of each row share, ``[rows, places]``."""
    equal = (tokens[rows, None] == tokens[None]) & (tokens[rows, None] >= 0)
    found: NDArray[np.int64] = np.minimum.accumulate(equal, axis=2).sum(axis=2)
    return found
