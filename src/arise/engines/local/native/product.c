#include "kernel.h"

/* ROWS rows of x times one panel; each sum runs over the inner dimension from first to last. */
INLINE void block(const int rows, const float *x, int stride, const float *panel,
                                                        int inner, float *y, int y_stride, bool add) {
    vec sums[MAX_ROWS][PANEL_VECS];
#pragma GCC unroll 16
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 2
        for (int part = 0; part < PANEL_VECS; part++) sums[row][part] = (vec){0};
    for (int at = 0; at < inner; at++) {
        vec w[PANEL_VECS];
#pragma GCC unroll 2
        for (int part = 0; part < PANEL_VECS; part++) w[part] = *(const vec *)(panel + at * PANEL + part * LANES);
#pragma GCC unroll 16
        for (int row = 0; row < rows; row++) {
            vec value = (vec){0} + x[(size_t)row * (size_t)stride + (size_t)at];
#pragma GCC unroll 2
            for (int part = 0; part < PANEL_VECS; part++) sums[row][part] = value * w[part] + sums[row][part];
        }
    }
#pragma GCC unroll 16
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 2
        for (int part = 0; part < PANEL_VECS; part++) {
            vec *to = (vec *)(y + (size_t)row * (size_t)y_stride + part * LANES);
            if (add) sums[row][part] = *to + sums[row][part];
            *to = sums[row][part];
        }
}

#define CASE(N) \
    case N: block(N, x, stride, panel, inner, y, y_stride, add); break;

static void few(int rows, const float *x, int stride, const float *panel, int inner, float *y, int y_stride, bool add) {
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if MAX_ROWS > 6
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
    }
}

/* y = x W^T over the panels from `first` to `last`, or y += x W^T. */
void product(const float *x, int stride, int rows, const float *packed, int inner, float *y, int y_stride, int first,
             int last, bool add) {
    for (int panel = first; panel < last; panel++) {
        const float *weights = packed + (size_t)panel * PANEL * (size_t)inner;
        int left = rows;
        for (int row = 0; row < rows;) {
            /* Equal blocks: a remainder of one row would cost as much as several. */
            int blocks = (left + MAX_ROWS - 1) / MAX_ROWS, now = (left + blocks - 1) / blocks;
            few(now, x + (size_t)row * (size_t)stride, stride, weights, inner,
                y + (size_t)row * (size_t)y_stride + (size_t)panel * PANEL, y_stride, add);
            row += now;
            left -= now;
        }
    }
}
