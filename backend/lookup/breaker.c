/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/breaker.h"
#include "base/memory.h"

#include <stdlib.h>
#include <sys/queue.h>

#define FIRST_PROBE_MS 1000u
#define MAX_PROBE_MS   30000u /* also: how long a mount is watched after it came back */

struct state {
    LIST_ENTRY(state) link;
    uint32_t mount;
    size_t walks;
    unsigned hung;
    uint64_t asked_ms; /* the first question since it last answered; 0: none */
    uint64_t answered_ms;
    uint64_t lost_ms,
        last_lost_ms; /* when the first walk of a row of lost ones began, and when the last one was
                                       given up; 0: none since it last answered */
    bool open, probing;
    uint64_t opened_ms, closed_ms;
    uint64_t silence_ms;  /* before it was opened */
    uint64_t probe_ms;    /* time of the next probe */
    uint32_t interval_ms; /* until the one after that */
};

struct fp_breaker {
    LIST_HEAD(, state) states;
    uint32_t timeout_ms;
    struct fp_breaker_counts counts;
};

static struct state *find(const struct fp_breaker *b, uint32_t mount)
{
    struct state *s;

    LIST_FOREACH(s, &b->states, link) {
        if (s->mount == mount)
            return s;
    }
    return NULL;
}

void fp_breaker_enter(struct fp_breaker *b, uint32_t mount)
{
    struct state *s = find(b, mount);

    if (s == NULL) {
        s = fp_memory_take_zeroed(1, sizeof(*s));
        if (s == NULL)
            return;
        s->mount = mount;
        LIST_INSERT_HEAD(&b->states, s, link);
    }
    s->walks++;
}

void fp_breaker_leave(struct fp_breaker *b, uint32_t mount)
{
    struct state *s = find(b, mount);

    if (s != NULL && s->walks > 0)
        s->walks--;
}

size_t fp_breaker_walks(const struct fp_breaker *b, uint32_t mount)
{
    const struct state *s = find(b, mount);

    return s != NULL ? s->walks : 0;
}

void fp_breaker_asked(struct fp_breaker *b, uint32_t mount, uint64_t now_ms)
{
    struct state *s = find(b, mount);

    if (s != NULL && s->asked_ms == 0)
        s->asked_ms = now_ms;
}

static void close_breaker(struct fp_breaker *b, struct state *s)
{
    s->open = false;
    s->asked_ms = 0;
    b->counts.open--;
}

uint64_t fp_breaker_answered(struct fp_breaker *b, uint32_t mount, bool waiting, uint64_t now_ms)
{
    struct state *s = find(b, mount);
    bool was_open = s != NULL && s->open;

    if (s == NULL)
        return 0;
    if (was_open) {
        close_breaker(b, s);
        s->closed_ms = now_ms;
    }
    s->answered_ms = now_ms;
    s->lost_ms = s->last_lost_ms = 0;
    s->asked_ms = waiting ? now_ms : 0;
    return was_open ? s->opened_ms : 0;
}

static void open_breaker(struct fp_breaker *b, struct state *s, uint64_t since_ms, uint64_t now_ms)
{
    if (s->closed_ms == 0 || now_ms - s->closed_ms >= MAX_PROBE_MS)
        s->interval_ms = FIRST_PROBE_MS;
    s->open = true;
    s->opened_ms = now_ms;
    s->silence_ms = now_ms - since_ms;
    s->probe_ms = now_ms + s->interval_ms;
    b->counts.open++;
    b->counts.opened++;
}

bool fp_breaker_check(struct fp_breaker *b, uint32_t mount, uint64_t oldest_ms, uint64_t now_ms)
{
    struct state *s = find(b, mount);
    uint64_t since;

    if (s == NULL || mount == 0 || s->open || s->asked_ms == 0 || oldest_ms == 0)
        return false;
    since = oldest_ms > s->asked_ms ? oldest_ms : s->asked_ms;
    if (now_ms < since + b->timeout_ms)
        return false;
    open_breaker(b, s, since, now_ms);
    return true;
}

