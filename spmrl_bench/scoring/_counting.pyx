"""Bracket counts of a whole corpus, compiled: the rows of ``brackets.count_brackets``.

A label or tag is looked up once per corpus. From then on it is a number, its *atom*, and what
the parameter file says of it stands in arrays indexed by atoms. A sentence is two
:class:`Side` objects full of atoms and fenceposts; :class:`Counter` compares them without
touching a Python object. Trees in memory become sides here, text in ``_scanning.pyx``.

Only the usual is done here. A sentence that needs a quotation mark put back, a pair of equal
words, or that is no proper tree gets the status ``ASK``, and the caller counts it with the
plain-Python code. Every other row is the same, number for number.

Every index goes through a typed memoryview, except for the spans of a tree while they are
copied, so that a debug build (SPMRL_BENCH_BOUNDS_CHECKS=1, see setup.py) checks it.
"""

import numpy as np

from spmrl_bench.errors import ArrayError

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject


cdef enum:
    RECENT = 1024  # a power of two


cdef object longer(array, Py_ssize_t needed):
    """A copy of an array that has room for at least ``needed`` items."""
    longer_array = np.empty(max(needed, 2 * len(array)), dtype=np.asarray(array).dtype)
    longer_array[: len(array)] = array
    return longer_array


cdef class Atoms:
    """Labels and tags as numbers, and what they count as.

    ``classify`` maps a label to the class it has as a label (-1: not counted), the class it
    has as a tag, and its flags as a tag. Classes are numbered from 0.
    """

    def __init__(self, classify):
        self.classify = classify
        self.numbers = {}
        self.recent = [None] * RECENT
        self.recent_atoms = np.empty(RECENT, dtype=np.int32)
        self.classes = 0
        self.label_class = np.empty(64, dtype=np.int32)
        self.tag_class = np.empty(64, dtype=np.int32)
        self.flags = np.empty(64, dtype=np.uint8)

    cdef int32_t number(self, object label) except -1:
        """The atom of a label or tag.

        A reader makes each label once, so that most are found by their address. They are kept
        here, lest another gets the address.
        """
        cdef Py_ssize_t slot = (<size_t><PyObject*>label >> 4) % RECENT
        if self.recent[slot] is label:
            return self.recent_atoms[slot]
        cdef PyObject* found = PyDict_GetItemWithError(self.numbers, label)
        cdef int32_t atom = self.add(label) if found == NULL else <object>found
        self.recent[slot] = label
        self.recent_atoms[slot] = atom
        return atom

    cdef int32_t add(self, object label) except -1:
        """A new atom."""
        cdef int32_t atom = len(self.numbers)
        cdef int32_t label_class, tag_class
        cdef uint8_t flags
        label_class, tag_class, flags = self.classify(label)
        if atom == self.flags.shape[0]:
            self.label_class = longer(self.label_class, atom + 1)
            self.tag_class = longer(self.tag_class, atom + 1)
            self.flags = longer(self.flags, atom + 1)
        self.label_class[atom] = label_class
        self.tag_class[atom] = tag_class
        self.flags[atom] = flags
        self.classes = max(self.classes, label_class + 1, tag_class + 1)
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

    def __init__(self):
        self.tags, self.kept, self.fences, self.starts, self.ends, self.labels = (
            np.empty(256, dtype=np.int32) for _ in range(6)
        )
        self.word_starts = np.empty(256, dtype=np.int64)
        self.word_ends = np.empty(256, dtype=np.int64)

    cdef int room_for_words(self, Py_ssize_t words) except -1:
        if words >= self.tags.shape[0]:
            self.tags = longer(self.tags, words + 1)
            self.kept = longer(self.kept, words + 1)
            self.fences = longer(self.fences, words + 1)
            self.word_starts = longer(self.word_starts, words + 1)
            self.word_ends = longer(self.word_ends, words + 1)
        return 0

    cdef int room_for_rows(self, Py_ssize_t rows) except -1:
        if rows > self.starts.shape[0]:
            self.starts = longer(self.starts, rows)
            self.ends = longer(self.ends, rows)
            self.labels = longer(self.labels, rows)
        return 0

    cdef bint settle(self, Atoms atoms) except -1 nogil:
        """Remove words and constituents; False where the rest is not in the order of a tree."""
        cdef Py_ssize_t i, kept = 0, brackets = 0
        cdef int32_t start, end, label_class, last_start = -1, last_end = 0
        for i in range(self.words):
            self.fences[i] = kept
            self.kept[kept] = i
            kept += not atoms.flags[self.tags[i]] & REMOVED
        self.fences[self.words] = kept
        self.kept_words = kept
        for i in range(self.rows):
            label_class = atoms.label_class[self.labels[i]]
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
    """Compares two sides and writes the row of sentence ``k``."""

    def __init__(self, Atoms atoms, Py_ssize_t sentences):
        self.atoms = atoms
        self.rows = np.zeros((sentences, COLUMNS), dtype=np.int64)
        self.unpaired = np.zeros(64, dtype=np.int32)
        self.first_start = np.empty(256, dtype=np.int32)
        self.last_end = np.empty(256, dtype=np.int32)

    cdef int room_for_sentences(self, Py_ssize_t sentences) except -1:
        if sentences > self.rows.shape[0]:
            rows = np.zeros((2 * sentences, COLUMNS), dtype=np.int64)
            rows[: self.rows.shape[0]] = self.rows
            self.rows = rows
        return 0

    cdef int compare_lengths(self, Py_ssize_t k, Side gold, Side test) except -2 nogil:
        """Whether the words of two settled sides are equally many; a status."""
        cdef Py_ssize_t i
        cdef int64_t length = 0
        for i in range(gold.words):
            length += not self.atoms.flags[gold.tags[i]] & NOT_IN_LENGTH
        self.rows[k, LENGTH] = length
        if test.kept_words == 0:
            return NO_WORDS
        if gold.kept_words == test.kept_words:
            return VALID
        return ASK if gold.marks and test.marks else LENGTH_UNMATCH

    cdef int leave_out(self, Py_ssize_t k, int verdict) except -1 nogil:
        """Make sentence ``k`` one that is not scored."""
        self.rows[k, STATUS] = verdict
        return 0

    cdef int compare_brackets(self, Py_ssize_t k, Side gold, Side test) except -1 nogil:
        """Fill the row of a sentence whose words are the same on both sides."""
        cdef Py_ssize_t i
        cdef int64_t matched_tags = 0
        cdef int32_t gold_tag, test_tag
        for i in range(gold.kept_words):
            gold_tag = gold.tags[gold.kept[i]]
            test_tag = test.tags[test.kept[i]]
            matched_tags += self.atoms.tag_class[gold_tag] == self.atoms.tag_class[test_tag]
        self.rows[k, STATUS] = VALID
        self.rows[k, GOLD] = gold.brackets
        self.rows[k, TEST] = test.brackets
        self.rows[k, WORDS] = gold.kept_words
        self.rows[k, MATCHED_TAGS] = matched_tags
        return self.match(k, gold, test)

    cdef int match(self, Py_ssize_t k, Side gold, Side test) except -1 nogil:
        """Count matching and crossing brackets.

        Both lists are in the order of the start and, among equal starts, from long to short,
        so that brackets over the same span stand together.
        """
        cdef Py_ssize_t g = 0, t = 0, first, here
        cdef int32_t start, end, label
        cdef int64_t matched = 0, crossing = 0
        cdef bint fences_known = False
        if self.unpaired.shape[0] < self.atoms.classes:
            with gil:
                self.unpaired = np.zeros(2 * self.atoms.classes, dtype=np.int32)
        while t < test.brackets:
            start = test.starts[t]
            end = test.ends[t]
            while g < gold.brackets and (
                gold.starts[g] < start or (gold.starts[g] == start and gold.ends[g] > end)
            ):
                g += 1
            first = g
            while g < gold.brackets and gold.starts[g] == start and gold.ends[g] == end:
                self.unpaired[gold.labels[g]] += 1
                g += 1
            here = t
            while t < test.brackets and test.starts[t] == start and test.ends[t] == end:
                label = test.labels[t]
                if first < g and self.unpaired[label] > 0:
                    self.unpaired[label] -= 1
                    matched += 1
                t += 1
            if first < g:
                while first < g:
                    self.unpaired[gold.labels[first]] = 0
                    first += 1
            elif end - start > 1:  # a span of gold, which nests, crosses none
                if not fences_known:
                    self.mark_fences(gold)
                    fences_known = True
                if self.crosses(start, end):
                    crossing += t - here
        self.rows[k, MATCHED] = matched
        self.rows[k, CROSSING] = crossing
        return 0

    cdef int mark_fences(self, Side gold) except -1 nogil:
        """For every fencepost: where gold brackets that end there start, and the reverse."""
        cdef Py_ssize_t i, size = gold.kept_words + 1
        cdef int32_t start, end
        if self.first_start.shape[0] < size:
            with gil:
                self.first_start = np.empty(2 * size, dtype=np.int32)
                self.last_end = np.empty(2 * size, dtype=np.int32)
        for i in range(size):
            self.first_start[i] = i
            self.last_end[i] = i
        for i in range(gold.brackets):
            start = gold.starts[i]
            end = gold.ends[i]
            self.first_start[end] = min(self.first_start[end], start)
            self.last_end[start] = max(self.last_end[start], end)
        return 0

    cdef bint crosses(self, int32_t start, int32_t end) except -1 nogil:
        """Whether a gold bracket that starts or ends inside a span reaches out of it."""
        cdef Py_ssize_t fence
        for fence in range(start + 1, end):
            if self.first_start[fence] < start or self.last_end[fence] > end:
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
    side.room_for_words(side.words)
    side.room_for_rows(side.rows)
    for i in range(side.words):
        atom = atoms.number(some_tags[i])
        side.tags[i] = atom
        if atoms.flags[atom] & QUOTE and len(some_words[i]) == 1:
            side.marks += 1
    for i in range(side.rows):
        side.labels[i] = atoms.number(some_labels[i])
    return read_spans(side, tree.spans)


