/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "admin/control.h"
#include "changes/coherence.h"
#include "common/answer.h"
#include "common/clock.h"
#include "common/packet.h"
#include "ipc/connection.h"
#include "lookup/breaker.h"
#include "lookup/dispatch_walk.h"
#include "lookup/mount_health.h"
#include "lookup/observe.h"
#include "workers/worker_pool.h"

/* So large a part of the walks that may be under way can be such as nobody asked for. */
#define REFRESH_SHARE 4

static struct fp_name_list *copy_names(const struct fp_names *names)
{
    struct fp_name_list *list = calloc(1, sizeof(*list));
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

unsigned fp_dispatch_find_names(const struct fp_dispatch *d, const struct fp_names *names)
{
    for (unsigned i = 0; i < FP_MAX_LISTS && d->lists[i] != NULL; i++) {
        if (fp_names_equal(&d->lists[i]->names, names))
            return i + 1;
    }
    return 0;
}

/* The list's number; 0 for an empty one, and where there are too many: the
 * asker then looks for those files itself. */
static unsigned number_of(struct fp_dispatch *d, const struct fp_names *names)
{
    unsigned known = fp_dispatch_find_names(d, names), n = 0;

    if (known != 0 || names->n == 0)
        return known;
    while (n < FP_MAX_LISTS && d->lists[n] != NULL)
        n++;
    if (n == FP_MAX_LISTS || (d->lists[n] = copy_names(names)) == NULL)
        return 0;
    fp_cache_set_names(d->cache, n + 1, &d->lists[n]->names);
    return n + 1;
}

/* Looks again at what is in use and getting old, so that it never is a miss.  Is
 * anything looked at? */
static bool refresh(void *ctx)
{
    struct fp_dispatch *d = ctx;
    struct fp_cache_refresh due;
    fp_status st;

    while (fp_worker_pool_spare(d->helpers)
           && d->counts.inflight < d->settings.max_inflight / REFRESH_SHARE
           && fp_cache_take_refresh(d->cache, fp_now_ms(), &due)) {
        const struct fp_lookup l = { .path = due.path, .path_len = due.len };

        fp_observe_hit(d->observer, due.path, due.len);
        if (fp_walk_find(d, &l, due.names) == NULL && fp_walk_start(d, &l, due.names, &st) != NULL)
            d->counts.refreshed++;
    }
    return d->counts.inflight > 0;
}

static void answer_without(struct fp_dispatch *d, struct fp_connection *conn,
                           uint64_t id, fp_status why)
{
    struct fp_answer a;

    fp_walk_count_unanswered(d, why);
    fp_answer_init(&a, why);
    fp_connection_answer(conn, id, &a);
}

/* ---- mounts out of service ---- */

/* The longest part of the path that is not on a mount out of service. */
static size_t alive_len(const struct fp_dispatch *d, const struct fp_lookup *l)
{
    size_t len = l->path_len;

    while (len > 1 && fp_mount_health_is_out(d->guard, fp_walk_expected_mount(d, l->path, len)))
        len = fp_path_parent_len(l->path, len);
    return len;
}

/*
 * What is above the mount point is on living mounts: it is kept known, for
 * nothing is told of a path otherwise.  NULL: it is; or the walk that looks.
 */
static struct fp_walk *know_above(struct fp_dispatch *d, const struct fp_lookup *l, unsigned names)
{
    static struct fp_answer a;
    struct fp_lookup above = *l;

    above.path_len = alive_len(d, l);
    if (fp_cache_lookup(d->cache, above.path, above.path_len, names, fp_now_ms(), &a))
        return NULL;
    return fp_walk_to(d, &above, names);
}

/* Its walk waits for what is above, and then finds its mount out of service. */
static fp_status wait_for_above(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                                const struct fp_lookup *l, unsigned names, struct fp_walk *above)
{
    struct fp_walk *w = fp_walk_find(d, l, names);

    if (w == NULL) {
        w = fp_walk_create(d, l, names);
        if (w == NULL)
            return FP_UNAVAILABLE;
        fp_walk_follow(w, above);
    }
    return fp_walk_wait(w, conn, id, l->deadline_ms) == FP_OK ? FP_OK : FP_UNAVAILABLE;
}

static void answer_unavailable(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                               const struct fp_lookup *l, unsigned names)
{
    static struct fp_answer a;
    struct fp_walk *above = know_above(d, l, names);

    if (fp_cache_lookup_stale(d->cache, l->path, l->path_len, names, fp_now_ms(), &a)) {
        d->counts.stale++;
        fp_connection_answer(conn, id, &a);
    } else if (above == NULL || wait_for_above(d, conn, id, l, names, above) != FP_OK) {
        answer_without(d, conn, id, FP_UNAVAILABLE);
    }
}

/* A walk of the mount that is with a helper and has somebody waiting for it. */
static struct fp_walk *hanging_walk(const struct fp_dispatch *d, uint32_t mount)
{
    struct fp_walk *w;

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
    struct fp_walk *w, *next;

