/* Loops over the values of one row: plain C that a compiler vectorises. Sums run over several
 * lanes, since it may not reorder a plain sum of floats.
 */

#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../simd.h"

#define LANES 16

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

CLONES static void widen(ptrdiff_t n, const uint16_t *from, float *to) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) to[i] = as_float((uint32_t)from[i] << 16);
}

/* To the nearest bfloat16, ties to even. */
CLONES static void narrow(ptrdiff_t n, const float *from, uint16_t *to) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        uint32_t bits = as_bits(from[i]);
        to[i] = (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
}

static inline float lane_total(const float *lanes) {
    float total = 0;
    for (int k = 0; k < LANES; k++) total += lanes[k];
    return total;
}

/* The sum of (a - mean) (b - mean), or without b of a - mean. */
INLINED float lane_sum(ptrdiff_t n, const float *a, const float *b, float mean) {
    float lanes[LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lanes[k] += (a[i + k] - mean) * (b ? b[i + k] - mean : 1.0f);
    for (; i < n; i++) lanes[0] += (a[i] - mean) * (b ? b[i] - mean : 1.0f);
    return lane_total(lanes);
}

INLINED float dot(ptrdiff_t n, const float *a, const float *b) { return lane_sum(n, a, b, 0); }

CLONES static float row_sum(ptrdiff_t n, const float *a) { return lane_sum(n, a, NULL, 0); }

CLONES static float row_deviation(ptrdiff_t n, const float *a, float mean) {
    return lane_sum(n, a, a, mean);
}

/* Squares that overflow give NaN, which is found at the end, and not 0, which is not. */
static inline float inverse_deviation(float squares, ptrdiff_t n, double eps) {
    return (float)(1.0 / sqrt(squares / n + eps)) + (squares - squares);
}

CLONES static void add_branch(ptrdiff_t n, const float *x, const float *branch,
                              const float *bias, const float *mask, float *z) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) z[i] = x[i] + (branch[i] + bias[i]) * mask[i];
}

CLONES static void normalise(ptrdiff_t n, const float *z, float mean, float scale,
                             const float *gain, const float *shift, float *y) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) y[i] = (z[i] - mean) * scale * gain[i] + shift[i];
}

CLONES static void add_rows(ptrdiff_t n, const float *a, const float *b, float *sum) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

/* Sums of dy * gain and dy * gain * xhat, and the row's share of two gradients. */
CLONES static void norm_sums(ptrdiff_t n, const float *dy, const float *z, float mean,
                             float scale, const float *gain, float *d_gain, float *d_shift,
                             float *sums) {
    float first[LANES] = {0}, second[LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            float hat = (z[i + k] - mean) * scale;
            float g = dy[i + k] * gain[i + k];
            first[k] += g;
            second[k] += g * hat;
            d_gain[i + k] += dy[i + k] * hat;
            d_shift[i + k] += dy[i + k];
        }
    for (; i < n; i++) {
        float hat = (z[i] - mean) * scale;
        float g = dy[i] * gain[i];
        first[0] += g;
        second[0] += g * hat;
        d_gain[i] += dy[i] * hat;
        d_shift[i] += dy[i];
    }
    sums[0] += lane_total(first);
    sums[1] += lane_total(second);
}

CLONES static void norm_back(ptrdiff_t n, const float *dy, const float *z, float mean,
                             float scale, const float *gain, float first, float second,
                             float *dz) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float hat = (z[i] - mean) * scale;
        dz[i] = scale * (dy[i] * gain[i] - first - hat * second);
    }
}

CLONES static void mask_back(ptrdiff_t n, const float *dz, const float *mask,
                             float *branch, float *d_bias) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float d = dz[i] * mask[i];
        branch[i] = d;
        d_bias[i] += d;
    }
}

CLONES static void relu_mask(ptrdiff_t n, float *h, const float *bias, const float *mask) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float value = h[i] + bias[i];
        h[i] = (value < 0 ? 0 : value) * mask[i];
    }
}

CLONES static void relu_back(ptrdiff_t n, const float *h, float scale, float *d,
                             float *d_bias) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float value = h[i] <= 0 ? 0 : d[i] * scale; /* as of torch, also where h is NaN */
        d[i] = value;
        d_bias[i] += value;
    }
}

