/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/dispatch_walk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "changes/coherence.h"
#include "common/answer.h"
#include "common/clock.h"
#include "common/packet.h"
#include "common/walk_result.h"
#include "ipc/connection.h"
#include "lookup/mount_health.h"
#include "lookup/observe.h"
#include "workers/worker_pool.h"

#define MAX_DEADLINE_MS 60000u
#define SHED_FILES 64           /* descriptors given back when there is none */
#define SLOW_MS    25u           /* who asks so long after a walk began may know better */

static void make_key(char *key, const struct fp_lookup *l, unsigned names)
{
    key[0] = (char)names;
    memcpy(key + 1, l->path, l->path_len);
}

FP_HASH_DIAGNOSTICS_OFF
struct fp_walk *fp_walk_find(const struct fp_dispatch *d, const struct fp_lookup *l,
                             unsigned names)
{
    char key[1 + FP_MAX_PATH];
    struct fp_walk *w;

    make_key(key, l, names);
    HASH_FIND(hh, d->walks, key, 1 + l->path_len, w);
    return w;
}

static bool add_walk(struct fp_dispatch *d, struct fp_walk *w)
{
    HASH_ADD_KEYPTR(hh, d->walks, w->key, w->key_len, w);
    return w->hh.tbl != NULL;
}

void fp_walk_detach(struct fp_dispatch *d, struct fp_walk *w)
{
    if (w->orphaned)
        return;
    HASH_DEL(d->walks, w);
    w->orphaned = true;
    LIST_INSERT_HEAD(&d->orphans, w, orphan);
}
FP_HASH_DIAGNOSTICS_ON

void fp_walk_remove(struct fp_dispatch *d, struct fp_walk *w)
{
    fp_walk_detach(d, w);
    LIST_REMOVE(w, orphan);
}

void fp_waiter_free(struct fp_waiter *wt)
{
    ev_timer_stop(wt->loop, &wt->deadline);
    TAILQ_REMOVE(&wt->walk->waiters, wt, link);
    *fp_connection_slot(wt->conn) = NULL;
    free(wt);
}

/* Where there is no good answer, the one of before may be allowed. */
static const struct fp_answer *or_stale(struct fp_walk *w, const struct fp_answer *a)
{
    static struct fp_answer stale;
    const struct fp_lookup *l = &w->task.lookup;

    if (!fp_mount_health_is_failure(a) || !fp_cache_lookup_stale(w->dispatch->cache, l->path, l->path_len,
                                                 w->names, fp_now_ms(), &stale))
        return a;
    w->dispatch->counts.stale++;
    return &stale;
}

void fp_walk_count_unanswered(struct fp_dispatch *d, fp_status why)
{
    if (why != FP_OK)
        d->counts.unanswered++;
    if (why == FP_UNAVAILABLE)
        d->counts.unavailable++;
}

/* The connection may be gone afterwards, the waiter is. */
static void answer_waiter(struct fp_waiter *wt, const struct fp_answer *a)
{
    struct fp_connection *conn = wt->conn;
    struct fp_dispatch *d = wt->dispatch;
    uint64_t id = wt->id;

    a = or_stale(wt->walk, a);
    fp_walk_count_unanswered(d, a->status);
    fp_waiter_free(wt);
    fp_connection_answer(conn, id, a);
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct fp_answer a;

    (void)loop;
    (void)events;
    fp_answer_init(&a, FP_TIMEOUT);
    answer_waiter(timer->data, &a);
}

/* ---- walks ---- */

void fp_walk_answer_all(struct fp_walk *w, const struct fp_answer *a)
{
    struct fp_waiter *wt;

    while ((wt = TAILQ_FIRST(&w->waiters)) != NULL)
        answer_waiter(wt, a);
}

TAILQ_HEAD(walks, fp_walk);

static void go_on(struct fp_walk *w, fp_status parent_status);

static void let_go_on(struct walks *children, fp_status parent_status)
{
    struct fp_walk *child;

    while ((child = TAILQ_FIRST(children)) != NULL) {
        TAILQ_REMOVE(children, child, sibling);
        child->follows = false;
        go_on(child, parent_status);
    }
}

