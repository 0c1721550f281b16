/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/walks.h"

#include <ev.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/keyed_table.h"
#include "base/memory.h"
#include "base/turn.h"
#include "cache/cache.h"
#include "changes/coherence.h"
#include "lookup/mount_health.h"
#include "lookup/observe.h"
#include "lookup/publish.h"
#include "lookup/questions.h"
#include "privsep/closer.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/server_clock.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "workers/worker_pool.h"

#define MOST_AT_ONCE      16 /* walks that go on in one turn: each hashes all of its path several times */
#define LOOKS_FOR_DETOURS (4 * FP_MAX_DETOURS) /* of the walks that hang when a mount's breaker opens */
#define LEVELS_ABOVE      2 /* directories above a path that may get a walk each, and are open afterwards */
#define LEVELS_IN_USE     8 /* the same for a path that was in use */
#define BACKGROUND_SHARE  4 /* walks that no client waits for may be this part of those under way */

TAILQ_HEAD(siblings, fp_walk);

struct fp_walk {
    UT_hash_handle hh;
    struct fp_walks *walks;
    uint64_t number; /* in the order in which walks began, from 1 */
    struct fp_waiters waiters;
    struct siblings children; /* walks that wait for this directory */
    TAILQ_ENTRY(fp_walk) sibling;
    bool follows;             /* it is one of its directory's children, or ready to go on */
    fp_status parent_status;  /* while it is ready to go on */
    LIST_ENTRY(fp_walk) link; /* while it is detached */
    bool detached;
    struct fp_task task;       /* its lookup points into path */
    struct fp_cache_base base; /* fd: a copy of our own, -1: begins at "/" */
    bool from_root;            /* it was submitted to begin at "/", whatever is known */
    bool in_use;               /* its path was in use before a restart */
    uint32_t mount;            /* where it is expected to end */
    unsigned waited;           /* questions that waited for it, until now */
    bool outdated;    /* its path was forgotten since it was submitted */
    size_t stale_len; /* so much of it leads to a forgotten one: a walk that ends there tells of that one, too */
    char path[];
};

struct fp_walks {
    struct fp_walks_deps deps;
    size_t max;
    struct fp_walk *by_path;
    LIST_HEAD(, fp_walk) detached;
    struct siblings ready; /* to go on: their directory's walk has ended */
    ev_timer rest;         /* goes on with those that one turn has not done */
    bool going_on;
    struct fp_walks_counts counts;
    struct fp_answer answer; /* from the cache, while the questions that wait are answered */
};

/* ---- the table ---- */

FP_HASH_DIAGNOSTICS_OFF
struct fp_walk *fp_walk_find(const struct fp_walks *ws, const struct fp_lookup *l)
{
    struct fp_walk *w;

    HASH_FIND(hh, ws->by_path, l->path, l->path_len, w);
    return w;
}

static void detach(struct fp_walk *w)
{
    if (w->detached)
        return;
    HASH_DEL(w->walks->by_path, w);
    w->detached = true;
    LIST_INSERT_HEAD(&w->walks->detached, w, link);
}

static void detach_mount(struct fp_walks *ws, uint32_t mount)
{
    struct fp_walk *w, *next;

    HASH_ITER(hh, ws->by_path, w, next) {
        if (w->mount == mount && !w->follows)
            detach(w);
    }
}

/* Notes how a walk is concerned by a path that is forgotten. */
static void mark_stale(struct fp_walk *w, const char *path, size_t len)
{
    const struct fp_lookup *l = &w->task.lookup;
    size_t common = fp_path_common_len(l->path, l->path_len, path, len);
    size_t parent_len = len > 1 ? fp_path_parent_len(path, len) : 0;
    const char *name = parent_len > 1 ? path + parent_len + 1 : path + 1;

    if (common > w->stale_len)
        w->stale_len = common;
    if (common == len
        || (common == parent_len && fp_names_find(&w->task.names, name, (size_t)(path + len - name)) != -1))
        w->outdated = true;
}

