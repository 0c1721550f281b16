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
#ifndef FP_GUARD_H
#define FP_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ev_loop;
struct fp_answer;
struct fp_breaker;
struct fp_fresh;
struct fp_guard;
struct fp_helpers;
struct fp_trail;

struct fp_guard_parts {
    struct fp_helpers *helpers;
    struct fp_fresh *fresh;
    const char *const *roots;     /* as in resolve.h */
    /* The mount has gone out of service: nothing that waits for it is to wait. */
    void (*tripped)(void *ctx, uint32_t mount);
    void *ctx;
};

/* All parts stay the caller's.  NULL: no memory. */
struct fp_guard *fp_guard_create(struct ev_loop *loop, const struct fp_guard_parts *parts,
                                 uint32_t timeout_ms);
/* After the helpers are gone. */
void fp_guard_destroy(struct fp_guard **g);
void fp_guard_set(struct fp_guard *g, uint32_t timeout_ms);

/* A walk is meant for the mount.  Returns how many there are with it. */
size_t fp_guard_enter(struct fp_guard *g, uint32_t mount);
void fp_guard_leave(struct fp_guard *g, uint32_t mount);
/* It was handed to the helpers. */
void fp_guard_asked(struct fp_guard *g, uint32_t mount);
/* As fp_helper_done tells of a walk that was handed over for that mount. */
void fp_guard_heard(struct fp_guard *g, uint32_t mount, const struct fp_answer *a,
                    const struct fp_trail *trail, uint64_t began_ms);

/* Is the mount out of service?  ctx: the guard. */
bool fp_guard_is_out(void *ctx, uint32_t mount);

/* The file system's error, be it of the path or of a directory above it; or no
 * answer at all. */
bool fp_guard_is_failure(const struct fp_answer *a);

/* What the answer tells of: the mount that it ends on, where that is known, else the one
 * where it was expected. */
uint32_t fp_guard_mount_told(uint32_t mount, const struct fp_answer *a,
                             const struct fp_trail *trail);

struct fp_breaker_counts fp_guard_counts(const struct fp_guard *g);

#endif