void fp_walk_end(struct fp_walk *w, const struct fp_answer *a)
{
    struct walks children = TAILQ_HEAD_INITIALIZER(children);
    fp_status st = a->status;

    TAILQ_CONCAT(&children, &w->children, sibling);
    fp_walk_remove(w->dispatch, w);
    fp_mount_health_leave(w->dispatch->guard, w->mount);
    w->dispatch->counts.inflight--;
    fp_walk_answer_all(w, a);
    fp_close(&w->base.fd);
    free(w);
    let_go_on(&children, st);
}

static void end_walk_without(struct fp_walk *w, fp_status why)
{
    struct fp_answer a;

    /* Want of memory passes; a peer knows no such reason. */
    fp_answer_init(&a, why == FP_NOMEM ? FP_BUSY : why);
    fp_walk_end(w, &a);
}

static bool end_walk_from_cache(struct fp_walk *w)
{
    const struct fp_lookup *l = &w->task.lookup;
    static struct fp_answer a;

    if (!fp_cache_lookup_inserted(w->dispatch->cache, l->path, l->path_len, w->names, fp_now_ms(), &a))
        return false;
    a.source = FP_SOURCE_WORKER;
    fp_walk_end(w, &a);
    return true;
}

static void on_walked(void *ctx, struct fp_answer *a, const struct fp_walk_result *trail,
                      uint64_t began_ms);

/* The cache may close its descriptor while the task waits: ours is a copy. */
static void take_base(struct fp_walk *w)
{
    const struct fp_lookup *l = &w->task.lookup;
    struct fp_cache *cache = w->dispatch->cache;

    w->task.base_len = 0;
    if (!fp_cache_find_base(cache, l->path, l->path_len, w->names, fp_now_ms(), &w->base))
        w->base.fd = -1;
    else
        w->base.fd = fcntl(w->base.fd, F_DUPFD_CLOEXEC, 0);
    if (w->base.fd == -1)
        return;
    w->task.base_len = w->base.len;
    w->task.has_known = fp_cache_find_known(cache, l->path, l->path_len, &w->task.known);
}

uint32_t fp_walk_expected_mount(const struct fp_dispatch *d, const char *path, size_t len)
{
    size_t seen, listed;
    uint32_t by_cache = fp_cache_mount(d->cache, path, len, &seen);
    uint32_t by_name = fp_coherence_mount_of(d->fresh, path, len, &listed);

    return seen > listed && fp_coherence_mount_point(d->fresh, by_cache) != NULL ? by_cache : by_name;
}

/* More may be known than when it was created. */
static void expect_again(struct fp_walk *w)
{
    struct fp_mount_health *guard = w->dispatch->guard;
    const struct fp_lookup *l = &w->task.lookup;
    uint32_t before = w->mount;

    w->mount = fp_walk_expected_mount(w->dispatch, l->path, l->path_len);
    fp_mount_health_enter(guard, w->mount);
    fp_mount_health_leave(guard, before);
}

static fp_status submit(struct fp_walk *w)
{
    const struct fp_lookup *l = &w->task.lookup;
    fp_status st;

    expect_again(w);
    if (fp_mount_health_is_out(w->dispatch->guard, w->mount))
        return FP_UNAVAILABLE;
    /* It will look after whatever was forgotten until now. */
    w->outdated = false;
    w->doubt_len = 0;
    w->task.content_max = fp_cache_content_max(w->dispatch->cache, l->path, l->path_len,
                                               w->task.has_known);
    st = fp_worker_pool_submit(w->dispatch->helpers, w->mount, &w->task, w->base.fd, on_walked, w);
    if (st == FP_OK)
        fp_mount_health_asked(w->dispatch->guard, w->mount);
    return st;
}

static fp_status submit_from_root(struct fp_walk *w)
{
    fp_close(&w->base.fd);
    w->task.base_len = 0;
    w->task.has_known = false;
    return submit(w);
}

struct fp_walk *fp_walk_create(struct fp_dispatch *d, const struct fp_lookup *l,
                               unsigned names)
{
    struct fp_walk *w = NULL;

    if (d->counts.inflight < d->settings.max_inflight)
        w = calloc(1, sizeof(*w) + 1 + l->path_len);
    if (w == NULL)
        return NULL;
    w->dispatch = d;
    w->base.fd = -1;
    w->names = names;
    w->key_len = 1 + l->path_len;
    make_key(w->key, l, names);
    w->task.lookup = *l;
    w->task.lookup.path = w->key + 1;
    w->task.lookup.names.n = 0;
    if (names != 0)
        w->task.lookup.names = d->lists[names - 1]->names;
    TAILQ_INIT(&w->waiters);
    TAILQ_INIT(&w->children);
    w->mount = fp_walk_expected_mount(d, l->path, l->path_len);
    if (fp_mount_health_enter(d->guard, w->mount) > (d->settings.max_inflight + 1) / 2
        || !add_walk(d, w)) {
        fp_mount_health_leave(d->guard, w->mount);
        free(w);
        return NULL;
    }
    d->counts.inflight++;
    return w;
}

