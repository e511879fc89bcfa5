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

/* CKY over `n` words: `inside` [n(n + 1) / 2], packed, comes with the value of each span and leaves
   with the score of the best tree over it. `tops` is [n + 1]. */
CLONES
static void fill_spans(double *restrict inside, double *restrict tops, ptrdiff_t n)
{
    for (ptrdiff_t i = n - 2; i >= 0; i--) {
        double *restrict const row = inside + i * n - i * (i - 1) / 2 - i - 1; /* [i, j) at j */
        for (ptrdiff_t j = i + 2; j <= n; j++) tops[j] = -INFINITY;
        for (ptrdiff_t k = i + 1; k < n; k++) {
            if (k > i + 1) row[k] += tops[k];
            const double left = row[k];
            const double *restrict const right = inside + k * n - k * (k - 1) / 2 - k - 1;
            for (ptrdiff_t j = k + 1; j <= n; j++) tops[j] = larger(left + right[j], tops[j]);
        }
        row[n] += tops[n];
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
