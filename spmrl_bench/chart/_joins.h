/* The loops in which CKY, Eisner's chart and Edmonds' algorithm spend their time.

   They are C because Cython cannot promise that two arrays do not overlap, and without that no
   compiler vectorises them well. A maximum is the same in any order: of the two zeros either may
   come out, but they compare equal, and no score is read off a chart. Callers guarantee the sizes. */

#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "../simd.h"

static inline double larger(double a, double b) { return a > b ? a : b; }

/* Where a row of packed cells would begin if it had one for each fencepost: [i, j) stands at j. */
static inline ptrdiff_t packed_row(ptrdiff_t i, ptrdiff_t n) { return i * n - i * (i - 1) / 2 - i - 1; }

/* Numbers that may stand anywhere. Their sum has one order, whatever instructions there are. */
typedef double eight_t __attribute__((vector_size(64), aligned(8), may_alias));
INLINED double sum_of(eight_t a)
{
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

/* CKY over `n` words: `inside` [n(n + 1) / 2], packed, comes with the value of each span and leaves
   with the score of the best tree over it. `tops` is [n + 1]. */
CLONES
static void fill_spans(double *restrict inside, double *restrict tops, ptrdiff_t n)
{
    for (ptrdiff_t i = n - 2; i >= 0; i--) {
        double *restrict const row = inside + packed_row(i, n);
        for (ptrdiff_t j = i + 2; j <= n; j++) tops[j] = -INFINITY;
        for (ptrdiff_t k = i + 1; k < n; k++) {
            if (k > i + 1) row[k] += tops[k];
            const double left = row[k];
            const double *restrict const right = inside + packed_row(k, n);
            for (ptrdiff_t j = k + 1; j <= n; j++) tops[j] = larger(left + right[j], tops[j]);
        }
        row[n] += tops[n];
    }
}

/* Sums over trees of `n` words, as span_trees.py has them, for the weights of cells, packed, and
   the scale of each word. `closed` and `open`, packed, leave with sums over parts, `sums` is [n + 1].
   Two parts go into the sums at once, since to read and write these takes longer than to add. */
CLONES
static void sum_inside(
    const double *restrict weights, const double *restrict scales, double *restrict closed,
    double *restrict open, double *restrict sums, ptrdiff_t n)
{
    for (ptrdiff_t i = n - 1; i >= 0; i--) {
        const ptrdiff_t base = packed_row(i, n);
        const double *restrict const weight = weights + base;
        double *restrict const row = closed + base;
        double *restrict const all = open + base;
        row[i + 1] = all[i + 1] = (weight[i + 1] + (n > 1)) * scales[i];
        for (ptrdiff_t j = i + 2; j <= n; j++) sums[j] = 0;
        for (ptrdiff_t k = i + 1; k < n; k += 2) {
            if (k > i + 1) {
                row[k] = weight[k] * sums[k];
                all[k] = row[k] + sums[k];
            }
            const double one = row[k];
            const double *restrict const right = open + packed_row(k, n);
            const double *restrict const after = open + packed_row(k + 1, n);
            const double last = sums[k + 1] + one * right[k + 1];
            row[k + 1] = weight[k + 1] * last;
            all[k + 1] = row[k + 1] + last;
            const double two = row[k + 1];
            for (ptrdiff_t j = k + 2; j <= n; j++) sums[j] += one * right[j] + two * after[j];
        }
        if (n > i + 1 && (n - i) % 2) {
            row[n] = weight[n] * sums[n];
            all[n] = row[n] + sums[n];
        }
    }
}

/* Of the sums of sum_inside, the share of trees with a constituent over each span, into `found`.
   `outside`, packed, is of open parts, `of_sums` [2, n + 1] of the spans that begin at two words,
   which are gone through together. */
CLONES
static void sum_outside(
    const double *restrict weights, const double *restrict scales, const double *restrict closed,
    const double *restrict open, double *restrict outside, double *restrict of_sums,
    double *restrict found, ptrdiff_t n)
{
    const double whole = 1 / closed[n - 1];
    double *restrict const first = of_sums, *restrict const second = of_sums + n + 1;
    for (ptrdiff_t cell = 0; cell < n * (n + 1) / 2; cell++) outside[cell] = 0;
    for (ptrdiff_t i = 0; i < n; i += 2) {
        const ptrdiff_t row = packed_row(i, n), next = packed_row(i + 1, n);
        for (ptrdiff_t k = n; k > i; k--) {
            const double *restrict const right = open + packed_row(k, n);
            double *restrict const below = outside + packed_row(k, n);
            const int both = k > i + 1;
            const double left = both ? closed[row + k] : 0, other = both ? closed[next + k] : 0;
            eight_t of_first = {0}, of_second = {0};
            ptrdiff_t j = k + 1;
            for (; j + 7 <= n; j += 8) {
                const eight_t one = *(const eight_t *)(first + j), two = *(const eight_t *)(second + j);
                const eight_t parts = *(const eight_t *)(right + j);
                of_first += one * parts;
                of_second += two * parts;
                *(eight_t *)(below + j) += one * left + two * other;
            }
            double total = sum_of(of_first), total_of_next = sum_of(of_second);
            for (; j <= n; j++) {
                total += first[j] * right[j];
                total_of_next += second[j] * right[j];
                below[j] += first[j] * left + second[j] * other;
            }
            const double open_parts = outside[row + k];
            total = i == 0 && k == n ? whole : total + open_parts;
            first[k] = weights[row + k] * total + open_parts;
            if (!both) {
                found[row + k] = weights[row + k] * scales[i] * total;
                break;
            }
            found[row + k] = closed[row + k] * total;
            const double of_next = outside[next + k] + first[k] * closed[row + i + 1];
            total_of_next += of_next;
            second[k] = weights[next + k] * total_of_next + of_next;
            found[next + k] = k == i + 2 ? weights[next + k] * scales[i + 1] * total_of_next
                                         : closed[next + k] * total_of_next;
        }
    }
}

/* Eisner's chart over `n` words with `arcs` [n, n + 1].

   The part from word i to word j stands at [i, j] of a chart [n, n] with rows of `stride`; `tops`
   is [3, stride]. The parts that begin at word i are finished from the shortest on: as soon as that
   to word j is, its sums with all parts that begin where it ends go into the best sums found so far
   for the longer ones. That loop runs along rows alone. */
CLONES
static void fill_charts(
    const double *restrict arcs, ptrdiff_t n, ptrdiff_t stride, double *restrict right,
    double *restrict left, double *restrict arc_right, double *restrict arc_left,
    double *restrict tops)
{
    double *restrict const joined = tops, *restrict const to_right = tops + stride;
    double *restrict const to_left = tops + 2 * stride;
    for (ptrdiff_t i = n - 1; i >= 0; i--) {
        const ptrdiff_t row = i * stride;
        right[row + i] = left[row + i] = 0;
        for (ptrdiff_t q = i + 1; q < n; q++) {
            joined[q] = left[row + stride + q];
            to_right[q] = to_left[q] = -INFINITY;
        }
        for (ptrdiff_t j = i + 1; j < n; j++) {
            const double with_right = joined[j] + arcs[j * (n + 1) + i + 1];
            const double with_left = joined[j] + arcs[i * (n + 1) + j + 1];
            const double of_right = larger(with_right, to_right[j]);
            const double of_left = larger(with_left, to_left[j]);
            arc_right[row + j] = with_right;
            arc_left[row + j] = with_left;
            right[row + j] = of_right;
            left[row + j] = of_left;
            const double *restrict const rights = right + j * stride;
            const double *restrict const arc_lefts = arc_left + j * stride;
            const double *restrict const lefts = left + (j + 1) * stride;
            for (ptrdiff_t q = j + 1; q < n; q++) {
                joined[q] = larger(of_right + lefts[q], joined[q]);
                to_right[q] = larger(with_right + rights[q], to_right[q]);
                to_left[q] = larger(of_left + arc_lefts[q], to_left[q]);
            }
        }
    }
}

/* Take over the better of two rows of arcs; of equal ones that which enters at the lower word.

   `values` less `by` are those of the one, `into` those of the other; `enters` and `into_enters` say
   where they enter. */
CLONES
static void merge_row(
    const double *restrict values, const int64_t *restrict enters, double by,
    double *restrict into, int64_t *restrict into_enters, ptrdiff_t count)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        const double value = values[k] - by;
        const int better =
            (value > into[k]) | ((value == into[k]) & (enters[k] < into_enters[k]));
        into[k] = better ? value : into[k];
        into_enters[k] = better ? enters[k] : into_enters[k];
    }
}
