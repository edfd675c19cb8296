#include "kernel.h"

#include <math.h>
#include <string.h>

/* Rotate one head by its position, in two halves as transformers does. */
static void rotate(float *x, const float *cosines, const float *sines, int half, float scale) {
    for (int at = 0; at < half; at++) {
        float first = x[at], second = x[at + half];
        float turned = first * cosines[at], across = second * sines[at];
        float back = second * cosines[at], forth = first * sines[at];
        x[at] = (turned - across) * scale;
        x[at + half] = (back + forth) * scale;
    }
}

/* Add the biases, normalise and rotate queries and keys, scale the queries, store the keys and values. */
void place_token(const Model *model, const Layer *layer, int index, const Token *token, float *qkv) {
    const Shape *shape = &model->shape;
    int head = shape->head, half = head / 2, heads = shape->heads, kv_heads = shape->kv_heads;
    const float *cosines = model->cosines + (size_t)token->position * (size_t)half;
    const float *sines = model->sines + (size_t)token->position * (size_t)half;
    if (layer->qkv_bias)
        for (int at = 0; at < (heads + 2 * kv_heads) * head; at++) qkv[at] += layer->qkv_bias[at];
    for (int at = 0; at < heads + kv_heads; at++) {
        float *x = qkv + at * head;
        const float *norm = at < heads ? layer->q_norm : layer->k_norm;
        if (norm) normalise(x, norm, head, shape->eps, x);
        rotate(x, cosines, sines, half, at < heads ? 1.0f / sqrtf((float)head) : 1.0f);
    }
    int page = token->pages[token->position / PAGE], place = token->position % PAGE;
    int width = padded(head, LANES);
    for (int at = 0; at < kv_heads; at++) {
        float *keys = keys_of(model, index, at, page), *values = values_of(model, index, at, page);
        const float *key = qkv + (heads + at) * head, *value = qkv + (heads + kv_heads + at) * head;
        for (int dim = 0; dim < head; dim++) keys[dim * PAGE + place] = key[dim];
        memcpy(values + place * width, value, (size_t)head * sizeof *value);
    }
}

/* The products of one query with the keys of whole pages. */
INLINE void score(const int pages, const float *const *keys, const float *q, int head,
                                                        float *scores) {
    vec sums[4];
#pragma GCC unroll 4
    for (int page = 0; page < pages; page++) sums[page] = (vec){0};
    for (int dim = 0; dim < head; dim++) {
        vec value = (vec){0} + q[dim];
#pragma GCC unroll 4
        for (int page = 0; page < pages; page++)
            sums[page] = value * *(const vec *)(keys[page] + dim * PAGE) + sums[page];
    }
#pragma GCC unroll 4
    for (int page = 0; page < pages; page++) *(vec *)(scores + page * PAGE) = sums[page];
}

/* The weighted sum of the values of one page, added to `sums`: key k of a page belongs to stream k % streams. */
INLINE void weigh(const int vecs, const int streams, const float *values,
                                                        const float *weights, int count, vec sums[8]) {
    for (int at = 0; at < count; at += streams)
#pragma GCC unroll 8
        for (int stream = 0; stream < streams; stream++) {
            vec weight = (vec){0} + weights[at + stream];
#pragma GCC unroll 8
            for (int part = 0; part < vecs; part++) {
                vec value = *(const vec *)(values + ((at + stream) * vecs + part) * LANES);
                sums[stream * vecs + part] = weight * value + sums[stream * vecs + part];
            }
        }
}

