/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "dispatch.h"

#include <ev.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "breaker.h"
#include "cache.h"
#include "connection.h"
#include "control.h"
#include "fresh.h"
#include "guard.h"
#include "helper.h"
#include "keyed_hash.h"
#include "proto/answer.h"
#include "proto/clock.h"
#include "proto/fdio.h"
#include "proto/wire.h"
#include "task.h"
#include "trail.h"

#define MAX_DEADLINE_MS 60000u
#define SHED_FILES 64           /* descriptors given back when there is none */
#define SLOW_MS    25u           /* a walk that took longer may have been overtaken */

/* A list of access file names that somebody asks about; kept for good. */
struct name_list {
    struct fp_names names;
    char room[FP_MAX_NAMES * FP_MAX_NAME];
};

/*
 * A walk under way, and who waits for it.  It begins at the directory that the
 * path lies in, if the cache has that; else a walk to that directory goes
 * first, so that all files in it share one; else it begins at "/".
 */
struct walk {
    UT_hash_handle hh;
    struct fp_dispatch *dispatch;
    TAILQ_HEAD(, waiter) waiters;
    TAILQ_HEAD(, walk) children;   /* walks that wait for this directory */
    TAILQ_ENTRY(walk) sibling;     /* while it waits for its parent's */
    struct fp_task task;           /* its lookup points into key and a name_list */
    struct fp_cache_base base;     /* fd: a copy of our own, -1: begins at "/" */
    uint32_t mount;                /* where it is expected to be */
    bool follows;                  /* it is one of its directory's children */
    bool repeated;                 /* what it saw changed meanwhile, once already */
    unsigned names;                /* number of the list, 0: none */
    LIST_ENTRY(walk) orphan;       /* while it is not in the table */
    bool orphaned;
    bool outdated;                 /* its path was forgotten since it was submitted */
    size_t doubt_len;              /* so much of its path leads to a forgotten one: a walk
                                      that ends there tells of that one, too */
    size_t key_len;
    char key[];                /* names in one byte, then the path */
};

/* One connection's question; lives in the connection's slot. */
struct waiter {
    TAILQ_ENTRY(waiter) link;
    struct walk *walk;
    struct fp_connection *conn;
    struct ev_loop *loop;
    struct fp_dispatch *dispatch;
    uint64_t id;
    ev_timer deadline;
};

struct fp_dispatch {
    struct ev_loop *loop;
    struct fp_cache *cache;
    struct fp_helpers *helpers;
    struct fp_fresh *fresh;
    struct fp_guard *guard;
    struct fp_dispatch_settings settings;
    struct walk *walks;
    LIST_HEAD(, walk) orphans;            /* walks that nobody may join */
    struct fp_report_source reports[FP_REPORTS + 1];   /* by enum fp_report */
    struct name_list *lists[FP_MAX_LISTS];   /* number n is lists[n - 1] */
    struct fp_dispatch_counts counts;
};

static void make_key(char *key, const struct fp_lookup *l, unsigned names)
{
    key[0] = (char)names;
    memcpy(key + 1, l->path, l->path_len);
}

FP_HASH_DIAGNOSTICS_OFF
static struct walk *find_walk(const struct fp_dispatch *d, const struct fp_lookup *l,
                              unsigned names)
{
    char key[1 + FP_MAX_PATH];
    struct walk *w;

    make_key(key, l, names);
    HASH_FIND(hh, d->walks, key, 1 + l->path_len, w);
    return w;
}

static bool add_walk(struct fp_dispatch *d, struct walk *w)
{
    HASH_ADD_KEYPTR(hh, d->walks, w->key, w->key_len, w);
    return w->hh.tbl != NULL;
}

/* From now on nobody joins it. */
static void orphan_walk(struct fp_dispatch *d, struct walk *w)
{
    if (w->orphaned)
        return;
    HASH_DEL(d->walks, w);
    w->orphaned = true;
    LIST_INSERT_HEAD(&d->orphans, w, orphan);
}
FP_HASH_DIAGNOSTICS_ON

