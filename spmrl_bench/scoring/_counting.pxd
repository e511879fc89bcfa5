"""What the scanner of bracket files needs of the counting kernel; see ``_counting.pyx``."""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:  # flags of a tag
    REMOVED = 1
    NOT_IN_LENGTH = 2
    QUOTE = 4

cdef enum:  # values of Status; ASK is none of them
    ASK = -1
    VALID = 0
    LENGTH_UNMATCH = 1
    WORDS_UNMATCH = 2
    NO_WORDS = 3

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
    cdef object classify
    cdef dict numbers
    cdef list recent
    cdef int32_t[::1] recent_atoms
    cdef Py_ssize_t classes
    cdef int32_t[::1] label_class
    cdef int32_t[::1] tag_class
    cdef uint8_t[::1] flags

    cdef int32_t number(self, object label) except -1
    cdef int32_t add(self, object label) except -1


cdef class Side:
    cdef Py_ssize_t words
    cdef int32_t[::1] tags
    cdef int64_t[::1] word_starts
    cdef int64_t[::1] word_ends
    cdef Py_ssize_t marks
    cdef Py_ssize_t rows
    cdef int32_t[::1] starts
    cdef int32_t[::1] ends
    cdef int32_t[::1] labels
    cdef Py_ssize_t kept_words
    cdef int32_t[::1] kept
    cdef int32_t[::1] fences
    cdef Py_ssize_t brackets

    cdef int room_for_words(self, Py_ssize_t words) except -1
    cdef int room_for_rows(self, Py_ssize_t rows) except -1
    cdef bint settle(self, Atoms atoms) except -1 nogil


cdef class Counter:
    cdef Atoms atoms
    cdef int64_t[:, ::1] rows
    cdef int32_t[::1] unpaired
    cdef int32_t[::1] first_start
    cdef int32_t[::1] last_end

    cdef int room_for_sentences(self, Py_ssize_t sentences) except -1
    cdef int compare_lengths(self, Py_ssize_t k, Side gold, Side test) except -2 nogil
    cdef int compare_brackets(self, Py_ssize_t k, Side gold, Side test) except -1 nogil
    cdef int match(self, Py_ssize_t k, Side gold, Side test) except -1 nogil
    cdef int mark_fences(self, Side gold) except -1 nogil
    cdef bint crosses(self, int32_t start, int32_t end) except -1 nogil
    cdef int leave_out(self, Py_ssize_t k, int verdict) except -1 nogil


cdef object longer(array, Py_ssize_t needed)
