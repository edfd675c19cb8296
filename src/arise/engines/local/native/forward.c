#include "kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_BYTES (16 << 20) /* weights that stay in the caches: every member then computes tokens of its own */
#define SMALL_TILE 48
#define LARGE_TILE 256

/* Scratch of one tile of tokens; rows are as wide as whole panels. */
typedef struct {
    int hidden, normal, qkv, attended, gate_up, gated; /* strides */
    float *x, *norm, *projected, *heads, *wide, *inner;
} Tile;

typedef struct {
    const Model *model;
    const Token *tokens;
    const int *first_of; /* the first token of every member, and their number */
    int count, longest;
    bool together, failed;
    Tile tile; /* of all members, where they work together */
} Forward;

static bool make_tile(const Shape *shape, int tokens, Tile *tile) {
    int kv = shape->kv_heads * shape->head, q = shape->heads * shape->head;
    tile->hidden = padded(shape->hidden, PANEL);
    tile->normal = tile->hidden;
    tile->qkv = padded(q + 2 * kv, PANEL);
    tile->attended = padded(q, PANEL);
    tile->gate_up = padded(2 * shape->inner, PANEL);
    tile->gated = padded(shape->inner, PANEL);
    size_t each = (size_t)(2 * tile->hidden + tile->qkv + tile->attended + tile->gate_up + tile->gated);
    tile->x = calloc(each * (size_t)tokens + LANES, sizeof *tile->x);
    tile->norm = tile->x + (size_t)tokens * (size_t)tile->hidden;
    tile->projected = tile->norm + (size_t)tokens * (size_t)tile->normal;
    tile->heads = tile->projected + (size_t)tokens * (size_t)tile->qkv;
    tile->wide = tile->heads + (size_t)tokens * (size_t)tile->attended;
    tile->inner = tile->wide + (size_t)tokens * (size_t)tile->gate_up;
    return tile->x != NULL;
}

/* The part of `count` that belongs to a member. */
static int part(int count, int member, int members) { return (int)((long)count * member / members); }

/* Forward one tile; with a team, the members share its rows and columns and meet between the operations. */
static void forward_tile(const Model *model, const Tile *tile, const Token *tokens, int count, float *scores, Team *team,
                         int member, int members) {
    const Shape *shape = &model->shape;
    int from = part(count, member, members), to = part(count, member + 1, members);
    int q_width = shape->heads * shape->head;
#define MEET if (team) meet(team)
#define PRODUCT(X, STRIDE, WEIGHTS, INNER, Y, Y_STRIDE, ADD)                                                      \
    product(X, STRIDE, count, WEIGHTS, INNER, Y, Y_STRIDE, part((Y_STRIDE) / PANEL, member, members),             \
            part((Y_STRIDE) / PANEL, member + 1, members), ADD)
    for (int at = from; at < to; at++)
        memcpy(tile->x + (size_t)at * (size_t)tile->hidden, model->embedding + (size_t)tokens[at].id * (size_t)shape->hidden,
               (size_t)shape->hidden * sizeof(float));
    for (int index = 0; index < shape->layers; index++) {
        const Layer *layer = model->layers + index;
        for (int at = from; at < to; at++)
            normalise(tile->x + (size_t)at * (size_t)tile->hidden, layer->norm, shape->hidden, shape->eps,
                      tile->norm + (size_t)at * (size_t)tile->normal);
        MEET;
        PRODUCT(tile->norm, tile->normal, layer->qkv, shape->hidden, tile->projected, tile->qkv, false);
        MEET;
        for (int at = from; at < to; at++)
            place_token(model, layer, index, tokens + at, tile->projected + (size_t)at * (size_t)tile->qkv);
        MEET;
        for (int at = from; at < to; at++)
            attend(model, index, tokens + at, tile->projected + (size_t)at * (size_t)tile->qkv, scores,
                   tile->heads + (size_t)at * (size_t)tile->attended);
        MEET;
        PRODUCT(tile->heads, tile->attended, layer->out, q_width, tile->x, tile->hidden, true);
        MEET;
        for (int at = from; at < to; at++)
            normalise(tile->x + (size_t)at * (size_t)tile->hidden, layer->mlp_norm, shape->hidden, shape->eps,
                      tile->norm + (size_t)at * (size_t)tile->normal);
        MEET;
        PRODUCT(tile->norm, tile->normal, layer->gate_up, shape->hidden, tile->wide, tile->gate_up, false);
        MEET;
        for (int at = from; at < to; at++)
            gate(tile->wide + (size_t)at * (size_t)tile->gate_up, shape->inner,
                 tile->inner + (size_t)at * (size_t)tile->gated);
        MEET;
        PRODUCT(tile->inner, tile->gated, layer->down, shape->inner, tile->x, tile->hidden, true);
        MEET;
    }
    for (int at = from; at < to; at++)
        if (tokens[at].hidden)
            memcpy(tokens[at].hidden, tile->x + (size_t)at * (size_t)tile->hidden, (size_t)shape->hidden * sizeof(float));
}

