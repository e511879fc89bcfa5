"""The transition systems, compiled: same arguments and same bits as ``reference.py``.

Input is trusted: the modules of ``spmrl_bench.transitions`` have checked it. Every index goes
through a typed memoryview, so a debug build (SPMRL_BENCH_BOUNDS_CHECKS=1, see setup.py) checks them
all. What a move needs and does is written once, in the inline functions at the beginning. An action
costs a few nanoseconds, so one thread does the work.
"""

import numpy as np

from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy

# The order of SYSTEMS and of MOVES in system.py.
cdef enum:
    ARC_STANDARD, ARC_HYBRID

cdef enum:
    SHIFT, LEFT_ARC, RIGHT_ARC, MOVES

cdef enum:
    NONE = -1
    NO_ACTION = -1


cdef inline bint is_legal(
    int system, bint several, int move, int32_t n, int32_t size, int32_t front
) noexcept nogil:
    """Whether a move is legal; the root is at the bottom of the stack, so its size tells it."""
    if move == SHIFT:
        return front <= n
    if move == LEFT_ARC:
        return size > 2 if system == ARC_STANDARD else size > 1 and front <= n
    return size > 2 or (size == 2 and (several or front > n))


cdef inline int32_t head_of(
    int system, int move, int32_t second, int32_t top, int32_t front
) noexcept nogil:
    """The head of the arc that a move makes."""
    if move == RIGHT_ARC:
        return second
    return top if system == ARC_STANDARD else front


cdef inline int32_t dependent_of(int system, int move, int32_t second, int32_t top) noexcept nogil:
    """The dependent of the arc that a move makes, which leaves the stack."""
    return second if system == ARC_STANDARD and move == LEFT_ARC else top


cdef inline int move_of(int32_t action, int32_t relations) noexcept nogil:
    """The move of an action."""
    return SHIFT if action == 0 else LEFT_ARC if action <= relations else RIGHT_ARC


cdef inline bint is_legal_action(
    int system, bint several, const uint8_t[:, ::1] permitted,
    int32_t action, int32_t n, int32_t size, int32_t front,
) noexcept nogil:
    """Whether an action, which may be any number, is legal."""
    cdef int32_t relations = <int32_t>permitted.shape[1]
    cdef int move
    if action < 0 or action > 2 * relations:
        return False
    move = move_of(action, relations)
    if not is_legal(system, several, move, n, size, front):
        return False
    if move == SHIFT:
        return True
    return permitted[between_words(move, size), (action - 1) % relations]


cdef inline int between_words(int move, int32_t size) noexcept nogil:
    """The row of relations that are permitted for an arc: 0 for one from the root, else 1."""
    return not (move == RIGHT_ARC and size == 2)


def legal_moves(
    int system,
    bint several,
    const int32_t[::1] lengths,
    const int32_t[::1] sizes,
    const int32_t[::1] fronts,
    uint8_t[:, ::1] legal,
):
    """Which moves are legal in each state."""
    cdef Py_ssize_t s
    cdef int move
    with nogil:
        for s in range(lengths.shape[0]):
            for move in range(MOVES):
                legal[s, move] = is_legal(system, several, move, lengths[s], sizes[s], fronts[s])


def legal_actions(
    const uint8_t[:, ::1] permitted,
    const uint8_t[:, ::1] moves,
    const uint8_t[::1] at_root,
    uint8_t[:, ::1] legal,
):
    """Which actions are legal, by the moves that are."""
    cdef Py_ssize_t s, r, relations = permitted.shape[1]
    cdef int row
    with nogil:
        for s in range(moves.shape[0]):
            legal[s, 0] = moves[s, SHIFT]
            row = not at_root[s]
            for r in range(relations):
                legal[s, 1 + r] = moves[s, LEFT_ARC] & permitted[1, r]
            for r in range(relations):
                legal[s, 1 + relations + r] = moves[s, RIGHT_ARC] & permitted[row, r]


def advance(
    int system,
    bint several,
    const uint8_t[:, ::1] permitted,
    const int32_t[::1] actions,
    const int32_t[::1] lengths,
    int32_t[:, ::1] stack,
    int32_t[::1] sizes,
    int32_t[::1] fronts,
    int32_t[:, ::1] heads,
    int32_t[:, ::1] relations,
):
    """Do one action in each state that is not finished, unless one is illegal."""
    cdef Py_ssize_t s
    cdef int move
    cdef int32_t top, second, front, size, dependent, count = <int32_t>permitted.shape[1]
    with nogil:
        for s in range(actions.shape[0]):
            if sizes[s] == 1 and fronts[s] > lengths[s]:
                continue
            if not is_legal_action(
                system, several, permitted, actions[s], lengths[s], sizes[s], fronts[s]
            ):
                with gil:
                    return s
        for s in range(actions.shape[0]):
            size = sizes[s]
            front = fronts[s]
            if size == 1 and front > lengths[s]:
                continue
            move = move_of(actions[s], count)
            if move == SHIFT:
                stack[s, size] = front
                sizes[s] = size + 1
                fronts[s] = front + 1
                continue
            top = stack[s, size - 1]
            second = stack[s, size - 2]
            dependent = dependent_of(system, move, second, top)
            heads[s, dependent] = head_of(system, move, second, top, front)
            relations[s, dependent] = (actions[s] - 1) % count
            if dependent == second:
                stack[s, size - 2] = top
            sizes[s] = size - 1
    return -1


