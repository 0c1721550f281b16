/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps mounts that do not answer away from the others.  A circuit breaker for each mount
 * (breaker.h) runs by the walks' questions and answers, and by a timer.  Mounts that are
 * out of service are probed, and the log says so.  All functions run on the loop.
 *
 * A probe is a walk to the mount point (or to the first root below it, where
 * paths are restricted).  The kernel's memory of that directory may answer
 * for a dead server: then its breaker opens once more, and it is probed less often.
 *
 * It also says on which mount a path is expected, and remembers detours: paths from which walks
 * never came back, because a link led them to a mount that did not answer.  Neither names nor entries show that.
 * A detour counts for a while, and only if its mount is out of service: the link may change.
 */
#ifndef FP_MOUNT_HEALTH_H
#define FP_MOUNT_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

struct ev_loop;
struct fp_answer;
struct fp_cache;
struct fp_coherence;
struct fp_mount_health;
struct fp_mounts;
struct fp_worker_pool;
struct fp_walk_result;

struct fp_mount_health_deps {
    struct fp_worker_pool *workers;
    const struct fp_coherence *coherence;
    const struct fp_mounts *mounts;
    const struct fp_cache *cache;
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

/* Notes a walk that is meant for the mount.  Returns how many there are with it.  Without memory for it
 * (0) the mount is never out of service. */
size_t fp_mount_health_enter(struct fp_mount_health *health, uint32_t mount);
void fp_mount_health_leave(struct fp_mount_health *health, uint32_t mount);
/* To be called when the walk was handed to the workers, or one more question waits for it. */
void fp_mount_health_asked(struct fp_mount_health *health, uint32_t mount);
/* To be called when a walk that was handed over for that mount has ended, as fp_worker_done says. */
void fp_mount_health_heard(struct fp_mount_health *health, uint32_t mount, fp_status st,
                           const struct fp_answer *a, const struct fp_walk_result *result, uint64_t began_ms);

bool fp_mount_health_is_out(const struct fp_mount_health *health, uint32_t mount);

#define FP_MAX_DETOURS 64
#define FP_DETOUR_MS   5000 /* a path's time; then a walk looks again */

/* Where a walk of a path will end, as far as is known.  It is found once for a question, and handed on. */
struct fp_expected {
    uint32_t mount; /* 0: unknown */
    size_t from;    /* at which length of the path that was learnt; paths that lie between are expected there, too */
    size_t seen;    /* how much of the path the cache knows, if no detour was found */
    bool out;       /* the mount is out of service */
};

/* The detours say it, else the nearest entry of the cache or the names of mount points. */
struct fp_expected fp_mount_health_expect(const struct fp_mount_health *health, const char *path, size_t len);
/* Notes that a walk of the path hangs at that mount.  Without memory it is not noted. */
void fp_mount_health_note_detour(struct fp_mount_health *health, uint32_t mount, const char *path, size_t len);
/* Forgets the detours of the path and of all below it. */
void fp_mount_health_forget(struct fp_mount_health *health, const char *path, size_t len);

/* The mount that the answer (NULL: none) ends on, where that is known; else the one where it
 * was expected. */
uint32_t fp_mount_health_end_of(uint32_t mount, const struct fp_answer *a,
                                const struct fp_walk_result *result);

struct fp_mount_health_counts {
    uint64_t opened; /* how often a breaker did */
    unsigned out;    /* mounts out of service now */
};
struct fp_mount_health_counts fp_mount_health_counts(const struct fp_mount_health *health);

#endif