void fp_walks_mark_stale(struct fp_walks *ws, const char *path, size_t len)
{
    struct fp_walk *w, *next;

    fp_mount_health_forget(ws->deps.health, path, len);
    LIST_FOREACH(w, &ws->detached, link)
        mark_stale(w, path, len);
    HASH_ITER(hh, ws->by_path, w, next) {
        mark_stale(w, path, len);
        if (w->outdated)
            detach(w);
    }
}
FP_HASH_DIAGNOSTICS_ON

static void discard(struct fp_walk *w)
{
    LIST_REMOVE(w, link);
    fp_close_file(&w->base.fd, w->base.mount);
    free(w);
}

/* ---- questions that wait ---- */

fp_status fp_walk_wait(struct fp_walk *w, struct fp_connection *conn, uint64_t id, const struct fp_lookup *l,
                       bool joined)
{
    const fp_status st = fp_question_wait(w->walks->deps.questions, &w->waiters, conn, id, l, joined,
                                          &w->task.lookup);

    if (st != FP_OK)
        return st;
    w->waited++;
    if (joined)
        fp_mount_health_asked(w->walks->deps.health, w->mount);
    return FP_OK;
}

/* ---- ends ---- */

static void go_on(struct fp_walk *w);

static void go_on_with_ready(struct fp_walks *ws)
{
    struct fp_walk *w;

    ws->going_on = true;
    for (unsigned i = 0; i < MOST_AT_ONCE && (w = TAILQ_FIRST(&ws->ready)) != NULL; i++) {
        TAILQ_REMOVE(&ws->ready, w, sibling);
        w->follows = false;
        go_on(w);
    }
    ws->going_on = false;
    if (!TAILQ_EMPTY(&ws->ready) && !ev_is_active(&ws->rest)) {
        ev_timer_set(&ws->rest, 0., 0.);
        ev_timer_start(ws->deps.loop, &ws->rest);
    }
}

static void on_rest(struct ev_loop *loop, ev_timer *timer, int events)
{
    fp_turn_work(FP_WORK_RESULT);
    (void)loop;
    (void)events;
    go_on_with_ready(timer->data);
}

/* A walk that goes on may end, and let others go on: they wait for their turn. */
static void let_go_on(struct fp_walks *ws, struct siblings *children, fp_status parent_status)
{
    struct fp_walk *child;

    TAILQ_FOREACH(child, children, sibling)
        child->parent_status = parent_status;
    TAILQ_CONCAT(&ws->ready, children, sibling);
    if (!ws->going_on)
        go_on_with_ready(ws);
}

/* Every walk ends here: questions that wait for it are answered, and walks that wait for its
 * directory go on.  a: NULL where there is no answer; why says the reason. */
static void end(struct fp_walk *w, fp_status why, const struct fp_answer *a)
{
    struct fp_walks *ws = w->walks;
    struct siblings children = TAILQ_HEAD_INITIALIZER(children);

    TAILQ_CONCAT(&children, &w->children, sibling);
    detach(w);
    fp_mount_health_leave(ws->deps.health, w->mount);
    ws->counts.inflight--;
    fp_waiters_answer(&w->waiters, why, a);
    discard(w);
    let_go_on(ws, &children, why);
}

/*
 * A client that asks afresh knows of a change.  A walk that was under way may have
 * looked before the change, and a walk from a base has not looked above that.  They
 * serve the client only where all changes are reported and none was.  A client that
 * asks late, of something that changes or is purged, may know of that as well.
 * kept: the cache has the result.
 */
static bool is_served(const struct fp_walk *w, const struct fp_waiter *wt, const struct fp_answer *a, bool kept)
{
    const bool is_later = !wt->joined && w->from_root;

    /* The walk began as a refresh, and opened nothing. */
    if (fp_answer_is_unopened(a))
        return false;
    return is_later || (kept && (!wt->fresh || a->watched));
}

static void walk_again(struct fp_walk *w);

/* Answers all clients that the result serves.  True if there are others: for all of them together the path is
 * walked once again, from "/". */
static bool repeat_for_others(struct fp_walk *w, const struct fp_answer *a, bool kept)
{
    struct fp_walks *ws = w->walks;
    struct siblings children = TAILQ_HEAD_INITIALIZER(children);
    struct fp_waiter *wt, *next;

    for (wt = TAILQ_FIRST(&w->waiters); wt != NULL; wt = next) {
        next = TAILQ_NEXT(wt, link);
        if (!is_served(w, wt, a, kept))
            continue;
        fp_waiter_answer(wt, FP_OK, a);
        fp_turn_work(FP_WORK_RESULT);
    }
    if (TAILQ_EMPTY(&w->waiters))
        return false;
    TAILQ_CONCAT(&children, &w->children, sibling);
    walk_again(w);
    let_go_on(ws, &children, FP_OK);
    return true;
}

