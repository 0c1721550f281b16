/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/questions.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/turn.h"
#include "cache/cache.h"
#include "ipc/connection.h"
#include "wire/wire.h"

#define MAX_DEADLINE_MS 60000u
#define PATIENCE        0.9 /* of the client's deadline: our answer comes before it gives up */

void fp_question_refuse(struct fp_questions *qs, struct fp_connection *conn, uint64_t id, fp_status why)
{
    qs->counts.unanswered++;
    /* Lack of memory passes; the protocol has no such reason. */
    fp_connection_refuse(conn, id, why == FP_NOMEM ? FP_BUSY : why);
}

/* NULL if there is none, or it is not allowed. */
static const struct fp_answer *find_stale(struct fp_questions *qs, const struct fp_lookup *l, bool fresh,
                                          bool no_fd)
{
    struct fp_answer *a = &qs->stale;

    if (!fp_cache_lookup(qs->cache, l->path, l->path_len, fresh ? FP_ASK_STALE_FRESH : FP_ASK_STALE, fp_now_ms(),
                         a))
        return NULL;
    qs->counts.stale++;
    if (no_fd)
        a->fd = -1; /* it was lent */
    return a;
}

bool fp_question_answer_stale(struct fp_questions *qs, struct fp_connection *conn, uint64_t id,
                              const struct fp_lookup *l)
{
    const struct fp_answer *a = find_stale(qs, l, l->fresh, l->no_stale_fd);

    if (a != NULL)
        fp_connection_answer(conn, id, a);
    return a != NULL;
}

static void free_waiter(struct fp_waiter *wt)
{
    ev_timer_stop(wt->questions->loop, &wt->deadline);
    TAILQ_REMOVE(wt->all, wt, link);
    *fp_connection_slot(wt->conn) = NULL;
    free(wt);
}

void fp_waiter_answer(struct fp_waiter *wt, fp_status why, const struct fp_answer *a)
{
    struct fp_questions *qs = wt->questions;
    struct fp_connection *conn = wt->conn;
    const uint64_t id = wt->id;
    const struct fp_answer *stale = NULL;

    if (why != FP_REFUSED && fp_answer_is_failure(a))
        stale = find_stale(qs, wt->walked, wt->fresh, wt->no_stale_fd);
    free_waiter(wt);
    if (stale != NULL)
        a = stale;
    if (a != NULL)
        fp_connection_answer(conn, id, a);
    else
        fp_question_refuse(qs, conn, id, why);
}

void fp_waiters_answer(struct fp_waiters *all, fp_status why, const struct fp_answer *a)
{
    struct fp_waiter *wt;

    while ((wt = TAILQ_FIRST(all)) != NULL) {
        fp_waiter_answer(wt, why, a);
        fp_turn_work(FP_WORK_RESULT);
    }
}

static void on_deadline(struct ev_loop *loop, ev_timer *timer, int events)
{
    fp_turn_work(FP_WORK_TIMER);
    (void)loop;
    (void)events;
    fp_waiter_answer(timer->data, FP_TIMEOUT, NULL);
}

fp_status fp_question_wait(struct fp_questions *qs, struct fp_waiters *all, struct fp_connection *conn,
                           uint64_t id, const struct fp_lookup *l, bool joined,
                           const struct fp_lookup *walked)
{
    struct fp_waiter *wt = fp_memory_take_zeroed(1, sizeof(*wt));
    const uint32_t ms = l->deadline_ms < MAX_DEADLINE_MS ? l->deadline_ms : MAX_DEADLINE_MS;

    if (wt == NULL)
        return FP_NOMEM;
    wt->all = all;
    wt->questions = qs;
    wt->conn = conn;
    wt->id = id;
    wt->walked = walked;
    wt->fresh = l->fresh;
    wt->no_stale_fd = l->no_stale_fd;
    wt->joined = joined;
    ev_timer_init(&wt->deadline, on_deadline, ms * PATIENCE / 1e3, 0.);
    wt->deadline.data = wt;
    ev_timer_start(qs->loop, &wt->deadline);
    TAILQ_INSERT_TAIL(all, wt, link);
    *fp_connection_slot(conn) = wt;
    return FP_OK;
}

void fp_question_leave(struct fp_connection *conn)
{
    struct fp_waiter *wt = *fp_connection_slot(conn);

    if (wt != NULL)
        free_waiter(wt);
}
