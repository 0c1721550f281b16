/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of helper processes, seen from the loop: each does one blocking
 * walk at a time; a helper that dies or outlives its deadline is killed and
 * replaced.  All functions run on the loop.
 */
#ifndef FP_HELPER_H
#define FP_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/errors.h"

struct ev_loop;
struct fp_answer;
struct fp_helpers;
struct fp_task;

struct fp_helpers_settings {
    unsigned helpers;
    uint32_t timeout_ms;        /* for one walk, then its helper is killed */
    size_t max_queue;           /* walks waiting for a helper */
    const char *const *roots;   /* as in resolve.h; must outlive the pool */
};

struct fp_helpers_counts {
    uint64_t walks, timeouts, deaths, refused;
    unsigned alive, running;
    size_t queued;
};

/*
 * Called once for every walk that was accepted.  *a is the callee's for the
 * call, with its descriptor: what is not taken (a->fd made -1) is closed
 * afterwards.  began_ms is when the walk began (clock.h).
 */
typedef void fp_helper_done(void *ctx, struct fp_answer *a, uint64_t began_ms);

/*
 * Forks the spawner and asks it for the helpers.  Call it before the process
 * holds anything that helpers must not inherit.  NULL with errno.
 */
struct fp_helpers *fp_helpers_create(struct ev_loop *loop,
                                     const struct fp_helpers_settings *settings);
/* Ends all helpers; walks under way are not called back. */
void fp_helpers_destroy(struct fp_helpers **h);

/* New timeout and queue length; the number of helpers stays. */
void fp_helpers_set(struct fp_helpers *h, uint32_t timeout_ms, size_t max_queue);

/*
 * FP_OK: done will be called, later; until then *t and what it points to, and
 * base, must stay.  base: as in resolve.h.  FP_BUSY or FP_NOMEM: it will not.
 */
fp_status fp_helpers_submit(struct fp_helpers *h, const struct fp_task *t, int base,
                            fp_helper_done *done, void *ctx);

/* Is so little queued that what nobody waits for may be submitted, too? */
bool fp_helpers_spare(const struct fp_helpers *h);

struct fp_helpers_counts fp_helpers_counts(const struct fp_helpers *h);

#endif
