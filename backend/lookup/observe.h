/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes single walks for operators: a report says how long they take on each mount, the log which were
 * slow.  All functions run on the loop.
 */
#ifndef FP_OBSERVE_H
#define FP_OBSERVE_H

#include <stddef.h>
#include <stdint.h>

struct fp_answer;
struct fp_latency;
struct fp_lookup;
struct fp_mount_health;
struct fp_mounts;
struct fp_walk_result;

struct fp_observer {
    const struct fp_mounts *mounts; /* these two are the caller's */
    const struct fp_mount_health *health; /* NULL: each mount is in service */
    struct fp_latency *latency;
};

/* Returns 0, or -1 if there is no memory. */
int fp_observer_init(struct fp_observer *o, const struct fp_mounts *mounts);
void fp_observer_clear(struct fp_observer *o);

/* A walk that has ended, as fp_worker_done says; mount: where it was expected to be. */
struct fp_observed {
    const struct fp_lookup *lookup;
    uint32_t mount;
    unsigned waited; /* how many questions did, until they were answered or gave up */
    uint64_t began_ms;
    const struct fp_answer *answer;      /* NULL if there is none */
    const struct fp_walk_result *result; /* NULL: no worker answered */
};
void fp_observe_walk(struct fp_observer *o, const struct fp_observed *w);

/* Report of the mounts (control.h): ctx is a struct fp_observer. */
size_t fp_observer_mount_line(void *ctx, uint32_t n, char *buf, size_t size);

#endif
