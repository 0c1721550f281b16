/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/pace.h"

#include <stdatomic.h>

#define PLACES     64u      /* for the parts of the tree, about */
#define LEVELS     3u       /* of directories that tell one part from another: a mount is rarely deeper */
#define LEAST_US   200u     /* a call that takes less is quicker than any question, */
#define QUICKER    8u       /* and the kernel's memory answers so many times as quickly as a server, about */
#define OFTEN      8u       /* the last measurement of the usual way counts for an eighth, */
#define SELDOM     2u       /* that of the other way for a half, */
#define FADE       128u     /* and what is not measured fades by so small a part */
#define USELESS_US 1000000u /* what a question counts for besides if its answer was of no use */
#define MOST_US    10000000u

struct fp_pace {
    _Atomic uint32_t asked_us, called_us; /* on average; 0: not measured yet */
    _Atomic uint32_t useless_us;          /* of a question, on average as well */
    _Atomic uint32_t part;                /* of the average that the last measurement is */
    _Atomic bool was_asked;               /* the last measurement was one of asked_us */
};

static struct fp_pace places[PLACES][2];

struct fp_pace *fp_pace_of(const char *path, size_t len, bool opens)
{
    uint32_t hash = 0x811c9dc5u;
    unsigned levels = 0;

    for (size_t i = 0; i < len; i++) {
        levels += path[i] == '/';
        if (levels > LEVELS)
            break;
        hash = (hash ^ (uint8_t)path[i]) * 0x01000193u;
    }
    return &places[hash % PLACES][opens];
}

static uint32_t get(const _Atomic uint32_t *us)
{
    return atomic_load_explicit(us, memory_order_relaxed);
}

/* Another thread's measurement may get lost. */
static void set(_Atomic uint32_t *us, uint32_t to)
{
    atomic_store_explicit(us, to, memory_order_relaxed);
}

static uint32_t limit(uint64_t us)
{
    return us < MOST_US ? (uint32_t)us : MOST_US;
}

static void add(_Atomic uint32_t *average_us, uint64_t us, uint32_t part)
{
    const int64_t before = get(average_us), now = limit(us);

    set(average_us, (uint32_t)(before + (now - before) / part));
}

static void measured(struct fp_pace *pace, bool asked, uint64_t us)
{
    _Atomic uint32_t *average_us = asked ? &pace->asked_us : &pace->called_us;
    const bool is_usual = atomic_exchange_explicit(&pace->was_asked, asked, memory_order_relaxed) == asked;

    set(&pace->part, is_usual ? OFTEN : SELDOM);
    add(average_us, us, get(&pace->part));
    if (get(average_us) == 0)
        set(average_us, 1);
}

/* At least by 1. */
static void fade(_Atomic uint32_t *us)
{
    const uint32_t before = get(us);

    set(us, before - (before + FADE - 1) / FADE);
}

static bool is_slow(const struct fp_pace *pace)
{
    return get(&pace->called_us) >= LEAST_US && get(&pace->called_us) >= get(&pace->asked_us) / QUICKER;
}

bool fp_pace_is_quick(const struct fp_pace *pace)
{
    return get(&pace->called_us) > 0 && !is_slow(pace);
}

bool fp_pace_asks(struct fp_pace *pace)
{
    const bool asks = is_slow(pace) && get(&pace->asked_us) + get(&pace->useless_us) <= get(&pace->called_us);

    if (asks) {
        fade(&pace->called_us);
    } else {
        fade(&pace->asked_us);
        fade(&pace->useless_us);
    }
    return asks;
}

void fp_pace_asked(struct fp_pace *pace, uint64_t us, bool useful)
{
    measured(pace, true, us);
    add(&pace->useless_us, useful ? 0 : USELESS_US, get(&pace->part));
}

void fp_pace_called(struct fp_pace *pace, uint64_t us, bool again)
{
    const uint32_t part = get(&pace->part);

    if (!again)
        measured(pace, false, us);
    else if (part > 0)
        set(&pace->called_us, get(&pace->called_us) + limit(us) / part);
}
