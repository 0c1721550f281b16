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
#define MAX_LISTS  16           /* of names; more than one is rare */

/* A list of access file names that somebody asks about; kept for good. */
struct name_list {
    struct fp_names names;
    char room[FP_MAX_NAMES * FP_MAX_NAME];
};

/* A walk under way, and who waits for it. */
struct walk {
    UT_hash_handle hh;
    struct fp_dispatch *dispatch;
    TAILQ_HEAD(, waiter) waiters;
    struct fp_lookup lookup;   /* points into key and into a name_list */
    unsigned names;            /* number of the list, 0: none */
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
    struct walk *walks;
    struct name_list *lists[MAX_LISTS];   /* number n is lists[n - 1] */
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
        fp_cache_insert(d->cache, w->lookup.path, w->lookup.path_len, w->names, began_ms, a);
    free(w);
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
    for (unsigned i = 0; i < MAX_LISTS; i++) {
        if (d->lists[i] == NULL)
            d->lists[i] = copy_names(names);
        if (d->lists[i] == NULL)
            return 0;
        if (fp_names_equal(&d->lists[i]->names, names))
            return i + 1;
    }
    return 0;
}

static struct walk *start_walk(struct fp_dispatch *d, const struct fp_lookup *l,
                               unsigned names, fp_status *why)
{
    struct walk *w = calloc(1, sizeof(*w) + 1 + l->path_len);

    *why = FP_NOMEM;
    if (w == NULL)
        return NULL;
    w->dispatch = d;
    w->names = names;
    w->key_len = 1 + l->path_len;
    make_key(w->key, l, names);
    w->lookup = *l;
    w->lookup.path = w->key + 1;
    if (names != 0)
        w->lookup.names = d->lists[names - 1]->names;
    else
        w->lookup.names.n = 0;
    TAILQ_INIT(&w->waiters);
    if (!add_walk(d, w)) {
        free(w);
        return NULL;
    }
    *why = fp_helpers_submit(d->helpers, &w->lookup, on_walked, w);
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
    if (fp_cache_lookup(d->cache, l.path, l.path_len, names, fp_now_ms(), &a)) {
        d->counts.hits++;
        fp_connection_answer(conn, f->id, &a);
    } else {
        ask_helper(d, conn, f->id, &l, names);
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
    for (unsigned i = 0; i < MAX_LISTS; i++)
        free(d->lists[i]);
    free(d);
    *dp = NULL;
}

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d)
{
    return d->counts;
}
