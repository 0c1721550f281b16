/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "histogram.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define STEP_BITS 7
#define STEPS     (1u << STEP_BITS)
/* Values below 2 * STEPS are exact; each further power of two takes STEPS slots. */
#define SLOTS ((size_t)STEPS * (64 - STEP_BITS + 1))

struct bench_histogram {
    uint64_t count;
    uint64_t min;
    uint64_t max;
    double sum;
    uint64_t slots[SLOTS];
};

static size_t slot_of(uint64_t value)
{
    unsigned shift;

    if (value < 2 * STEPS)
        return (size_t)value;
    /* From the highest bit on. */
    shift = 63u - (unsigned)__builtin_clzll(value) - STEP_BITS;
    return ((size_t)shift << STEP_BITS) + (size_t)(value >> shift);
}

/* The greatest value that falls into the slot. */
static uint64_t slot_end(size_t slot)
{
    unsigned shift;
    uint64_t lead;

    if (slot < 2 * STEPS)
        return slot;
    shift = (unsigned)(slot >> STEP_BITS) - 1;
    lead = slot - ((size_t)shift << STEP_BITS);
    return (lead << shift) + ((UINT64_C(1) << shift) - 1);
}

struct bench_histogram *bench_histogram_create(void)
{
    return calloc(1, sizeof(struct bench_histogram));
}

void bench_histogram_destroy(struct bench_histogram **histogram)
{
    free(*histogram);
    *histogram = NULL;
}

void bench_histogram_add(struct bench_histogram *h, uint64_t ns)
{
    if (h->count == 0 || ns < h->min)
        h->min = ns;
    if (ns > h->max)
        h->max = ns;
    h->count++;
    h->sum += (double)ns;
    h->slots[slot_of(ns)]++;
}

uint64_t bench_histogram_count(const struct bench_histogram *h)
{
    return h->count;
}

uint64_t bench_histogram_min(const struct bench_histogram *h)
{
    return h->min;
}

uint64_t bench_histogram_max(const struct bench_histogram *h)
{
    return h->max;
}

double bench_histogram_mean(const struct bench_histogram *h)
{
    return h->count == 0 ? 0.0 : h->sum / (double)h->count;
}

uint64_t bench_histogram_percentile(const struct bench_histogram *h, double percent)
{
    /* Less the rounding error of 99.9 / 100 * 1000, which must be rank 999, not 1000. */
    double exact = percent / 100.0 * (double)h->count - 1e-6;
    uint64_t rank = exact < 1.0 ? 1 : (uint64_t)ceil(exact);
    uint64_t seen = 0;

    for (size_t slot = 0; slot < SLOTS; slot++) {
        seen += h->slots[slot];
        if (seen >= rank)
            return slot_end(slot) < h->max ? slot_end(slot) : h->max;
    }
    return h->max;
}
