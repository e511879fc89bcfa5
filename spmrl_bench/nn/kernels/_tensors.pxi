# What the kernels have in common: a gate for tensors, memory, and the loops over one row.
#
# A kernel would read a float64 tensor as other numbers, and beyond the end of a short one. So each
# gets the addresses of tensors here, saying which type and how many numbers it counts on. Arrays
# called *bf16* are bfloat16 if ``bf16`` is true, else float32; everything else is float32 unless
# another type is named. None stands for what is absent.

from cython.parallel cimport prange, threadid
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy, memset

import torch

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn.kernels import refuse

ctypedef float *Floats
ctypedef const float *Given  # to read alone

cdef extern from "_rows.h" nogil:
    int LANES
    void widen(Py_ssize_t, const uint16_t *, Floats)
    void narrow(Py_ssize_t, Given, uint16_t *)
    float row_sum(Py_ssize_t, Given)
    float row_deviation(Py_ssize_t, Given, float)
    float inverse_deviation(float, Py_ssize_t, double)
    void add_branch(Py_ssize_t, Given, Given, Given, Given, Floats)
    void normalise(Py_ssize_t, Given, float, float, Given, Given, Floats)
    void add_rows(Py_ssize_t, Given, Given, Floats)
    void multiply(Py_ssize_t, Given, Given, Floats)
    void norm_sums(Py_ssize_t, Given, Given, float, float, Given, Floats, Floats, Floats)
    void norm_back(Py_ssize_t, Given, Given, float, float, Given, float, float, Floats)
    void mask_back(Py_ssize_t, Given, Given, Floats, Floats)
    void relu_mask(Py_ssize_t, Floats, Given, Given)
    void relu_back(Py_ssize_t, Given, float, Floats, Floats)
    void draw_mask(uint64_t, uint64_t, Py_ssize_t, unsigned int, float, Floats)
    void lstm_forward(Py_ssize_t, Floats, Given, Floats, Floats)
    void lstm_backward(Py_ssize_t, Given, Given, Given, Given, Floats, Floats)
    void gru_forward(Py_ssize_t, Floats, Given, Floats, Floats)
    void gru_backward(Py_ssize_t, Given, Given, Given, Floats, Floats)

cdef object FLOAT32 = torch.float32


cdef inline void *address(tensor, dtype, Py_ssize_t numbers, str name) except? NULL:
    """Return where a contiguous tensor on the CPU of this type and so many numbers begins."""
    try:
        if (
            tensor.dtype is dtype and tensor.numel() == numbers and tensor.is_cpu
            and tensor.is_contiguous() and not tensor.is_neg()
        ):
            return <void *><size_t>tensor.data_ptr()
    except (AttributeError, RuntimeError):
        pass  # it is no tensor, or has no memory of its own
    refuse(tensor, name, f"{numbers} numbers of {dtype}, contiguous and on the CPU")


cdef inline Floats floats(tensor, Py_ssize_t numbers, str name) except? NULL:
    return <Floats>address(tensor, FLOAT32, numbers, name)


cdef inline Floats optional(tensor, Py_ssize_t numbers, str name) except? NULL:
    return NULL if tensor is None else floats(tensor, numbers, name)


cdef inline int within(str name, Py_ssize_t number, Py_ssize_t least, Py_ssize_t most) except -1:
    """Refuse a number that is out of range."""
    if not least <= number <= most:
        raise ArrayError(f"{name} is {number}; it must be from {least} to {most}.")
    return 0


cdef inline Given loaded(
    const void *array, Py_ssize_t at, Py_ssize_t n, bint bf16, Floats scratch
) noexcept nogil:
    """Return ``n`` values from position ``at`` as floats, widened into ``scratch`` if need be."""
    if not bf16:
        return <Given>array + at
    widen(n, <const uint16_t *>array + at, scratch)
    return scratch


cdef inline void load(
    const void *array, Py_ssize_t at, Py_ssize_t n, bint bf16, Floats to
) noexcept nogil:
    """Copy ``n`` values from position ``at`` as floats."""
    if bf16:
        widen(n, <const uint16_t *>array + at, to)
    else:
        memcpy(to, <Given>array + at, n * sizeof(float))


cdef inline void store(
    Given values, Py_ssize_t n, bint bf16, void *array, Py_ssize_t at
) noexcept nogil:
    """Put them back, rounded if need be; they may stand there already."""
    if bf16:
        narrow(n, values, <uint16_t *>array + at)
    elif <Floats>array + at != values:
        memcpy(<Floats>array + at, values, n * sizeof(float))


cdef class Memory:
    """Tensors, held as long as their addresses are, and scratch for each of some threads."""

    cdef bint bf16
    cdef object dtype  # of arrays called bf16
    cdef list held
    cdef int threads
    cdef object room
    cdef Floats scratch
    cdef Py_ssize_t own  # numbers of scratch of a thread

    cdef int prepare(self, bint bf16, int threads, list held) except -1:
        within("threads", threads, 1, 1024)  # so many can be started anywhere
        self.bf16, self.dtype = bf16, torch.bfloat16 if bf16 else FLOAT32
        self.threads, self.held = threads, held

    cdef Floats new(self, Py_ssize_t numbers) except? NULL:
        tensor = torch.empty(numbers)
        self.held.append(tensor)
        return floats(tensor, numbers, "memory of a kernel")

    cdef int take_room(self, Py_ssize_t own) except -1:
        """Take scratch, once all tensors are known to be as large as they must be."""
        self.room, self.own = torch.empty(self.threads * own), own
        self.scratch = floats(self.room, self.threads * own, "scratch")

    cdef Floats mine(self) noexcept nogil:
        """Scratch of the calling thread."""
        return self.scratch + threadid() * self.own