/* Sixteen random bits per value from splitmix64, four values at a time. */
CLONES static void draw_mask(uint64_t seed, uint64_t first, ptrdiff_t n, uint32_t below,
                             float scale, float *mask) {
    for (ptrdiff_t i = 0; i < (n + 3) / 4; i++) {
        uint64_t x = seed + (first + (uint64_t)i + 1) * 0x9e3779b97f4a7c15ULL;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        x ^= x >> 31;
        for (int k = 0; k < 4; k++) {
            uint32_t bits = (uint32_t)(x >> (16 * k)) & 0xffff;
            mask[4 * i + k] = bits < below ? 0.0f : scale;
        }
    }
}

CLONES static void multiply(ptrdiff_t n, const float *a, const float *b, float *product) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) product[i] = a[i] * b[i];
}

/* exp(x) to about two units in the last place of float; beyond 87 as if x were that. */
static inline float exponential(float x) {
    float y = x > 87.0f ? 87.0f : x;
    y = y < -87.0f ? -87.0f : y;
    /* exp(y) = 2^k exp(r), |r| <= log(2) / 2; the added constant rounds to an integer. */
    float shifted = y * 1.44269504f + 12582912.0f;
    float k = shifted - 12582912.0f;
    float r = y - k * 0.693359375f + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    float power = as_float((as_bits(shifted) + 127u) << 23);
    /* The clamps above swallow NaN, which must reach the loss to be seen there. */
    return x == x ? p * power : x;
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

static inline float hyperbolic_tangent(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

/* One step of n LSTM cells; gates hold the sums for in, forget, new, out and are activated. */
CLONES static void lstm_forward(ptrdiff_t n, float *gates, const float *before, float *after,
                                float *h) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float enter = sigmoid(gates[i]);
        float keep = sigmoid(gates[n + i]);
        float fresh = hyperbolic_tangent(gates[2 * n + i]);
        float leave = sigmoid(gates[3 * n + i]);
        float c = keep * before[i] + enter * fresh;
        gates[i] = enter;
        gates[n + i] = keep;
        gates[2 * n + i] = fresh;
        gates[3 * n + i] = leave;
        after[i] = c;
        h[i] = leave * hyperbolic_tangent(c);
    }
}

/* Gradient of a step: d_c is updated in place, gates become gradients of their sums. */
CLONES static void lstm_backward(ptrdiff_t n, const float *gates, const float *before,
                                 const float *after, const float *d_h, float *d_c,
                                 float *d_gates) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float enter = gates[i], keep = gates[n + i];
        float fresh = gates[2 * n + i], leave = gates[3 * n + i];
        float squashed = hyperbolic_tangent(after[i]);
        float d = d_c[i] + d_h[i] * leave * (1.0f - squashed * squashed);
        d_gates[i] = d * fresh * enter * (1.0f - enter);
        d_gates[n + i] = d * before[i] * keep * (1.0f - keep);
        d_gates[2 * n + i] = d * enter * (1.0f - fresh * fresh);
        d_gates[3 * n + i] = d_h[i] * squashed * leave * (1.0f - leave);
        d_c[i] = d * keep;
    }
}

/* One step of n GRU cells. Gates hold sums for what is remembered (the state's part of the new
 * state, which the reset gate weighs and which stays a sum), for reset, update, and the input's
 * part of the new state. */
CLONES static void gru_forward(ptrdiff_t n, float *gates, const float *before, float *after,
                               float *h) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float reset = sigmoid(gates[n + i]);
        float update = sigmoid(gates[2 * n + i]);
        float fresh = hyperbolic_tangent(gates[3 * n + i] + reset * gates[i]);
        float state = fresh + update * (before[i] - fresh);
        gates[n + i] = reset;
        gates[2 * n + i] = update;
        gates[3 * n + i] = fresh;
        after[i] = state;
        h[i] = state;
    }
}

/* Gradient of a step; d_c is what reaches the state past the gates, and updated in place. */
CLONES static void gru_backward(ptrdiff_t n, const float *gates, const float *before,
                                const float *d_h, float *d_c, float *d_gates) {
    INDEPENDENT
    for (ptrdiff_t i = 0; i < n; i++) {
        float remembered = gates[i], reset = gates[n + i];
        float update = gates[2 * n + i], fresh = gates[3 * n + i];
        float d = d_c[i] + d_h[i];
        float d_fresh = d * (1.0f - update) * (1.0f - fresh * fresh);
        d_gates[i] = d_fresh * reset;
        d_gates[n + i] = d_fresh * remembered * reset * (1.0f - reset);
        d_gates[2 * n + i] = d * (before[i] - fresh) * update * (1.0f - update);
        d_gates[3 * n + i] = d_fresh;
        d_c[i] = d * update;
    }
}
