"""Bracket counts of two bracketed texts, compiled, without an object per tree or word.

The bytes of a text become the sides that ``_counting.pyx`` compares, sentence by sentence.
What is a tree is decided by the reader of brackets; this scanner knows the well-formed texts
only. At anything else it gives up, so that the reader can say what is wrong and where, and a
sentence that needs more than a comparison of its bytes is left to the plain-Python code.

Texts are UTF-8, in which every byte below 128 is a character of its own.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from spmrl_bench.scoring._counting cimport ASK, FLAGS, QUOTE, VALID, Atoms, Counter, Side

cdef enum:
    SPELLINGS = 4096  # a power of two

cdef enum:  # kinds of bytes
    ATOM
    SPACE
    OPEN
    CLOSE
    END  # of the text or, where each line is a tree, of the line

cdef enum:  # what reading a tree comes to
    GIVE_UP = -1
    NO_MORE = 0
    FOUND = 1

cdef enum:  # of the hash FNV-1a
    FNV_START = 0xCBF29CE484222325
    FNV_PRIME = 0x100000001B3


cdef class Cursor:
    """Where one of the two texts is read, and what it holds at most.

    A text in which every line closes the brackets it opens has one tree per line. ``trees`` and
    ``room`` are bounds on the number of trees and on the brackets of one. ``first`` and ``last``
    are the bounds of the tree read last.
    """

    cdef Py_ssize_t position
    cdef Py_ssize_t stop
    cdef bint one_per_line
    cdef Py_ssize_t trees
    cdef Py_ssize_t room
    cdef uint8_t[256] kinds
    cdef Py_ssize_t first
    cdef Py_ssize_t last

    def __init__(self, const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t stop):
        cdef Py_ssize_t i, depth = 0, opened = 0, lines = 1, closed = 0
        self.position = start
        self.stop = stop
        self.one_per_line = True
        for i in range(start, stop):
            if data[i] == c"(":
                depth += 1
                opened += 1
                self.room = max(self.room, opened)
            elif data[i] == c")":
                depth -= 1
                closed += depth == 0
            elif data[i] == c"\n":
                lines += 1
                if depth == 0:
                    opened = 0
                else:
                    self.one_per_line = False
        self.one_per_line = self.one_per_line and depth == 0
        self.trees = lines if self.one_per_line else closed
        for i in range(256):
            self.kinds[i] = ATOM
        for byte in b" \t\r\f\v":
            self.kinds[<uint8_t>byte] = SPACE
        self.kinds[c"\n"] = END if self.one_per_line else SPACE
        self.kinds[c"("] = OPEN
        self.kinds[c")"] = CLOSE


cdef class Scanner:
    """Reads trees out of the bytes of both texts.

    The latest spellings of labels and tags, the bytes ``starts`` to ``ends``, are at hand with
    their atoms, by a hash of these bytes.
    """

    cdef const uint8_t[::1] data
    cdef Atoms atoms
    cdef object decode
    cdef int64_t[::1] starts
    cdef int64_t[::1] ends
    cdef int32_t[::1] numbers

    def __init__(self, const uint8_t[::1] data, Atoms atoms, decode):
        self.data = data
        self.atoms = atoms
        self.decode = decode
        self.starts = np.zeros(SPELLINGS, dtype=np.int64)
        self.ends = np.full(SPELLINGS, -1, dtype=np.int64)
        self.numbers = np.empty(SPELLINGS, dtype=np.int32)

    cdef inline int kind(self, Cursor cursor, Py_ssize_t i) except -1 nogil:
        return END if i >= cursor.stop else cursor.kinds[self.data[i]]

    cdef inline Py_ssize_t skip(self, Cursor cursor, int kind, Py_ssize_t i) except -1 nogil:
        """The first place from ``i`` on that is not of a kind."""
        while self.kind(cursor, i) == kind:
            i += 1
        return i

    cdef int next_tree(self, Cursor cursor, Side side) except -2 nogil:
        """Fill a side with the next tree; a line is one whatever its number of roots."""
        cdef Py_ssize_t i = cursor.position, label, label_end, word, word_end
        cdef int32_t parent = -1, row  # an open row keeps its parent in ``side.ends``
        cdef int kind
        cdef bint complete = False, childless = False
        if not cursor.one_per_line:
            i = self.skip(cursor, SPACE, i)
        if i >= cursor.stop:
            return NO_MORE
        cursor.first = i
        side.words = side.rows = side.marks = 0
        while cursor.one_per_line or not complete:
            i = self.skip(cursor, SPACE, i)
            kind = self.kind(cursor, i)
            if kind == END:
                break
            if kind == OPEN:
                label = self.skip(cursor, SPACE, i + 1)
                label_end = self.skip(cursor, ATOM, label)
                word = self.skip(cursor, SPACE, label_end)
                if label < label_end < word and self.kind(cursor, word) == ATOM:
                    word_end = self.skip(cursor, ATOM, word)
                    i = self.skip(cursor, SPACE, word_end)
                    if self.kind(cursor, i) != CLOSE:
                        return GIVE_UP
                    i += 1
                    self.add_word(side, self.atom(label, label_end), word, word_end)
                    complete = parent < 0
                else:
                    row = side.rows
                    side.labels[row] = self.atom(label, label_end)
                    side.starts[row] = side.words
                    side.ends[row] = parent
                    side.rows += 1
                    parent = row
                    i = label_end
            elif kind == CLOSE and parent >= 0:
                row = parent
                parent = side.ends[row]
                side.ends[row] = side.words
                childless |= side.starts[row] == side.words
                complete = parent < 0
                i += 1
            else:
                return GIVE_UP
        if parent >= 0 or (childless and not cursor.one_per_line):
            return GIVE_UP
        cursor.last = i
        cursor.position = i + cursor.one_per_line
        return FOUND

    cdef int add_word(
        self, Side side, int32_t tag, Py_ssize_t start, Py_ssize_t end
    ) except -1 nogil:
        """Append a word to a side."""
        side.tags[side.words] = tag
        side.word_starts[side.words] = start
        side.word_ends[side.words] = end
        side.words += 1
        # One character, or an escape that may stand for one.
        if self.atoms.table[tag, FLAGS] & QUOTE and (
            end - start == 1 or self.data[start] == c"\\"
        ):
            side.marks += 1
        return 0

    cdef int32_t atom(self, Py_ssize_t start, Py_ssize_t end) except -1 nogil:
        """The atom of the label or tag between two places."""
        cdef uint64_t code = FNV_START
        cdef Py_ssize_t i, slot
        for i in range(start, end):
            code = (code ^ self.data[i]) * FNV_PRIME
        slot = (code ^ code >> 32) % SPELLINGS
        if not self.same_bytes(self.starts[slot], self.ends[slot], start, end):
            with gil:
                self.numbers[slot] = self.atoms.number(self.decode(self.text(start, end)))
            self.starts[slot] = start
            self.ends[slot] = end
        return self.numbers[slot]

    cdef str text(self, Py_ssize_t start, Py_ssize_t end):
        return bytes(self.data[start:end]).decode("utf-8", "surrogatepass")

    cdef bint same_words(self, Side gold, Side test) except -1 nogil:
        """Whether the words that were kept are spelt alike; the sides have equally many."""
        cdef Py_ssize_t i, one, other
        for i in range(gold.kept_words):
            one = gold.kept[i]
            other = test.kept[i]
            if not self.same_bytes(
                gold.word_starts[one],
                gold.word_ends[one],
                test.word_starts[other],
                test.word_ends[other],
            ):
                return False
        return True

    cdef inline bint same_bytes(
        self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t other, Py_ssize_t other_end
    ) except -1 nogil:
        if end - start != other_end - other:
            return False
        while start < end:
            if self.data[start] != self.data[other]:
                return False
            start += 1
            other += 1
        return True


def count_texts(
    str gold not None, str test not None, classify, decode_label, bint ask_about_no_words
):
    """Counts of two texts whose layout is told from their brackets; None where it gives up.

    That is where a text is malformed or holds no tree, or where the texts hold different
    numbers of trees. Otherwise the result is the rows, as those of ``count_trees``, and for each
    sentence with status -1 the texts of its two trees by its number.
    """
    parts = [gold.encode("utf-8", "surrogatepass"), test.encode("utf-8", "surrogatepass")]
    joined = b"".join(parts)
    cdef const uint8_t[::1] data = joined
    cdef Cursor gold_cursor = Cursor(data, 0, len(parts[0]))
    cdef Cursor test_cursor = Cursor(data, len(parts[0]), len(joined))
    cdef Py_ssize_t k = 0, room = max(gold_cursor.room, test_cursor.room)
    cdef Atoms atoms = Atoms(classify)
    cdef Scanner scanner = Scanner(data, atoms, decode_label)
    cdef Py_ssize_t trees = min(gold_cursor.trees, test_cursor.trees)
    cdef Counter counter = Counter(atoms, trees, ask_about_no_words)
    cdef Side gold_side = Side(room), test_side = Side(room)
    cdef int found, test_found, verdict
    asked = {}
    with nogil:
        while True:
            found = scanner.next_tree(gold_cursor, gold_side)
            test_found = scanner.next_tree(test_cursor, test_side)
            if found != FOUND or test_found != FOUND:
                break
            gold_side.settle(atoms)
            test_side.settle(atoms)
            verdict = counter.compare_lengths(k, gold_side, test_side)
            if verdict == VALID and not scanner.same_words(gold_side, test_side):
                verdict = ASK  # an escape, or a word that counts as another
            counter.fill(k, verdict, gold_side, test_side)
            if verdict == ASK:
                with gil:
                    asked[k] = (
                        scanner.text(gold_cursor.first, gold_cursor.last),
                        scanner.text(test_cursor.first, test_cursor.last),
                    )
            k += 1
    if found != NO_MORE or test_found != NO_MORE or k == 0:
        return None
    return np.asarray(counter.rows)[:k], asked
