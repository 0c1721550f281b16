/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks under way, and the questions that wait for them (questions.h).  A walk begins at the directory that
 * its path lies in, if the cache has that open.  Else a walk to that directory goes first, so that all files
 * in it share one.  That one begins at the nearest open directory, or waits for the one above if that is
 * known or was in use, else at "/".  All functions run on the loop.
 *
 * No further question may join a detached walk.
 */
#ifndef FP_WALKS_H
#define FP_WALKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"

struct ev_loop;
struct fp_cache;
struct fp_coherence;
struct fp_connection;
struct fp_lookup;
struct fp_mount_health;
struct fp_names;
struct fp_observer;
struct fp_expected;
struct fp_publisher;
struct fp_questions;
struct fp_walk;
struct fp_walks;
struct fp_worker_pool;

/* All of them are the caller's; they outlive the walks. */
struct fp_walks_deps {
    struct ev_loop *loop;
    struct fp_cache *cache;
    struct fp_worker_pool *workers;
    struct fp_coherence *coherence;
    struct fp_mount_health *health;
    const struct fp_names *names; /* of access files, for a walk that a worker gets now */
    struct fp_publisher *publisher;
    struct fp_questions *questions;
    struct fp_observer *observer; /* hears of each walk that ends */
};

struct fp_walks_counts {
    uint64_t begun; /* ever */
    size_t inflight;
};

/* max: walks that may be under way, half of them at one mount.  Returns NULL if there is no memory. */
struct fp_walks *fp_walks_create(const struct fp_walks_deps *deps, size_t max);
/* To be called after the workers and all connections are gone. */
void fp_walks_destroy(struct fp_walks **ws);
void fp_walks_set_max(struct fp_walks *ws, size_t max);

struct fp_walks_counts fp_walks_counts(const struct fp_walks *ws);
/* True while walks that no client waits for may begin. */
bool fp_walks_have_room(const struct fp_walks *ws);
/* True if none of the first n walks (fp_walks_counts.begun) is under way.  Detached walks do not count. */
bool fp_walks_have_ended(const struct fp_walks *ws, uint64_t n);

/* The walk that is under way and may be joined; NULL if there is none. */
struct fp_walk *fp_walk_find(const struct fp_walks *ws, const struct fp_lookup *l);
/* Where a walk may begin. */
enum fp_walk_begin {
    FP_WALK_NEAREST,  /* at the nearest open directory */
    FP_WALK_QUESTION, /* where it is best for a question: the path's own directory is walked before it */
    FP_WALK_LOOK,     /* the same for a file that nobody waits for: if it has changed, it is not opened */
    /* The same for a path that was in use: up to eight directories above it that are not open yet, on its mount,
     * are walked before it, each once. */
    FP_WALK_RESTART,
    FP_WALK_ROOT /* at "/", whatever is known */
};
/* Begins a walk; none may be under way.  at: the place of its path.  NULL and *why_r: it could not begin, or has
 * ended already. */
struct fp_walk *fp_walk_start(struct fp_walks *ws, const struct fp_lookup *l, const struct fp_expected *at,
                              enum fp_walk_begin begin, fp_status *why_r);
/* Begins a walk when parent, the walk to its directory, has ended.  NULL: there are too
 * many. */
struct fp_walk *fp_walk_start_after(struct fp_walks *ws, const struct fp_lookup *l, const struct fp_expected *at,
                                    struct fp_walk *parent);

/*
 * Lets the connection have the walk's answer, or after nine tenths of l's deadline that there is none.
 * joined: the walk began before the question came.  Where that does not do for the question (l->fresh),
 * the walk is made once more.  FP_OK or FP_NOMEM.
 *
 * A question that leaves (fp_question_leave) does not end the walk, for its result is worth keeping.
 */
fp_status fp_walk_wait(struct fp_walk *w, struct fp_connection *conn, uint64_t id, const struct fp_lookup *l,
                       bool joined);

/* The walk waits for that mount, not for the one where it was expected. */
void fp_walks_moved(struct fp_walks *ws, struct fp_walk *w, uint32_t mount);
/* Detaches the walks of that mount and ends their questions: it does not answer. */
void fp_walks_fail_mount(struct fp_walks *ws, uint32_t mount);
/* The path was forgotten: results of walks that may have seen it before are not kept. */
void fp_walks_mark_stale(struct fp_walks *ws, const char *path, size_t len);

#endif
