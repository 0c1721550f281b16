/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps mounts that do not answer away from the others: runs their circuit
 * breakers (breaker.h) by what dispatch asks and hears, and by a timer; probes
 * those that are out of service, and says so in the log.  All functions run on
 * the loop.
 *
 * A probe is a walk to the mount point (or to the first root below it, where
 * paths are restricted).  What the kernel remembers of that directory may answer
 * for a dead server: then the mount trips once more, and is probed less often.
 */
#ifndef FP_MOUNT_HEALTH_H
#define FP_MOUNT_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ev_loop;
struct fp_answer;
struct fp_breaker;
struct fp_coherence;
struct fp_mount_health;
struct fp_worker_pool;
struct fp_walk_result;

struct fp_mount_health_deps {
    struct fp_worker_pool *helpers;
    struct fp_coherence *fresh;
    const char *const *roots;     /* as in resolve.h */
    /* The mount has gone out of service: nothing that waits for it is to wait. */
    void (*tripped)(void *ctx, uint32_t mount);
    void *ctx;
};

/* All parts stay the caller's.  NULL: no memory. */
struct fp_mount_health *fp_mount_health_create(struct ev_loop *loop, const struct fp_mount_health_deps *parts,
                                 uint32_t timeout_ms);
/* After the helpers are gone. */
void fp_mount_health_destroy(struct fp_mount_health **g);
void fp_mount_health_set(struct fp_mount_health *g, uint32_t timeout_ms);

/* A walk is meant for the mount.  Returns how many there are with it. */
size_t fp_mount_health_enter(struct fp_mount_health *g, uint32_t mount);
void fp_mount_health_leave(struct fp_mount_health *g, uint32_t mount);
/* It was handed to the helpers. */
void fp_mount_health_asked(struct fp_mount_health *g, uint32_t mount);
/* As fp_worker_done tells of a walk that was handed over for that mount. */
void fp_mount_health_heard(struct fp_mount_health *g, uint32_t mount, const struct fp_answer *a,
                    const struct fp_walk_result *trail, uint64_t began_ms);

/* Is the mount out of service?  ctx: the guard. */
bool fp_mount_health_is_out(void *ctx, uint32_t mount);

/* The file system's error, be it of the path or of a directory above it; or no
 * answer at all. */
bool fp_mount_health_is_failure(const struct fp_answer *a);

/* What the answer tells of: the mount that it ends on, where that is known, else the one
 * where it was expected. */
uint32_t fp_mount_health_mount_told(uint32_t mount, const struct fp_answer *a,
                             const struct fp_walk_result *trail);

struct fp_breaker_counts fp_mount_health_counts(const struct fp_mount_health *g);

#endif