cdef bint read_spans(Side side, spans) except -1:
    """Copy int32 spans ``[rows, 2]``; False where they are anything else or out of range."""
    cdef Py_buffer view
    cdef Py_ssize_t i
    cdef int32_t start, end
    cdef const int32_t* numbers
    PyObject_GetBuffer(spans, &view, PyBUF_FORMAT | PyBUF_STRIDES)
    try:
        if (
            view.ndim != 2
            or view.shape[0] != side.rows
            or view.shape[1] != 2
            or view.itemsize != sizeof(int32_t)
            or view.format[0] not in b"il"
            or (side.rows and (view.strides[0] != 8 or view.strides[1] != 4))
        ):
            return False
        numbers = <const int32_t*>view.buf
        for i in range(side.rows):
            start = numbers[2 * i]
            end = numbers[2 * i + 1]
            if not 0 <= start <= end <= side.words:
                return False
            side.starts[i] = start
            side.ends[i] = end
    finally:
        PyBuffer_Release(&view)
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


def count_trees(
    list gold not None, list test not None, classify, bint ask_about_words, bint ask_about_no_words
):
    """Rows of counts, int64 ``[sentences, columns]``; status -1 where the caller must count.

    ``gold`` and ``test`` are equally long lists of Trees. The caller can ask for the sentences
    whose words differ, and for those whose test tree has no words that count.
    """
    cdef Atoms atoms = Atoms(classify)
    cdef Side gold_side = Side(), test_side = Side()
    cdef Counter counter = Counter(atoms, len(gold))
    cdef Py_ssize_t k
    cdef int verdict
    if len(gold) != len(test):
        raise ArrayError(f"test has {len(test)} trees; gold has {len(gold)}, and both must agree.")
    for k in range(len(gold)):
        if not read_tree(gold_side, gold[k], atoms) or not gold_side.settle(atoms):
            verdict = ASK
        elif not read_tree(test_side, test[k], atoms) or not test_side.settle(atoms):
            verdict = ASK
        else:
            verdict = counter.compare_lengths(k, gold_side, test_side)
        if verdict == VALID and not same_words(
            gold_side, gold[k].words, test_side, test[k].words
        ):
            verdict = ASK if ask_about_words else WORDS_UNMATCH
        if verdict == NO_WORDS and ask_about_no_words:
            verdict = ASK
        if verdict == VALID:
            counter.compare_brackets(k, gold_side, test_side)
        else:
            counter.leave_out(k, verdict)
    return np.asarray(counter.rows)
