/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "dispatch.h"

#include <ev.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "cache.h"
#include "clock.h"
#include "connection.h"
#include "helper.h"
#include "keyed_hash.h"
#include "proto/answer.h"
#include "proto/fdio.h"
#include "proto/wire.h"

#define MAX_DEADLINE_MS 60000u
#define SHED_FILES 64           /* descriptors given back when there is none */

/* A walk under way, and who waits for it. */
struct walk {
    UT_hash_handle hh;
    struct fp_dispatch *dispatch;
    TAILQ_HEAD(, waiter) waiters;
    size_t len;
    char path[];
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
    struct walk *walks;
    struct fp_dispatch_counts counts;
};

FP_HASH_DIAGNOSTICS_OFF
static struct walk *find_walk(const struct fp_dispatch *d, const char *path, size_t len)
{
    struct walk *w;

    HASH_FIND(hh, d->walks, path, len, w);
    return w;
}

static bool add_walk(struct fp_dispatch *d, struct walk *w)
{
    HASH_ADD_KEYPTR(hh, d->walks, w->path, w->len, w);
    return w->hh.tbl != NULL;
}

static void remove_walk(struct fp_dispatch *d, struct walk *w)
{
    HASH_DEL(d->walks, w);
}
FP_HASH_DIAGNOSTICS_ON

static void waiter_free(struct waiter *wt)
{
    ev_timer_stop(wt->loop, &wt->deadline);
    TAILQ_REMOVE(&wt->walk->waiters, wt, link);
    *fp_connection_slot(wt->conn) = NULL;
    free(wt);
}

/* The connection may be gone afterwards, the waiter is. */
static void answer_waiter(struct waiter *wt, const struct fp_answer *a)
{
    struct fp_connection *conn = wt->conn;
    uint64_t id = wt->id;

    if (a->status != FP_OK)
        wt->dispatch->counts.unanswered++;
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

static void on_walked(void *ctx, struct fp_answer *a, uint64_t began_ms)
{
    struct walk *w = ctx;
    struct fp_dispatch *d = w->dispatch;
    struct waiter *wt;

    /* First out of the table: whoever asks from now on is not joined to what
     * has been seen before. */
    remove_walk(d, w);
    d->counts.inflight--;
    while ((wt = TAILQ_FIRST(&w->waiters)) != NULL)
        answer_waiter(wt, a);
    if (a->status == FP_BUSY)
        fp_cache_shed_files(d->cache, SHED_FILES);
    if (a->status == FP_OK)
        fp_cache_insert(d->cache, w->path, w->len, began_ms, a);
    free(w);
}

static struct walk *start_walk(struct fp_dispatch *d, const struct fp_lookup *l,
                               fp_status *why)
{
    struct walk *w = calloc(1, sizeof(*w) + l->path_len + 1);

    *why = FP_NOMEM;
    if (w == NULL)
        return NULL;
    w->dispatch = d;
    w->len = l->path_len;
    memcpy(w->path, l->path, l->path_len);
    TAILQ_INIT(&w->waiters);
    if (!add_walk(d, w)) {
        free(w);
        return NULL;
    }
    *why = fp_helpers_submit(d->helpers, w->path, w->len, on_walked, w);
    if (*why != FP_OK) {
        remove_walk(d, w);
        free(w);
        return NULL;
    }
    d->counts.inflight++;
    return w;
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

    d->counts.unanswered++;
    fp_answer_init(&a, why);
    fp_connection_answer(conn, id, &a);
}

static void ask_helper(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                       const struct fp_lookup *l)
{
    struct walk *w = find_walk(d, l->path, l->path_len);
    fp_status st = FP_OK;

    if (w != NULL) {
        d->counts.joined++;
    } else {
        d->counts.misses++;
        w = start_walk(d, l, &st);
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

    if (fp_lookup_decode(&body, &l) != FP_OK)
        return FP_PROTOCOL;
    if (fp_cache_lookup(d->cache, l.path, l.path_len, fp_now_ms(), &a)) {
        d->counts.hits++;
        fp_connection_answer(conn, f->id, &a);
    } else {
        ask_helper(d, conn, f->id, &l);
    }
    return FP_OK;
}

static const struct {
    uint8_t type;
    fp_status (*handle)(struct fp_dispatch *d, struct fp_connection *conn,
                        const struct fp_frame *f);
} operations[] = {
    { FP_FRAME_LOOKUP, do_lookup },
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
                                       struct fp_helpers *helpers)
{
    struct fp_dispatch *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->loop = loop;
    d->cache = cache;
    d->helpers = helpers;
    return d;
}

void fp_dispatch_destroy(struct fp_dispatch **dp)
{
    struct fp_dispatch *d = *dp;

    if (d == NULL)
        return;
    while (d->walks != NULL) {
        struct walk *w = d->walks;

        remove_walk(d, w);
        free(w);
    }
    free(d);
    *dp = NULL;
}

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d)
{
    return d->counts;
}
