"""Bracket counts of a whole corpus, compiled: the rows of ``evalb.count_brackets``.

A label or tag is looked up once per corpus. From then on it is a number, its *atom*, and what
the parameter file says of it is a row of a table. A sentence is two :class:`Side` objects full
of atoms and fenceposts; :class:`Counter` compares them without touching a Python object. Trees
in memory become sides here, text in ``_scanning.pyx``.

Only the usual is done here. A sentence whose words differ, that needs a quotation mark put back
or that is no proper tree gets the status ``ASK``, and the caller counts it with the plain-Python
code. Every other row is the same, number for number.

Every index goes through a typed memoryview, so that a debug build (SPMRL_BENCH_BOUNDS_CHECKS=1,
see setup.py) checks it.
"""

import numpy as np

from spmrl_bench.errors import ArrayError

from cpython.object cimport PyObject


cdef enum:
    RECENT = 1024  # a power of two

cdef enum:  # values of Column, and how many there are
    LENGTH = 0
    STATUS = 1
    MATCHED = 2
    GOLD = 3
    TEST = 4
    CROSSING = 5
    WORDS = 6
    MATCHED_TAGS = 7
    COLUMNS = 8


cdef class Atoms:
    """Labels and tags as numbers, and what they count as.

    ``classify`` gives the row of a label in ``table``: the class that it has as a label (-1: not
    counted), the class that it has as a tag, and its flags as a tag. Classes are numbered from 0.
    """

    def __init__(self, classify):
        self.classify = classify
        self.numbers = {}
        self.recent = [None] * RECENT
        self.recent_atoms = np.empty(RECENT, dtype=np.int32)
        self.table = np.empty((64, 3), dtype=np.int32)

    cdef int32_t number(self, object label) except -1:
        """The atom of a label or tag.

        A reader makes each label once, so that most are found by their address. They are kept
        here, lest another gets the address.
        """
        cdef Py_ssize_t slot = (<size_t><PyObject*>label >> 4) % RECENT
        if self.recent[slot] is not label:
            found = self.numbers.get(label)
            self.recent_atoms[slot] = self.add(label) if found is None else found
            self.recent[slot] = label
        return self.recent_atoms[slot]

    cdef int32_t add(self, object label) except -1:
        """A new atom."""
        cdef int32_t atom = len(self.numbers)
        if atom == self.table.shape[0]:
            self.table = np.concatenate([self.table, self.table])
        cdef int32_t[::1] row = self.table[atom]
        row[LABEL_CLASS], row[TAG_CLASS], row[FLAGS] = self.classify(label)
        self.numbers[label] = atom
        return atom


cdef class Side:
    """One tree as atoms and fenceposts; the arrays are used again for the next tree.

    ``words``, ``tags`` and the offsets of the words (of text only) are those of the tree;
    ``marks`` counts words that may be quotation marks to put back; ``rows``, ``starts``,
    ``ends`` and ``labels`` are the constituents. :meth:`settle` turns these into
    ``kept_words`` and ``kept`` (the words that are not removed), and makes the arrays of the
    constituents those of the ``brackets`` that count, with classes in place of labels.
    """

    def __init__(self, Py_ssize_t room):
        """``room``: the words, and the constituents, that a tree has at most."""
        self.tags, self.kept, self.fences, self.starts, self.ends, self.labels = (
            np.empty(room + 1, dtype=np.int32) for _ in range(6)
        )
        self.word_starts = np.empty(room, dtype=np.int64)
        self.word_ends = np.empty(room, dtype=np.int64)

    cdef bint settle(self, Atoms atoms) except -1 nogil:
        """Remove words and constituents; False where the rest is not in the order of a tree."""
        cdef Py_ssize_t i, kept = 0, brackets = 0
        cdef int32_t start, end, label_class, last_start = -1, last_end = 0
        for i in range(self.words):
            self.fences[i] = kept
            self.kept[kept] = i
            kept += not atoms.table[self.tags[i], FLAGS] & REMOVED
        self.fences[self.words] = kept
        self.kept_words = kept
        for i in range(self.rows):
            label_class = atoms.table[self.labels[i], LABEL_CLASS]
            start = self.fences[self.starts[i]]
            end = self.fences[self.ends[i]]
            if label_class < 0 or start >= end:
                continue
            if start < last_start or (start == last_start and end > last_end):
                return False
            self.starts[brackets] = last_start = start
            self.ends[brackets] = last_end = end
            self.labels[brackets] = label_class
            brackets += 1
        self.brackets = brackets
        return True