static void forward_part(void *what, int member, int members) {
    Forward *work = what;
    float *scores = malloc(sizeof *scores * (size_t)(padded(work->longest, PAGE) + 4 * PAGE));
    Tile own = {0};
    int from = 0, to = work->count, size = work->together ? LARGE_TILE : SMALL_TILE;
    if (!work->together) {
        from = work->first_of[member];
        to = work->first_of[member + 1];
    }
    bool ready = scores && (work->together || to == from || make_tile(&work->model->shape, to - from < size ? to - from : size, &own));
    if (!ready) work->failed = true;
    if (work->together) meet(work->model->team); /* either all go on, or none does */
    for (int at = from; at < to && !work->failed; at += size) {
        int count = to - at < size ? to - at : size;
        if (work->together)
            forward_tile(work->model, &work->tile, work->tokens + at, count, scores, work->model->team, member, members);
        else
            forward_tile(work->model, &own, work->tokens + at, count, scores, NULL, 0, 1);
        if (work->together) meet(work->model->team);
    }
    free(own.x);
    free(scores);
}

static long weight_bytes(const Shape *shape) {
    long attention = (long)shape->hidden * shape->head * 2 * (shape->heads + shape->kv_heads);
    return 4 * shape->layers * (attention + 3L * shape->hidden * shape->inner);
}

/* Forward the tokens of several rows, `counts` of each from position `starts`; fill in each row's last hidden state. */
int forward(const Model *model, int rows, const int32_t *counts, const int32_t *starts, const int64_t *ids,
            const int32_t *pages, int pages_per_row, float *hidden) {
    int members = members_of(model->team), total = 0, longest = 0;
    for (int row = 0; row < rows; row++) total += counts[row];
    Token *tokens = malloc(sizeof *tokens * (size_t)(total ? total : 1));
    int *first_of = malloc(sizeof *first_of * (size_t)(members + 1));
    bool ready = tokens && first_of;
    for (int row = 0, at = 0, member = 0; ready && row < rows; row++) {
        /* Members get whole rows: a token needs the keys of those before it. */
        while (member < members && (long)at * members >= (long)total * member) first_of[member++] = at;
        for (int index = 0; index < counts[row]; index++, at++) {
            bool last = index == counts[row] - 1;
            tokens[at] = (Token){starts[row] + index, ids[at], pages + (size_t)row * (size_t)pages_per_row,
                                 last ? hidden + (size_t)row * (size_t)model->shape.hidden : NULL};
            if (starts[row] + index + 1 > longest) longest = starts[row] + index + 1;
        }
        if (row == rows - 1)
            while (member <= members) first_of[member++] = total;
    }
    Forward work = {model, tokens, first_of, total, longest, weight_bytes(&model->shape) > SMALL_BYTES, false, {0}};
    if (ready && work.together) ready = make_tile(&model->shape, total < LARGE_TILE ? total : LARGE_TILE, &work.tile);
    if (ready && total) run_team(model->team, forward_part, &work);
    free(work.tile.x);
    free(tokens);
    free(first_of);
    return ready && !work.failed ? 0 : -1;
}

typedef struct {
    const Model *model;
    const float *normal;
    int rows, stride;
    float *logits;
} Heads;

static void logits_part(void *what, int member, int members) {
    Heads *work = what;
    const Shape *shape = &work->model->shape;
    int panels = work->stride / PANEL;
    product(work->normal, shape->hidden, work->rows, work->model->lm_head, shape->hidden, work->logits, work->stride,
            part(panels, member, members), part(panels, member + 1, members), false);
}

/* The logits of hidden states, one row of a padded vocabulary each. */
int logits(const Model *model, const float *hidden, int rows, float *into, int stride) {
    const Shape *shape = &model->shape;
    float *normal = malloc(sizeof *normal * (size_t)rows * (size_t)shape->hidden + 1);
    if (normal == NULL) return -1;
    for (int row = 0; row < rows; row++)
        normalise(hidden + (size_t)row * (size_t)shape->hidden, model->norm, shape->hidden, shape->eps,
                  normal + (size_t)row * (size_t)shape->hidden);
    Heads work = {model, normal, rows, stride, into};
    run_team(model->team, logits_part, &work);
    free(normal);
    return 0;
}
