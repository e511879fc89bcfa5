"""Bracket counts of two bracketed texts, compiled: the rows of ``evalb.count_brackets``.

The bytes of both texts become numbers tree by tree, without an object per tree or word, and the
numbers are compared. Only the usual is done here. What is a tree is decided by the reader of
brackets; at anything but a well-formed text this scanner gives up, so that the reader can say
what is wrong and where. A sentence whose words differ, or that needs a quotation mark put back,
is left to the plain-Python code. Every other row is the same, number for number.

Texts are UTF-8, in which every byte below 128 is a character of its own. Every index goes through
a typed memoryview, so that a debug build (SPMRL_BENCH_BOUNDS_CHECKS=1, see setup.py) checks it.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    SPELLINGS = 4096  # a power of two

cdef enum:  # of the hash FNV-1a
    FNV_START = 0xCBF29CE484222325
    FNV_PRIME = 0x100000001B3

cdef enum:  # what is told of a label or tag
    LABEL_CLASS, TAG_CLASS, REMOVED, IN_LENGTH, QUOTE, FACTS

cdef enum:  # kinds of bytes; END is of the text or, where each line is a tree, of the line
    ATOM, SPACE, OPEN, CLOSE, END

cdef enum:  # what reading a tree comes to
    GIVE_UP = -1
    NO_MORE = 0
    FOUND = 1

cdef enum:  # values of Status; ASK is none of them
    ASK = -1
    VALID = 0
    LENGTH_UNMATCH = 1
    NO_WORDS = 3

cdef enum:  # values of Column, and how many there are
    LENGTH, STATUS, MATCHED, GOLD, TEST, CROSSING, WORDS, MATCHED_TAGS, COLUMNS


cdef class Labels:
    """What labels and tags count as, by their spellings: bytes of the texts ``data``.

    ``classify`` gives the row of a spelling in ``facts``: the class that it has as a label (-1:
    not counted), the class that it has as a tag, and whether words so tagged are removed, count
    for the length, and can be quotation marks. The latest spellings, the bytes ``starts`` to
    ``ends``, are at hand by a hash.
    """

    cdef const uint8_t[::1] data
    cdef object classify
    cdef int64_t[::1] starts, ends
    cdef int32_t[:, ::1] facts

    def __init__(self, const uint8_t[::1] data, classify):
        self.data = data
        self.classify = classify
        self.starts = np.zeros(SPELLINGS, dtype=np.int64)
        self.ends = np.full(SPELLINGS, -1, dtype=np.int64)
        self.facts = np.empty((SPELLINGS, FACTS), dtype=np.int32)

    cdef Py_ssize_t find(self, Py_ssize_t start, Py_ssize_t end) except -1:
        """The row of ``facts`` for the spelling between two places, until the next call."""
        cdef uint64_t code = FNV_START
        cdef Py_ssize_t i, row
        for i in range(start, end):
            code = (code ^ self.data[i]) * FNV_PRIME
        row = (code ^ code >> 32) % SPELLINGS
        if not self.same_bytes(self.starts[row], self.ends[row], start, end):
            for i, fact in enumerate(self.classify(self.text(start, end))):
                self.facts[row, i] = fact
            self.starts[row] = start
            self.ends[row] = end
        return row

    cdef str text(self, Py_ssize_t start, Py_ssize_t end):
        return bytes(self.data[start:end]).decode("utf-8", "surrogatepass")

    cdef inline bint same_bytes(
        self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t other, Py_ssize_t other_end
    ) except -1:
        if end - start != other_end - other:
            return False
        while start < end:
            if self.data[start] != self.data[other]:
                return False
            start += 1
            other += 1
        return True


cdef class Side:
    """One of the texts, and what counts of the tree that was read from it last.

    A text in which every line closes the brackets it opens has one tree per line. ``trees`` is
    a bound on their number; ``first`` and ``last`` are the bounds of the tree read last, and
    ``length`` its words that count for the length. ``tags`` and the offsets are those of its
    ``words`` that are not removed; ``marks`` counts words, removed or not, that may be quotation
    marks to put back. ``starts``, ``ends`` and ``labels`` are its ``brackets`` in pre-order: by
    start and, among equal starts, from long to short. Tags and labels are classes.
    """

    cdef Labels known
    cdef Py_ssize_t position, stop, trees, first, last
    cdef bint one_per_line
    cdef uint8_t[256] kinds
    cdef Py_ssize_t length, words, marks, brackets
    cdef int64_t[::1] word_starts, word_ends
    cdef int32_t[::1] tags, starts, ends, labels

    def __init__(self, Labels known, Py_ssize_t start, Py_ssize_t stop):
        cdef Py_ssize_t i, depth = 0, opened = 0, most = 0, lines = 1, closed = 0
        self.known = known
        self.position = start
        self.stop = stop
        self.one_per_line = True
        for i in range(start, stop):
            if known.data[i] == c"(":
                depth += 1
                opened += 1
                most = max(most, opened)
            elif known.data[i] == c")":
                depth -= 1
                closed += depth == 0
            elif known.data[i] == c"\n":
                lines += 1
                if depth == 0:
                    opened = 0
                else:
                    self.one_per_line = False
        self.one_per_line = self.one_per_line and depth == 0
        self.trees = lines if self.one_per_line else closed
        self.tags, self.starts, self.ends, self.labels = (
            np.empty(most, dtype=np.int32) for _ in range(4)
        )
        self.word_starts, self.word_ends = (np.empty(most, dtype=np.int64) for _ in range(2))
        for i in range(256):
            self.kinds[i] = ATOM
        for byte in b" \t\r\f\v":
            self.kinds[<uint8_t>byte] = SPACE
        self.kinds[c"\n"] = END if self.one_per_line else SPACE
        self.kinds[c"("] = OPEN
        self.kinds[c")"] = CLOSE

    cdef inline int kind(self, Py_ssize_t i) except -1:
        return END if i >= self.stop else self.kinds[self.known.data[i]]

    cdef inline Py_ssize_t skip(self, int kind, Py_ssize_t i) except -1:
        """The first place from ``i`` on that is not of a kind."""
        while self.kind(i) == kind:
            i += 1
        return i

    cdef int next_tree(self) except -2:
        """Read the next tree; a line is one whatever its number of roots."""
        cdef Py_ssize_t i = self.position, label, label_end, word, word_end
        cdef int32_t parent = -1, row, rows = 0  # an open row keeps its parent in ``ends``
        cdef int kind
        cdef bint complete = False, childless = False
        if not self.one_per_line:
            i = self.skip(SPACE, i)
        if i >= self.stop:
            return NO_MORE
        self.first = i
        self.length = self.words = self.marks = 0
        while self.one_per_line or not complete:
            i = self.skip(SPACE, i)
            kind = self.kind(i)
            if kind == END:
                break
            if kind == OPEN:
                label = self.skip(SPACE, i + 1)
                label_end = self.skip(ATOM, label)
                word = self.skip(SPACE, label_end)
                kind = self.kind(word)
                if label < label_end < word and kind == ATOM:
                    word_end = self.skip(ATOM, word)
                    i = self.skip(SPACE, word_end)
                    if self.kind(i) != CLOSE:
                        return GIVE_UP
                    i += 1
                    self.add_word(self.known.find(label, label_end), word, word_end)
                    complete = parent < 0
                else:
                    self.labels[rows] = self.known.facts[
                        self.known.find(label, label_end), LABEL_CLASS
                    ]
                    self.starts[rows] = self.words
                    self.ends[rows] = parent
                    parent = rows
                    rows += 1
                    childless |= kind == CLOSE
                    i = label_end
            elif kind == CLOSE and parent >= 0:
                row = parent
                parent = self.ends[row]
                self.ends[row] = self.words
                complete = parent < 0
                i += 1
            else:
                return GIVE_UP
        if parent >= 0 or (childless and not self.one_per_line):
            return GIVE_UP
        self.last = i
        self.position = i + self.one_per_line
        self.keep_brackets(rows)
        return FOUND

    cdef int add_word(self, Py_ssize_t tag, Py_ssize_t start, Py_ssize_t end) except -1:
        """Append a word, whose tag has a row of facts."""
        self.length += self.known.facts[tag, IN_LENGTH]
        # One character, or an escape that may stand for one.
        if self.known.facts[tag, QUOTE] and (end - start == 1 or self.known.data[start] == c"\\"):
            self.marks += 1
        if not self.known.facts[tag, REMOVED]:
            self.tags[self.words] = self.known.facts[tag, TAG_CLASS]
            self.word_starts[self.words] = start
            self.word_ends[self.words] = end
            self.words += 1
        return 0

    cdef int keep_brackets(self, int32_t rows) except -1:
        """Of the first rows, keep those that count and have words."""
        cdef int32_t row
        self.brackets = 0
        for row in range(rows):
            if self.labels[row] >= 0 and self.starts[row] < self.ends[row]:
                self.starts[self.brackets] = self.starts[row]
                self.ends[self.brackets] = self.ends[row]
                self.labels[self.brackets] = self.labels[row]
                self.brackets += 1
        return 0

    cdef bint crosses(self, int32_t start, int32_t end) except -1:
        """Whether a bracket overlaps a span without nesting."""
        cdef Py_ssize_t i
        for i in range(self.brackets):
            if self.starts[i] >= end:
                break
            if self.starts[i] < start < self.ends[i] < end:
                return True
            if start < self.starts[i] and end < self.ends[i]:
                return True
        return False


cdef int compared(Side gold, Side test, int no_words) except -2:
    """The status of two trees, given that of a test tree without words."""
    cdef Py_ssize_t i
    if test.words == 0:
        return no_words
    if gold.words != test.words:
        return ASK if gold.marks and test.marks else LENGTH_UNMATCH
    for i in range(gold.words):
        if not gold.known.same_bytes(
            gold.word_starts[i], gold.word_ends[i], test.word_starts[i], test.word_ends[i]
        ):
            return ASK  # an escape, or a word that counts as another
    return VALID


cdef int fill(int64_t[:, ::1] rows, Py_ssize_t k, Side gold, Side test) except -1:
    """Count two trees with the same words; gold's labels are used up."""
    cdef Py_ssize_t g = 0, t = 0, first, here, i
    cdef int32_t start, end
    rows[k, GOLD] = gold.brackets
    rows[k, TEST] = test.brackets
    rows[k, WORDS] = gold.words
    for i in range(gold.words):
        rows[k, MATCHED_TAGS] += gold.tags[i] == test.tags[i]
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
                    rows[k, MATCHED] += 1
                    break
            t += 1
        # A span of gold, which nests, crosses none.
        if first == g and end - start > 1 and gold.crosses(start, end):
            rows[k, CROSSING] += t - here
    return 0


