/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks under way and who waits for them.  Private to dispatch.c (what becomes of a
 * question, mounts out of service, operators) and dispatch_walk.c.
 */
#ifndef FP_DISPATCH_WALK_H
#define FP_DISPATCH_WALK_H

#include <ev.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "cache/cache.h"
#include "common/keyed_hash.h"
#include "common/task.h"
#include "lookup/dispatch.h"

struct fp_answer;
struct fp_connection;
struct fp_mount_health;

/* A list of access file names that somebody asks about; kept for good. */
struct fp_name_list {
    struct fp_names names;
    char room[FP_MAX_NAMES * FP_MAX_NAME];
};

/*
 * A walk under way, and who waits for it.  It begins at the directory that the
 * path lies in, if the cache has that; else a walk to that directory goes
 * first, so that all files in it share one; else it begins at "/".
 */
struct fp_walk {
    UT_hash_handle hh;
    struct fp_dispatch *dispatch;
    TAILQ_HEAD(, fp_waiter) waiters;
    TAILQ_HEAD(, fp_walk) children;   /* walks that wait for this directory */
    TAILQ_ENTRY(fp_walk) sibling;     /* while it waits for its parent's */
    struct fp_task task;           /* its lookup points into key and a name_list */
    struct fp_cache_base base;     /* fd: a copy of our own, -1: begins at "/" */
    uint32_t mount;                /* where it is expected to be */
    bool follows;                  /* it is one of its directory's children */
    unsigned waited;               /* questions that waited for it, until now */
    unsigned names;                /* number of the list, 0: none */
    LIST_ENTRY(fp_walk) orphan;    /* while it is not in the table */
    bool orphaned;
    bool outdated;                 /* its path was forgotten since it was submitted */
    size_t doubt_len;              /* so much of its path leads to a forgotten one: a walk
                                      that ends there tells of that one, too */
    size_t key_len;
    char key[];                /* names in one byte, then the path */
};

/* One connection's question; lives in the connection's slot. */
struct fp_waiter {
    TAILQ_ENTRY(fp_waiter) link;
    struct fp_walk *walk;
    struct fp_connection *conn;
    struct ev_loop *loop;
    struct fp_dispatch *dispatch;
    uint64_t id, asked_ms;
    ev_timer deadline;
};

struct fp_dispatch {
    struct ev_loop *loop;
    struct fp_cache *cache;
    struct fp_worker_pool *helpers;
    struct fp_coherence *fresh;
    struct fp_mount_health *guard;
    struct fp_dispatch_settings settings;
    struct fp_walk *walks;
    LIST_HEAD(, fp_walk) orphans;         /* walks that nobody may join */
    const struct fp_control_deps *control;
    struct fp_observer *observer;         /* NULL: nobody */
    struct fp_name_list *lists[FP_MAX_LISTS];   /* number n is lists[n - 1] */
    struct fp_dispatch_counts counts;
};

/* ---- finding and beginning ---- */

/* The one there that is under way and may be joined; NULL: none is. */
struct fp_walk *fp_walk_find(const struct fp_dispatch *d, const struct fp_lookup *l,
                             unsigned names);
/* The same, or one begun now, from "/"; NULL: it could not be begun. */
struct fp_walk *fp_walk_to(struct fp_dispatch *d, const struct fp_lookup *l, unsigned names);
/* One that has still to be begun; NULL: there are too many. */
struct fp_walk *fp_walk_create(struct fp_dispatch *d, const struct fp_lookup *l, unsigned names);
/* Begins one where it is best; NULL and why not: it has ended already. */
struct fp_walk *fp_walk_start(struct fp_dispatch *d, const struct fp_lookup *l, unsigned names,
                              fp_status *why);
/* It waits for its directory's. */
void fp_walk_follow(struct fp_walk *w, struct fp_walk *parent);
/* The mount where a walk of the path will end, as far as is known. */
uint32_t fp_walk_expected_mount(const struct fp_dispatch *d, const char *path, size_t len);

/* ---- waiting ---- */

/* The connection gets its answer, or after nine tenths of the deadline that there is none. */
fp_status fp_walk_wait(struct fp_walk *w, struct fp_connection *conn, uint64_t id,
                       uint32_t deadline_ms);
/* Nobody is answered. */
void fp_waiter_free(struct fp_waiter *wt);
/* Whoever waits is; the walk goes on. */
void fp_walk_answer_all(struct fp_walk *w, const struct fp_answer *a);
void fp_walk_count_unanswered(struct fp_dispatch *d, fp_status why);

/* ---- ending ---- */

/* From now on nobody joins it. */
void fp_walk_detach(struct fp_dispatch *d, struct fp_walk *w);
/* Takes it off its list; the caller frees it. */
void fp_walk_remove(struct fp_dispatch *d, struct fp_walk *w);
/* Every walk ends here: whoever waits for it is answered, and what waits for its directory
 * goes on. */
void fp_walk_end(struct fp_walk *w, const struct fp_answer *a);

#endif
