/* The two loops in which chart decoding spends its time.

   They are C because Cython can neither keep vectors in registers nor promise that two arrays do
   not overlap, and without that no compiler vectorises them well. Vectors of four floats, which
   every 64-bit x86 processor has, suffice: the maxima then wait for memory already, and wider
   vectors make the sums of very long sentences, which wait for the cache, hardly faster.

   Nothing here depends on the order of comparisons: a maximum is the same in any order, and the
   two zeros, which compare equal, are made one by the caller. With NaN among the scores results
   mean nothing, but no index is read from them. Callers guarantee the sizes. */

#ifndef SPMRL_BENCH_CHART_LOOPS_H
#define SPMRL_BENCH_CHART_LOOPS_H

#include <math.h>
#include <stddef.h>

#ifdef _MSC_VER
#define restrict __restrict
#endif

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
typedef __m128 four;
static inline four four_load(const float *x) { return _mm_loadu_ps(x); }
static inline four four_max(four a, four b) { return _mm_max_ps(a, b); }
static inline four four_add(four a, four b) { return _mm_add_ps(a, b); }
static inline void four_store(float *x, four a) { _mm_storeu_ps(x, a); }
static inline int four_reach(four a, float limit)
{
    return _mm_movemask_ps(_mm_cmpge_ps(a, _mm_set1_ps(limit)));
}
#else
typedef struct { float lane[4]; } four;
static inline four four_load(const float *x)
{
    four a;
    for (int l = 0; l < 4; l++) a.lane[l] = x[l];
    return a;
}
static inline four four_max(four a, four b)
{
    for (int l = 0; l < 4; l++) a.lane[l] = a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l];
    return a;
}
static inline four four_add(four a, four b)
{
    for (int l = 0; l < 4; l++) a.lane[l] += b.lane[l];
    return a;
}
static inline void four_store(float *x, four a)
{
    for (int l = 0; l < 4; l++) x[l] = a.lane[l];
}
static inline int four_reach(four a, float limit)
{
    int reached = 0;
    for (int l = 0; l < 4; l++) reached |= a.lane[l] >= limit;
    return reached;
}
#endif

enum { BLOCK = 16 };  /* columns at a time: four chains of vectors, which do not wait for each other */

static inline double larger(double a, double b) { return a > b ? a : b; }

static inline float largest_lane(four a)
{
    float x[4];
    four_store(x, a);
    for (int l = 1; l < 4; l++) x[0] = x[l] > x[0] ? x[l] : x[0];
    return x[0];
}

/* The largest of `count` scores, minus infinity where there are none. */
static inline float row_maximum(const float *scores, ptrdiff_t count)
{
    if (count < BLOCK) {
        float top = -INFINITY;
        for (ptrdiff_t c = 0; c < count; c++) top = scores[c] > top ? scores[c] : top;
        return top;
    }
    four a = four_load(scores), b = four_load(scores + 4);
    four c = four_load(scores + 8), d = four_load(scores + 12);
    for (ptrdiff_t done = BLOCK; done < count; done += BLOCK) {
        /* The last block ends with the row, so that it may take some columns again. */
        const float *x = scores + (done + BLOCK <= count ? done : count - BLOCK);
        a = four_max(four_load(x), a);
        b = four_max(four_load(x + 4), b);
        c = four_max(four_load(x + 8), c);
        d = four_max(four_load(x + 12), d);
    }
    return largest_lane(four_max(four_max(a, b), four_max(c, d)));
}

/* The first column from `column` on whose score is at least `limit`, `columns` if there is none. */
static inline ptrdiff_t next_column(
    const float *scores, ptrdiff_t column, ptrdiff_t columns, float limit)
{
    for (; column + BLOCK <= columns; column += BLOCK) {
        const float *x = scores + column;
        const four a = four_max(four_load(x), four_load(x + 4));
        const four b = four_max(four_load(x + 8), four_load(x + 12));
        if (four_reach(four_max(a, b), limit)) break;
    }
    while (column < columns && !(scores[column] >= limit)) column++;
    return column;
}

/* Write the largest score of each cell, a row of `columns` scores, to `maxima`.

   Returns 0 if any score may be NaN or infinite. A sum tells, because neither ever leaves one;
   that it may also overflow is for the caller to tell apart. */
