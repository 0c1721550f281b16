/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a question: answered from the cache, joined to a walk that
 * is under way, or given to a helper.  The only place that sees connections,
 * cache and helpers together.  All functions run on the loop.
 *
 * Where the mount that the path is expected on is out of service (mount_health.h) there
 * is no walk: what was known is told if that is allowed, or that there is no
 * answer.  Before a path was walked its mount is a guess: by the nearest entry of
 * the cache, or by the names of mount points.  What lies behind a symbolic link
 * that was never seen is taken for its link's.
 */
#ifndef FP_DISPATCH_H
#define FP_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire.h"

struct ev_loop;
struct fp_cache;
struct fp_dispatch;
struct fp_coherence;
struct fp_worker_pool;
struct fp_connection_ops;
struct fp_control_deps;
struct fp_observer;

struct fp_dispatch_counts {
    uint64_t hits, misses, joined, refreshed, stale, unanswered;
    uint64_t absent_hits;    /* of the hits: there is nothing, or it cannot be reached */
    uint64_t purged;         /* entries that an operator let be forgotten */
    uint64_t unavailable;    /* of the unanswered: a mount out of service */
    size_t inflight;
    uint64_t trips;          /* of mounts, out of service */
    unsigned out;            /* of service now */
};

struct fp_dispatch_settings {
    size_t max_inflight;     /* different paths that are being looked at; half of them may
                                be of one mount */
    uint32_t mount_timeout_ms;   /* without any answer, then a mount is out of service */
    const char *const *roots;    /* as in resolve.h; the caller's */
};

/* All but the settings stays the caller's and must outlive it.  NULL: no memory. */
struct fp_dispatch *fp_dispatch_create(struct ev_loop *loop, struct fp_cache *cache,
                                       struct fp_worker_pool *helpers, struct fp_coherence *fresh,
                                       const struct fp_dispatch_settings *settings);
/* New settings hold at once, but for the roots. */
void fp_dispatch_set(struct fp_dispatch *d, const struct fp_dispatch_settings *settings);
/* After the helpers and all connections are gone. */
void fp_dispatch_destroy(struct fp_dispatch **d);

/* What connections are created with; their ctx is the fp_dispatch. */
extern const struct fp_connection_ops fp_dispatch_ops;

/*
 * Forgets the path, or with tree the path and everything below it: afterwards no
 * question about it is answered from what was known before.  Walks under way are
 * not joined any more and what they find is not kept; who already waits for one
 * gets its answer, good for once.  Returns how many entries there were.
 */
size_t fp_dispatch_forget(struct fp_dispatch *d, const char *path, size_t len, bool tree);

/* The number that the cache knows the list by (cache.h); 0: it was never asked about. */
unsigned fp_dispatch_find_names(const struct fp_dispatch *d, const struct fp_names *names);

/* Who answers operators, and who is told of lookups for them; both must outlive the
 * dispatch. */
void fp_dispatch_set_operator(struct fp_dispatch *d, const struct fp_control_deps *control,
                              struct fp_observer *observer);

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d);

#endif
