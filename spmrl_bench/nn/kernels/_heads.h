/* Attention of one head over one sentence, for _encoder.pyx: products too small to be worth calls
 * of a library. Rows of matrices are a multiple of LANES wide, with zeros behind their values.
 */

#pragma once

#include "_rows.h"

typedef float lanes_t __attribute__((vector_size(4 * LANES)));

/* Some rows (a constant, so that their sums stay in registers) by LANES columns of a product. */
INLINED void tile(const int rows, ptrdiff_t inner, const float *a, ptrdiff_t next_row,
                  ptrdiff_t next_column, const float *b, ptrdiff_t width, float scale, float *c) {
    lanes_t sums[8];
    memset(sums, 0, sizeof sums);
    for (ptrdiff_t k = 0; k < inner; k++) {
        lanes_t values;
        memcpy(&values, b + k * width, sizeof values);
        for (int r = 0; r < rows; r++) sums[r] += a[r * next_row + k * next_column] * values;
    }
    for (int r = 0; r < rows; r++) {
        sums[r] *= scale;
        memcpy(c + r * width, &sums[r], sizeof sums[r]);
    }
}

/* c = scale a b, [rows, inner] by [inner, width]; the steps say how a lies, or its transpose. */
CLONES static void product(ptrdiff_t rows, ptrdiff_t width, ptrdiff_t inner, const float *a,
                           ptrdiff_t next_row, ptrdiff_t next_column, const float *b, float scale,
                           float *c) {
    ptrdiff_t r = 0;
#define TILES(count)                                                                         \
    for (; r + count <= rows; r += count)                                                    \
        for (ptrdiff_t j = 0; j < width; j += LANES)                                         \
            tile(count, inner, a + r * next_row, next_row, next_column, b + j, width, scale, \
                 c + r * width + j);
    TILES(8)
    TILES(4)
    TILES(2)
    TILES(1)
#undef TILES
}

/* The transpose of the first columns of [rows, width], in rows of a width of their own. */
CLONES static void transpose(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t width, const float *a,
                             ptrdiff_t out_width, float *out) {
    for (ptrdiff_t j = 0; j < columns; j++) {
        for (ptrdiff_t i = 0; i < rows; i++) out[j * out_width + i] = a[i * width + j];
        for (ptrdiff_t i = rows; i < out_width; i++) out[j * out_width + i] = 0;
    }
}

/* Softmax of the first n values of each row, with zeros behind; NaN and overflow give NaN. */
CLONES static void softmax_rows(ptrdiff_t n, ptrdiff_t width, float *rows) {
    for (ptrdiff_t i = 0; i < n; i++) {
        float *row = rows + i * width;
        float most = row[0];
        for (ptrdiff_t j = 1; j < n; j++) most = row[j] > most ? row[j] : most;
        INDEPENDENT
        for (ptrdiff_t j = 0; j < n; j++) row[j] = exponential(row[j] - most);
        for (ptrdiff_t j = n; j < width; j++) row[j] = 0;
        float part = 1.0f / row_sum(width, row);
        for (ptrdiff_t j = 0; j < n; j++) row[j] *= part;
    }
}

/* From the gradient of softmax's result, in rows like those of the result, to that of its input. */
CLONES static void softmax_back(ptrdiff_t n, ptrdiff_t width, const float *result, float *d) {
    for (ptrdiff_t i = 0; i < n; i++) {
        const float *row = result + i * width;
        float *d_row = d + i * width;
        float total = dot(width, row, d_row);
        for (ptrdiff_t j = 0; j < width; j++) d_row[j] = row[j] * (d_row[j] - total);
    }
}
