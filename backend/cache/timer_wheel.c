/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/timer_wheel.h"

static struct fp_timer_bucket *bucket_of(struct fp_timer_wheel *w, uint64_t tick)
{
    return &w->buckets[tick % FP_TIMER_BUCKETS];
}

void fp_timer_wheel_init(struct fp_timer_wheel *w, uint64_t now_ms)
{
    for (unsigned i = 0; i < FP_TIMER_BUCKETS; i++)
        TAILQ_INIT(&w->buckets[i]);
    w->tick = now_ms / FP_TIMER_TICK_MS + 1;
    w->next = NULL;
    w->begun = false;
}

void fp_timer_clear(struct fp_timer_wheel *w, struct fp_timer *d)
{
    if (d->tick == 0)
        return;
    if (w->next == d)
        w->next = TAILQ_NEXT(d, link);
    TAILQ_REMOVE(bucket_of(w, d->tick), d, link);
    d->tick = 0;
}

/* A timer never goes into a bucket that is done, or that is being gone through. */
void fp_timer_set(struct fp_timer_wheel *w, struct fp_timer *d, uint64_t at_ms)
{
    uint64_t tick = at_ms / FP_TIMER_TICK_MS + 1;

    fp_timer_clear(w, d);
    d->tick = tick > w->tick ? tick : w->tick + 1;
    TAILQ_INSERT_HEAD(bucket_of(w, d->tick), d, link);
}

/* The next timer in this tick's bucket that runs out in this very round. */
static struct fp_timer *take_here(struct fp_timer_wheel *w)
{
    struct fp_timer *d = w->begun ? w->next : TAILQ_FIRST(bucket_of(w, w->tick));

    w->begun = true;
    while (d != NULL && d->tick > w->tick)
        d = TAILQ_NEXT(d, link);
    w->next = d;
    if (d != NULL)
        fp_timer_clear(w, d);
    return d;
}

struct fp_timer *fp_timer_take(struct fp_timer_wheel *w, uint64_t now_ms)
{
    uint64_t now = now_ms / FP_TIMER_TICK_MS;

    while (w->tick <= now) {
        struct fp_timer *d = take_here(w);

        if (d != NULL)
            return d;
        w->begun = false;
        /* After a long rest one turn over all buckets finds everything. */
        w->tick += now - w->tick > FP_TIMER_BUCKETS ? now - w->tick - FP_TIMER_BUCKETS : 1;
    }
    return NULL;
}
