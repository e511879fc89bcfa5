"""Addresses of tensors, once they have been looked at: the gate of every kernel of layers.

A kernel works on memory. It would read a float64 tensor as other numbers, and beyond the end of one
that is too short. So no kernel takes an address: each takes tensors, and asks here for the address
of every one of them, saying which type and shape it counts on. A tensor is refused with an
:class:`~spmrl_bench.errors.ArrayError` unless it is what was asked for, contiguous and on the CPU;
and so is a number or an index that leads out of a tensor. Compiled, a look costs about as much as
the address alone.
"""

from libc.stdint cimport int64_t, uint8_t

import torch

from spmrl_bench.errors import ArrayError

cdef object TENSOR = torch.Tensor
cdef object FLOAT32 = torch.float32, BFLOAT16 = torch.bfloat16
cdef object INT64 = torch.int64, BOOL = torch.bool


cdef bint has_shape(object tensor, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c) except -1:
    """Whether a tensor has these sizes, as far as they are given."""
    cdef tuple shape = <tuple>tensor.shape  # of a subclass
    cdef Py_ssize_t dimensions = 1 if b == NO_SIZE else 2 if c == NO_SIZE else 3
    if len(shape) != dimensions or <Py_ssize_t>shape[0] != a:
        return False
    if dimensions > 1 and <Py_ssize_t>shape[1] != b:
        return False
    return dimensions < 3 or <Py_ssize_t>shape[2] == c


cdef void *address(
    object tensor, object dtype, str name, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c
) except? NULL:
    """Where the values of a tensor begin."""
    if (
        isinstance(tensor, TENSOR)
        and tensor.dtype is dtype
        and has_shape(tensor, a, b, c)
        and tensor.is_cpu
        and tensor.is_contiguous()
        and not tensor.is_neg()
    ):
        try:
            return <void *><size_t>tensor.data_ptr()
        except RuntimeError:
            pass  # it has no memory of its own
    refuse(tensor, name, dtype, [size for size in (a, b, c) if size != NO_SIZE])


cdef int refuse(object tensor, str name, object dtype, list shape) except -1:
    """Raise the error that says what a tensor is and what it must be."""
    allowed = f"{str(dtype).removeprefix('torch.')} {shape}"
    raise ArrayError(
        f"{name} is {described(tensor)}; it must be {allowed}, contiguous and on the CPU."
    )


def described(tensor) -> str:
    """A tensor as an error calls it, such as ``float64 [3, 4]``."""
    if not isinstance(tensor, TENSOR):
        return f"{type(tensor).__name__}, no tensor" if tensor is not None else "absent"
    words = [str(tensor.dtype).removeprefix("torch."), str(list(tensor.shape))]
    if tensor.layout is not torch.strided:
        words.append(f"in the layout {str(tensor.layout).removeprefix('torch.')}")
    elif not tensor.is_contiguous() or tensor.is_neg():
        words.append("not contiguous")
    if not tensor.is_cpu:
        words.append(f"on {tensor.device}")
    return " ".join(words)


def check(tensor, str name, dtype, *shape) -> None:
    """Refuse what is not a contiguous tensor of this type and shape on the CPU.

    Args:
        tensor: anything.
        name: what an error calls it.
        dtype: of torch.
        shape: one to three sizes.

    Raises:
        ArrayError: it is another.
    """
    cdef Py_ssize_t b = shape[1] if len(shape) > 1 else NO_SIZE
    cdef Py_ssize_t c = shape[2] if len(shape) > 2 else NO_SIZE
    address(tensor, dtype, name, shape[0], b, c)


def check_indices(tensor, str name, Py_ssize_t count, int64_t least, int64_t end) -> None:
    """Refuse what is not a contiguous int64 tensor ``[count]`` of numbers from ``least`` to below
    ``end``.

    Raises:
        ArrayError: it is another.
    """
    indices(tensor, name, count, least, end)


