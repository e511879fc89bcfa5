"""Bracket counts of two bracketed texts, compiled, without an object per tree or word.

The bytes of a text become the sides that ``_counting.pyx`` compares, sentence by sentence.
What is a tree is decided by ``readers/brackets.py``; this scanner knows the well-formed texts
only. At anything else it gives up, so that the reader can say what is wrong and where, and a
sentence that needs more than a comparison of its bytes is left to the plain-Python code.

Texts are UTF-8, in which every byte below 128 is a character of its own.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from spmrl_bench.scoring._counting cimport (
    ASK, NO_WORDS, QUOTE, VALID, Atoms, Counter, Side, longer
)

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
    """Where in the text one of the two files is read, and how.

    ``first`` and ``last`` are the bounds of the tree read last.
    """

    cdef Py_ssize_t position
    cdef Py_ssize_t stop
    cdef bint one_per_line
    cdef uint8_t[256] kinds
    cdef Py_ssize_t first
    cdef Py_ssize_t last

    def __init__(self, const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t stop):
        cdef int byte
        self.position = start
        self.stop = stop
        self.one_per_line = every_line_closes_its_brackets(data, start, stop)
        for byte in range(256):
            self.kinds[byte] = ATOM
        for byte in b" \t\r\f\v":
            self.kinds[byte] = SPACE
        self.kinds[c"\n"] = END if self.one_per_line else SPACE
        self.kinds[c"("] = OPEN
        self.kinds[c")"] = CLOSE


cdef bint every_line_closes_its_brackets(
    const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t stop
) except -1 nogil:
    """Whether each line has as many closing as opening brackets."""
    cdef Py_ssize_t i, still_open = 0
    for i in range(start, stop):
        if data[i] == c"\n":
            if still_open:
                return False
        else:
            still_open += (data[i] == c"(") - (data[i] == c")")
    return still_open == 0


cdef class Scanner:
    """Reads trees out of the bytes of both texts.

    Labels and tags are looked up by their bytes, in an open hash table: ``slots`` holds the
    numbers of spellings, -1 where free, and a spelling is the bytes ``starts`` to ``ends``.
    """

    cdef const uint8_t[::1] data
    cdef Atoms atoms
    cdef object decode
    cdef Py_ssize_t spellings
    cdef int32_t[::1] slots
    cdef uint64_t[::1] hashes
    cdef int64_t[::1] starts
    cdef int64_t[::1] ends
    cdef int32_t[::1] values

    def __init__(self, const uint8_t[::1] data, Atoms atoms, decode):
        self.data = data
        self.atoms = atoms
        self.decode = decode
        self.spellings = 0
        self.slots = np.full(256, -1, dtype=np.int32)
        self.hashes = np.empty(128, dtype=np.uint64)
        self.starts = np.empty(128, dtype=np.int64)
        self.ends = np.empty(128, dtype=np.int64)
        self.values = np.empty(128, dtype=np.int32)

    cdef inline int kind(self, Cursor cursor, Py_ssize_t i) except -1 nogil:
        return END if i >= cursor.stop else cursor.kinds[self.data[i]]

    cdef inline Py_ssize_t skip(self, Cursor cursor, int kind, Py_ssize_t i) except -1 nogil:
        """The first place from ``i`` on that is not of a kind."""
        while self.kind(cursor, i) == kind:
            i += 1
        return i

    cdef int next_tree(self, Cursor cursor, Side side) except -2 nogil:
        """Fill a side with the next tree; a line is one whatever its number of roots."""
        cdef Py_ssize_t i = cursor.position, atom, atom_end, word, word_end
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
                atom = self.skip(cursor, SPACE, i + 1)
                atom_end = self.skip(cursor, ATOM, atom)
                word = self.skip(cursor, SPACE, atom_end)
                if atom < atom_end < word and self.kind(cursor, word) == ATOM:
                    word_end = self.skip(cursor, ATOM, word)
                    i = self.skip(cursor, SPACE, word_end)
                    if self.kind(cursor, i) != CLOSE:
                        return GIVE_UP
                    i += 1
                    self.add_word(side, self.atom(atom, atom_end), word, word_end)
                    complete = parent < 0
                else:
                    row = side.rows
                    if row >= side.starts.shape[0]:
                        with gil:
                            side.room_for_rows(row + 1)
                    side.labels[row] = self.atom(atom, atom_end)
                    side.starts[row] = side.words
                    side.ends[row] = parent
                    side.rows += 1
                    parent = row
                    i = atom_end
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

    cdef str text(self, Cursor cursor):
        """The text of the tree read last."""
        text = bytes(self.data[cursor.first : cursor.last])
        return text.decode("utf-8", "surrogatepass")

    cdef int add_word(
        self, Side side, int32_t tag, Py_ssize_t start, Py_ssize_t end
    ) except -1 nogil:
        """Append a word to a side."""
        if side.words + 1 >= side.tags.shape[0]:
            with gil:
                side.room_for_words(side.words + 1)
        side.tags[side.words] = tag
        side.word_starts[side.words] = start
        side.word_ends[side.words] = end
        side.words += 1
        # One character, or an escape that may stand for one.
        if self.atoms.flags[tag] & QUOTE and (end - start == 1 or self.data[start] == c"\\"):
            side.marks += 1
        return 0

    cdef int32_t atom(self, Py_ssize_t start, Py_ssize_t end) except -1 nogil:
        """The atom of the label or tag between two places."""
        cdef uint64_t code = FNV_START
        cdef Py_ssize_t i, slot
        cdef int32_t number
        for i in range(start, end):
            code = (code ^ self.data[i]) * FNV_PRIME
        slot = code & (self.slots.shape[0] - 1)
        while self.slots[slot] >= 0:
            number = self.slots[slot]
            if self.hashes[number] == code and self.same_bytes(
                self.starts[number], self.ends[number], start, end
            ):
                return self.values[number]
            slot = (slot + 1) & (self.slots.shape[0] - 1)
        with gil:
            return self.add_spelling(start, end, code, slot)

    cdef int32_t add_spelling(
        self, Py_ssize_t start, Py_ssize_t end, uint64_t code, Py_ssize_t slot
    ) except -1:
        """The atom of a label or tag that has not been spelt like this before."""
        cdef Py_ssize_t number
        text = bytes(self.data[start:end]).decode("utf-8", "surrogatepass")
        cdef int32_t atom = self.atoms.number(self.decode(text))
        if self.spellings == self.values.shape[0]:
            self.hashes = longer(self.hashes, self.spellings + 1)
            self.starts = longer(self.starts, self.spellings + 1)
            self.ends = longer(self.ends, self.spellings + 1)
            self.values = longer(self.values, self.spellings + 1)
        self.hashes[self.spellings] = code
        self.starts[self.spellings] = start
        self.ends[self.spellings] = end
        self.values[self.spellings] = atom
        self.slots[slot] = self.spellings
        self.spellings += 1
        if 2 * self.spellings > self.slots.shape[0]:
            self.slots = np.full(2 * self.slots.shape[0], -1, dtype=np.int32)
            for number in range(self.spellings):
                slot = self.hashes[number] & <uint64_t>(self.slots.shape[0] - 1)
                while self.slots[slot] >= 0:
                    slot = (slot + 1) & (self.slots.shape[0] - 1)
                self.slots[slot] = number
        return atom

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
    cdef Atoms atoms = Atoms(classify)
    cdef Scanner scanner = Scanner(data, atoms, decode_label)
    cdef Counter counter = Counter(atoms, 1024)
    cdef Side gold_side = Side(), test_side = Side()
    cdef Py_ssize_t k = 0
    cdef int found, test_found, verdict
    asked = {}
    with nogil:
        while True:
            found = scanner.next_tree(gold_cursor, gold_side)
            test_found = scanner.next_tree(test_cursor, test_side)
            if found != FOUND or test_found != FOUND:
                break
            if k == counter.rows.shape[0]:
                with gil:
                    counter.room_for_sentences(k + 1)
            gold_side.settle(atoms)
            test_side.settle(atoms)
            verdict = counter.compare_lengths(k, gold_side, test_side)
            if verdict == VALID and not scanner.same_words(gold_side, test_side):
                verdict = ASK  # an escape, or a word that counts as another
            if verdict == NO_WORDS and ask_about_no_words:
                verdict = ASK
            if verdict == VALID:
                counter.compare_brackets(k, gold_side, test_side)
            else:
                counter.leave_out(k, verdict)
            if verdict == ASK:
                with gil:
                    asked[k] = scanner.text(gold_cursor), scanner.text(test_cursor)
            k += 1
    if found != NO_MORE or test_found != NO_MORE or k == 0:
        return None
    return np.asarray(counter.rows)[:k].copy(), asked
