"""What the scanner of bracket files needs of the counting kernel; see ``_counting.pyx``."""

from libc.stdint cimport int32_t, int64_t

cdef enum:  # columns of the table of atoms
    LABEL_CLASS = 0
    TAG_CLASS = 1
    FLAGS = 2

cdef enum:  # flags of a tag
    REMOVED = 1
    NOT_IN_LENGTH = 2
    QUOTE = 4

cdef enum:  # values of Status; ASK is none of them
    ASK = -1
    VALID = 0
    LENGTH_UNMATCH = 1
    NO_WORDS = 3


cdef class Atoms:
    cdef object classify
    cdef dict numbers
    cdef list recent
    cdef int32_t[::1] recent_atoms
    cdef int32_t[:, ::1] table

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

    cdef bint settle(self, Atoms atoms) except -1 nogil


cdef class Counter:
    cdef Atoms atoms
    cdef int no_words
    cdef int64_t[:, ::1] rows

    cdef int compare_lengths(self, Py_ssize_t k, Side gold, Side test) except -2 nogil
    cdef int fill(self, Py_ssize_t k, int verdict, Side gold, Side test) except -1 nogil
    cdef int match(self, Py_ssize_t k, Side gold, Side test) except -1 nogil
    cdef bint crosses(self, Side gold, int32_t start, int32_t end) except -1 nogil