static int cell_maxima(
    const float *restrict scores, ptrdiff_t cells, ptrdiff_t columns, double *restrict maxima)
{
    float total = 0;
    if (columns < BLOCK) {
        for (ptrdiff_t cell = 0; cell < cells; cell++, scores += columns) {
            maxima[cell] = row_maximum(scores, columns);
            for (ptrdiff_t c = 0; c < columns; c++) total += scores[c];
        }
        return isfinite(total);
    }
    const float zeros[4] = {0, 0, 0, 0};
    four e = four_load(zeros), f = e, g = e, h = e;
    for (ptrdiff_t cell = 0; cell < cells; cell++, scores += columns) {
        /* As in row_maximum, each vector being added up on the way. */
        four a = four_load(scores), b = four_load(scores + 4);
        four c = four_load(scores + 8), d = four_load(scores + 12);
        e = four_add(a, e), f = four_add(b, f), g = four_add(c, g), h = four_add(d, h);
        for (ptrdiff_t done = BLOCK; done < columns; done += BLOCK) {
            const float *x = scores + (done + BLOCK <= columns ? done : columns - BLOCK);
            const four p = four_load(x), q = four_load(x + 4);
            const four r = four_load(x + 8), s = four_load(x + 12);
            a = four_max(p, a), b = four_max(q, b), c = four_max(r, c), d = four_max(s, d);
            e = four_add(p, e), f = four_add(q, f), g = four_add(r, g), h = four_add(s, h);
        }
        maxima[cell] = largest_lane(four_max(four_max(a, b), four_max(c, d)));
    }
    float sums[4];
    four_store(sums, four_add(four_add(e, f), four_add(g, h)));
    return isfinite(sums[0] + sums[1] + sums[2] + sums[3]);
}

/* Turn the label scores of a sentence of `n` words, packed [n(n+1)/2], into scores of best trees.

   Row i of the chart, the spans that begin at word i, is finished from its shortest span on:
   as soon as span [i, k) is final, its sums with all spans [k, j) go into `tops` [n], the best
   sums found so far for the spans of row i. That loop runs along row k and along `tops`, both
   contiguous, so that one order of the chart serves; four values of k at a time make it one
   store for four loads. */
static void best_sums(double *restrict inside, double *restrict tops, ptrdiff_t n)
{
    for (ptrdiff_t i = n - 1; i >= 0; i--) {
        const ptrdiff_t spans = n - i;
        double *const row = inside + i * n - i * (i - 1) / 2;  /* row[m] is span [i, i + 1 + m) */
        const double *right = row + spans;  /* row k = i + 1 + m, from span [k, k + 1) on */
        ptrdiff_t m = 0;
        for (ptrdiff_t q = 1; q < spans; q++) tops[q] = -INFINITY;
        for (; m + 4 < spans; m += 4) {
            const double *const right1 = right + (spans - m - 1);
            const double *const right2 = right1 + (spans - m - 2);
            const double *const right3 = right2 + (spans - m - 3);
            const double left = row[m];
            double top = larger(left + right[0], tops[m + 1]);
            const double left1 = row[m + 1] += top;
            top = larger(larger(left + right[1], left1 + right1[0]), tops[m + 2]);
            const double left2 = row[m + 2] += top;
            top = larger(larger(left + right[2], left1 + right1[1]), left2 + right2[0]);
            const double left3 = row[m + 3] += larger(top, tops[m + 3]);
            double *const rest = tops + m + 4;
            for (ptrdiff_t q = 0; q < spans - m - 4; q++) {
                const double first = larger(left + right[q + 3], left1 + right1[q + 2]);
                const double second = larger(left2 + right2[q + 1], left3 + right3[q]);
                rest[q] = larger(larger(first, second), rest[q]);
            }
            row[m + 4] += rest[0];
            right = right3 + (spans - m - 4);
        }
        for (; m + 1 < spans; m++) {
            for (ptrdiff_t q = 0; q < spans - m - 1; q++)
                tops[m + 1 + q] = larger(row[m] + right[q], tops[m + 1 + q]);
            row[m + 1] += tops[m + 1];
            right += spans - m - 1;
        }
    }
}

#endif
