/* Sixteen numbers at once, whatever the width of the processor's vectors. */
#ifndef ARISE_VECTORS_H
#define ARISE_VECTORS_H
#include <stdint.h>

#define LANES 16
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define INLINE static inline __attribute__((always_inline, unused))

INLINE vec all(float value) { return (vec){0} + value; }

INLINE vec smaller(vec a, vec b) {
    ivec less = a < b;
    return (vec)((less & (ivec)a) | (~less & (ivec)b));
}

INLINE vec larger(vec a, vec b) {
    ivec more = a > b;
    return (vec)((more & (ivec)a) | (~more & (ivec)b));
}

/* e^x to about one unit in the last place: a power of two times a polynomial over [-ln(2)/2, ln(2)/2]. */
INLINE vec exponential(vec x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves an integer in the low bits */
    x = larger(smaller(x, all(88.0f)), all(-87.0f));
    vec shifted = x * all(1.44269504088896341f) + all(round);
    ivec exponent = ((ivec)shifted - (ivec)all(round)) + 127;
    vec whole = shifted - all(round);
    vec rest = x - whole * all(0.693359375f);
    rest = rest - whole * all(-2.12194440e-4f);
    vec sum = all(1.9875691500e-4f);
    sum = sum * rest + all(1.3981999507e-3f);
    sum = sum * rest + all(8.3334519073e-3f);
    sum = sum * rest + all(4.1665795894e-2f);
    sum = sum * rest + all(1.6666665459e-1f);
    sum = sum * rest + all(5.0000001201e-1f);
    vec square = rest * rest;
    vec result = sum * square + rest;
    return (result + all(1.0f)) * (vec)(exponent << 23);
}

INLINE float sum_of(vec x) {
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += x[lane];
    return sum;
}

INLINE float largest_of(vec x) {
    float found = x[0];
    for (int lane = 1; lane < LANES; lane++) found = x[lane] > found ? x[lane] : found;
    return found;
}

#endif
