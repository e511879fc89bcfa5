/* The joint chart of one sentence, filled; spans as in packing.py, heads and governors from 0.

   Entry (i, j, w) of the chart is the best score that span [i, j) can have on behalf of word w:

   - w in the span: of its trees with head word w, the span's own label with it (or none);
   - w outside: of its trees, if the span is a dependent part and its head word depends on w, the
     label that a dependent part of several words must carry and the arc with it.

   In a span of two parts, one part has the head and the other one depends on it, so for each head
   word w in [i, j), whichever part it stands in, the best tree is

       max over i < k < j of (i, k, w) + (k, j, w),

   one sum over both directions, and all w side by side in memory: no branch, no gather. It takes
   n^4 / 12 sums, and so do the entries of words outside, maxima of dependents over governors. The
   n^3 / 2 entries are each used for one or the other.

   Words lie in panels of eight, one cache line: entry (i, j, w) is at [w / 8][cell][w % 8]. A run
   through the splits k of one span then reads line after line.

   A maximum is the same in any order, and every sum has two fixed terms: blocks and vectors
   change nothing but the time. Callers guarantee that all scores are finite, and the sizes. */

#ifndef SPMRL_BENCH_CHART_JOINT_H
#define SPMRL_BENCH_CHART_JOINT_H

#include <math.h>
#include <stddef.h>

enum {
    PANEL = 8,   /* words that lie together */
    ROWS = 4,    /* of spans that are combined in registers, */
    COLUMNS = 2, /* and columns: 8 maxima for 6 loads */
    BLOCK = 16,  /* rows and columns of spans that share what is in the cache, */
    STEPS = 16   /* so many splits at a time */
};

struct joint_chart {
    ptrdiff_t n;
    ptrdiff_t cells;       /* n(n+1)/2 */
    const double *values;  /* [cells], score of the best label of each span but the empty one */
    const double *arcs;    /* [panels][n][PANEL], governors in panels; padding is finite */
    double *scores;        /* [panels][cells][PANEL], all that is written */
    double *dependents;    /* [COLUMNS][n], room for best trees of dependent parts by head */
};

static inline ptrdiff_t cell_of(struct joint_chart chart, ptrdiff_t i, ptrdiff_t j)
{
    return i * chart.n - i * (i - 1) / 2 + (j - i - 1);
}

/* Entry (i, j, w) of the chart. */
static inline double *entry(struct joint_chart chart, ptrdiff_t i, ptrdiff_t j, ptrdiff_t w)
{
    return chart.scores + (w / PANEL * chart.cells + cell_of(chart, i, j)) * PANEL + w % PANEL;
}

static inline double larger_of(double a, double b) { return a > b ? a : b; }
static inline ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static inline ptrdiff_t most(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* No tree yet for the spans from rows [i, i_end) to columns [j, j_end). */
static void clear_spans(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t i_end, ptrdiff_t j, ptrdiff_t j_end)
{
    for (ptrdiff_t w = i / PANEL * PANEL; w < j_end - 1; w += PANEL) {
        for (ptrdiff_t row = i; row < i_end; row++) {
            const ptrdiff_t first = most(j, row + 1);
            double *const lanes = entry(chart, row, first, w);
            for (ptrdiff_t x = 0; x < (j_end - first) * PANEL; x++) lanes[x] = -INFINITY;
        }
    }
}

/* Add the label of span [i, j) to its trees, and write down what they are as dependent parts. */
static void label_span(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j, double *dependents)
{
    const double value = chart.values[cell_of(chart, i, j)];
    const double gain = value > 0 ? value : 0;
    const double loss = value < 0 && j - i > 1 ? value : 0;
    for (ptrdiff_t w = i; w < j;) {
        double *const lanes = entry(chart, i, j, w);
        const ptrdiff_t count = least(j - w, PANEL - w % PANEL);
        for (ptrdiff_t x = 0; x < count; x++) {
            lanes[x] += gain;
            dependents[w + x] = lanes[x] + loss;
        }
        w += count;
    }
}

/* Entry (i, j, g) for one governor. */
static void attach_to(
    struct joint_chart chart, ptrdiff_t i, ptrdiff_t j, const double *dependents, ptrdiff_t g)
{
    const double *arc = chart.arcs + (g / PANEL * chart.n + i) * PANEL + g % PANEL;
    double top = -INFINITY;
    for (ptrdiff_t d = i; d < j; d++, arc += PANEL) top = larger_of(dependents[d] + *arc, top);
    *entry(chart, i, j, g) = top;
}

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define INLINED static __forceinline
#else
#define INLINED static inline
#endif

/* The loops themselves, for vectors of two and, where the processor has them, of four. */

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define VECTOR __m128d
#define LOAD _mm_loadu_pd
#define STORE _mm_storeu_pd
#define ADD _mm_add_pd
#define MAX _mm_max_pd
#define REPEAT _mm_set1_pd
#else
typedef struct { double lane[2]; } pair;
static inline pair pair_of(double a, double b)
{
    pair x;
    x.lane[0] = a, x.lane[1] = b;
    return x;
}
#define VECTOR pair
#define LOAD(x) pair_of((x)[0], (x)[1])
#define STORE(x, a) ((x)[0] = (a).lane[0], (x)[1] = (a).lane[1])
#define ADD(a, b) pair_of((a).lane[0] + (b).lane[0], (a).lane[1] + (b).lane[1])
#define MAX(a, b) pair_of(larger_of((a).lane[0], (b).lane[0]), larger_of((a).lane[1], (b).lane[1]))
#define REPEAT(a) pair_of(a, a)
#endif
#define LANES 2
#define TARGET
#define NAMED(name) name##_2
#include "_joint_loops.h"

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#define VECTOR __m256d
#define LOAD _mm256_loadu_pd
#define STORE _mm256_storeu_pd
#define ADD _mm256_add_pd
#define MAX _mm256_max_pd
#define REPEAT _mm256_set1_pd
#define LANES 4
#define TARGET __attribute__((target("avx")))
#define NAMED(name) name##_4
#include "_joint_loops.h"
static int widest_vectors(void) { return __builtin_cpu_supports("avx") ? 4 : 2; }
#else
#define fill_4 fill_2
static int widest_vectors(void) { return 2; }
#endif

/* Fill the chart with vectors of so many lanes, at most `widest_vectors()`. */
static void fill_joint_chart(struct joint_chart chart, int lanes)
{
    if (lanes == 4) fill_4(chart);
    else fill_2(chart);
}

#endif
