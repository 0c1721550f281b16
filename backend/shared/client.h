/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's connections to flashpached.  Knows neither httpd nor APR.
 *
 * Each thread has a connection to itself while it waits for the answer to one
 * question; connections are kept and used again.  A connection with any
 * failure is closed, so a late answer cannot become that of the next question.
 * After a failure of the daemon the client pauses, longer each time.
 */
#ifndef FP_CLIENT_H
#define FP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "wire/sight.h"

struct fp_answer;
struct fp_lookup;
struct fp_client;
struct fp_control;
struct fp_reply;
struct fp_names;
struct fp_lease_view;

/*
 * path: the daemon's socket, copied.  timeout_ms: the longest that one question
 * takes, about, while the daemon writes its heartbeat; without a heartbeat it is a second at
 * most.  max_idle: how many connections are kept.  NULL: no memory, or the
 * path is too long.
 */
struct fp_client *fp_client_create(const char *path, uint32_t timeout_ms, unsigned max_idle);

/* Waits no longer than that for a daemon that writes no heartbeat, or for a connection. To be called before the first
 * question. */
void fp_client_set_patience(struct fp_client *client, uint32_t ms);

/* Trusts a daemon of this user too, beside root and this process's effective user.  To be called before the
 * first question. */
void fp_client_set_daemon_uid(struct fp_client *client, uid_t uid);

/* Trusts a daemon only if root made its socket, which no process of another user can do.  To be called before
 * the first question. */
void fp_client_trust_root_only(struct fp_client *client);

/* Trusts a daemon only if it sees the file system as this process does.  Without files: only if it is in
 * the same namespaces of users and time.  To be called before the first question. */
void fp_client_compare_sights(struct fp_client *client, bool files);

/* Why there is no connection, after FP_CLOSED. */
enum fp_no_connection {
    FP_NO_CONNECTION_ENDED,    /* the daemon ended it, behind the greeting */
    FP_NO_CONNECTION_MISSING,  /* there is no socket at the path */
    FP_NO_CONNECTION_DENIED,   /* this process may not connect to it */
    FP_NO_CONNECTION_DESERTED, /* nobody listens at the socket that is there */
    FP_NO_CONNECTION_REFUSED   /* the daemon ended it in place of a greeting */
};

/* What the last connection, or the last attempt, has shown. */
struct fp_client_last {
    uid_t maker; /* of the socket; (uid_t)-1: unknown.  After FP_FOREIGN that user is not trusted */
    enum fp_no_connection no_connection;
    enum fp_sight_difference difference; /* after FP_ELSEWHERE: between the two */
};
struct fp_client_last fp_client_last(struct fp_client *client);

/* Answers have the access files of these names, at most FP_MAX_NAMES, where the daemon looks for all of them;
 * else they say nothing of any.  tell: the daemon is told of the names, and looks for them if its list has
 * room. The names stay the caller's, and outlive the client.  To be called before the first question. */
void fp_client_set_names(struct fp_client *client, const struct fp_names *names, bool tell);

/* Has answers and contents mapped: for a process of many
 * threads (area.h).  To be called before the first question. */
void fp_client_map_tables(struct fp_client *client);

/* No question may be under way. */
void fp_client_destroy(struct fp_client **client);

/*
 * The lease table of the daemon that was connected to last, with the tables of answers and
 * contents, and a reference for the caller.  Connects where no connection was yet, else sends no message:
 * that daemon may be gone, which the lease table shows.  FP_OK, *view_r being NULL where there is no memory
 * for it alone; otherwise as fp_client_lookup().
 */
fp_status fp_client_view(struct fp_client *client, struct fp_lease_view **view_r);

/* Connects, unless a connection is idle.  FP_OK, or as fp_client_lookup(). */
fp_status fp_client_connect(struct fp_client *client);

/*
 * Asks for a path in normal form.  FP_OK: *a is the daemon's answer, whose
 * status may be a reason why there is none; a->fd is the caller's.
 * Otherwise: FP_AGAIN (a pause after a failure), FP_TIMEOUT, FP_CLOSED,
 * FP_VERSION, FP_PROTOCOL, FP_FOREIGN, FP_ELSEWHERE,
 * FP_LOSTFD, FP_SYSTEM, FP_NOMEM (of this process).  May be called by several threads.
 * *view_r (may be NULL): the lease table of the answer's slots, with a
 * reference for the caller; NULL where there is none.  With a->content the file's content is at a->content_at
 * of the view's contents, for as long as it is not overwritten.
 */
fp_status fp_client_lookup(struct fp_client *client, const char *path, size_t len, struct fp_answer *a,
                           struct fp_lease_view **view_r);

/* Asks like fp_client_lookup(), with the flags of a LOOKUP; wish->deadline_ms is the client's own. */
fp_status fp_client_lookup_with(struct fp_client *client, const struct fp_lookup *wish, struct fp_answer *a,
                                struct fp_lease_view **view_r);

/*
 * Names a path that the daemon may look up when it has time.  It is
 * for a path whose answer this process has from elsewhere.  Waits for nothing.  False: the hint is dropped,
 * since no connection is idle, or the daemon does not read.  Questions go on as if it had not been.
 */
bool fp_client_hint(struct fp_client *client, const char *path, size_t len);

/*
 * Asks for a control operation.  FP_OK: *reply is the daemon's, whose status may
 * say why it was not done; its text points into buf, which has FP_MAX_FRAME
 * bytes.  Otherwise as fp_client_lookup().
 */
fp_status fp_client_control(struct fp_client *client, const struct fp_control *question,
                            struct fp_reply *reply, uint8_t *buf);

#endif