static bool is_same_file(const struct fp_answer *a, const struct fp_answer *b)
{
    const struct fp_meta *of_a = fp_step_target(&a->steps[a->n_steps - 1]);
    const struct fp_meta *of_b = fp_step_target(&b->steps[b->n_steps - 1]);

    return of_a != NULL && of_b != NULL && fp_meta_equal(of_a, of_b);
}

/* a: the walk's own answer; NULL: it has not looked. If the cache has not taken a file that it opened, or a
 * content that it read, these serve those that wait, and nobody keeps them. The cache may know of a later
 * walk. */
static bool end_from_cache(struct fp_walk *w, const struct fp_answer *a)
{
    const struct fp_lookup *l = &w->task.lookup;
    struct fp_walks *ws = w->walks;

    if (!fp_cache_lookup(ws->deps.cache, l->path, l->path_len, FP_ASK_INSERTED, fp_now_ms(), &ws->answer))
        return false;
    fp_publish(ws->deps.publisher, l->path, l->path_len, &ws->answer);
    if (w->in_use)
        fp_cache_note_in_use(ws->deps.cache, l->path, l->path_len);
    ws->answer.source = FP_SOURCE_WORKER;
    if (fp_answer_is_unopened(&ws->answer) && a != NULL && (a->content || a->fd != -1) && is_same_file(&ws->answer, a)) {
        ws->answer.fd = a->fd;
        ws->answer.content = a->content;
        ws->answer.content_at = a->content_at;
        ws->answer.local = a->local;
        ws->answer.leasable = ws->answer.watched = false;
    }
    if (!repeat_for_others(w, &ws->answer, true))
        end(w, FP_OK, &ws->answer);
    return true;
}

/* True for a walk of the mount that a worker has and that something waits for. */
static bool hangs(const struct fp_walk *w, uint32_t mount)
{
    return w->mount == mount && !w->follows && (!TAILQ_EMPTY(&w->waiters) || !TAILQ_EMPTY(&w->children));
}

/* Notes detours, so that the next questions about these paths, or about paths below them, cost no worker. */
static void note_detours(struct fp_walks *ws, uint32_t mount)
{
    const struct fp_walk *w;
    unsigned looks = 0;

    LIST_FOREACH(w, &ws->detached, link) {
        const struct fp_lookup *l = &w->task.lookup;

        if (w->mount == mount && !w->follows && looks++ < LOOKS_FOR_DETOURS
            && fp_mount_health_expect(ws->deps.health, l->path, l->path_len).mount != mount)
            fp_mount_health_note_detour(ws->deps.health, mount, l->path, l->path_len);
    }
}

/* Walks that only wait for a worker have been ended already; the results of those that hang are
 * kept if they come back. */
void fp_walks_fail_mount(struct fp_walks *ws, uint32_t mount)
{
    LIST_HEAD(, fp_walk) hanging = LIST_HEAD_INITIALIZER(hanging);
    struct fp_walk *w, *next, *child;

    detach_mount(ws, mount);
    note_detours(ws, mount);
    for (w = LIST_FIRST(&ws->detached); w != NULL; w = next) {
        next = LIST_NEXT(w, link);
        if (!hangs(w, mount))
            continue;
        LIST_REMOVE(w, link);
        LIST_INSERT_HEAD(&hanging, w, link);
    }
    /* Each walk is looked at once; one that ends meanwhile leaves the list that it is in. */
    while ((w = LIST_FIRST(&hanging)) != NULL) {
        LIST_REMOVE(w, link);
        LIST_INSERT_HEAD(&ws->detached, w, link);
        while ((child = TAILQ_FIRST(&w->children)) != NULL) {
            TAILQ_REMOVE(&w->children, child, sibling);
            end(child, FP_UNAVAILABLE, NULL);
        }
        fp_waiters_answer(&w->waiters, FP_UNAVAILABLE, NULL);
    }
}

