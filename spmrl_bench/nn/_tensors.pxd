"""What the kernels of layers ask of ``_tensors.pyx``."""

from libc.stdint cimport int64_t, uint8_t

cdef extern from "_tensors.h":
    int MOST_THREADS
    Py_ssize_t NO_SIZE  # in place of the size of a dimension that a tensor has not

cdef float *floats(
    object tensor, str name, Py_ssize_t a, Py_ssize_t b=*, Py_ssize_t c=*
) except? NULL

cdef float *some_floats(
    object tensor, str name, Py_ssize_t a, Py_ssize_t b=*, Py_ssize_t c=*
) except? NULL

cdef void *lows(
    object tensor, bint low, str name, Py_ssize_t a, Py_ssize_t b=*, Py_ssize_t c=*
) except? NULL

cdef void *some_lows(
    object tensor, bint low, str name, Py_ssize_t a, Py_ssize_t b=*, Py_ssize_t c=*
) except? NULL

cdef int64_t *integers(object tensor, str name, Py_ssize_t count) except? NULL

cdef int64_t *indices(
    object tensor, str name, Py_ssize_t count, int64_t least, int64_t end
) except? NULL

cdef uint8_t *flags(object tensor, str name, Py_ssize_t a, Py_ssize_t b) except? NULL

cdef Py_ssize_t rows_of(object tensor, str name) except -1

cdef int within(str name, int64_t number, int64_t least, int64_t most) except -1

cdef unsigned int dropped_below(double p) except? 0xFFFFFFFF
