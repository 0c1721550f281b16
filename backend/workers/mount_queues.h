/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks that wait for a worker: a queue for each mounted file system, served in turn, in each first come first
 * served.  Each mount may have one worker.  The mounts share a limited number of further ones, and some are left for
 * local file systems.  A mount may have at most half of all that may wait.  So mounts that are slow, or do not
 * answer, leave workers and places to wait for the others.
 *
 * A killed worker that hangs in the kernel still
 * counts against its mount, until the mount answers or the worker is dead.  So no more
 * than the limit, and one for a probe, ever hang there.
 */
#ifndef FP_MOUNT_QUEUES_H
#define FP_MOUNT_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/errors.h"

struct fp_mount_queue;

/* A part of a walk that waits; the caller's, who sets nothing in it. */
struct fp_waiting {
    TAILQ_ENTRY(fp_waiting) link;
    struct fp_mount_queue *queue; /* until fp_mount_queues_left() */
    bool probe;
};

struct fp_mount_limits {
    unsigned workers;   /* that may be at one mount: its own one, and all that are shared; at least 1 */
    unsigned not_local; /* that may be at all mounts together that are no local file systems; at least 1 */
    size_t waiting;     /* walks; at least 1 */
    bool (*is_local)(void *ctx, uint32_t mount); /* NULL: every mount is */
    void *ctx;
};

struct fp_mount_queues {
    TAILQ_HEAD(, fp_mount_queue) all; /* the first is the one whose turn is next */
    struct fp_mount_queue *by_mount;
    struct fp_mount_limits limits;
    size_t waiting;
    unsigned shared, not_local; /* workers: beyond the mounts' own ones, and at mounts that are no local file systems */
};

/* The limits may be changed later. */
void fp_mount_queues_init(struct fp_mount_queues *q, const struct fp_mount_limits *limits);

/*
 * Puts the walk at the end of the mount's queue. FP_BUSY: too many wait. FP_UNAVAILABLE: hanging killed
 * workers have all places of the mount. A probe goes before all that wait, however many, and may begin while
 * one more worker hangs. FP_OK, FP_BUSY, FP_UNAVAILABLE or FP_NOMEM.
 */
fp_status fp_mount_queues_put(struct fp_mount_queues *q, uint32_t mount, struct fp_waiting *w, bool probe);

/* Takes a walk that may begin now, NULL: none.  A worker is at its mount from now on. */
struct fp_waiting *fp_mount_queues_take(struct fp_mount_queues *q);
/* The walk could not begin: it is the first of its queue again. */
void fp_mount_queues_put_back(struct fp_mount_queues *q, struct fp_waiting *w);
/* Takes out a walk that still waits for that mount; NULL if there is none. */
struct fp_waiting *fp_mount_queues_cancel(struct fp_mount_queues *q, uint32_t mount);
/* Takes out a walk that still waits, of a mount where killed workers that hang have all places, or with all of
 * any mount.  A probe stays.  NULL if there is none. */
struct fp_waiting *fp_mount_queues_cancel_hopeless(struct fp_mount_queues *q, bool all);
/* How many walks wait for that mount. */
size_t fp_mount_queues_waiting(const struct fp_mount_queues *q, uint32_t mount);

/* The worker that was at w's mount is at another one, whatever the limit there: FP_OK or FP_NOMEM. */
fp_status fp_mount_queues_move(struct fp_mount_queues *q, struct fp_waiting *w, uint32_t mount);
/* True if more workers are at work than may be, and the mount has some that could not begin now. */
bool fp_mount_queues_crowded(const struct fp_mount_queues *q, uint32_t mount);

/* The worker that was at w's mount is not there any more. */
void fp_mount_queues_left(struct fp_mount_queues *q, struct fp_waiting *w);

/* The worker at w's mount was killed, and is there until it is dead.  The queue stays until
 * fp_mount_queues_dead(). */
struct fp_mount_queue *fp_mount_queues_dying(struct fp_mount_queues *q, struct fp_waiting *w);
void fp_mount_queues_dead(struct fp_mount_queues *q, struct fp_mount_queue *queue);
uint32_t fp_mount_queue_mount(const struct fp_mount_queue *queue);

#endif