static struct fp_lookup parent_of(const struct fp_lookup *l)
{
    struct fp_lookup parent = *l;

    parent.path_len = fp_path_parent_len(l->path, l->path_len);
    return parent;
}

/* NULL when it could not be begun. */
static struct fp_walk *start_walk_from_root(struct fp_dispatch *d, const struct fp_lookup *l,
                                            unsigned names)
{
    struct fp_walk *w = fp_walk_create(d, l, names);

    if (w == NULL || submit_from_root(w) == FP_OK)
        return w;
    end_walk_without(w, FP_BUSY);
    return NULL;
}

struct fp_walk *fp_walk_to(struct fp_dispatch *d, const struct fp_lookup *l, unsigned names)
{
    struct fp_walk *w = fp_walk_find(d, l, names);

    return w != NULL ? w : start_walk_from_root(d, l, names);
}

void fp_walk_follow(struct fp_walk *w, struct fp_walk *parent)
{
    w->follows = true;
    TAILQ_INSERT_TAIL(&parent->children, w, sibling);
}

/* Begins the walk, or lets it wait for its directory's. */
static fp_status begin_walk(struct fp_walk *w)
{
    struct fp_lookup parent;
    struct fp_walk *p;

    take_base(w);
    if (w->base.fd != -1 || w->task.lookup.path_len == 1)
        return submit(w);
    parent = parent_of(&w->task.lookup);
    p = fp_walk_to(w->dispatch, &parent, w->names);
    if (p == NULL)
        return FP_BUSY;
    fp_walk_follow(w, p);
    return FP_OK;
}

/* The directory has been looked at, or cannot be: on with what lies in it. */
static void go_on(struct fp_walk *w, fp_status parent_status)
{
    fp_status st = parent_status;

    if (st == FP_OK || st == FP_REFUSED) {
        take_base(w);
        if (w->base.fd == -1 && end_walk_from_cache(w))
            return;
        st = w->base.fd != -1 ? submit(w) : submit_from_root(w);
    }
    if (st != FP_OK)
        end_walk_without(w, st);
}

/* May what it found be believed, or was it seen before it had to be forgotten? */
static bool is_current(const struct fp_walk *w, const struct fp_answer *a)
{
    const struct fp_step *last = a->n_steps > 0 ? &a->steps[a->n_steps - 1] : NULL;

    return !w->outdated
        && (last == NULL || last->end > w->doubt_len || fp_step_is_dir(last));
}

/* Into the cache, with all that the walk brought; a->fd is -1 afterwards. */
static void keep(struct fp_walk *w, struct fp_answer *a, const struct fp_walk_result *trail,
                 uint64_t began_ms)
{
    static struct fp_validity trust[FP_MAX_STEPS];
    const struct fp_walk_meta evidence = { trail, trust };
    const struct fp_lookup *l = &w->task.lookup;

    fp_coherence_validity(w->dispatch->fresh, trail, a->n_steps, trust);
    fp_cache_insert(w->dispatch->cache, l->path, l->path_len, w->names,
                    w->base.fd != -1 ? &w->base : NULL, began_ms, &evidence, a);
}

/*
 * A walk from a base brings the last step only: the whole answer is in the
 * cache then.  If it is not, something has changed meanwhile, or the file
 * system knows the base no more, or it had to be forgotten: once again, from "/".
 */
static void end_walk_from_base(struct fp_walk *w, struct fp_answer *a, const struct fp_walk_result *trail,
                               uint64_t began_ms)
{
    fp_status st = a->status;

    if (st == FP_OK) {
        if (is_current(w, a)) {
            keep(w, a, trail, began_ms);
            if (end_walk_from_cache(w))
                return;
        }
        st = submit_from_root(w);
    }
    if (st != FP_OK)
        end_walk_without(w, st);
}

