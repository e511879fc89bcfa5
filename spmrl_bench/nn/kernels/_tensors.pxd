"""What the kernels have in common: a gate for tensors, memory, and the loops over one row.

A kernel works on memory. It would read a float64 tensor as other numbers, and beyond the end of one
that is too short. So each takes tensors, and gets their addresses here, saying which type and how
many numbers it counts on. Where a tensor may be absent, None has the address NULL.
"""

from libc.stdint cimport uint16_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

cdef extern from "_rows.h":
    int LANES
    void widen(Py_ssize_t, const uint16_t *, float *) nogil
    void narrow(Py_ssize_t, const float *, uint16_t *) nogil
    float row_sum(Py_ssize_t, const float *) nogil
    float row_deviation(Py_ssize_t, const float *, float) nogil
    float inverse_deviation(float, Py_ssize_t, double) nogil
    void add_branch(
        Py_ssize_t, const float *, const float *, const float *, const float *, float *) nogil
    void normalise(
        Py_ssize_t, const float *, float, float, const float *, const float *, float *) nogil
    void add_rows(Py_ssize_t, const float *, const float *, float *) nogil
    void multiply(Py_ssize_t, const float *, const float *, float *) nogil
    void norm_sums(
        Py_ssize_t, const float *, const float *, float, float, const float *, float *, float *,
        float *) nogil
    void norm_back(
        Py_ssize_t, const float *, const float *, float, float, const float *, float, float,
        float *) nogil
    void mask_back(Py_ssize_t, const float *, const float *, float *, float *) nogil
    void relu_mask(Py_ssize_t, float *, const float *, const float *) nogil
    void relu_back(Py_ssize_t, const float *, float, float *, float *) nogil
    void draw_mask(uint64_t, uint64_t, Py_ssize_t, unsigned int, float, float *) nogil
    void lstm_forward(Py_ssize_t, float *, const float *, float *, float *) nogil
    void lstm_backward(
        Py_ssize_t, const float *, const float *, const float *, const float *, float *,
        float *) nogil
    void gru_forward(Py_ssize_t, float *, const float *, float *, float *) nogil
    void gru_backward(
        Py_ssize_t, const float *, const float *, const float *, float *, float *) nogil


cdef inline void *address(
    object tensor, object dtype, Py_ssize_t numbers, str name
) except? NULL:
    """Return where a contiguous tensor on the CPU of this type and so many numbers begins."""
    try:
        if (
            tensor.dtype is dtype and tensor.numel() == numbers and tensor.is_cpu
            and tensor.is_contiguous() and not tensor.is_neg()
        ):
            return <void *><size_t>tensor.data_ptr()
    except (AttributeError, RuntimeError):
        pass  # it is no tensor, or has no memory of its own
    from spmrl_bench.nn.kernels import refuse

    refuse(tensor, name, f"{numbers} numbers of {dtype}, contiguous and on the CPU")


cdef inline void *optional(
    object tensor, object dtype, Py_ssize_t numbers, str name
) except? NULL:
    """Return the same, or NULL where there is None."""
    return NULL if tensor is None else address(tensor, dtype, numbers, name)


cdef inline int within(str name, Py_ssize_t number, Py_ssize_t least, Py_ssize_t most) except -1:
    """Refuse a number that is out of range."""
    if not least <= number <= most:
        from spmrl_bench.errors import ArrayError

        raise ArrayError(f"{name} is {number}; it must be from {least} to {most}.")
    return 0


cdef inline void *room(Py_ssize_t numbers) except NULL:
    """Return memory for so many floats, to be freed."""
    cdef void *found = malloc((numbers + 1) * sizeof(float))
    if found == NULL:
        raise MemoryError(f"no room for {numbers} numbers in a kernel")
    return found


cdef inline const float *loaded(
    const void *array, Py_ssize_t at, Py_ssize_t n, bint bf16, float *scratch
) noexcept nogil:
    """Return ``n`` values from position ``at`` as floats, widened into ``scratch`` if need be."""
    if not bf16:
        return <const float *>array + at
    widen(n, <const uint16_t *>array + at, scratch)
    return scratch


cdef inline void load(
    const void *array, Py_ssize_t at, Py_ssize_t n, bint bf16, float *to
) noexcept nogil:
    """Copy ``n`` values from position ``at`` as floats."""
    if bf16:
        widen(n, <const uint16_t *>array + at, to)
    else:
        memcpy(to, <const float *>array + at, n * sizeof(float))


cdef inline void store(
    const float *values, Py_ssize_t n, bint bf16, void *array, Py_ssize_t at
) noexcept nogil:
    """Put them back, rounded if need be; they may stand there already."""
    if bf16:
        narrow(n, values, <uint16_t *>array + at)
    elif <float *>array + at != values:
        memcpy(<float *>array + at, values, n * sizeof(float))
