/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timing wheel (Varghese & Lauck, SOSP 1987) for very many timers that are set
 * again and again and seldom need to be punctual.
 * The wheel knows no clock: callers say what time it is, in milliseconds.
 */
#ifndef FP_TIMER_WHEEL_H
#define FP_TIMER_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define FP_TIMER_TICK_MS 16u
#define FP_TIMER_BUCKETS 1024u /* a timer that is set for later goes round */

/* A member of the object that the timer is set for; all zero: not set. */
struct fp_timer {
    TAILQ_ENTRY(fp_timer) link;
    uint64_t tick; /* 0: not set */
};

struct fp_timer_wheel {
    TAILQ_HEAD(fp_timer_bucket, fp_timer) buckets[FP_TIMER_BUCKETS]; /* each timer is in that of its tick */
    uint64_t tick;         /* all buckets of earlier ticks are done */
    struct fp_timer *next; /* in this tick's bucket, once that has been begun; NULL: none is left */
    bool begun;            /* that bucket has been begun */
};

/* Begins without a timer.  now_ms: as for all times here, of the monotonic clock. */
void fp_timer_wheel_init(struct fp_timer_wheel *w, uint64_t now_ms);

/* Sets the timer to run out at that time, in place of an earlier setting. */
void fp_timer_set(struct fp_timer_wheel *w, struct fp_timer *d, uint64_t at_ms);
void fp_timer_clear(struct fp_timer_wheel *w, struct fp_timer *d);

/* Takes a timer that has run out by now; it is then not set any more.  NULL if there is none. */
struct fp_timer *fp_timer_take(struct fp_timer_wheel *w, uint64_t now_ms);

#endif
