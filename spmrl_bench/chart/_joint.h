/* The joint chart of one sentence, filled; the recurrences are those of joint.py, words count from 0.

   Entry (i, j, w) is the best score that span [i, j) can have on behalf of word w: as head, where w
   is in the span, as the head of the span's head word, where it is outside. In a span of two parts
   one has the head and the other depends on it, so for each head word, whichever part it stands in,
   the best tree is the maximum over k of (i, k, w) + (k, j, w): one sum over both directions, and
   all w side by side in memory, without a branch or a gather. It takes n^4 / 12 sums, and so do the
   entries of words outside. Four splits, and four dependents, at a time keep the processor busy.

   A maximum is the same in any order, and every sum has two fixed terms: how they are grouped
   changes nothing but the time. Callers guarantee that all scores are finite, and the sizes. */

#pragma once

#include <math.h>
#include <stddef.h>

#include "../simd.h"

static inline double larger(double a, double b) { return a > b ? a : b; }

static inline ptrdiff_t cell_of(ptrdiff_t n, ptrdiff_t i, ptrdiff_t j)
{
    return i * n - i * (i - 1) / 2 + (j - i - 1);
}

/* Join the parts of a span for four splits; `a` and the `b` are entries of the left and of the right
   parts, of `count` words, those of the left parts `n` apart. */
CLONES
static void join4(
    const double *restrict a, ptrdiff_t n, const double *restrict b0, const double *restrict b1,
    const double *restrict b2, const double *restrict b3, double *restrict top, ptrdiff_t count)
{
    const double *restrict const a1 = a + n, *restrict const a2 = a1 + n, *restrict const a3 = a2 + n;
    for (ptrdiff_t w = 0; w < count; w++) {
        const double first = larger(a[w] + b0[w], a1[w] + b1[w]);
        top[w] = larger(top[w], larger(first, larger(a2[w] + b2[w], a3[w] + b3[w])));
    }
}

static inline void join1(
    const double *restrict a, const double *restrict b, double *restrict top, ptrdiff_t count)
{
    for (ptrdiff_t w = 0; w < count; w++) top[w] = larger(top[w], a[w] + b[w]);
}

/* Let four words be dependents of `count` words outside; `arcs` are theirs, `stride` apart. */
CLONES
static void attach4(
    const double *restrict dependents, const double *restrict arcs, ptrdiff_t stride,
    double *restrict top, ptrdiff_t count)
{
    const double d0 = dependents[0], d1 = dependents[1], d2 = dependents[2], d3 = dependents[3];
    const double *restrict const a1 = arcs + stride, *restrict const a2 = a1 + stride;
    const double *restrict const a3 = a2 + stride;
    for (ptrdiff_t g = 0; g < count; g++) {
        const double first = larger(d0 + arcs[g], d1 + a1[g]);
        top[g] = larger(top[g], larger(first, larger(d2 + a2[g], d3 + a3[g])));
    }
}

static inline void attach1(
    double dependent, const double *restrict arcs, double *restrict top, ptrdiff_t count)
{
    for (ptrdiff_t g = 0; g < count; g++) top[g] = larger(top[g], dependent + arcs[g]);
}

/* `values` [cells] and `arcs` [n, n + 1] of a sentence of n words; written are the chart [cells, n]
   and, as work space, `dependents` [n]. */
static void fill_joint_chart(
    ptrdiff_t n, const double *values, const double *arcs, double *chart, double *dependents)
{
    const ptrdiff_t row = n + 1;
    arcs++; /* the root takes no part */
    for (ptrdiff_t i = n - 1; i >= 0; i--) {
        for (ptrdiff_t j = i + 1; j <= n; j++) {
            const double value = values[cell_of(n, i, j)];
            double *const entry = chart + cell_of(n, i, j) * n;
            for (ptrdiff_t w = 0; w < n; w++) entry[w] = -INFINITY;
            if (j == i + 1) entry[i] = 0;
#define PART(i, j) (chart + cell_of(n, i, j) * n + first)
            const ptrdiff_t first = i, words = j - i;
            ptrdiff_t k = i + 1, d = i;
            for (; k + 4 <= j; k += 4)
                join4(
                    PART(i, k), n, PART(k, j), PART(k + 1, j), PART(k + 2, j), PART(k + 3, j),
                    entry + i, words);
            for (; k < j; k++) join1(PART(i, k), PART(k, j), entry + i, words);
#undef PART
            const double gain = value > 0 ? value : 0, loss = value < 0 && words > 1 ? value : 0;
            for (ptrdiff_t w = i; w < j; w++) dependents[w] = (entry[w] += gain) + loss;
            for (; d + 4 <= j; d += 4) {
                attach4(dependents + d, arcs + d * row, row, entry, i);
                attach4(dependents + d, arcs + d * row + j, row, entry + j, n - j);
            }
            for (; d < j; d++) {
                attach1(dependents[d], arcs + d * row, entry, i);
                attach1(dependents[d], arcs + d * row + j, entry + j, n - j);
            }
        }
    }
}