/*
 * What the cache does not keep has changed while it was looked at, or is an
 * error: it is told as it was seen, to those who asked before that can have been
 * over.  For the others it is looked at once again: true when there are any.
 */
static bool repeat_for_others(struct fp_walk *w, const struct fp_answer *a, uint64_t began_ms)
{
    struct walks children = TAILQ_HEAD_INITIALIZER(children);
    struct fp_waiter *wt;

    if (fp_mount_health_is_failure(a))
        return false;
    while ((wt = TAILQ_FIRST(&w->waiters)) != NULL && wt->asked_ms <= began_ms + SLOW_MS)
        answer_waiter(wt, a);
    if (wt == NULL)
        return false;
    TAILQ_CONCAT(&children, &w->children, sibling);
    if (submit_from_root(w) != FP_OK)
        end_walk_without(w, FP_BUSY);
    let_go_on(&children, FP_OK);
    return true;
}

/* A directory's descriptor is for us, not for who asks. */
static void end_walk_from_root(struct fp_walk *w, struct fp_answer *a, const struct fp_walk_result *trail,
                               uint64_t began_ms)
{
    bool place = a->n_steps > 0 && fp_step_is_dir(&a->steps[a->n_steps - 1]);
    bool current = is_current(w, a);
    int fd = a->fd != -1 && !place ? fcntl(a->fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (current)
        keep(w, a, trail, began_ms);
    if (!current || !end_walk_from_cache(w)) {
        fp_close(&a->fd);
        a->fd = fd;
        if (!current || !repeat_for_others(w, a, began_ms))
            fp_walk_end(w, a);
        a->fd = -1;
    }
    fp_close(&fd);
}

static void observe(const struct fp_walk *w, const struct fp_answer *a,
                    const struct fp_walk_result *trail, uint64_t began_ms)
{
    struct fp_observed seen = { &w->task.lookup, w->mount, w->waited, began_ms, a, trail };
    const struct fp_walk *child;

    TAILQ_FOREACH(child, &w->children, sibling)
        seen.waited += child->waited;
    fp_observe_walk(w->dispatch->observer, &seen);
}

static void on_walked(void *ctx, struct fp_answer *a, const struct fp_walk_result *trail,
                      uint64_t began_ms)
{
    struct fp_walk *w = ctx;

    observe(w, a, trail, began_ms);
    fp_mount_health_heard(w->dispatch->guard, w->mount, a, trail, began_ms);
    if (a->status == FP_BUSY)
        fp_cache_shed_files(w->dispatch->cache, SHED_FILES);
    if (trail == NULL || a->status != FP_OK)
        fp_walk_end(w, a);
    else if (w->base.fd != -1)
        end_walk_from_base(w, a, trail, began_ms);
    else
        end_walk_from_root(w, a, trail, began_ms);
}

struct fp_walk *fp_walk_start(struct fp_dispatch *d, const struct fp_lookup *l,
                              unsigned names, fp_status *why)
{
    struct fp_walk *w = fp_walk_create(d, l, names);

    *why = w != NULL ? begin_walk(w) : FP_NOMEM;
    if (w != NULL && *why != FP_OK) {
        end_walk_without(w, *why);
        return NULL;
    }
    return w;
}

/* A little less than the asker waits, so that our answer comes before it
 * takes us for dead. */
static double patience(uint32_t deadline_ms)
{
    uint32_t ms = deadline_ms < MAX_DEADLINE_MS ? deadline_ms : MAX_DEADLINE_MS;

    return ms * 0.9 / 1e3;
}

fp_status fp_walk_wait(struct fp_walk *w, struct fp_connection *conn, uint64_t id,
                       uint32_t deadline_ms)
{
    struct fp_waiter *wt = calloc(1, sizeof(*wt));

    if (wt == NULL)
        return FP_NOMEM;
    wt->walk = w;
    w->waited++;
    wt->conn = conn;
    wt->dispatch = w->dispatch;
    wt->loop = w->dispatch->loop;
    wt->id = id;
    wt->asked_ms = fp_now_ms();
    ev_timer_init(&wt->deadline, on_deadline, patience(deadline_ms), 0.);
    wt->deadline.data = wt;
    ev_timer_start(wt->loop, &wt->deadline);
    TAILQ_INSERT_TAIL(&w->waiters, wt, link);
    *fp_connection_slot(conn) = wt;
    return FP_OK;
}
