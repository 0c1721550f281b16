/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "rng.h"

#include <math.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t value, int by)
{
    return (value << by) | (value >> (64 - by));
}

void bench_rng_seed(struct bench_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rng->state[i] = splitmix64(&seed);
}

uint64_t bench_rng_next(struct bench_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t bench_rng_below(struct bench_rng *rng, uint64_t bound)
{
    /* Values of the incomplete last round would favour the small results. */
    uint64_t excess = (UINT64_MAX % bound + 1) % bound;
    uint64_t value;

    do {
        value = bench_rng_next(rng);
    } while (value > UINT64_MAX - excess);
    return value % bound;
}

double bench_rng_exponential(struct bench_rng *rng)
{
    /* 53 random bits as a number in (0, 1]: log(0) cannot happen. */
    double uniform = ((double)(bench_rng_next(rng) >> 11) + 1.0) / 9007199254740992.0;

    return -log(uniform);
}
