/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/server_clock.h"

#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/local_types.h"

/*
 * Each device has one place by its number. It may take the place over from another device, whose clock is
 * then unknown again. A place is one word. 20 bits say which device it is. 44 bits say how far its clock is
 * ahead of fp_now_ms() at least, in milliseconds.
 */
#define PLACES     64u
#define AHEAD_BITS 44
#define AHEAD_ZERO ((int64_t)1 << (AHEAD_BITS - 1))
#define AHEAD_MASK (((uint64_t)1 << AHEAD_BITS) - 1)

static _Atomic uint64_t places[PLACES];

static int64_t ms_of(const struct fp_time *t)
{
    return t->sec * 1000 + t->nsec / 1000000;
}

static bool is_past(const struct fp_time *ctime, int64_t now_ms)
{
    return ms_of(ctime) <= now_ms - FP_SETTLED_MS;
}

static uint64_t hash_of(uint64_t dev)
{
    return (dev + 1) * 0x9e3779b97f4a7c15u;
}

static uint64_t tag_of(uint64_t dev)
{
    return hash_of(dev) >> AHEAD_BITS << AHEAD_BITS;
}

static _Atomic uint64_t *place_of(uint64_t dev)
{
    return &places[hash_of(dev) % PLACES];
}

/* Returns what is known then. No clock is off by 270 years. */
static int64_t learn(uint64_t dev, int64_t ahead_ms)
{
    const uint64_t tag = tag_of(dev);
    uint64_t known = atomic_load(place_of(dev)), wanted = tag | ((uint64_t)(ahead_ms + AHEAD_ZERO) & AHEAD_MASK);

    do {
        if ((known & ~AHEAD_MASK) == tag && (known & AHEAD_MASK) >= (wanted & AHEAD_MASK))
            wanted = known;
    } while (wanted != known && !atomic_compare_exchange_weak(place_of(dev), &known, wanted));
    return (int64_t)(wanted & AHEAD_MASK) - AHEAD_ZERO;
}

/* The least that the server's clock can show now. */
static int64_t advance(uint64_t dev, const struct fp_time *ctime)
{
    const int64_t now_ms = (int64_t)fp_now_ms();

    return now_ms + learn(dev, ms_of(ctime) - now_ms);
}

bool fp_server_clock_has_settled(uint64_t dev, const struct fp_time *ctime)
{
    const int64_t there_ms = advance(dev, ctime);
    struct timespec here;

    clock_gettime(CLOCK_REALTIME, &here);
    return is_past(ctime, there_ms) && is_past(ctime, (int64_t)here.tv_sec * 1000 + here.tv_nsec / 1000000);
}

bool fp_server_clock_has_settled_on(uint32_t type, uint64_t dev, const struct fp_time *ctime)
{
    return fp_type_may_be_mapped(type) || fp_server_clock_has_settled(dev, ctime);
}

void fp_server_clock_note(uint64_t dev, const struct fp_time *ctime)
{
    advance(dev, ctime);
}

int64_t fp_server_clock_get(uint64_t dev)
{
    const uint64_t known = atomic_load(place_of(dev));

    return (known & ~AHEAD_MASK) == tag_of(dev) ? (int64_t)(known & AHEAD_MASK) - AHEAD_ZERO : -AHEAD_ZERO;
}

void fp_server_clock_learn(uint64_t dev, int64_t ahead_ms)
{
    if (ahead_ms >= -AHEAD_ZERO && ahead_ms < AHEAD_ZERO)
        learn(dev, ahead_ms);
}
