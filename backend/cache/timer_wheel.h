/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When something is due: a timing wheel (Varghese & Lauck, SOSP 1987) for very
 * many things that are set again and again and seldom need to be punctual.
 * Knows no clock: callers say what time it is, in milliseconds.
 */
#ifndef FP_DUE_H
#define FP_DUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define FP_DUE_TICK_MS 16u
#define FP_DUE_SPOKES  1024u      /* what is due after more than these ticks goes round */

/* A member of whatever is due; all zero: not set. */
struct fp_due {
    TAILQ_ENTRY(fp_due) link;
    uint64_t tick;                /* 0: not set */
};

struct fp_due_wheel {
    TAILQ_HEAD(fp_due_spoke, fp_due) spokes[FP_DUE_SPOKES];
    uint64_t tick;                /* all spokes of earlier ticks are done */
    struct fp_due *next;          /* in this tick's spoke; NULL: its first */
    bool begun;                   /* that spoke */
};

void fp_due_init(struct fp_due_wheel *w, uint64_t now_ms);

/* Due at that time, in place of when it was due before. */
void fp_due_set(struct fp_due_wheel *w, struct fp_due *d, uint64_t at_ms);
void fp_due_clear(struct fp_due_wheel *w, struct fp_due *d);

/* One that is due by now and is not set any more; NULL: there is none. */
struct fp_due *fp_due_take(struct fp_due_wheel *w, uint64_t now_ms);

#endif
