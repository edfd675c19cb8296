#include "kernel.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    const Model *model;
    const float *weight;
    int rows, columns;
    float *into;
} Packing;

static void pack_part(void *what, int member, int members) {
    Packing *work = what;
    int panels = padded(work->rows, PANEL) / PANEL;
    pack(work->weight, work->rows, work->columns, work->into, panels * member / members, panels * (member + 1) / members);
}

int panel_width(void) { return PANEL; }

/* Pack a weight of rows x columns for `product`, every member a part of it. */
void pack_weight(Team *team, const float *weight, int rows, int columns, float *into) {
    Packing work = {NULL, weight, rows, columns, into};
    run_team(team, pack_part, &work);
}

typedef struct {
    float *logits;
    int rows, size, stride;
    const float *temperatures;
    const double *uniforms;
    int64_t *ids;
    float *logprobs;
} Choice;

/* Sample one token by inverse distribution; the log-probability is that of the sampling distribution. */
static void choose_row(const Choice *work, int row) {
    float *logits = work->logits + (size_t)row * (size_t)work->stride, scale = work->temperatures[row], most = -INFINITY;
    if (scale != 1.0f)
        for (int at = 0; at < work->size; at++) logits[at] = logits[at] / scale;
    for (int at = 0; at < work->size; at++) most = logits[at] > most ? logits[at] : most;
    double total = 0;
    vec highest = (vec){0} + most;
    for (int at = 0; at < work->size; at += LANES) {
        vec weights = exponential(*(vec *)(logits + at) - highest);
        int count = work->size - at < LANES ? work->size - at : LANES;
        for (int lane = 0; lane < count; lane++) total += (double)weights[lane];
    }
    double level = work->uniforms[row] * total, sum = 0;
    int found = work->size - 1;
    for (int at = 0; at < work->size && sum <= level; at += LANES) {
        vec weights = exponential(*(vec *)(logits + at) - highest);
        int count = work->size - at < LANES ? work->size - at : LANES;
        for (int lane = 0; lane < count && sum <= level; lane++) {
            sum += (double)weights[lane];
            found = at + lane;
        }
    }
    work->ids[row] = found;
    work->logprobs[row] = (float)((double)(logits[found] - most) - log(total));
}

static void choose_part(void *what, int member, int members) {
    Choice *work = what;
    for (int row = work->rows * member / members; row < work->rows * (member + 1) / members; row++) choose_row(work, row);
}

/* Sample one token of every row; the rows are padded to whole vectors. */
void choose(Team *team, float *logits, int rows, int size, int stride, const float *temperatures, const double *uniforms,
            int64_t *ids, float *logprobs) {
    Choice work = {logits, rows, size, stride, temperatures, uniforms, ids, logprobs};
    run_team(team, choose_part, &work);
}
