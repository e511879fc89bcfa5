/* Additive attention of one state over the words of its sentence, for _decoder.pyx: plain C that a
 * compiler vectorises. Only words that have not been removed, whose places are listed, are touched.
 */

#pragma once

#include "_rows.h"

/* What all states have in common; steps are numbers of floats from one row to the next. */
typedef struct {
    ptrdiff_t words, layers, width;
    ptrdiff_t key_step; /* of a word: its key, then what the next layers ask more for it */
    ptrdiff_t value_step, value_layer, value_width; /* of a word, of a layer, and how many */
    ptrdiff_t context_layer;                        /* contexts of layers add up where this is 0 */
    const float *score, *stacked;                   /* v and S, S perhaps absent */
} Shape;

INLINED void add_multiple(ptrdiff_t n, float factor, const float *values, float *sum) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) sum[i] += factor * values[i];
}

/* The sum of factor[j] times the row of places[j], added to what is there. */
INLINED void add_rows_of(ptrdiff_t n, ptrdiff_t count, const int32_t *places,
                         const float *factors, const float *rows, ptrdiff_t step, float *sum) {
    ptrdiff_t j = 0;
    for (; j + 4 <= count; j += 4) {
        const float *r0 = rows + places[j] * step, *r1 = rows + places[j + 1] * step;
        const float *r2 = rows + places[j + 2] * step, *r3 = rows + places[j + 3] * step;
        const float f0 = factors[j], f1 = factors[j + 1], f2 = factors[j + 2], f3 = factors[j + 3];
        INDEPENDENT
        for (ptrdiff_t i = 0; i < n; i++)
            sum[i] += f0 * r0[i] + f1 * r1[i] + f2 * r2[i] + f3 * r3[i];
    }
    for (; j < count; j++) add_multiple(n, factors[j], rows + places[j] * step, sum);
}

/* tanh(key + asked + s S) */
INLINED void activate(ptrdiff_t n, const float *key, const float *asked, float s,
                      const float *stacked, float *active) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++)
        active[i] = hyperbolic_tangent(key[i] + asked[i] + s * stacked[i]);
}

/* Without S, s is 0 and what it weighs does not matter. */
#define PUSHED(at, pushed, place) ((at)->stacked ? (pushed)[place] : 0.0f)
#define STACKED(at) ((at)->stacked ? (at)->stacked : (at)->score)

static inline ptrdiff_t words_left(ptrdiff_t words, const uint8_t *removed, int32_t *places) {
    ptrdiff_t count = 0;
    for (ptrdiff_t t = 0; t < words; t++) {
        places[count] = (int32_t)t;
        count += !removed[t];
    }
    return count;
}

/* All layers for one state. asks [layers, width] holds what the state asks, and what the contexts
 * below ask more is added to it; alphas: [layers, words]; scratch: width + words floats. */
CLONES static void attend_row(const Shape *at, const float *keys, const float *values,
                              const float *pushed, const int32_t *places, ptrdiff_t count,
                              float *asks, float *alphas, float *contexts, float *scratch) {
    const ptrdiff_t width = at->width;
    float *weights = scratch, *active = scratch + at->words;
    memset(alphas, 0, at->layers * at->words * sizeof(float));
    for (ptrdiff_t layer = 0; layer < at->layers; layer++) {
        float *asked = asks + layer * width, most = 0, total = 0;
        if (layer) /* the weights are still those of the layer below */
            add_rows_of(width, count, places, weights, keys + layer * width, at->key_step, asked);
        for (ptrdiff_t j = 0; j < count; j++) {
            const ptrdiff_t t = places[j];
            activate(width, keys + t * at->key_step, asked, PUSHED(at, pushed, t), STACKED(at),
                     active);
            weights[j] = dot(width, active, at->score);
            most = j == 0 || weights[j] > most ? weights[j] : most;
        }
        for (ptrdiff_t j = 0; j < count; j++) {
            weights[j] = exponential(weights[j] - most);
            total += weights[j];
        }
        for (ptrdiff_t j = 0; j < count; j++) {
            weights[j] /= total;
            alphas[layer * at->words + places[j]] = weights[j];
        }
        float *context = contexts + layer * at->context_layer;
        if (layer == 0 || at->context_layer) memset(context, 0, at->value_width * sizeof(float));
        add_rows_of(at->value_width, count, places, weights, values + layer * at->value_layer,
                    at->value_step, context);
    }
}

/* From the gradients of the contexts to that of asks. Those of keys (the first width values of each
 * word), score and stacked are added up. scratch: width + words floats. */
CLONES static void attend_row_back(const Shape *at, const float *keys, const float *values,
                                   const float *pushed, const int32_t *places, ptrdiff_t count,
                                   const float *asks, const float *alphas, const float *d_contexts,
                                   float *d_asks, float *d_keys, float *d_score, float *d_stacked,
                                   float *scratch) {
    const ptrdiff_t width = at->width;
    const float *score = at->score;
    float *d_weights = scratch, *active = scratch + at->words;
    for (ptrdiff_t layer = at->layers - 1; layer >= 0; layer--) {
        const float *alpha = alphas + layer * at->words;
        float *d_asked = d_asks + layer * width;
        float mean = 0;
        for (ptrdiff_t j = 0; j < count; j++) {
            const ptrdiff_t t = places[j];
            float d = dot(at->value_width, values + t * at->value_step + layer * at->value_layer,
                          d_contexts + layer * at->context_layer);
            if (layer + 1 < at->layers)
                d += dot(width, keys + t * at->key_step + (layer + 1) * width, d_asked + width);
            d_weights[j] = d;
            mean += alpha[t] * d;
        }
        memset(d_asked, 0, width * sizeof(float));
        for (ptrdiff_t j = 0; j < count; j++) {
            const ptrdiff_t t = places[j];
            const float d = alpha[t] * (d_weights[j] - mean), s = PUSHED(at, pushed, t);
            float *d_key = d_keys + t * at->key_step;
            activate(width, keys + t * at->key_step, asks + layer * width, s, STACKED(at), active);
            INDEPENDENT
            for (ptrdiff_t i = 0; i < width; i++) {
                float sum = d * score[i] * (1.0f - active[i] * active[i]);
                d_score[i] += d * active[i];
                d_key[i] += sum;
                d_asked[i] += sum;
                active[i] = sum;
            }
            if (d_stacked) add_multiple(width, s, active, d_stacked);
        }
    }
}

/* What one state adds to the gradients of values, shared by the layers, and of what contexts ask. */
CLONES static void spread_row(const Shape *at, const int32_t *places, ptrdiff_t count,
                              const float *alphas, const float *d_contexts, const float *d_asks,
                              float *d_values, float *d_keys) {
    for (ptrdiff_t layer = 0; layer < at->layers; layer++)
        for (ptrdiff_t j = 0; j < count; j++) {
            const ptrdiff_t t = places[j];
            const float alpha = alphas[layer * at->words + t];
            add_multiple(at->value_width, alpha, d_contexts + layer * at->context_layer,
                         d_values + t * at->value_step + layer * at->value_layer);
            if (layer + 1 < at->layers)
                add_multiple(at->width, alpha, d_asks + (layer + 1) * at->width,
                             d_keys + t * at->key_step + (layer + 1) * at->width);
        }
}
