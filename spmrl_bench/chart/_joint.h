/* The joint chart of one sentence, filled; the recurrences are those of joint_trees.py, words count from 0.

   Entry (i, j, w) is the best score that span [i, j) can have on behalf of word w: as head, where w
   is in the span, as the head of the span's head word, where it is outside. In a span of two parts
   one has the head and the other depends on it, so for each head word, whichever part it stands in,
   the best tree is the maximum over k of (i, k, w) + (k, j, w): one sum over both directions, and
   all w side by side in memory, without a branch or a gather. It takes n^4 / 12 sums, and so do the
   entries of words outside. Four splits, and four dependents, at a time keep the processor busy.

   A maximum is the same in any order, and every sum has two fixed terms: how they are grouped
   changes nothing but the time. Callers guarantee that all scores are finite, and the sizes. */

#pragma once

#include "_joins.h"

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

/* Sums over all structures, as joint_trees.py says, for `weights` [cells] and `arcs` [n, n + 1],
   which are no logarithms; written are `spans` [cells], `shares` [n, n + 1], and as work space eight
   charts [cells, n], of which the first is that of closed spans. The sum is returned. */
CLONES
static double sum_joint(
    ptrdiff_t n, const double *restrict weights, const double *restrict arcs,
    double *restrict charts, double *restrict spans, double *restrict shares)
{
    const ptrdiff_t row = n + 1, size = n * row / 2 * n;
    double *const closed = charts, *const sums = closed + size, *const opened = sums + size;
    double *const ended = opened + size, *const hung = ended + size;
    double *const of_opened = hung + size, *const of_ended = of_opened + size;
    double *const of_hung = of_ended + size;
    double total = 0;
    for (ptrdiff_t at = 0; at < 8 * size; at++) charts[at] = 0;
    for (ptrdiff_t at = 0; at < n * row; at++) shares[at] = 0;
#define AT(chart, i, j) ((chart) + cell_of(n, i, j) * n)
    for (ptrdiff_t i = n - 1; i >= 0; i--) {
        for (ptrdiff_t j = i + 1; j <= n; j++) {
            const double weight = weights[cell_of(n, i, j)];
            /* Of two parts or more: first those whose last part was put on to the right. */
            double *const part = AT(closed, i, j), *const sum = AT(sums, i, j);
            double *const open = AT(opened, i, j), *const end = AT(ended, i, j);
            double *const out = AT(hung, i, j);
            for (ptrdiff_t k = i + 1; k < j; k++) {
                const double *const right = AT(hung, k, j), *const left = AT(hung, i, k);
                const double *const before = AT(opened, i, k), *const after = AT(ended, k, j);
                for (ptrdiff_t w = i; w < k; w++) open[w] += before[w] * right[w];
                for (ptrdiff_t w = k; w < j; w++) end[w] += left[w] * after[w];
            }
            for (ptrdiff_t w = i; w < j; w++) {
                sum[w] = open[w] + end[w];
                part[w] = j == i + 1 ? weight + (n > 1) : weight * sum[w];
                open[w] += part[w];
                end[w] += open[w];
            }
            for (ptrdiff_t d = i; d < j; d++) {
                const double *const to = arcs + d * row + 1;
                for (ptrdiff_t g = 0; g < n; g++) out[g] += part[d] * to[g]; /* for g outside */
            }
        }
    }
    for (ptrdiff_t w = 0; w < n; w++) total += AT(closed, 0, n)[w] * arcs[w * row];
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = n; j > i; j--) {
            const ptrdiff_t cell = cell_of(n, i, j);
            const double *const part = AT(closed, i, j), *const sum = AT(sums, i, j);
            double *const right = AT(of_opened, i, j), *const left = AT(of_ended, i, j);
            const double *const out = AT(of_hung, i, j);
            spans[cell] = 0;
            for (ptrdiff_t w = i; w < j; w++) {
                const double *const to = arcs + w * row + 1;
                double *const share = shares + w * row + 1;
                double of_part = right[w] + left[w];
                if (j - i == n) {
                    of_part += to[-1] / total;
                    share[-1] = part[w] * to[-1] / total;
                }
                for (ptrdiff_t g = 0; g < n; g++) share[g] += part[w] * to[g] * out[g];
                for (ptrdiff_t g = 0; g < i; g++) of_part += to[g] * out[g];
                for (ptrdiff_t g = j; g < n; g++) of_part += to[g] * out[g];
                of_part *= weights[cell];
                spans[cell] += j == i + 1 ? of_part : of_part * sum[w];
                right[w] += of_part + left[w];
                left[w] += of_part;
            }
            for (ptrdiff_t k = i + 1; k < j; k++) {
                const double *const after = AT(ended, k, j), *const before = AT(opened, i, k);
                const double *const depends = AT(hung, k, j), *const hangs = AT(hung, i, k);
                double *const of_before = AT(of_opened, i, k), *const of_after = AT(of_ended, k, j);
                double *const of_right = AT(of_hung, k, j), *const of_left = AT(of_hung, i, k);
                for (ptrdiff_t w = i; w < k; w++) {
                    of_before[w] += right[w] * depends[w];
                    of_right[w] += right[w] * before[w];
                }
                for (ptrdiff_t w = k; w < j; w++) {
                    of_left[w] += left[w] * after[w];
                    of_after[w] += left[w] * hangs[w];
                }
            }
        }
    }
#undef AT
    return total;
}
