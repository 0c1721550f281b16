/* SPDX-License-Identifier: Apache-2.0
 *
 * One client connection: connecting, sending a request, reading the answer; at most one
 * request under way. Registers itself with the epoll instance, edge-triggered, with the
 * connection as data.
 *
 * When the server closes a connection that had served requests before it has sent a byte of
 * the next answer (its keep-alive ended meanwhile), the request goes out once more on a new
 * connection, as browsers do.
 */
#ifndef BENCH_CONN_H
#define BENCH_CONN_H

#include "http.h"
#include "transport.h"
#include "verify.h"

enum bench_conn_result {
    BENCH_CONN_PENDING, /* wait for the next event */
    BENCH_CONN_DONE,    /* answered */
    BENCH_CONN_FAILED,  /* closed; see failure and problem */
};

enum bench_failure {
    BENCH_FAIL_CONNECT,   /* could not connect, or not agree on TLS */
    BENCH_FAIL_CLOSED,    /* the connection broke before the end of the answer */
    BENCH_FAIL_MALFORMED, /* the answer is no HTTP */
    BENCH_FAIL_TIMEOUT,
    BENCH_FAIL_BODY,   /* the body is not that of the file */
    BENCH_FAIL_STATUS, /* status 400 and above */
    BENCH_FAIL_COUNT
};

enum bench_conn_state {
    BENCH_CLOSED,
    BENCH_CONNECTING,
    BENCH_HANDSHAKE,
    BENCH_SENDING,
    BENCH_READING,
    BENCH_IDLE
};

struct bench_peer;

struct bench_conn {
    /* Set by the user of the connection, before the first request. */
    struct bench_peer *peer;
    int epoll_fd;
    /* The connection's own. */
    enum bench_conn_state state;
    struct bench_stream stream;
    struct bench_http *http;
    struct bench_check check; /* fed with the body when `checked` */
    bool checked;
    const struct bench_request *request;
    size_t sent;
    bool ended;       /* the server will send nothing more after what has come */
    uint64_t served;  /* answers on the present connection */
    uint64_t number;  /* of the present or last connection, among all of the peer */
    uint64_t retries; /* requests sent again */
    enum bench_failure failure;
    const char *problem;
};

/* 0, or -1 when there is no memory. */
int bench_conn_init(struct bench_conn *conn, struct bench_peer *peer, int epoll_fd);
void bench_conn_destroy(struct bench_conn *conn);

/* Sends a request; the connection must be closed or idle. The request must stay until the end. */
enum bench_conn_result bench_conn_start(struct bench_conn *conn, const struct bench_request *request);

/* After an event on a connection that is not idle; the events are those of epoll. */
enum bench_conn_result bench_conn_event(struct bench_conn *conn, uint32_t events);

/* After an event on an idle connection: closed by the server, usually. A problem or NULL. */
const char *bench_conn_idle_event(struct bench_conn *conn);

void bench_conn_close(struct bench_conn *conn);

#endif