bool fp_breaker_given_up(struct fp_breaker *b, uint32_t mount, uint64_t began_ms, uint64_t now_ms)
{
    struct state *s = find(b, mount);

    if (s == NULL || mount == 0 || s->open || s->answered_ms >= began_ms)
        return false;
    /* A pause of the questions says nothing about the mount: a new row begins. */
    if (s->lost_ms == 0 || began_ms > s->last_lost_ms + b->timeout_ms)
        s->lost_ms = began_ms;
    s->last_lost_ms = now_ms;
    if (now_ms < s->lost_ms + b->timeout_ms)
        return false;
    open_breaker(b, s, s->lost_ms, now_ms);
    return true;
}

uint64_t fp_breaker_silence(const struct fp_breaker *b, uint32_t mount)
{
    const struct state *s = find(b, mount);

    return s != NULL ? s->silence_ms : 0;
}

bool fp_breaker_is_open(const struct fp_breaker *b, uint32_t mount)
{
    const struct state *s = find(b, mount);

    return s != NULL && s->open;
}

bool fp_breaker_probe(struct fp_breaker *b, uint32_t mount, uint64_t now_ms)
{
    struct state *s = find(b, mount);

    if (s == NULL || !s->open || s->probing || now_ms < s->probe_ms)
        return false;
    s->probing = true;
    return true;
}

void fp_breaker_probed(struct fp_breaker *b, uint32_t mount, uint64_t now_ms)
{
    struct state *s = find(b, mount);

    if (s == NULL)
        return;
    s->probing = false;
    s->interval_ms = s->interval_ms * 2 < MAX_PROBE_MS ? s->interval_ms * 2 : MAX_PROBE_MS;
    s->probe_ms = now_ms + s->interval_ms;
}

void fp_breaker_hung(struct fp_breaker *b, uint32_t mount, unsigned n)
{
    struct state *s = find(b, mount);

    if (s == NULL)
        return;
    if (n < s->hung)
        s->probe_ms = 0;
    s->hung = n;
}

void fp_breaker_hurry(struct fp_breaker *b)
{
    struct state *s;

    LIST_FOREACH(s, &b->states, link)
        s->probe_ms = 0;
}

bool fp_breaker_reset(struct fp_breaker *b, uint32_t mount)
{
    struct state *s = find(b, mount);
    bool was_open = s != NULL && s->open;

    if (was_open)
        close_breaker(b, s);
    if (s != NULL)
        s->asked_ms = s->closed_ms = s->lost_ms = s->last_lost_ms = 0;
    return was_open;
}

void fp_breaker_each(struct fp_breaker *b, void (*each)(void *ctx, uint32_t mount), void *ctx)
{
    struct state *s, *next;

    for (s = LIST_FIRST(&b->states); s != NULL; s = next) {
        next = LIST_NEXT(s, link);
        each(ctx, s->mount);
    }
}

bool fp_breaker_sweep(struct fp_breaker *b, uint64_t now_ms)
{
    struct state *s, *next;

    for (s = LIST_FIRST(&b->states); s != NULL; s = next) {
        next = LIST_NEXT(s, link);
        if (s->walks > 0 || s->open || s->probing
            || (s->closed_ms != 0 && now_ms - s->closed_ms < MAX_PROBE_MS)
            || (s->last_lost_ms != 0 && now_ms - s->last_lost_ms <= b->timeout_ms))
            continue;
        LIST_REMOVE(s, link);
        free(s);
    }
    return !LIST_EMPTY(&b->states);
}

struct fp_breaker *fp_breaker_create(uint32_t timeout_ms)
{
    struct fp_breaker *b = fp_memory_take_zeroed(1, sizeof(*b));

    if (b != NULL)
        b->timeout_ms = timeout_ms;
    return b;
}

void fp_breaker_destroy(struct fp_breaker **bp)
{
    struct fp_breaker *b = *bp;
    struct state *s;

    *bp = NULL;
    if (b == NULL)
        return;
    while ((s = LIST_FIRST(&b->states)) != NULL) {
        LIST_REMOVE(s, link);
        free(s);
    }
    free(b);
}

void fp_breaker_set(struct fp_breaker *b, uint32_t timeout_ms)
{
    b->timeout_ms = timeout_ms;
}

struct fp_breaker_counts fp_breaker_counts(const struct fp_breaker *b)
{
    return b->counts;
}