static void remove_walk(struct fp_dispatch *d, struct walk *w)
{
    orphan_walk(d, w);
    LIST_REMOVE(w, orphan);
}

static void waiter_free(struct waiter *wt)
{
    ev_timer_stop(wt->loop, &wt->deadline);
    TAILQ_REMOVE(&wt->walk->waiters, wt, link);
    *fp_connection_slot(wt->conn) = NULL;
    free(wt);
}

/* Where there is no good answer, the one of before may be allowed. */
static const struct fp_answer *or_stale(struct walk *w, const struct fp_answer *a)
{
    static struct fp_answer stale;
    const struct fp_lookup *l = &w->task.lookup;

    if (!fp_guard_is_failure(a) || !fp_cache_lookup_stale(w->dispatch->cache, l->path, l->path_len,
                                                 w->names, fp_now_ms(), &stale))
        return a;
    w->dispatch->counts.stale++;
    return &stale;
}

static void count_unanswered(struct fp_dispatch *d, fp_status why)
{
    if (why != FP_OK)
        d->counts.unanswered++;
    if (why == FP_UNAVAILABLE)
        d->counts.unavailable++;
}

/* The connection may be gone afterwards, the waiter is. */
static void answer_waiter(struct waiter *wt, const struct fp_answer *a)
{
    struct fp_connection *conn = wt->conn;
    struct fp_dispatch *d = wt->dispatch;
    uint64_t id = wt->id;

    a = or_stale(wt->walk, a);
    count_unanswered(d, a->status);
    waiter_free(wt);
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

static struct name_list *copy_names(const struct fp_names *names)
{
    struct name_list *list = calloc(1, sizeof(*list));
    char *to = list != NULL ? list->room : NULL;

    if (list == NULL)
        return NULL;
    list->names = *names;
    for (unsigned i = 0; i < names->n; i++) {
        memcpy(to, names->list[i].name, names->list[i].len);
        list->names.list[i].name = to;
        to += names->list[i].len;
    }
    return list;
}

/* The list's number; 0 for an empty one, and where there are too many: the
 * asker then looks for those files itself. */
static unsigned number_of(struct fp_dispatch *d, const struct fp_names *names)
{
    if (names->n == 0)
        return 0;
    for (unsigned i = 0; i < FP_MAX_LISTS; i++) {
        if (d->lists[i] == NULL) {
            d->lists[i] = copy_names(names);
            if (d->lists[i] == NULL)
                return 0;
            fp_cache_set_names(d->cache, i + 1, &d->lists[i]->names);
        }
        if (fp_names_equal(&d->lists[i]->names, names))
            return i + 1;
    }
    return 0;
}

/* ---- walks ---- */

static void answer_all(struct walk *w, const struct fp_answer *a)
{
    struct waiter *wt;

    while ((wt = TAILQ_FIRST(&w->waiters)) != NULL)
        answer_waiter(wt, a);
}

static void go_on(struct walk *w, fp_status parent_status);

/* Every walk ends here: whoever waits for it is answered, and what waits for
 * its directory goes on. */
static void end_walk(struct walk *w, const struct fp_answer *a)
{
    TAILQ_HEAD(, walk) children = TAILQ_HEAD_INITIALIZER(children);
    fp_status st = a->status;
    struct walk *child;

    TAILQ_CONCAT(&children, &w->children, sibling);
    remove_walk(w->dispatch, w);
    fp_guard_leave(w->dispatch->guard, w->mount);
    w->dispatch->counts.inflight--;
    answer_all(w, a);
    fp_close(&w->base.fd);
    free(w);
    while ((child = TAILQ_FIRST(&children)) != NULL) {
        TAILQ_REMOVE(&children, child, sibling);
        child->follows = false;
        go_on(child, st);
    }
}

static void end_walk_without(struct walk *w, fp_status why)
{
    struct fp_answer a;

    fp_answer_init(&a, why);
    end_walk(w, &a);
}

static bool end_walk_from_cache(struct walk *w)
{
    const struct fp_lookup *l = &w->task.lookup;
    static struct fp_answer a;

    if (!fp_cache_tell(w->dispatch->cache, l->path, l->path_len, w->names, fp_now_ms(), &a))
        return false;
    a.source = FP_SOURCE_HELPER;
    end_walk(w, &a);
    return true;
}

static void on_walked(void *ctx, struct fp_answer *a, const struct fp_trail *trail,
                      uint64_t began_ms);

/* The cache may close its descriptor while the task waits: ours is a copy. */
static void take_base(struct walk *w)
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

static uint32_t expected_mount(const struct fp_dispatch *d, const char *path, size_t len)
{
    size_t seen, listed;
    uint32_t by_cache = fp_cache_mount(d->cache, path, len, &seen);
    uint32_t by_name = fp_fresh_mount_of(d->fresh, path, len, &listed);

    return seen > listed && fp_fresh_mount_point(d->fresh, by_cache) != NULL ? by_cache : by_name;
}

/* More may be known than when it was created. */
static void expect_again(struct walk *w)
{
    struct fp_guard *guard = w->dispatch->guard;
    const struct fp_lookup *l = &w->task.lookup;
    uint32_t before = w->mount;

    w->mount = expected_mount(w->dispatch, l->path, l->path_len);
    fp_guard_enter(guard, w->mount);
    fp_guard_leave(guard, before);
}

static fp_status submit(struct walk *w)
{
    const struct fp_lookup *l = &w->task.lookup;
    fp_status st;

    expect_again(w);
    if (fp_guard_is_out(w->dispatch->guard, w->mount))
        return FP_UNAVAILABLE;
    /* It will look after whatever was forgotten until now. */
    w->outdated = false;
    w->doubt_len = 0;
    w->task.content_max = fp_cache_content_max(w->dispatch->cache, l->path, l->path_len,
                                               w->task.has_known);
    st = fp_helpers_submit(w->dispatch->helpers, w->mount, &w->task, w->base.fd, on_walked, w);
    if (st == FP_OK)
        fp_guard_asked(w->dispatch->guard, w->mount);
    return st;
}

static fp_status submit_from_root(struct walk *w)
{
    fp_close(&w->base.fd);
    w->task.base_len = 0;
    w->task.has_known = false;
    return submit(w);
}

static struct walk *create_walk(struct fp_dispatch *d, const struct fp_lookup *l,
                                unsigned names)
{
    struct walk *w = NULL;

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
    w->mount = expected_mount(d, l->path, l->path_len);
    if (fp_guard_enter(d->guard, w->mount) > (d->settings.max_inflight + 1) / 2
        || !add_walk(d, w)) {
        fp_guard_leave(d->guard, w->mount);
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
static struct walk *start_walk_from_root(struct fp_dispatch *d, const struct fp_lookup *l,
                                         unsigned names)
{
    struct walk *w = create_walk(d, l, names);

    if (w == NULL || submit_from_root(w) == FP_OK)
        return w;
    end_walk_without(w, FP_BUSY);
    return NULL;
}

/* The walk there that is under way, or one begun now. */
static struct walk *walk_to(struct fp_dispatch *d, const struct fp_lookup *l, unsigned names)
{
    struct walk *w = find_walk(d, l, names);

    return w != NULL ? w : start_walk_from_root(d, l, names);
}

static void follow(struct walk *w, struct walk *parent)
{
    w->follows = true;
    TAILQ_INSERT_TAIL(&parent->children, w, sibling);
}

/* Begins the walk, or lets it wait for its directory's. */
static fp_status begin_walk(struct walk *w)
{
    struct fp_lookup parent;
    struct walk *p;

    take_base(w);
    if (w->base.fd != -1 || w->task.lookup.path_len == 1)
        return submit(w);
    parent = parent_of(&w->task.lookup);
    p = walk_to(w->dispatch, &parent, w->names);
    if (p == NULL)
        return FP_BUSY;
    follow(w, p);
    return FP_OK;
}

/* The directory has been looked at, or cannot be: on with what lies in it. */
static void go_on(struct walk *w, fp_status parent_status)
{
    fp_status st = parent_status;

    if (st == FP_OK || st == FP_REFUSED) {
        take_base(w);
        if (w->base.fd == -1 && end_walk_from_cache(w))
            return;
        st = w->base.fd != -1 ? submit(w) : submit_from_root(w);
    }
    if (st != FP_OK)
        end_walk_without(w, st == FP_NOMEM ? FP_BUSY : st);
}

/* May what it found be believed, or was it seen before it had to be forgotten? */
static bool is_current(const struct walk *w, const struct fp_answer *a)
{
    const struct fp_step *last = a->n_steps > 0 ? &a->steps[a->n_steps - 1] : NULL;

    return !w->outdated
        && (last == NULL || last->end > w->doubt_len || fp_step_leads_on(last));
}

/* Into the cache, with all that the walk brought; a->fd is -1 afterwards. */
static void keep(struct walk *w, struct fp_answer *a, const struct fp_trail *trail,
                 uint64_t began_ms)
{
    static struct fp_trust trust[FP_MAX_STEPS];
    const struct fp_cache_evidence evidence = { trail, trust };
    const struct fp_lookup *l = &w->task.lookup;

    fp_fresh_trust(w->dispatch->fresh, trail, a->n_steps, trust);
    fp_cache_insert(w->dispatch->cache, l->path, l->path_len, w->names,
                    w->base.fd != -1 ? &w->base : NULL, began_ms, &evidence, a);
}

/*
 * A walk from a base brings the last step only: the whole answer is in the
 * cache then.  If it is not, something has changed meanwhile, or the file
 * system knows the base no more, or it had to be forgotten: once again, from "/".
 */
static void end_walk_from_base(struct walk *w, struct fp_answer *a, const struct fp_trail *trail,
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

/* True when it is over, or goes on: the cache has the answer, or another walk looks. */
static bool end_or_repeat(struct walk *w, struct fp_answer *a, const struct fp_trail *trail,
                          uint64_t began_ms)
{
    bool failed = fp_guard_is_failure(a);

    keep(w, a, trail, began_ms);
    if (end_walk_from_cache(w))
        return true;
    if (w->repeated || failed || fp_now_ms() - began_ms <= SLOW_MS)
        return false;
    w->repeated = true;
    return submit_from_root(w) == FP_OK;
}

/*
 * What the cache does not keep has changed while it was looked at, or is an
 * error: it is told as it was seen.  But if the look was long ago, some may
 * have asked after the change: once again, then.  A directory's descriptor is
 * for us, not for who asks.
 */
static void end_walk_from_root(struct walk *w, struct fp_answer *a, const struct fp_trail *trail,
                               uint64_t began_ms)
{
    bool place = a->n_steps > 0 && fp_step_leads_on(&a->steps[a->n_steps - 1]);
    int fd = a->fd != -1 && !place ? fcntl(a->fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (!is_current(w, a) || !end_or_repeat(w, a, trail, began_ms)) {
        fp_close(&a->fd);
        a->fd = fd;
        end_walk(w, a);
        a->fd = -1;
    }
    fp_close(&fd);
}

static void on_walked(void *ctx, struct fp_answer *a, const struct fp_trail *trail,
                      uint64_t began_ms)
{
    struct walk *w = ctx;

    fp_guard_heard(w->dispatch->guard, w->mount, a, trail, began_ms);
    if (a->status == FP_BUSY)
        fp_cache_shed_files(w->dispatch->cache, SHED_FILES);
    if (trail == NULL || a->status != FP_OK)
        end_walk(w, a);
    else if (w->base.fd != -1)
        end_walk_from_base(w, a, trail, began_ms);
    else
        end_walk_from_root(w, a, trail, began_ms);
}

static struct walk *start_walk(struct fp_dispatch *d, const struct fp_lookup *l,
                               unsigned names, fp_status *why)
{
    struct walk *w = create_walk(d, l, names);

    *why = w != NULL ? begin_walk(w) : FP_NOMEM;
    if (w != NULL && *why != FP_OK) {
        end_walk_without(w, *why);
        return NULL;
    }
    return w;
}

/* Looks again at what is in use and getting old, so that it never is a miss.  Is
 * anything looked at? */
static bool refresh(void *ctx)
{
    struct fp_dispatch *d = ctx;
    struct fp_cache_due due;
    fp_status st;

    while (fp_helpers_spare(d->helpers) && fp_cache_take_due(d->cache, fp_now_ms(), &due)) {
        const struct fp_lookup l = { .path = due.path, .path_len = due.len };

        if (find_walk(d, &l, due.names) == NULL && start_walk(d, &l, due.names, &st) != NULL)
            d->counts.refreshed++;
    }
    return d->counts.inflight > 0;
}

/* A little less than the asker waits, so that our answer comes before it
 * takes us for dead. */
static double patience(uint32_t deadline_ms)
{
    uint32_t ms = deadline_ms < MAX_DEADLINE_MS ? deadline_ms : MAX_DEADLINE_MS;

    return ms * 0.9 / 1e3;
}

static fp_status wait_for(struct walk *w, struct fp_connection *conn, uint64_t id,
                          uint32_t deadline_ms)
{
    struct waiter *wt = calloc(1, sizeof(*wt));

    if (wt == NULL)
        return FP_NOMEM;
    wt->walk = w;
    wt->conn = conn;
    wt->dispatch = w->dispatch;
    wt->loop = w->dispatch->loop;
    wt->id = id;
    ev_timer_init(&wt->deadline, on_deadline, patience(deadline_ms), 0.);
    wt->deadline.data = wt;
    ev_timer_start(wt->loop, &wt->deadline);
    TAILQ_INSERT_TAIL(&w->waiters, wt, link);
    *fp_connection_slot(conn) = wt;
    return FP_OK;
}

static void answer_without(struct fp_dispatch *d, struct fp_connection *conn,
                           uint64_t id, fp_status why)
{
    struct fp_answer a;

    count_unanswered(d, why);
    fp_answer_init(&a, why);
    fp_connection_answer(conn, id, &a);
}

/* ---- mounts out of service ---- */

/* The longest part of the path that is not on a mount out of service. */
static size_t alive_len(const struct fp_dispatch *d, const struct fp_lookup *l)
{
    size_t len = l->path_len;

    while (len > 1 && fp_guard_is_out(d->guard, expected_mount(d, l->path, len)))
        len = fp_path_parent_len(l->path, len);
    return len;
}

/*
 * What is above the mount point is on living mounts: it is kept known, for
 * nothing is told of a path otherwise.  NULL: it is; or the walk that looks.
 */
static struct walk *know_above(struct fp_dispatch *d, const struct fp_lookup *l, unsigned names)
{
    static struct fp_answer a;
    struct fp_lookup above = *l;

    above.path_len = alive_len(d, l);
    if (fp_cache_lookup(d->cache, above.path, above.path_len, names, fp_now_ms(), &a))
        return NULL;
    return walk_to(d, &above, names);
}

/* Its walk waits for what is above, and then finds its mount out of service. */
static fp_status wait_for_above(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                                const struct fp_lookup *l, unsigned names, struct walk *above)
{
    struct walk *w = find_walk(d, l, names);

    if (w == NULL) {
        w = create_walk(d, l, names);
        if (w == NULL)
            return FP_UNAVAILABLE;
        follow(w, above);
    }
    return wait_for(w, conn, id, l->deadline_ms) == FP_OK ? FP_OK : FP_UNAVAILABLE;
}

static void answer_unavailable(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                               const struct fp_lookup *l, unsigned names)
{
    static struct fp_answer a;
    struct walk *above = know_above(d, l, names);

    if (fp_cache_lookup_stale(d->cache, l->path, l->path_len, names, fp_now_ms(), &a)) {
        d->counts.stale++;
        fp_connection_answer(conn, id, &a);
    } else if (above == NULL || wait_for_above(d, conn, id, l, names, above) != FP_OK) {
        answer_without(d, conn, id, FP_UNAVAILABLE);
    }
}

/* A walk of the mount that is with a helper and has somebody waiting for it. */
static struct walk *hanging_walk(const struct fp_dispatch *d, uint32_t mount)
{
    struct walk *w;

    LIST_FOREACH(w, &d->orphans, orphan) {
        if (w->mount == mount && !w->follows
            && (!TAILQ_EMPTY(&w->waiters) || !TAILQ_EMPTY(&w->children)))
            return w;
    }
    return NULL;
}

FP_HASH_DIAGNOSTICS_OFF
static void orphan_walks(struct fp_dispatch *d, uint32_t mount)
{
    struct walk *w, *next;

    HASH_ITER(hh, d->walks, w, next) {
        if (w->mount == mount && !w->follows)
            orphan_walk(d, w);
    }
}
FP_HASH_DIAGNOSTICS_ON

/*
 * Nobody waits any more for walks that hang.  Those that only wait for a helper
 * have been ended already; what these find is kept if they come back.
 */
static void on_tripped(void *ctx, uint32_t mount)
{
    struct fp_dispatch *d = ctx;
    struct walk *w, *child;
    struct fp_answer a;

    fp_answer_init(&a, FP_UNAVAILABLE);
    orphan_walks(d, mount);
    while ((w = hanging_walk(d, mount)) != NULL) {
        while ((child = TAILQ_FIRST(&w->children)) != NULL) {
            TAILQ_REMOVE(&w->children, child, sibling);
            end_walk(child, &a);
        }
        answer_all(w, &a);
    }
}

static void ask_helper(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                       const struct fp_lookup *l, unsigned names)
{
    struct walk *w = find_walk(d, l, names);
    fp_status st = FP_OK;

    if (w != NULL) {
        d->counts.joined++;
    } else {
        d->counts.misses++;
        w = start_walk(d, l, names, &st);
    }
    if (w != NULL)
        st = wait_for(w, conn, id, l->deadline_ms);
    if (st != FP_OK)
        answer_without(d, conn, id, st == FP_NOMEM ? FP_BUSY : st);
}

static fp_status do_lookup(struct fp_dispatch *d, struct fp_connection *conn,
                           const struct fp_frame *f)
{
    static struct fp_answer a;
    struct fp_reader body = f->body;
    struct fp_lookup l;
    unsigned names;

    if (fp_lookup_decode(&body, &l) != FP_OK)
        return FP_PROTOCOL;
    names = number_of(d, &l.names);
    fp_fresh_ask(d->fresh);
    if (fp_cache_lookup(d->cache, l.path, l.path_len, names, fp_now_ms(), &a)) {
        d->counts.hits++;
        fp_connection_answer(conn, f->id, &a);
    } else if (fp_guard_is_out(d->guard, expected_mount(d, l.path, l.path_len))) {
        answer_unavailable(d, conn, f->id, &l, names);
    } else {
        ask_helper(d, conn, f->id, &l, names);
    }
    return FP_OK;
}

/* ---- control ---- */

/* What the walk has to do with a path that is forgotten. */
static void doubt(struct walk *w, const char *path, size_t len)
{
    const struct fp_lookup *l = &w->task.lookup;
    size_t common = fp_path_common_len(l->path, l->path_len, path, len);
    size_t parent_len = len > 1 ? fp_path_parent_len(path, len) : 0;
    const char *name = parent_len > 1 ? path + parent_len + 1 : path + 1;

    if (common > w->doubt_len)
        w->doubt_len = common;
    if (common == len || (common == parent_len
                          && fp_names_have(&l->names, name, (size_t)(path + len - name))))
        w->outdated = true;
}

FP_HASH_DIAGNOSTICS_OFF
static void doubt_walks(struct fp_dispatch *d, const char *path, size_t len)
{
    struct walk *w, *next;

    LIST_FOREACH(w, &d->orphans, orphan)
        doubt(w, path, len);
    HASH_ITER(hh, d->walks, w, next) {
        doubt(w, path, len);
        if (w->outdated)
            orphan_walk(d, w);
    }
}
FP_HASH_DIAGNOSTICS_ON

size_t fp_dispatch_forget(struct fp_dispatch *d, const char *path, size_t len, bool tree)
{
    doubt_walks(d, path, len);
    return fp_cache_forget(d->cache, path, len, tree);
}

void fp_dispatch_set_report(struct fp_dispatch *d, enum fp_report what,
                            const struct fp_report_source *source)
{
    d->reports[what] = *source;
}

static fp_status do_control(struct fp_dispatch *d, struct fp_connection *conn,
                            const struct fp_frame *f)
{
    struct fp_reader body = f->body;
    struct fp_control question;
    struct fp_done done;

    if (fp_control_decode(&body, &question) != FP_OK)
        return FP_PROTOCOL;
    if (question.op == FP_CONTROL_PURGE)
        fp_control_purge(d, &question, &done);
    else
        fp_control_report(&d->reports[question.what], question.from, &done);
    fp_connection_done(conn, f->id, &done);
    return FP_OK;
}

static const struct {
    uint8_t type;
    fp_status (*handle)(struct fp_dispatch *d, struct fp_connection *conn,
                        const struct fp_frame *f);
} operations[] = {
    { FP_FRAME_LOOKUP, do_lookup },
    { FP_FRAME_CONTROL, do_control },
};

static fp_status on_question(void *ctx, struct fp_connection *conn,
                             const struct fp_frame *f)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (operations[i].type == f->type)
            return operations[i].handle(ctx, conn, f);
    }
    return FP_PROTOCOL;
}

static void on_closed(void *ctx, struct fp_connection *conn)
{
    struct waiter *wt = *fp_connection_slot(conn);

    (void)ctx;
    /* The walk goes on: its answer is worth keeping. */
    if (wt != NULL)
        waiter_free(wt);
}

const struct fp_connection_ops fp_dispatch_ops = { on_question, on_closed };

struct fp_dispatch *fp_dispatch_create(struct ev_loop *loop, struct fp_cache *cache,
                                       struct fp_helpers *helpers, struct fp_fresh *fresh,
                                       const struct fp_dispatch_settings *settings)
{
    struct fp_dispatch *d = calloc(1, sizeof(*d));
    const struct fp_guard_parts parts = { helpers, fresh, settings->roots, on_tripped, d };

    if (d == NULL)
        return NULL;
    d->guard = fp_guard_create(loop, &parts, settings->mount_timeout_ms);
    if (d->guard == NULL) {
        free(d);
        return NULL;
    }
    d->loop = loop;
    d->cache = cache;
    d->helpers = helpers;
    d->fresh = fresh;
    d->settings = *settings;
    fp_fresh_set_service(fresh, fp_guard_is_out, d->guard);
    fp_fresh_set_beat(fresh, refresh, d);
    return d;
}

void fp_dispatch_set(struct fp_dispatch *d, const struct fp_dispatch_settings *settings)
{
    d->settings = *settings;
    fp_guard_set(d->guard, settings->mount_timeout_ms);
}

void fp_dispatch_destroy(struct fp_dispatch **dp)
{
    struct fp_dispatch *d = *dp;
    struct walk *w;

    if (d == NULL)
        return;
    while (d->walks != NULL)
        orphan_walk(d, d->walks);
    while ((w = LIST_FIRST(&d->orphans)) != NULL) {
        remove_walk(d, w);
        fp_close(&w->base.fd);
        free(w);
    }
    for (unsigned i = 0; i < FP_MAX_LISTS; i++)
        free(d->lists[i]);
    fp_guard_destroy(&d->guard);
    free(d);
    *dp = NULL;
}

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d)
{
    const struct fp_breaker_counts mounts = fp_guard_counts(d->guard);
    struct fp_dispatch_counts counts = d->counts;

    counts.trips = mounts.trips;
    counts.out = mounts.open;
    return counts;
}
