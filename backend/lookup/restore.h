/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up again, in the background, the paths that the daemon before this one had in use
 * (warm_list.h).  All functions run on the loop.
 *
 * Bounded: each turn begins some 32 walks, and none while questions or its own earlier walks
 * wait for workers.  Paths that are known by then, lie outside roots or are on a mount out of
 * service are left out.  No client waits for any of it.
 */
#ifndef FP_RESTORE_H
#define FP_RESTORE_H

#include <stdbool.h>
#include <stddef.h>

struct ev_loop;
struct fp_cache;
struct fp_mount_health;
struct fp_restore;
struct fp_warm_reader;
struct fp_walks;
struct fp_worker_pool;

/* All of them the caller's; they outlive it. */
struct fp_restore_deps {
    struct ev_loop *loop;
    struct fp_cache *cache;
    struct fp_walks *walks;
    struct fp_worker_pool *workers;
    const struct fp_mount_health *health;
    const char *const *roots; /* as in resolve.h */
};

/* Looks up the paths that the reader has before it, and frees the text that it reads at the end.  NULL: no memory,
 * and the text is freed. */
struct fp_restore *fp_restore_create(const struct fp_restore_deps *deps, char *text,
                                     const struct fp_warm_reader *reader);
void fp_restore_destroy(struct fp_restore **r);

/* True while there are paths to come.  With NULL: false. */
bool fp_restore_is_under_way(const struct fp_restore *r);

#endif