static void expect_at(struct fp_walk *w, uint32_t mount)
{
    struct fp_mount_health *health = w->walks->deps.health;

    fp_mount_health_enter(health, mount);
    fp_mount_health_leave(health, w->mount);
    w->mount = mount;
}

void fp_walks_moved(struct fp_walks *ws, struct fp_walk *w, uint32_t mount)
{
    struct fp_mount_health *health = ws->deps.health;

    expect_at(w, mount);
    fp_mount_health_asked(health, mount);
    if (fp_mount_health_is_out(health, mount))
        fp_walks_fail_mount(ws, mount);
}

/* ---- begins ---- */

FP_HASH_DIAGNOSTICS_OFF
/* Returns NULL if there are too many walks. */
static struct fp_walk *create(struct fp_walks *ws, const struct fp_lookup *l, const struct fp_expected *at)
{
    struct fp_mount_health *health = ws->deps.health;
    struct fp_walk *w = NULL;

    if (ws->counts.inflight < ws->max)
        w = fp_memory_take_zeroed(1, sizeof(*w) + l->path_len);
    if (w == NULL)
        return NULL;
    w->walks = ws;
    w->base.fd = -1;
    memcpy(w->path, l->path, l->path_len);
    w->task.lookup = *l;
    w->task.lookup.path = w->path;
    w->task.lookup.fresh = w->task.lookup.no_stale_fd = false;
    TAILQ_INIT(&w->waiters);
    TAILQ_INIT(&w->children);
    w->mount = at->mount;
    if (fp_mount_health_enter(health, w->mount) <= (ws->max + 1) / 2)
        HASH_ADD_KEYPTR(hh, ws->by_path, w->path, l->path_len, w);
    if (w->hh.tbl == NULL) {
        fp_mount_health_leave(health, w->mount);
        free(w);
        return NULL;
    }
    ws->counts.inflight++;
    w->number = ++ws->counts.begun;
    return w;
}
FP_HASH_DIAGNOSTICS_ON

/* parent_only: no base but the path's own directory will do.  The
 * cache may close its descriptor while the task waits: ours is a copy. */
static void take_base(struct fp_walk *w, bool parent_only)
{
    const struct fp_lookup *l = &w->task.lookup;
    struct fp_cache *cache = w->walks->deps.cache;
    const size_t min_len = parent_only && l->path_len > 1 ? fp_path_parent_len(l->path, l->path_len) : 1;

    w->task.base_len = w->task.base_links = 0;
    w->task.names_known = false;
    w->base.fd = -1;
    if (fp_cache_find_base(cache, l->path, l->path_len, min_len, fp_now_ms(), &w->base))
        w->base.fd = fcntl(w->base.fd, F_DUPFD_CLOEXEC, 0);
    if (w->base.fd == -1)
        return;
    w->task.base_len = w->base.len;
    w->task.names_known = w->base.asked_ms != 0;
    w->task.base_links = w->base.links;
    w->task.has_known = fp_cache_find_known(cache, l->path, l->path_len, !l->hint, &w->task.known);
}

static void on_walked(void *ctx, fp_status st, struct fp_answer *a, const struct fp_walk_result *result,
                      uint64_t began_ms);

static fp_status submit(struct fp_walk *w)
{
    const struct fp_walks_deps *deps = &w->walks->deps;
    const struct fp_lookup *l = &w->task.lookup;
    struct fp_waiter *wt;
    fp_status st;

    if (fp_mount_health_is_out(deps->health, w->mount) || fp_closer_is_stuck(w->mount, fp_now_ms()))
        return FP_UNAVAILABLE;
    /* The walk will look after all that was forgotten until now, and after the questions that wait. */
    TAILQ_FOREACH(wt, &w->waiters, link)
        wt->joined = false;
    w->task.names = *deps->names;
    w->outdated = false;
    w->stale_len = 0;
    w->task.content_max =
        fp_cache_content_max(w->walks->deps.cache, l->path, l->path_len, w->task.has_known, fp_now_ms());
    w->task.clock_dev = fp_cache_device(w->walks->deps.cache, l->path, l->path_len);
    w->task.clock_ms = fp_server_clock_get(w->task.clock_dev);
    st = fp_worker_pool_submit(deps->workers, w->mount, &w->task, w->base.fd, on_walked, w);
    if (st == FP_OK)
        fp_mount_health_asked(deps->health, w->mount);
    return st;
}

