/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's connections to flashpached.  Knows neither httpd nor APR.
 *
 * Each thread that asks has a connection to itself while it waits, one
 * question at a time; connections are kept and used again.  A connection on
 * which anything went wrong is closed and never used again, so a late answer
 * cannot become that of the next question.  After a failure of the daemon
 * nobody asks for a moment, which grows while it stays away.
 */
#ifndef FP_CLIENT_H
#define FP_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/errors.h"

struct fp_answer;
struct fp_client;
struct fp_control;
struct fp_reply;
struct fp_names;
struct fp_lease_view;

/*
 * path: the daemon's socket, copied.  timeout_ms: how long one question may
 * take, about, while the daemon's table shows that it lives, else a second at
 * most.  max_idle: how many connections are kept.  NULL: no memory, or the
 * path does not fit.
 */
struct fp_client *fp_client_create(const char *path, uint32_t timeout_ms,
                                   unsigned max_idle);

/* Trusts a daemon of this user as well: beside root's and that of our own
 * effective user.  Before the first question. */
void fp_client_set_daemon_uid(struct fp_client *client, uid_t uid);

/* No question may be under way. */
void fp_client_destroy(struct fp_client **client);

/*
 * Asks for a path in normal form, and for the access files of these names in
 * each directory on the way (NULL: none).  FP_OK: *a is what the daemon said, which
 * may be that it has no answer (a->status); a->fd is the caller's.
 * Otherwise there was no answer: FP_AGAIN (the daemon failed a moment ago and
 * is not asked yet), FP_TIMEOUT, FP_CLOSED, FP_VERSION, FP_PROTOCOL,
 * FP_DENIED (what listens there is not run by a user whom we trust), FP_LOSTFD,
 * FP_SYSTEM.  May be called by several threads.
 * *view_r (may be NULL): the table that the answer's slots are in, with a
 * reference for the caller; NULL where there is none.
 */
fp_status fp_client_lookup(struct fp_client *client, const char *path, size_t len,
                           const struct fp_names *names, struct fp_answer *a,
                           struct fp_lease_view **view_r);

/*
 * Asks for a control operation.  FP_OK: *done is what the daemon said, which may
 * be that it was not done (done->status); its text points into room, which has
 * FP_MAX_FRAME bytes.  Otherwise as fp_client_lookup().
 */
fp_status fp_client_control(struct fp_client *client, const struct fp_control *question,
                            struct fp_reply *done, uint8_t *room);

#endif
