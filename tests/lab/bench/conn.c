/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conn.h"

#include "peer.h"
#include "plan.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* One for all connections: nothing stays in it between two events. */
static char read_buffer[262144];

static void on_body(void *context, const char *data, size_t size)
{
    struct bench_conn *conn = context;

    if (conn->checked)
        bench_check_data(&conn->check, data, size);
}

int bench_conn_init(struct bench_conn *conn, struct bench_peer *peer, int epoll_fd)
{
    *conn = (struct bench_conn){ .peer = peer, .epoll_fd = epoll_fd, .stream.fd = -1 };
    conn->http = bench_http_create(on_body, conn);
    return conn->http == NULL ? -1 : 0;
}

void bench_conn_close(struct bench_conn *conn)
{
    if (conn->stream.fd >= 0) {
        conn->peer->transport->end(&conn->stream);
        (void)close(conn->stream.fd);
    }
    conn->stream.fd = -1;
    conn->state = BENCH_CLOSED;
    conn->served = 0;
}

void bench_conn_destroy(struct bench_conn *conn)
{
    bench_conn_close(conn);
    bench_http_destroy(&conn->http);
}

static enum bench_conn_result fail(struct bench_conn *conn, enum bench_failure failure, const char *problem)
{
    bench_conn_close(conn);
    conn->failure = failure;
    conn->problem = problem;
    return BENCH_CONN_FAILED;
}

static int open_socket(struct bench_conn *conn)
{
    const struct sockaddr *address = (const struct sockaddr *)&conn->peer->address;
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
    int one = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    event.data.ptr = conn;
    conn->stream.fd = fd;
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (epoll_ctl(conn->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return -1;
    conn->number = conn->peer->opened++;
    conn->ended = false;
    return connect(fd, address, conn->peer->address_size);
}

static enum bench_conn_result begin_connect(struct bench_conn *conn)
{
    if (open_socket(conn) != 0 && errno != EINPROGRESS)
        return fail(conn, BENCH_FAIL_CONNECT, strerror(errno));
    conn->state = BENCH_CONNECTING;
    return BENCH_CONN_PENDING;
}

/* The connection broke; decides whether the request may go out again. */
static enum bench_conn_result broken(struct bench_conn *conn, const char *problem)
{
    bool stale = conn->served > 0 && !bench_http_started(conn->http);

    bench_conn_close(conn);
    if (!stale)
        return fail(conn, BENCH_FAIL_CLOSED, problem);
    conn->retries++;
    conn->sent = 0;
    return begin_connect(conn);
}

static enum bench_conn_result complete(struct bench_conn *conn, bool surplus)
{
    if (surplus)
        return fail(conn, BENCH_FAIL_MALFORMED, "more bytes than the response should have");
    conn->served++;
    /* httpd closes kept-alive connections when it is short of workers. It ends its side and goes on
     * reading for a while, so no second event would report the end. */
    if (bench_http_keep_alive(conn->http) && !conn->ended)
        conn->state = BENCH_IDLE;
    else
        bench_conn_close(conn);
    return BENCH_CONN_DONE;
}

static enum bench_conn_result on_eof(struct bench_conn *conn)
{
    if (bench_http_started(conn->http) && bench_http_eof(conn->http) == BENCH_HTTP_DONE)
        return complete(conn, false);
    return broken(conn, "the connection was closed before the end of the response");
}

static enum bench_conn_result on_data(struct bench_conn *conn, size_t size)
{
    size_t used;

    switch (bench_http_feed(conn->http, read_buffer, size, &used)) {
    case BENCH_HTTP_DONE: return complete(conn, used < size);
    case BENCH_HTTP_ERROR: return fail(conn, BENCH_FAIL_MALFORMED, bench_http_problem(conn->http));
    case BENCH_HTTP_MORE: break;
    }
    return BENCH_CONN_PENDING;
}

static enum bench_conn_result read_answer(struct bench_conn *conn)
{
    for (;;) {
        enum bench_conn_result result;
        ssize_t size = conn->peer->transport->receive(&conn->stream, read_buffer, sizeof(read_buffer));

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return BENCH_CONN_PENDING;
        if (size < 0)
            return broken(conn, conn->peer->transport->problem());
        if (size == 0)
            return on_eof(conn);
        result = on_data(conn, (size_t)size);
        if (result != BENCH_CONN_PENDING)
            return result;
    }
}

static enum bench_conn_result send_request(struct bench_conn *conn)
{
    while (conn->sent < conn->request->size) {
        ssize_t size = conn->peer->transport->send(&conn->stream, conn->request->text + conn->sent,
                                                   conn->request->size - conn->sent);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return BENCH_CONN_PENDING;
        if (size < 0)
            return broken(conn, conn->peer->transport->problem());
        conn->sent += (size_t)size;
    }
    conn->state = BENCH_READING;
    return BENCH_CONN_PENDING;
}

static enum bench_conn_result shake_hands(struct bench_conn *conn)
{
    const struct bench_transport *transport = conn->peer->transport;

    if (transport->handshake(&conn->stream) != 0) {
        if (errno == EAGAIN)
            return BENCH_CONN_PENDING;
        return fail(conn, BENCH_FAIL_CONNECT, transport->problem());
    }
    conn->state = BENCH_SENDING;
    return send_request(conn);
}

static enum bench_conn_result on_connected(struct bench_conn *conn)
{
    const struct bench_transport *transport = conn->peer->transport;
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    int error = 0;
    socklen_t error_size = sizeof(error);

    if (getsockopt(conn->stream.fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0)
        error = errno;
    if (error != 0)
        return fail(conn, BENCH_FAIL_CONNECT, strerror(error));
    /* A new socket reports EPOLLHUP once before it connects: not there yet. */
    if (getpeername(conn->stream.fd, (struct sockaddr *)&peer, &size) != 0)
        return BENCH_CONN_PENDING;
    if (transport->begin(transport, &conn->stream) != 0)
        return fail(conn, BENCH_FAIL_CONNECT, transport->problem());
    conn->state = BENCH_HANDSHAKE;
    return shake_hands(conn);
}

enum bench_conn_result bench_conn_start(struct bench_conn *conn, const struct bench_request *request)
{
    conn->request = request;
    conn->sent = 0;
    bench_http_reset(conn->http, request->head);
    if (conn->state == BENCH_CLOSED)
        return begin_connect(conn);
    conn->state = BENCH_SENDING;
    return send_request(conn);
}

enum bench_conn_result bench_conn_event(struct bench_conn *conn, uint32_t events)
{
    enum bench_conn_result result = BENCH_CONN_PENDING;

    if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0 && conn->state == BENCH_READING)
        conn->ended = true;
    if (conn->state == BENCH_CONNECTING)
        result = on_connected(conn);
    else if (conn->state == BENCH_HANDSHAKE)
        result = shake_hands(conn);
    else if (conn->state == BENCH_SENDING)
        result = send_request(conn);
    if (result == BENCH_CONN_PENDING && conn->state == BENCH_READING)
        result = read_answer(conn);
    return result;
}

const char *bench_conn_idle_event(struct bench_conn *conn)
{
    ssize_t size = conn->peer->transport->receive(&conn->stream, read_buffer, sizeof(read_buffer));

    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return NULL;
    bench_conn_close(conn);
    return size > 0 ? "bytes came that no request asked for" : NULL;
}