    HASH_ITER(hh, d->walks, w, next) {
        if (w->mount == mount && !w->follows)
            fp_walk_detach(d, w);
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
    struct fp_walk *w, *child;
    struct fp_answer a;

    fp_answer_init(&a, FP_UNAVAILABLE);
    orphan_walks(d, mount);
    while ((w = hanging_walk(d, mount)) != NULL) {
        while ((child = TAILQ_FIRST(&w->children)) != NULL) {
            TAILQ_REMOVE(&w->children, child, sibling);
            fp_walk_end(child, &a);
        }
        fp_walk_answer_all(w, &a);
    }
}

static void ask_helper(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                       const struct fp_lookup *l, unsigned names)
{
    struct fp_walk *w = fp_walk_find(d, l, names);
    fp_status st = FP_OK;

    if (w != NULL) {
        d->counts.joined++;
    } else {
        d->counts.misses++;
        w = fp_walk_start(d, l, names, &st);
    }
    if (w != NULL)
        st = fp_walk_wait(w, conn, id, l->deadline_ms);
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
    fp_coherence_catch_up(d->fresh);
    fp_observe_hit(d->observer, l.path, l.path_len);
    if (fp_cache_lookup(d->cache, l.path, l.path_len, names, fp_now_ms(), &a)) {
        d->counts.hits++;
        d->counts.absent_hits += a.steps[a.n_steps - 1].status != FP_OK;
        fp_connection_answer(conn, f->id, &a);
    } else if (fp_mount_health_is_out(d->guard, fp_walk_expected_mount(d, l.path, l.path_len))) {
        answer_unavailable(d, conn, f->id, &l, names);
    } else {
        ask_helper(d, conn, f->id, &l, names);
    }
    return FP_OK;
}

/* ---- control ---- */

/* What the walk has to do with a path that is forgotten. */
static void doubt(struct fp_walk *w, const char *path, size_t len)
{
    const struct fp_lookup *l = &w->task.lookup;
    size_t common = fp_path_common_len(l->path, l->path_len, path, len);
    size_t parent_len = len > 1 ? fp_path_parent_len(path, len) : 0;
    const char *name = parent_len > 1 ? path + parent_len + 1 : path + 1;

    if (common > w->doubt_len)
        w->doubt_len = common;
    if (common == len || (common == parent_len
                          && fp_names_find(&l->names, name, (size_t)(path + len - name)) != -1))
        w->outdated = true;
}

FP_HASH_DIAGNOSTICS_OFF
static void doubt_walks(struct fp_dispatch *d, const char *path, size_t len)
{
    struct fp_walk *w, *next;

    LIST_FOREACH(w, &d->orphans, orphan)
        doubt(w, path, len);
    HASH_ITER(hh, d->walks, w, next) {
        doubt(w, path, len);
        if (w->outdated)
            fp_walk_detach(d, w);
    }
}
FP_HASH_DIAGNOSTICS_ON

size_t fp_dispatch_forget(struct fp_dispatch *d, const char *path, size_t len, bool tree)
{
    size_t n;

    doubt_walks(d, path, len);
    n = fp_cache_forget(d->cache, path, len, tree);
    d->counts.purged += n;
    return n;
}

void fp_dispatch_set_operator(struct fp_dispatch *d, const struct fp_control_deps *control,
                              struct fp_observer *observer)
{
    d->control = control;
    d->observer = observer;
}

static fp_status do_control(struct fp_dispatch *d, struct fp_connection *conn,
                            const struct fp_frame *f)
{
    struct fp_reader body = f->body;
    struct fp_control question;
    struct fp_reply done;

    if (fp_control_decode(&body, &question) != FP_OK)
        return FP_PROTOCOL;
    fp_control_answer(d->control, &question, &done);
    fp_connection_reply(conn, f->id, &done);
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
    struct fp_waiter *wt = *fp_connection_slot(conn);

    (void)ctx;
    /* The walk goes on: its answer is worth keeping. */
    if (wt != NULL)
        fp_waiter_free(wt);
}

const struct fp_connection_ops fp_dispatch_ops = { on_question, on_closed };

struct fp_dispatch *fp_dispatch_create(struct ev_loop *loop, struct fp_cache *cache,
                                       struct fp_worker_pool *helpers, struct fp_coherence *fresh,
                                       const struct fp_dispatch_settings *settings)
{
    struct fp_dispatch *d = calloc(1, sizeof(*d));
    const struct fp_mount_health_deps parts = { helpers, fresh, settings->roots, on_tripped, d };

    if (d == NULL)
        return NULL;
    d->guard = fp_mount_health_create(loop, &parts, settings->mount_timeout_ms);
    if (d->guard == NULL) {
        free(d);
        return NULL;
    }
    d->loop = loop;
    d->cache = cache;
    d->helpers = helpers;
    d->fresh = fresh;
    d->settings = *settings;
    fp_coherence_set_service(fresh, fp_mount_health_is_out, d->guard);
    fp_coherence_set_beat(fresh, refresh, d);
    return d;
}

void fp_dispatch_set(struct fp_dispatch *d, const struct fp_dispatch_settings *settings)
{
    d->settings = *settings;
    fp_mount_health_set(d->guard, settings->mount_timeout_ms);
}

void fp_dispatch_destroy(struct fp_dispatch **dp)
{
    struct fp_dispatch *d = *dp;
    struct fp_walk *w;

    if (d == NULL)
        return;
    while (d->walks != NULL)
        fp_walk_detach(d, d->walks);
    while ((w = LIST_FIRST(&d->orphans)) != NULL) {
        fp_walk_remove(d, w);
        fp_close(&w->base.fd);
        free(w);
    }
    for (unsigned i = 0; i < FP_MAX_LISTS; i++)
        free(d->lists[i]);
    fp_mount_health_destroy(&d->guard);
    free(d);
    *dp = NULL;
}

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d)
{
    const struct fp_breaker_counts mounts = fp_mount_health_counts(d->guard);
    struct fp_dispatch_counts counts = d->counts;

    counts.trips = mounts.trips;
    counts.out = mounts.open;
    return counts;
}