def count_texts(str gold not None, str test not None, classify, bint ask_about_no_words):
    """Counts of two texts whose layout is told from their brackets; None where it gives up.

    That is where a text is malformed or holds no tree, or where the texts hold different
    numbers of trees. Otherwise the result is the rows, int64 ``[sentences, columns]``, and for
    each sentence that the caller must count (with status -1) the texts of its two trees by its
    number. The caller can ask for the sentences whose test tree has no words that count.
    """
    parts = [gold.encode("utf-8", "surrogatepass"), test.encode("utf-8", "surrogatepass")]
    joined = b"".join(parts)
    cdef Labels known = Labels(joined, classify)
    cdef Side one = Side(known, 0, len(parts[0])), other = Side(known, len(parts[0]), len(joined))
    cdef int64_t[:, ::1] rows = np.zeros((min(one.trees, other.trees), COLUMNS), dtype=np.int64)
    cdef int no_words = ASK if ask_about_no_words else NO_WORDS
    cdef int found, other_found, status
    cdef Py_ssize_t k = 0
    asked = {}
    while True:
        found = one.next_tree()
        other_found = other.next_tree()
        if found != FOUND or other_found != FOUND:
            break
        status = compared(one, other, no_words)
        rows[k, LENGTH] = one.length
        rows[k, STATUS] = status
        if status == VALID:
            fill(rows, k, one, other)
        elif status == ASK:
            asked[k] = known.text(one.first, one.last), known.text(other.first, other.last)
        k += 1
    if found != NO_MORE or other_found != NO_MORE or k == 0:
        return None
    return np.asarray(rows)[:k], asked
