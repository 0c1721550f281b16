/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of worker processes, seen from the loop.  Each does one blocking
 * walk at a time.  A worker that dies or outlives its deadline is killed and
 * replaced.  All functions run on the loop.
 *
 * How many may be at one mounted file system, and how many walks of it may wait,
 * is limited (mount_queues.h).  Mounts are numbered as by statx(2); 0, unknown, is
 * one, too.
 */
#ifndef FP_WORKER_POOL_H
#define FP_WORKER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "workers/mount_queues.h"

struct ev_loop;
struct fp_answer;
struct fp_worker_pool;
struct fp_monitor;
struct fp_task;
struct fp_walk_result;
struct fp_whereabouts;

struct fp_worker_pool_settings {
    unsigned workers;
    uint32_t timeout_ms;                /* for one walk, then its worker is killed */
    uint32_t probe_timeout_ms;          /* the same for a probe */
    struct fp_mount_limits limits;
    const struct fp_monitor *monitor;   /* starts spawners; must outlive the pool */
    struct fp_whereabouts *whereabouts; /* of the workers, the same; NULL: they do not report it */
};

struct fp_worker_pool_counts {
    uint64_t walks, timeouts, deaths;
    unsigned alive, running;
    size_t queued;
};

/*
 * Called once for every walk that was accepted.  st: FP_OK, or why there is no answer; a is
 * NULL then.  *a is the callee's for the call, with its descriptor: a descriptor that is not
 * taken (a->fd made -1) is closed afterwards.  result: NULL where no worker answered.
 * began_ms is when the walk began (clock.h); 0: it did not begin.
 */
typedef void fp_worker_done(void *ctx, fp_status st, struct fp_answer *a, const struct fp_walk_result *result,
                            uint64_t began_ms);

/* Has a spawner started and asks it for the workers; while there can be none, walks fail.  NULL: no memory. */
struct fp_worker_pool *fp_worker_pool_create(struct ev_loop *loop,
                                             const struct fp_worker_pool_settings *settings);
/* Ends all workers; walks under way are not called back. */
void fp_worker_pool_destroy(struct fp_worker_pool **pool);

/* New settings hold at once, but for the number of workers and the monitor. */
void fp_worker_pool_set(struct fp_worker_pool *pool, const struct fp_worker_pool_settings *settings);

/*
 * FP_OK: done will be called, later. Until then *t, all that it points to, and base must stay. base: as in
 * resolve.h. mount: where most of the walk is expected to be. Otherwise done will not be called. FP_BUSY: too
 * many wait, or there is no worker and none could be made. FP_UNAVAILABLE: killed workers hang there.
 * FP_NOMEM.
 */
fp_status fp_worker_pool_submit(struct fp_worker_pool *pool, uint32_t mount, const struct fp_task *t,
                                int base, fp_worker_done *done, void *ctx);

/* Submits a walk from "/" that precedes all that wait for the mount, and is never FP_BUSY. */
fp_status fp_worker_pool_probe(struct fp_worker_pool *pool, uint32_t mount, const struct fp_task *t,
                               fp_worker_done *done, void *ctx);

/* Ends the walks that wait for the mount, now: their only answer is why. */
void fp_worker_pool_cancel(struct fp_worker_pool *pool, uint32_t mount, fp_status why);

/* The walks of a mount. */
struct fp_mount_usage {
    uint64_t oldest_ms; /* when the oldest one under way began; 0: none is */
    size_t waiting;     /* for a worker */
    unsigned hung;      /* workers that were killed there and are not dead yet */
};
struct fp_mount_usage fp_mount_usage(const struct fp_worker_pool *pool, uint32_t mount);

/*
 * Looks at which mounts the workers are.  For a walk that waits for another mount than it counts
 * against, strayed is called, with its ctx.  True: from now on the walk counts there, as one that
 * began now.  Probes stay.
 */
typedef bool fp_worker_strayed(void *strayed_ctx, void *ctx, uint32_t from, uint32_t to);
void fp_worker_pool_track(struct fp_worker_pool *pool, fp_worker_strayed *strayed, void *strayed_ctx);

/*
 * Kills and replaces workers at the mount that came last there, by links or from other mounts, so that walks that
 * wait find a worker.  out: the mount is out of service: one, if no worker is idle or they are more than its limit.
 * Its walk is FP_UNAVAILABLE. Otherwise, if no worker is idle, all those that could not begin there (FP_BUSY).
 */
void fp_worker_pool_make_room(struct fp_worker_pool *pool, uint32_t mount, bool out);

/* Workers that were killed at the mount and hang in the kernel count against its limit no more: it is gone.
 * Those of one that answers again end by themselves, but for what it still does not answer. */
void fp_worker_pool_absolve(struct fp_worker_pool *pool, uint32_t mount);

/* True if fewer than so many walks for each worker wait for the mount: one for which nobody waits may be submitted, too.
 * Other mounts' walks do not count: a slow one is no reason to let what is in use elsewhere expire. */
bool fp_worker_pool_spare(const struct fp_worker_pool *pool, uint32_t mount, unsigned each);

/* Takes the answers that are there already, before it looks for late walks: after a pause of
 * the whole daemon timers are first. */
void fp_worker_pool_hear(struct fp_worker_pool *pool);

struct fp_worker_pool_counts fp_worker_pool_counts(const struct fp_worker_pool *pool);

#endif