/* Finds the walk's place again: the cache may know more than when the walk began. */
static void expect_again(struct fp_walk *w)
{
    const struct fp_lookup *l = &w->task.lookup;

    expect_at(w, fp_mount_health_expect(w->walks->deps.health, l->path, l->path_len).mount);
}

static fp_status submit_from_root(struct fp_walk *w)
{
    fp_close_file(&w->base.fd, w->base.mount);
    w->task.base_len = w->task.base_links = 0;
    w->task.names_known = w->task.has_known = false;
    w->from_root = true;
    return submit(w);
}

/* Begins the walk once more, at "/", for those that wait; it ends if it cannot. */
static void walk_again(struct fp_walk *w)
{
    fp_status st;

    w->task.looks_only = false;
    expect_again(w);
    st = submit_from_root(w);
    if (st != FP_OK)
        end(w, st, NULL);
}

static void follow(struct fp_walk *w, struct fp_walk *parent)
{
    w->follows = true;
    TAILQ_INSERT_TAIL(&parent->children, w, sibling);
}

struct fp_walk *fp_walk_start_after(struct fp_walks *ws, const struct fp_lookup *l, const struct fp_expected *at,
                                    struct fp_walk *parent)
{
    struct fp_walk *w = create(ws, l, at);

    if (w != NULL)
        follow(w, parent);
    return w;
}

/* So many directories above a path may get their own walk. Of FP_WALK_RESTART all of them were in use; else only the
 * path's own directory may be unknown. */
struct above {
    enum fp_walk_begin begin;
    unsigned levels;
};

static struct above at_begin(enum fp_walk_begin begin)
{
    static const unsigned levels[] = { [FP_WALK_QUESTION] = LEVELS_ABOVE,
                                       [FP_WALK_LOOK] = LEVELS_ABOVE,
                                       [FP_WALK_RESTART] = LEVELS_IN_USE };

    return (struct above){ begin, levels[begin] };
}

/* True if w may wait for a walk of the directory above it. But for a question's own directory it must be of
 * the mount where w is expected to end: another one may hang. */
static bool may_wait_above(const struct fp_walk *w, const struct fp_lookup *dir, const struct fp_expected *at,
                           struct above above)
{
    const bool in_use = above.begin == FP_WALK_RESTART;

    return (!in_use && above.levels == LEVELS_ABOVE)
           || (at->mount == w->mount && (in_use || at->seen == dir->path_len));
}

static struct fp_walk *start(struct fp_walks *ws, const struct fp_lookup *l, const struct fp_expected *at,
                             struct above above, fp_status *why_r);

/*
 * Begins the walk at its directory, or lets it wait for the walk of that one. The directory above that one is
 * walked before it only if it is known or was in use. Then other directories in it begin there as well.
 * Otherwise strangers could cause a walk for each name that they invent.
 */
static fp_status begin(struct fp_walk *w, struct above above)
{
    struct fp_lookup dir = w->task.lookup;
    struct fp_expected at;
    struct fp_walk *p;
    fp_status why;

    /* Only a walk from "/" brings an answer of its own: one from a directory brings what the cache keeps. */
    if (fp_cache_is_transient(w->walks->deps.cache, dir.path, dir.path_len))
        return submit_from_root(w);
    take_base(w, above.levels > 0);
    if (w->base.fd != -1)
        return submit(w);
    if (dir.path_len == 1 || above.levels == 0)
        return submit_from_root(w);
    dir.path_len = fp_path_parent_len(dir.path, dir.path_len);
    at = fp_mount_health_expect(w->walks->deps.health, dir.path, dir.path_len);
    if (!may_wait_above(w, &dir, &at, above))
        return begin(w, at_begin(FP_WALK_NEAREST));
    p = fp_walk_find(w->walks, &dir);
    if (p == NULL)
        p = start(w->walks, &dir, &at, (struct above){ above.begin, above.levels - 1 }, &why);
    if (p == NULL)
        return why;
    follow(w, p);
    return FP_OK;
}