cdef class Counter:
    """Compares two sides and fills the row of sentence ``k``."""

    def __init__(self, Atoms atoms, Py_ssize_t sentences, bint ask_about_no_words):
        self.atoms = atoms
        self.no_words = ASK if ask_about_no_words else NO_WORDS
        self.rows = np.zeros((sentences, COLUMNS), dtype=np.int64)

    cdef int compare_lengths(self, Py_ssize_t k, Side gold, Side test) except -2 nogil:
        """Whether the words of two settled sides are equally many; a status."""
        cdef Py_ssize_t i
        cdef int64_t length = 0
        for i in range(gold.words):
            length += not self.atoms.table[gold.tags[i], FLAGS] & NOT_IN_LENGTH
        self.rows[k, LENGTH] = length
        if test.kept_words == 0:
            return self.no_words
        if gold.kept_words == test.kept_words:
            return VALID
        return ASK if gold.marks and test.marks else LENGTH_UNMATCH

    cdef int fill(self, Py_ssize_t k, int verdict, Side gold, Side test) except -1 nogil:
        """Write the status of a sentence and, if the words are the same, its counts."""
        cdef Py_ssize_t i
        cdef int64_t matched_tags = 0
        cdef int32_t gold_tag, test_tag
        self.rows[k, STATUS] = verdict
        if verdict != VALID:
            return 0
        for i in range(gold.kept_words):
            gold_tag = gold.tags[gold.kept[i]]
            test_tag = test.tags[test.kept[i]]
            matched_tags += (
                self.atoms.table[gold_tag, TAG_CLASS] == self.atoms.table[test_tag, TAG_CLASS]
            )
        self.rows[k, GOLD] = gold.brackets
        self.rows[k, TEST] = test.brackets
        self.rows[k, WORDS] = gold.kept_words
        self.rows[k, MATCHED_TAGS] = matched_tags
        return self.match(k, gold, test)

    cdef int match(self, Py_ssize_t k, Side gold, Side test) except -1 nogil:
        """Count matching and crossing brackets; gold's labels are used up.

        Both lists are in the order of the start and, among equal starts, from long to short,
        so that brackets over the same span stand together.
        """
        cdef Py_ssize_t g = 0, t = 0, first, here, i
        cdef int32_t start, end
        cdef int64_t matched = 0, crossing = 0
        while t < test.brackets:
            start = test.starts[t]
            end = test.ends[t]
            while g < gold.brackets and (
                gold.starts[g] < start or (gold.starts[g] == start and gold.ends[g] > end)
            ):
                g += 1
            first = g
            while g < gold.brackets and gold.starts[g] == start and gold.ends[g] == end:
                g += 1
            here = t
            while t < test.brackets and test.starts[t] == start and test.ends[t] == end:
                for i in range(first, g):
                    if gold.labels[i] == test.labels[t]:
                        gold.labels[i] = -1
                        matched += 1
                        break
                t += 1
            # A span of gold, which nests, crosses none.
            if first == g and end - start > 1 and self.crosses(gold, start, end):
                crossing += t - here
        self.rows[k, MATCHED] = matched
        self.rows[k, CROSSING] = crossing
        return 0

    cdef bint crosses(self, Side gold, int32_t start, int32_t end) except -1 nogil:
        """Whether a gold bracket overlaps a span without nesting."""
        cdef Py_ssize_t i
        for i in range(gold.brackets):
            if gold.starts[i] >= end:
                break
            if gold.starts[i] < start < gold.ends[i] < end:
                return True
            if start < gold.starts[i] and end < gold.ends[i]:
                return True
        return False


cdef bint read_tree(Side side, tree, Atoms atoms) except -1:
    """Fill a side from a Tree; False if its parts do not have the types or sizes of a tree."""
    cdef Py_ssize_t i
    cdef int32_t atom
    words, tags, labels = tree.words, tree.tags, tree.labels
    if type(words) is not tuple or type(tags) is not tuple or type(labels) is not tuple:
        return False
    cdef tuple some_words = words, some_tags = tags, some_labels = labels
    side.words = len(some_words)
    side.rows = len(some_labels)
    side.marks = 0
    if len(some_tags) != side.words:
        return False
    for i in range(side.words):
        atom = side.tags[i] = atoms.number(some_tags[i])
        side.marks += atoms.table[atom, FLAGS] & QUOTE and len(some_words[i]) == 1
    for i in range(side.rows):
        side.labels[i] = atoms.number(some_labels[i])
    return read_spans(side, tree.spans)


cdef bint read_spans(Side side, spans) except -1:
    """Copy int32 spans ``[rows, 2]``; False where they are anything else or out of range."""
    cdef const int32_t[:, ::1] numbers
    cdef Py_ssize_t i
    try:
        numbers = spans
    except ValueError:
        return False
    if numbers.shape[0] != side.rows or numbers.shape[1] != 2:
        return False
    for i in range(side.rows):
        side.starts[i] = numbers[i, 0]
        side.ends[i] = numbers[i, 1]
        if not 0 <= side.starts[i] <= side.ends[i] <= side.words:
            return False
    return True


cdef bint same_words(Side gold, tuple gold_words, Side test, tuple test_words) except -1:
    """Whether the words that were kept are the same; the sides have equally many."""
    cdef Py_ssize_t i
    cdef str one, other
    for i in range(gold.kept_words):
        one = gold_words[gold.kept[i]]
        other = test_words[test.kept[i]]
        if one is not other and one != other:
            return False
    return True


def count_trees(list gold not None, list test not None, classify, bint ask_about_no_words):
    """Rows of counts, int64 ``[sentences, columns]``; status -1 where the caller must count.

    ``gold`` and ``test`` are equally long lists of Trees. The caller can ask for the sentences
    whose test tree has no words that count.
    """
    cdef Py_ssize_t k, room = 0
    cdef int verdict
    if len(gold) != len(test):
        raise ArrayError(f"test has {len(test)} trees; gold has {len(gold)}, and both must agree.")
    for side in (gold, test):
        for tree in side:
            room = max(room, len(tree.words), len(tree.labels))
    cdef Atoms atoms = Atoms(classify)
    cdef Side gold_side = Side(room), test_side = Side(room)
    cdef Counter counter = Counter(atoms, len(gold), ask_about_no_words)
    for k in range(len(gold)):
        verdict = ASK
        if (
            read_tree(gold_side, gold[k], atoms)
            and gold_side.settle(atoms)
            and read_tree(test_side, test[k], atoms)
            and test_side.settle(atoms)
        ):
            verdict = counter.compare_lengths(k, gold_side, test_side)
        if verdict == VALID and not same_words(
            gold_side, gold[k].words, test_side, test[k].words
        ):
            verdict = ASK
        counter.fill(k, verdict, gold_side, test_side)
    return np.asarray(counter.rows)
