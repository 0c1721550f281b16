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
#include "wire/wire.h"

struct fp_answer;
struct fp_client;
struct fp_lease_view;

struct fp_client_settings {
    const char *path;     /* the daemon's socket; copied */
    uint32_t timeout_ms;  /* the longest that one question takes, about, while the daemon writes its heartbeat */
    uint32_t patience_ms; /* the same for a daemon that writes none, and for a connection; 0: a second at most */
    unsigned max_idle;    /* how many connections are kept */
    bool maps_contents;   /* contents are mapped, as answers always are; else read: for one of many processes (area.h) */
    uid_t trusted;        /* a daemon of this user is trusted, too, beside root and this process's effective user */
    bool root_only;       /* a daemon is trusted only if root made its socket, which no process of another user can do */
    bool compares;        /* only if it is in the same namespaces of users and time, */
    bool compares_files;  /* and sees the file system as this process does */
    /* Answers have the access files of these names, where the daemon looks for all of them; else they say nothing of
     * any.  The names stay the caller's, and outlive the client. */
    struct fp_names names;
    bool tells_names; /* the daemon is told of the names, and looks for them if its list has room */
};

/* NULL: no memory, or the path is too long. */
struct fp_client *fp_client_create(const struct fp_client_settings *settings);

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
