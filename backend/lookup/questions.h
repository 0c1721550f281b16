/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that the cache has no valid answer to.  A question waits for a walk, at most
 * for nine tenths of its deadline.  It gets the walk's result, else a stale answer where
 * one is allowed, else the reason why there is none.  A connection has one question at a
 * time, which lives in the connection's slot.  All functions run on the loop.
 */
#ifndef FP_QUESTIONS_H
#define FP_QUESTIONS_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/errors.h"
#include "wire/answer.h"

struct fp_cache;
struct fp_connection;
struct fp_lookup;

/* The state that all questions share. The loop and the cache are the caller's; the rest is zero at first. */
struct fp_questions {
    struct ev_loop *loop;
    struct fp_cache *cache;
    struct {
        uint64_t stale, unanswered; /* as in dispatch.h */
    } counts;
    struct fp_answer stale; /* while it is sent */
};

/* A question that waits. */
struct fp_waiter {
    TAILQ_ENTRY(fp_waiter) link;
    struct fp_waiters *all; /* that wait for the same walk */
    struct fp_questions *questions;
    struct fp_connection *conn;
    uint64_t id;
    const struct fp_lookup *walked; /* the walk's */
    bool fresh, no_stale_fd; /* as in struct fp_lookup */
    bool joined;             /* the walk was under way when the question came */
    ev_timer deadline;
};
TAILQ_HEAD(fp_waiters, fp_waiter);

/* Adds a question l to those that wait for a walk of *walked,
 * which stays until the walk ends.  FP_OK or FP_NOMEM. */
fp_status fp_question_wait(struct fp_questions *qs, struct fp_waiters *all, struct fp_connection *conn,
                           uint64_t id, const struct fp_lookup *l, bool joined,
                           const struct fp_lookup *walked);
/* The connection waits no longer, and gets no answer. */
void fp_question_leave(struct fp_connection *conn);

/* Answers one question, or all; they are gone then, and a connection
 * may be.  a: NULL where there is no answer; why says the reason. */
void fp_waiter_answer(struct fp_waiter *wt, fp_status why, const struct fp_answer *a);
void fp_waiters_answer(struct fp_waiters *all, fp_status why, const struct fp_answer *a);

/* Answers a question that waits for nothing by a stale
 * answer; false if there is none, and the question remains. */
bool fp_question_answer_stale(struct fp_questions *qs, struct fp_connection *conn, uint64_t id,
                              const struct fp_lookup *l);
/* Answers that there is no answer, and counts that. */
void fp_question_refuse(struct fp_questions *qs, struct fp_connection *conn, uint64_t id, fp_status why);

#endif
