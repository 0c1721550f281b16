/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When something is due: a timing wheel (Varghese & Lauck, SOSP 1987) for very
 * many things that are set again and again and seldom need to be punctual.
 * Knows no clock: callers say what time it is, in milliseconds.
 */
#ifndef FP_TIMER_WHEEL_H
#define FP_TIMER_WHEEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define FP_TIMER_TICK_MS 16u
#define FP_TIMER_BUCKETS  1024u      /* what is due after more than these ticks goes round */

/* A member of whatever is due; all zero: not set. */
struct fp_timer {
    TAILQ_ENTRY(fp_timer) link;
    uint64_t tick;                /* 0: not set */
};

struct fp_timer_wheel {
    TAILQ_HEAD(fp_timer_bucket, fp_timer) buckets[FP_TIMER_BUCKETS];
    uint64_t tick;                /* all buckets of earlier ticks are done */
    struct fp_timer *next;          /* in this tick's bucket; NULL: its first */
    bool begun;                   /* that bucket */
};

void fp_timer_wheel_init(struct fp_timer_wheel *w, uint64_t now_ms);

/* Due at that time, in place of when it was due before. */
void fp_timer_set(struct fp_timer_wheel *w, struct fp_timer *d, uint64_t at_ms);
void fp_timer_clear(struct fp_timer_wheel *w, struct fp_timer *d);

/* One that is due by now and is not set any more; NULL: there is none. */
struct fp_timer *fp_timer_take(struct fp_timer_wheel *w, uint64_t now_ms);

#endif
