"""Bracketed trees off a text, as long as they are plain; see ``brackets.py`` for the format.

The kernel takes whole trees and stops in front of the first one that it cannot take, which the
reader in Python then reads again to say what is wrong with it.
"""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_KIND, PyUnicode_READ, PyUnicode_Substring
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import numpy as np

from spmrl_bench.errors import ArrayError


cdef struct Numbers:
    int* data
    Py_ssize_t size
    Py_ssize_t room


cdef inline int push(Numbers* numbers, int value) except -1:
    cdef Py_ssize_t room
    cdef int* data
    if numbers.size == numbers.room:
        room = 2 * numbers.room + 1024
        data = <int*>realloc(numbers.data, room * sizeof(int))
        if data is NULL:
            raise MemoryError
        numbers.data = data
        numbers.room = room
    numbers.data[numbers.size] = value
    numbers.size += 1
    return 0


cdef object array_of(Numbers* numbers):
    """A numpy array of the first numbers; int32."""
    result = np.empty(numbers.size, dtype=np.int32)
    cdef int[::1] view = result
    if numbers.size:
        memcpy(&view[0], numbers.data, numbers.size * sizeof(int))
    return result


cdef inline bint is_space(Py_UCS4 c) noexcept:
    return c == 32 or 9 <= c <= 13


cdef inline bint is_atom(Py_UCS4 c) noexcept:
    return c != 40 and c != 41 and not is_space(c)


def scan(
    str source not None, Py_ssize_t start, Py_ssize_t end, Py_ssize_t most, words, labels,
    bint margin=False,
):
    """The plain trees from an offset on.

    Args:
        source: the text.
        start, end: offsets between which to read.
        most: the number of trees after which to stop.
        words: what each word of the text stands for; a dict that makes what it lacks.
        labels: the same for labels and tags.
        margin: whether to stop in front of a tree with a bracket inside that begins a line.

    Returns:
        The words and the tags of all trees end to end (lists of str); the labels of all
        constituents (list of str) and their bounds (int32 ``[2 * constituents]``: start and end
        fencepost in the tree of each); the numbers of tokens and of constituents up to the end
        of each tree (int32 ``[trees]``); the offset after the last tree.

    Raises:
        ArrayError: the offsets are not within the text.
    """
    if not 0 <= start <= end <= len(source):
        raise ArrayError(
            f"start and end are {start} and {end}; they must be in order, from 0 to {len(source)}."
        )
    cdef int kind = PyUnicode_KIND(source)
    cdef void* data = PyUnicode_DATA(source)
    cdef list found_words = [], found_tags = [], found_labels = []
    cdef Numbers bounds = Numbers(NULL, 0, 0), stack = Numbers(NULL, 0, 0)
    cdef Numbers token_ends = Numbers(NULL, 0, 0), label_ends = Numbers(NULL, 0, 0)
    cdef Py_ssize_t i = start, j, k, m, p, after = start
    cdef int tokens = 0, rows = 0, first = 0, kept_tokens = 0, kept_rows = 0, row
    cdef Py_UCS4 c
    try:
        while i < end and token_ends.size < most:
            c = PyUnicode_READ(kind, data, i)
            if is_space(c):
                i += 1
                continue
            if c == 40:  # an opening bracket
                if margin and stack.size and PyUnicode_READ(kind, data, i - 1) == 10:
                    break
                j = i + 1
                while j < end and is_space(PyUnicode_READ(kind, data, j)):
                    j += 1
                k = j
                while k < end and is_atom(PyUnicode_READ(kind, data, k)):
                    k += 1
                m = k
                while m < end and is_space(PyUnicode_READ(kind, data, m)):
                    m += 1
                if m == end:
                    break
                if j < k < m and is_atom(PyUnicode_READ(kind, data, m)):
                    p = m + 1
                    while p < end and is_atom(PyUnicode_READ(kind, data, p)):
                        p += 1
                    found_tags.append(labels[PyUnicode_Substring(source, j, k)])
                    found_words.append(words[PyUnicode_Substring(source, m, p)])
                    tokens += 1
                    while p < end and is_space(PyUnicode_READ(kind, data, p)):
                        p += 1
                    if p == end or PyUnicode_READ(kind, data, p) != 41:
                        break
                    i = p + 1
                    if stack.size:
                        continue
                else:
                    push(&stack, rows)
                    found_labels.append(labels[PyUnicode_Substring(source, j, k)])
                    push(&bounds, tokens - first)
                    push(&bounds, 0)
                    rows += 1
                    i = k
                    continue
            elif c == 41:  # a closing one
                if not stack.size:
                    break
                stack.size -= 1
                row = stack.data[stack.size]
                if bounds.data[2 * row] == tokens - first:
                    break
                bounds.data[2 * row + 1] = tokens - first
                i += 1
                if stack.size:
                    continue
            else:
                break
            after = i
            first = kept_tokens = tokens
            kept_rows = rows
            push(&token_ends, tokens)
            push(&label_ends, rows)
        del found_words[kept_tokens:], found_tags[kept_tokens:], found_labels[kept_rows:]
        bounds.size = 2 * kept_rows
        return (
            found_words, found_tags, found_labels, array_of(&bounds),
            array_of(&token_ends), array_of(&label_ends), after,
        )
    finally:
        free(bounds.data)
        free(stack.data)
        free(token_ends.data)
        free(label_ends.data)
