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

#include "errors.h"

struct fp_answer;
struct fp_client;
struct fp_names;

/*
 * path: the daemon's socket, copied.  timeout_ms: how long one question may
 * take.  max_idle: how many connections are kept.  NULL: no memory, or the
 * path does not fit.
 */
struct fp_client *fp_client_create(const char *path, uint32_t timeout_ms,
                                   unsigned max_idle);

/* No question may be under way. */
void fp_client_destroy(struct fp_client **client);

/*
 * Asks for a path in normal form, and for the access files of these names in
 * each directory on the way (NULL: none).  FP_OK: *a is what the daemon said, which
 * may be that it has no answer (a->status); a->fd is the caller's.
 * Otherwise there was no answer: FP_AGAIN (the daemon failed a moment ago and
 * is not asked yet), FP_TIMEOUT, FP_CLOSED, FP_VERSION, FP_PROTOCOL,
 * FP_DENIED (what listens there is not run by our user or root), FP_LOSTFD,
 * FP_SYSTEM.  May be called by several threads.
 */
fp_status fp_client_lookup(struct fp_client *client, const char *path, size_t len,
                           const struct fp_names *names, struct fp_answer *a);

#endif
