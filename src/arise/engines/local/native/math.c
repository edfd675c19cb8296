#include "kernel.h"

#include <math.h>

/* Root-mean-square normalisation. */
void normalise(const float *x, const float *weight, int size, float eps, float *into) {
    vec squares = {0};
    float rest = 0;
    int at = 0;
    for (; at + LANES <= size; at += LANES) {
        vec part = *(const vec *)(x + at);
        squares = part * part + squares;
    }
    for (; at < size; at++) rest += x[at] * x[at];
    float scale = 1.0f / sqrtf((sum_of(squares) + rest) / (float)size + eps);
    for (at = 0; at < size; at++) into[at] = x[at] * scale * weight[at];
}

INLINE vec gated(vec gate, vec up) { return gate / (exponential(-gate) + all(1.0f)) * up; }

/* silu(gate) * up, elementwise. */
void gate(const float *gate_up, int inner, float *into) {
    int at = 0;
    for (; at + LANES <= inner; at += LANES)
        *(vec *)(into + at) = gated(*(const vec *)(gate_up + at), *(const vec *)(gate_up + inner + at));
    for (; at < inner; at++) into[at] = gated(all(gate_up[at]), all(gate_up[inner + at]))[0];
}

/* Store a matrix of rows x columns as panels of PANEL rows, each with its columns one after another. */
void pack(const float *weight, int rows, int columns, float *into, int first_panel, int last_panel) {
    for (int panel = first_panel; panel < last_panel; panel++)
        for (int lane = 0; lane < PANEL; lane++) {
            int row = panel * PANEL + lane;
            float *to = into + (size_t)panel * PANEL * (size_t)columns + lane;
            for (int column = 0; column < columns; column++)
                to[(size_t)column * PANEL] = row < rows ? weight[(size_t)row * (size_t)columns + (size_t)column] : 0;
        }
}