/* The walk, if it began (st); else NULL and *why_r, and it has ended. */
static struct fp_walk *if_begun(struct fp_walk *w, fp_status st, fp_status *why_r)
{
    *why_r = st;
    if (st == FP_OK)
        return w;
    if (w != NULL)
        end(w, st, NULL);
    return NULL;
}

/* NULL and *why_r: it could not begin. */
static struct fp_walk *start(struct fp_walks *ws, const struct fp_lookup *l, const struct fp_expected *at,
                             struct above above, fp_status *why_r)
{
    struct fp_walk *w = create(ws, l, at);

    if (w != NULL) {
        w->in_use = above.begin == FP_WALK_RESTART;
        w->task.looks_only = above.begin == FP_WALK_LOOK;
    }
    return if_begun(w, w != NULL ? begin(w, above) : FP_BUSY, why_r);
}

struct fp_walk *fp_walk_start(struct fp_walks *ws, const struct fp_lookup *l, const struct fp_expected *at,
                              enum fp_walk_begin begin, fp_status *why_r)
{
    struct fp_walk *w;

    if (begin != FP_WALK_ROOT)
        return start(ws, l, at, at_begin(begin), why_r);
    w = create(ws, l, at);
    return if_begun(w, w != NULL ? submit_from_root(w) : FP_BUSY, why_r);
}

/* The directory has been looked at, or cannot be: goes on with the walk below it. */
static void go_on(struct fp_walk *w)
{
    fp_status st = w->parent_status;

    if (st == FP_OK || st == FP_REFUSED) {
        expect_again(w);
        take_base(w, true);
        /* A parent outside the roots was not looked at: then what is known here is of before. */
        if (w->base.fd == -1 && st == FP_OK && end_from_cache(w, NULL))
            return;
        st = w->base.fd != -1 ? submit(w) : submit_from_root(w);
    }
    if (st != FP_OK)
        end(w, st, NULL);
}

/* ---- results ---- */

/* True if the result is valid; false: the path was forgotten after the walk saw it. */
static bool is_current(const struct fp_walk *w, const struct fp_answer *a)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];

    return !w->outdated && (last->end > w->stale_len || fp_step_is_dir(last));
}

/* Inserts the result into the cache, with all that the walk brought; a->fd is -1 afterwards. */
static void keep(struct fp_walk *w, struct fp_answer *a, const struct fp_walk_result *result,
                 uint64_t began_ms)
{
    const struct fp_walks_deps *deps = &w->walks->deps;
    const struct fp_lookup *l = &w->task.lookup;
    struct fp_validity validity[FP_MAX_STEPS];
    const struct fp_walk_meta meta = { result, validity };

    fp_coherence_validity(deps->coherence, result, a->n_steps, validity);
    fp_cache_insert(deps->cache, l->path, l->path_len, w->base.fd != -1 ? &w->base : NULL,
                    w->task.names_known ? w->base.asked_ms : began_ms, &meta, a);
}

/* Keeps it if it is valid still.  Watches that no entry took end here, before another walk relies on them. */
static bool keep_if_current(struct fp_walk *w, struct fp_answer *a, const struct fp_walk_result *result,
                            uint64_t began_ms)
{
    const bool current = is_current(w, a);

    if (current)
        keep(w, a, result, began_ms);
    fp_cache_release_watches(w->walks->deps.cache, result);
    return current;
}

/*
 * A walk from a base brings the steps below it only: the whole answer is in the cache then.  Otherwise
 * something has changed meanwhile, the file system knows the base no more, or it had to be forgotten.
 * Then the path is walked again, from "/".  Such a walk brings an answer of its own.  A directory's
 * descriptor is for us, not for the client.
 */
