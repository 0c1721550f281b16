/* SPDX-License-Identifier: Apache-2.0
 *
 * A small reproducible random number generator (xoshiro256**, Blackman and Vigna 2018,
 * seeded by splitmix64): the same seed gives the same load on every machine.
 */
#ifndef BENCH_RNG_H
#define BENCH_RNG_H

#include <stdint.h>

struct bench_rng {
    uint64_t state[4];
};

void bench_rng_seed(struct bench_rng *rng, uint64_t seed);

uint64_t bench_rng_next(struct bench_rng *rng);

/* Even in [0, bound); bound > 0. */
uint64_t bench_rng_below(struct bench_rng *rng, uint64_t bound);

/* Exponentially distributed with mean 1. */
double bench_rng_exponential(struct bench_rng *rng);

#endif