def check_layout(lengths, sentence, position, Py_ssize_t longest, Py_ssize_t tokens) -> None:
    """Refuse sentences that do not divide the tokens between them, see ``ragged.py``.

    Args:
        lengths: int64 ``[sentences]``.
        sentence, position: int64 ``[tokens]``, of each token.
        longest: the greatest length.
        tokens: how many there are.

    Raises:
        ArrayError: the parts do not fit each other, or the tokens.
    """
    cdef Py_ssize_t sentences = rows_of(lengths, "lengths of the layout"), b, k, row = 0, most = 0
    cdef const int64_t *length = integers(lengths, "lengths of the layout", sentences)
    cdef const int64_t *owner = integers(sentence, "sentence of the layout", tokens)
    cdef const int64_t *place = integers(position, "position of the layout", tokens)
    for b in range(sentences):
        if not 1 <= length[b] <= tokens - row:
            raise ArrayError(
                f"lengths[{b}] of the layout is {length[b]}; it must be at least 1, and of "
                f"{tokens} tokens {tokens - row} are left."
            )
        most = max(most, length[b])
        for k in range(length[b]):
            if owner[row] != b or place[row] != k:
                raise ArrayError(
                    f"token {row} of the layout is {place[row]} of sentence {owner[row]}; by the "
                    f"lengths it is {k} of sentence {b}."
                )
            row += 1
    if row != tokens or most != longest:
        raise ArrayError(
            f"the layout has {row} tokens, {most} in the longest sentence; there must be {tokens}, "
            f"and longest says {longest}."
        )


cdef float *floats(
    object tensor, str name, Py_ssize_t a, Py_ssize_t b=NO_SIZE, Py_ssize_t c=NO_SIZE
) except? NULL:
    """Of a float32 tensor of this shape."""
    return <float *>address(tensor, FLOAT32, name, a, b, c)


cdef float *some_floats(
    object tensor, str name, Py_ssize_t a, Py_ssize_t b=NO_SIZE, Py_ssize_t c=NO_SIZE
) except? NULL:
    """The same, or NULL where there is None."""
    return NULL if tensor is None else <float *>address(tensor, FLOAT32, name, a, b, c)


cdef void *lows(
    object tensor, bint low, str name, Py_ssize_t a, Py_ssize_t b=NO_SIZE, Py_ssize_t c=NO_SIZE
) except? NULL:
    """Of a tensor of this shape, bfloat16 if ``low`` and else float32."""
    return address(tensor, BFLOAT16 if low else FLOAT32, name, a, b, c)


cdef void *some_lows(
    object tensor, bint low, str name, Py_ssize_t a, Py_ssize_t b=NO_SIZE, Py_ssize_t c=NO_SIZE
) except? NULL:
    """The same, or NULL where there is None."""
    return NULL if tensor is None else lows(tensor, low, name, a, b, c)


cdef int64_t *integers(object tensor, str name, Py_ssize_t count) except? NULL:
    """Of an int64 tensor ``[count]``."""
    return <int64_t *>address(tensor, INT64, name, count, NO_SIZE, NO_SIZE)


cdef int64_t *indices(
    object tensor, str name, Py_ssize_t count, int64_t least, int64_t end
) except? NULL:
    """Of an int64 tensor ``[count]`` of numbers from ``least`` to below ``end``."""
    cdef int64_t *numbers = integers(tensor, name, count)
    cdef Py_ssize_t k
    for k in range(count):
        if not least <= numbers[k] < end:
            raise ArrayError(
                f"{name}[{k}] is {numbers[k]}; it must be at least {least} and below {end}."
            )
    return numbers


cdef uint8_t *flags(object tensor, str name, Py_ssize_t a, Py_ssize_t b) except? NULL:
    """Of a bool tensor of this shape."""
    return <uint8_t *>address(tensor, BOOL, name, a, b, NO_SIZE)


cdef Py_ssize_t rows_of(object tensor, str name) except -1:
    """The first size of a tensor, where a kernel works on some of its rows."""
    if not isinstance(tensor, TENSOR) or tensor.dim() == 0:
        raise ArrayError(f"{name} is {described(tensor)}; it must be a tensor with rows.")
    return tensor.shape[0]


cdef int within(str name, int64_t number, int64_t least, int64_t most) except -1:
    """Refuse a number that is out of range."""
    if not least <= number <= most:
        raise ArrayError(f"{name} is {number}; it must be from {least} to {most}.")
    return 0


cdef unsigned int dropped_below(double p) except? 0xFFFFFFFF:
    """The 16 random bits below which a value is dropped with probability ``p``."""
    if not 0 <= p * 65536 + 0.5 < 65536:
        raise ArrayError(f"the probability of dropout is {p}; it must be from 0 to below 1.")
    return <unsigned int>(p * 65536 + 0.5)