def masks(
    const int32_t[::1] lengths,
    const int32_t[::1] fronts,
    const int32_t[:, ::1] heads,
    uint8_t[:, ::1] pushed,
    uint8_t[:, ::1] removed,
):
    """Which words have been pushed, and which removed."""
    cdef Py_ssize_t s
    cdef int32_t word, n, front
    with nogil:
        for s in range(lengths.shape[0]):
            n = lengths[s]
            front = fronts[s]
            for word in range(<int32_t>heads.shape[1]):
                pushed[s, word] = word < front
                removed[s, word] = (heads[s, word] >= 0) | (word > n)


def tops(
    const int32_t[::1] lengths,
    const int32_t[:, ::1] stack,
    const int32_t[::1] sizes,
    const int32_t[::1] fronts,
    int32_t[::1] s0,
    int32_t[::1] s1,
    int32_t[::1] b0,
):
    """The words s0, s1 and b0 of each state."""
    cdef Py_ssize_t s
    with nogil:
        for s in range(lengths.shape[0]):
            s0[s] = stack[s, sizes[s] - 1]
            s1[s] = stack[s, sizes[s] - 2] if sizes[s] > 1 else NONE
            b0[s] = fronts[s] if fronts[s] <= lengths[s] else NONE


def oracle(
    int system,
    bint several,
    const int32_t[::1] heads,
    const int32_t[::1] relations,
    const int32_t[::1] lengths,
    int32_t count,
    int32_t[:, ::1] actions,
):
    """The actions that make the trees of a batch, unless one cannot be made."""
    cdef Py_ssize_t b, step, word, first = 0, width = actions.shape[1] // 2 + 1
    cdef int move
    cdef int32_t n, size, front, top, second, dependent
    cdef int32_t[::1] stack = np.empty(width, dtype=np.int32)
    cdef int32_t[::1] waiting = np.empty(width, dtype=np.int32)  # dependents without a head
    with nogil:
        for b in range(lengths.shape[0]):
            n = lengths[b]
            waiting[: n + 1] = 0
            for word in range(n):
                waiting[heads[first + word]] += 1
            stack[0] = 0
            size = front = 1
            for step in range(2 * n):
                top = stack[size - 1]
                second = stack[size - 2] if size > 1 else NONE
                for move in range(LEFT_ARC, MOVES):
                    if is_legal(system, several, move, n, size, front):
                        dependent = dependent_of(system, move, second, top)
                        if waiting[dependent] == 0 and heads[first + dependent - 1] == head_of(
                            system, move, second, top, front
                        ):
                            break
                else:
                    if front > n:
                        with gil:
                            return b
                    actions[b, step] = SHIFT
                    stack[size] = front
                    size += 1
                    front += 1
                    continue
                actions[b, step] = 1 + (move - 1) * count + relations[first + dependent - 1]
                waiting[heads[first + dependent - 1]] -= 1
                if dependent == second:
                    stack[size - 2] = top
                size -= 1
            actions[b, 2 * n :] = NO_ACTION
            first += n
    return -1


def history(
    int system,
    bint several,
    const uint8_t[:, ::1] permitted,
    const int32_t[:, ::1] actions,
    const int32_t[::1] lengths,
    uint8_t[:, :, ::1] pushed,
    uint8_t[:, :, ::1] removed,
    int32_t[:, ::1] s0,
    int32_t[:, ::1] s1,
    int32_t[:, ::1] b0,
    uint8_t[:, :, ::1] legal,
):
    """The states before each action of a batch, unless one is illegal."""
    cdef Py_ssize_t b, step, word, steps = actions.shape[1], width = pushed.shape[2]
    cdef int move
    cdef int32_t n, size, front, top, second, dependent, count = <int32_t>permitted.shape[1]
    cdef int32_t[::1] stack = np.empty(width, dtype=np.int32)
    # How the words of the state are marked before the next action.
    cdef uint8_t[::1] pushed_now = np.empty(width, dtype=np.uint8)
    cdef uint8_t[::1] removed_now = np.empty(width, dtype=np.uint8)
    with nogil:
        for b in range(lengths.shape[0]):
            n = lengths[b]
            for word in range(width):
                pushed_now[word] = word == 0
                removed_now[word] = word > n
            stack[0] = 0
            size = front = 1
            for step in range(steps):
                top = stack[size - 1]
                second = stack[size - 2] if size > 1 else NONE
                memcpy(&pushed[b, step, 0], &pushed_now[0], width)
                memcpy(&removed[b, step, 0], &removed_now[0], width)
                s0[b, step] = top
                s1[b, step] = second
                b0[b, step] = front if front <= n else NONE
                for move in range(MOVES):
                    legal[b, step, move] = is_legal(system, several, move, n, size, front)
                if size == 1 and front > n:
                    continue
                if not is_legal_action(
                    system, several, permitted, actions[b, step], n, size, front
                ):
                    with gil:
                        return b * steps + step
                move = move_of(actions[b, step], count)
                if move == SHIFT:
                    stack[size] = front
                    pushed_now[front] = 1
                    size += 1
                    front += 1
                    continue
                dependent = dependent_of(system, move, second, top)
                removed_now[dependent] = 1
                if dependent == second:
                    stack[size - 2] = top
                size -= 1
    return -1
