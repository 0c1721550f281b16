/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps mounts that do not answer away from the others.  A circuit breaker for each mount
 * (breaker.h) runs by the walks' questions and answers, and by a timer.  Mounts that are
 * out of service are probed, and the log says so.  All functions run on the loop.
 *
 * A probe is a walk to the mount point (or to the first root below it, where
 * paths are restricted).  The kernel's memory of that directory may answer
 * for a dead server: then its breaker opens once more, and it is probed less often.
 */
#ifndef FP_MOUNT_HEALTH_H
#define FP_MOUNT_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

struct ev_loop;
struct fp_answer;
struct fp_coherence;
struct fp_mount_health;
struct fp_worker_pool;
struct fp_walk_result;

struct fp_mount_health_deps {
    struct fp_worker_pool *workers;
    struct fp_coherence *coherence;
    const char *const *roots; /* as in resolve.h */
    /* The mount has gone out of service: walks there must not be waited for. */
    void (*opened)(void *ctx, uint32_t mount);
    /* The walk with that ctx waits for the mount, not for the one that it was expected on. */
    void (*moved)(void *ctx, void *walk, uint32_t mount);
    void *ctx;
};

/* All deps stay the caller's.  Returns NULL if there is no memory. */
struct fp_mount_health *fp_mount_health_create(struct ev_loop *loop, const struct fp_mount_health_deps *deps,
                                               uint32_t timeout_ms);
/* To be called after the workers are gone. */
void fp_mount_health_destroy(struct fp_mount_health **health);
void fp_mount_health_set(struct fp_mount_health *health, uint32_t timeout_ms);

/* Notes a walk that is meant for the mount.  Returns how many there are with it. */
size_t fp_mount_health_enter(struct fp_mount_health *health, uint32_t mount);
void fp_mount_health_leave(struct fp_mount_health *health, uint32_t mount);
/* To be called when the walk was handed to the workers, or one more question waits for it. */
void fp_mount_health_asked(struct fp_mount_health *health, uint32_t mount);
/* To be called when a walk that was handed over for that mount has ended, as fp_worker_done says. */
void fp_mount_health_heard(struct fp_mount_health *health, uint32_t mount, fp_status st,
                           const struct fp_answer *a, const struct fp_walk_result *result, uint64_t began_ms);

bool fp_mount_health_is_out(const struct fp_mount_health *health, uint32_t mount);

/* The mount that the answer (NULL: none) ends on, where that is known; else the one where it
 * was expected. */
uint32_t fp_mount_health_end_of(uint32_t mount, const struct fp_answer *a,
                                const struct fp_walk_result *result);

struct fp_breaker_counts fp_mount_health_counts(const struct fp_mount_health *health);

#endif