/* Weigh vecs vectors of every value, beginning at `from`; the sums of the streams are added at the end. */
#define WEIGH(VECS, STREAMS)                                                                                      \
    static void weigh_##VECS(const Model *model, int layer, int kv_head, const Token *token, const float *scores, \
                             float *into) {                                                                       \
        int keys = token->position + 1;                                                                           \
        vec sums[8];                                                                                              \
        for (int at = 0; at < 8; at++) sums[at] = (vec){0};                                                       \
        for (int page = 0; page * PAGE < keys; page++) {                                                          \
            int left = keys - page * PAGE, count = left < PAGE ? padded(left, STREAMS) : PAGE;                    \
            weigh(VECS, STREAMS, values_of(model, layer, kv_head, token->pages[page]), scores + page * PAGE,      \
                  count, sums);                                                                                   \
        }                                                                                                         \
        for (int stream = 1; stream < STREAMS; stream++)                                                          \
            for (int part = 0; part < VECS; part++) sums[part] = sums[part] + sums[stream * VECS + part];         \
        for (int part = 0; part < VECS; part++) *(vec *)(into + part * LANES) = sums[part];                       \
    }

WEIGH(1, 8)
WEIGH(2, 4)
WEIGH(4, 2)
WEIGH(8, 1)

/* Any other width, key after key. */
static void weigh_any(const Model *model, int layer, int kv_head, const Token *token, const float *scores, float *into) {
    int vecs = padded(model->shape.head, LANES) / LANES, keys = token->position + 1;
    for (int part = 0; part < vecs; part++) {
        vec sum = {0};
        for (int key = 0; key < keys; key++) {
            const float *values = values_of(model, layer, kv_head, token->pages[key / PAGE]);
            vec weight = (vec){0} + scores[key];
            sum = weight * *(const vec *)(values + (key % PAGE * vecs + part) * LANES) + sum;
        }
        *(vec *)(into + part * LANES) = sum;
    }
}

static void score_all(const Model *model, int layer, int kv_head, const Token *token, const float *q, float *scores) {
    int pages = token->position / PAGE + 1, head = model->shape.head;
    for (int page = 0; page < pages; page += 4) {
        int now = pages - page < 4 ? pages - page : 4;
        const float *keys[4];
        for (int at = 0; at < now; at++) keys[at] = keys_of(model, layer, kv_head, token->pages[page + at]);
        if (now == 4)
            score(4, keys, q, head, scores + page * PAGE);
        else
            for (int at = 0; at < now; at++) score(1, keys + at, q, head, scores + (page + at) * PAGE);
    }
}

/* Attention of one token over the keys up to its position; `scores` has room for them and 4 * PAGE more. */
void attend(const Model *model, int layer, const Token *token, const float *q, float *scores, float *into) {
    const Shape *shape = &model->shape;
    int keys = token->position + 1, vecs = padded(shape->head, LANES) / LANES;
    int group = shape->heads / shape->kv_heads, whole = padded(keys, LANES);
    float found[padded(shape->head, LANES)];
    for (int head = 0; head < shape->heads; head++) {
        int kv_head = head / group;
        score_all(model, layer, kv_head, token, q + head * shape->head, scores);
        for (int at = keys; at < whole; at++) scores[at] = -INFINITY;
        vec most = *(vec *)scores;
        for (int at = LANES; at < whole; at += LANES) most = larger(*(vec *)(scores + at), most);
        vec highest = (vec){0} + largest_of(most), total = {0};
        for (int at = 0; at < whole; at += LANES) {
            vec weight = exponential(*(vec *)(scores + at) - highest);
            *(vec *)(scores + at) = weight;
            for (int lane = 0; at + lane >= keys - LANES && lane < LANES; lane++)
                if (at + lane >= keys) scores[at + lane] = 0;
            total = total + *(vec *)(scores + at);
        }
        switch (vecs) {
            case 1: weigh_1(model, layer, kv_head, token, scores, found); break;
            case 2: weigh_2(model, layer, kv_head, token, scores, found); break;
            case 4: weigh_4(model, layer, kv_head, token, scores, found); break;
            case 8: weigh_8(model, layer, kv_head, token, scores, found); break;
            default: weigh_any(model, layer, kv_head, token, scores, found);
        }
        float scale = 1.0f / sum_of(total);
        for (int at = 0; at < shape->head; at++) into[head * shape->head + at] = found[at] * scale;
    }
}