static void end_with_answer(struct fp_walk *w, struct fp_answer *a, const struct fp_walk_result *result,
                            uint64_t began_ms)
{
    const bool whole = w->base.fd == -1, is_dir = fp_step_is_dir(&a->steps[a->n_steps - 1]);
    const uint32_t mount = fp_mount_health_end_of(w->mount, a, result);
    int fd = whole && a->fd != -1 && !is_dir ? fcntl(a->fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (keep_if_current(w, a, result, began_ms) && end_from_cache(w, a)) {
        fp_close_file(&a->fd, mount);
        fp_close_file(&fd, mount);
        return;
    }
    fp_close_file(&a->fd, mount);
    a->fd = fd;
    /* The cache keeps no error, either: that is everybody's answer. */
    if (!whole && !(fp_answer_is_unopened(a) && TAILQ_EMPTY(&w->waiters)))
        walk_again(w);
    else if (fp_answer_is_failure(a) || !repeat_for_others(w, a, false))
        end(w, FP_OK, a);
    a->fd = -1;
    fp_close_file(&fd, mount);
}

static void observe(const struct fp_walk *w, const struct fp_answer *a, const struct fp_walk_result *result,
                    uint64_t began_ms)
{
    struct fp_observed seen = { &w->task.lookup, w->mount, w->waited, began_ms, a, result };
    const struct fp_walk *child;

    TAILQ_FOREACH(child, &w->children, sibling)
        seen.waited += child->waited;
    fp_observe_walk(w->walks->deps.observer, &seen);
}

/* Other refreshes may have taken the room for the content meanwhile: then the file stays with its descriptor. */
static void leave_content(const struct fp_walk *w, struct fp_answer *a)
{
    const struct fp_meta *m = a->content ? fp_step_target(&a->steps[a->n_steps - 1]) : NULL;

    if (m == NULL || !w->task.has_known || !fp_meta_equal(m, &w->task.known)
        || fp_cache_has_content_room(w->walks->deps.cache, m->size))
        return;
    fp_close(&a->fd);
    a->content = a->local = false;
    a->unchanged = a->readable = true;
}

static void on_walked(void *ctx, fp_status st, struct fp_answer *a, const struct fp_walk_result *result,
                      uint64_t began_ms)
{
    struct fp_walk *w = ctx;
    struct fp_cache *cache = w->walks->deps.cache;

    /* Takes in the events of changes during the walk. */
    fp_coherence_catch_up(w->walks->deps.coherence);
    observe(w, a, result, began_ms);
    fp_mount_health_heard(w->walks->deps.health, w->mount, st, a, result, began_ms);
    if (st == FP_OK)
        leave_content(w, a);
    if (st == FP_OK)
        st = fp_publish_content(w->walks->deps.publisher, w->task.lookup.path, w->task.lookup.path_len, a);
    if (st == FP_BUSY)
        fp_cache_evict_files(w->walks->deps.cache, FP_EVICT_FILES);
    if (st != FP_OK) {
        if (result != NULL)
            fp_cache_release_watches(cache, result);
        end(w, st, NULL);
        return;
    }
    end_with_answer(w, a, result, began_ms);
    /* Paths that nobody asks for any more give their watches to those that somebody does. */
    fp_cache_evict_watched(cache, result->unwatched);
}

/* ---- start and end ---- */

struct fp_walks *fp_walks_create(const struct fp_walks_deps *deps, size_t max)
{
    struct fp_walks *ws = fp_memory_take_zeroed(1, sizeof(*ws));

    if (ws != NULL) {
        ws->deps = *deps;
        ws->max = max;
        TAILQ_INIT(&ws->ready);
        ev_timer_init(&ws->rest, on_rest, 0., 0.);
        ws->rest.data = ws;
    }
    return ws;
}

void fp_walks_destroy(struct fp_walks **wsp)
{
    struct fp_walks *ws = *wsp;
    struct fp_walk *w;

    *wsp = NULL;
    if (ws == NULL)
        return;
    ev_timer_stop(ws->deps.loop, &ws->rest);
    while (ws->by_path != NULL)
        detach(ws->by_path);
    while ((w = LIST_FIRST(&ws->detached)) != NULL)
        discard(w);
    free(ws);
}

void fp_walks_set_max(struct fp_walks *ws, size_t max)
{
    ws->max = max;
}

struct fp_walks_counts fp_walks_counts(const struct fp_walks *ws)
{
    return ws->counts;
}

bool fp_walks_have_room(const struct fp_walks *ws)
{
    return ws->counts.inflight < ws->max / BACKGROUND_SHARE;
}

/* The table keeps the order in which they were added. */
bool fp_walks_have_ended(const struct fp_walks *ws, uint64_t n)
{
    return ws->by_path == NULL || ws->by_path->number > n;
}
