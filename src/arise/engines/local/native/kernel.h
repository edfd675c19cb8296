/* The forward pass of Llama-type models on CPUs, in float32.
 *
 * Every sum runs in an order that depends on its own terms alone: over the inner dimension of a product from first to
 * last, over keys by their position. So a token's result does not depend on the other tokens of the batch, on how a
 * prompt is cut into parts, on the number of threads, or on the width of the processor's vectors.
 */
#ifndef ARISE_KERNEL_H
#define ARISE_KERNEL_H
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vectors.h"

/* Columns of a packed panel, and rows computed at once: as many sums as the registers hold. */
#ifdef __AVX512F__
#define PANEL_VECS 2
#define MAX_ROWS 12
#else
#define PANEL_VECS 1
#define MAX_ROWS 6
#endif
#define PANEL (PANEL_VECS * LANES)
#define PAGE 16 /* positions whose keys and values lie together */
#define ARENA 64 /* pages that are allocated together */

typedef struct {
    int32_t hidden, layers, heads, kv_heads, head, inner, vocabulary;
    float eps;
} Shape;

typedef struct {
    const float *norm, *qkv, *qkv_bias, *q_norm, *k_norm, *out, *mlp_norm, *gate_up, *down;
} Layer;

typedef struct Team Team;

typedef struct {
    Shape shape;
    const Layer *layers;
    const float *embedding, *norm, *lm_head, *cosines, *sines; /* cosines and sines: position x head / 2 */
    float *const *arenas;                                      /* keys and values: layer x kv head x page of an arena */
    Team *team;
} Model;

typedef struct {
    int32_t position;
    int64_t id;
    const int32_t *pages;
    float *hidden; /* where the last hidden state goes; NULL if nobody needs it */
} Token;

static inline int padded(int size, int to) { return (size + to - 1) / to * to; }
static inline int page_floats(const Shape *shape) { return 2 * PAGE * padded(shape->head, LANES); }

/* Keys of a page: head dimension x position. */
static inline float *keys_of(const Model *model, int layer, int kv_head, int page) {
    int place = (layer * model->shape.kv_heads + kv_head) * ARENA + page % ARENA;
    return model->arenas[page / ARENA] + (size_t)place * (size_t)page_floats(&model->shape);
}

/* Values of a page: position x padded head dimension. */
static inline float *values_of(const Model *model, int layer, int kv_head, int page) {
    return keys_of(model, layer, kv_head, page) + page_floats(&model->shape) / 2;
}

/* math.c */
void normalise(const float *x, const float *weight, int size, float eps, float *into);
void gate(const float *gate_up, int inner, float *into);
void pack(const float *weight, int rows, int columns, float *into, int first_panel, int last_panel);

/* product.c */
void product(const float *x, int stride, int rows, const float *packed, int inner, float *y, int y_stride, int first,
             int last, bool add);

/* attention.c */
void place_token(const Model *model, const Layer *layer, int index, const Token *token, float *qkv);
void attend(const Model *model, int layer, const Token *token, const float *q, float *scores, float *into);

/* team.c */
typedef void (*Job)(void *what, int member, int members);
Team *start_team(int members);
int members_of(const Team *team);
void run_team(Team *team, Job job, void *what);
void meet(Team *team);
void end_team(Team *team);

#endif
