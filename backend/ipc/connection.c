/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ipc/connection.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/turn.h"
#include "changes/watch.h"
#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/lease_table.h"
#include "shared/tables.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define HELLO_SECONDS 5.0 /* for the first frame to come */
#define SEND_SECONDS  5.0 /* for an answer to be taken */

enum state {
    EXPECT_HELLO,
    READY,     /* for a question */
    ANSWERING, /* a question is with our owner */
    SENDING    /* an answer does not fit into the socket yet */
};

struct fp_connection {
    TAILQ_ENTRY(fp_connection) link;
    struct fp_connections *all;
    bool root; /* the peer is root */
    struct ev_loop *loop;
    const struct fp_connection_deps *deps;
    void *slot;
    int sock;
    enum state state;
    ev_io readable, writable;
    ev_timer timer;
    uint8_t *pending; /* the packet of state SENDING */
    size_t pending_len;
    int pending_fd;
};

void **fp_connection_slot(struct fp_connection *conn)
{
    return &conn->slot;
}

void fp_connections_init(struct fp_connections *all)
{
    TAILQ_INIT(&all->list);
    all->n = 0;
}

/* Its child connects again when it has a question, while a child that gets no connection would serve without us. */
bool fp_connections_displace(struct fp_connections *all, bool root)
{
    struct fp_connection *conn;

    TAILQ_FOREACH_REVERSE(conn, &all->list, fp_connection_list, link)
    {
        if ((conn->state == EXPECT_HELLO || conn->state == READY) && (root || !conn->root)) {
            fp_connection_destroy(&conn);
            return true;
        }
    }
    return false;
}

void fp_connections_end(struct fp_connections *all)
{
    struct fp_connection *conn;

    while ((conn = TAILQ_FIRST(&all->list)) != NULL)
        fp_connection_destroy(&conn);
}

static void drop_pending(struct fp_connection *conn)
{
    free(conn->pending);
    conn->pending = NULL;
    fp_close_file(&conn->pending_fd, 0);
}

void fp_connection_destroy(struct fp_connection **cp)
{
    struct fp_connection *conn = *cp;

    if (conn == NULL)
        return;
    *cp = NULL;
    conn->deps->ops->closed(conn->deps->ctx, conn);
    TAILQ_REMOVE(&conn->all->list, conn, link);
    conn->all->n--;
    ev_io_stop(conn->loop, &conn->readable);
    ev_io_stop(conn->loop, &conn->writable);
    ev_timer_stop(conn->loop, &conn->timer);
    drop_pending(conn);
    fp_close(&conn->sock);
    free(conn);
}

static void set_timer(struct fp_connection *conn, double seconds)
{
    ev_timer_stop(conn->loop, &conn->timer);
    if (seconds > 0) {
        ev_timer_set(&conn->timer, seconds, 0.);
        ev_timer_start(conn->loop, &conn->timer);
    }
}

/* Sends an ERROR, the last frame; whether it arrives does not matter. */
static void hang_up(struct fp_connection *conn, fp_status why)
{
    uint8_t buf[FP_FRAME_HEADER + 2 + FP_MAX_TEXT];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    if ((why == FP_PROTOCOL || why == FP_VERSION)
        && fp_error_encode(&w, 0, why, fp_status_text(why)) == FP_OK) {
        fp_send_packet(conn->sock, buf, w.len, -1);
        fp_log(FP_LOG_WARNING, 30,
               "closing a connection: %s; do module and daemon "
               "belong together?",
               fp_status_text(why));
    }
    fp_connection_destroy(&conn);
}

/* The kernel sends no descriptor while those that this user's processes have sent, and nobody has received,
 * are more than the limit on ours. */
static fp_status send_packet(const struct fp_connection *conn, const struct fp_writer *w, int fd)
{
    const fp_status st = fp_send_packet(conn->sock, w->data, w->len, fd);

    if (st == FP_SYSTEM && errno == ETOOMANYREFS)
        fp_log(FP_LOG_ERROR, 32,
               "closing a connection: processes of this user have sent more descriptors that nobody has "
               "received than the limit on ours allows; look for connections that do not read, and raise that "
               "limit (LimitNOFILE=, ulimit -n)");
    return st;
}

/* Keeps the packet until the peer reads; the descriptor needs a copy. */
static fp_status hold(struct fp_connection *conn, const struct fp_writer *w, int fd)
{
    conn->pending = fp_memory_take(w->len);
    if (conn->pending == NULL)
        return FP_NOMEM;
    memcpy(conn->pending, w->data, w->len);
    conn->pending_len = w->len;
    if (fd != -1) {
        conn->pending_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (conn->pending_fd == -1)
            return FP_SYSTEM;
    }
    conn->state = SENDING;
    ev_io_start(conn->loop, &conn->writable);
    set_timer(conn, SEND_SECONDS);
    return FP_OK;
}

/* encoded: whether w holds a frame. */
static void send_frame(struct fp_connection *conn, fp_status encoded, const struct fp_writer *w, int fd)
{
    fp_status st;

    if (encoded != FP_OK) {
        hang_up(conn, FP_PROTOCOL);
        return;
    }
    st = send_packet(conn, w, fd);
    conn->state = READY;
    if (st == FP_AGAIN)
        st = hold(conn, w, fd);
    if (st != FP_OK)
        fp_connection_destroy(&conn);
}

void fp_connection_answer(struct fp_connection *conn, uint64_t id, const struct fp_answer *a)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    send_frame(conn, fp_answer_encode(&w, id, a), &w, a->fd);
}

void fp_connection_refuse(struct fp_connection *conn, uint64_t id, fp_status why)
{
    static struct fp_answer a;

    fp_answer_init(&a, why);
    fp_connection_answer(conn, id, &a);
}

void fp_connection_pass(struct fp_connection *conn)
{
    conn->state = READY;
}

void fp_connection_reply(struct fp_connection *conn, uint64_t id, const struct fp_reply *reply)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    send_frame(conn, fp_reply_encode(&w, id, reply), &w, -1);
}

/* Sends the greeting.  The set of events is this client's alone, so that it can spoil no other's. */
static fp_status welcome(struct fp_connection *conn, const struct fp_names *names)
{
    const struct fp_welcome hello = { FP_WIRE_VERSION, *conn->deps->sees, *names };
    int events = fp_watch_event_set(conn->deps->watch);
    uint8_t buf[128 + FP_NAMES_TEXT];
    struct fp_writer w;
    const struct {
        enum fp_frame_type type;
        int fd;
    } rest[] = { { FP_FRAME_REFERENCED, fp_lease_table_referenced_fd(conn->deps->tables->leases) },
                 { FP_FRAME_EVENTS, events },
                 { FP_FRAME_ALIVE, conn->deps->watch->alive[0] },
                 { FP_FRAME_ANSWERS, fp_answer_table_fd(conn->deps->tables->answers) },
                 { FP_FRAME_CONTENTS, fp_contents_fd(conn->deps->tables->contents) } };
    fp_status st = FP_SYSTEM;

    fp_writer_init(&w, buf, sizeof(buf));
    if (events != -1 && (st = fp_welcome_encode(&w, &hello)) == FP_OK)
        st = send_packet(conn, &w, fp_lease_table_generations_fd(conn->deps->tables->leases));
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]) && st == FP_OK; i++) {
        fp_writer_init(&w, buf, sizeof(buf));
        fp_empty_encode(&w, rest[i].type, 0);
        st = send_packet(conn, &w, rest[i].fd);
    }
    fp_close(&events);
    conn->state = READY;
    return st;
}

static fp_status greet(struct fp_connection *conn, struct fp_frame *f)
{
    struct fp_hello h;

    if (f->type != FP_FRAME_HELLO || f->id != 0 || fp_hello_decode(&f->body, &h) != FP_OK)
        return FP_PROTOCOL;
    if (h.version_min > FP_WIRE_VERSION || h.version_max < FP_WIRE_VERSION)
        return FP_VERSION;
    set_timer(conn, 0);
    return welcome(conn, conn->deps->ops->names(conn->deps->ctx, &h.names));
}

static fp_status take_frame(struct fp_connection *conn, struct fp_frame *f)
{
    switch (conn->state) {
    case EXPECT_HELLO: return greet(conn, f);
    case READY:
        conn->state = ANSWERING;
        TAILQ_REMOVE(&conn->all->list, conn, link);
        TAILQ_INSERT_HEAD(&conn->all->list, conn, link);
        return conn->deps->ops->question(conn->deps->ctx, conn, f);
    default:
        /* A client may ask one question at a time. */
        return FP_PROTOCOL;
    }
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int events)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_connection *conn = watcher->data;
    struct fp_frame f;
    size_t len = 0;
    fp_status st = fp_recv_packet(conn->sock, buf, sizeof(buf), &len, NULL);

    fp_turn_work(FP_WORK_CONNECTION);
    (void)loop;
    (void)events;
    if (st == FP_AGAIN)
        return;
    if (st == FP_OK)
        st = fp_frame_parse(&f, buf, len);
    if (st == FP_OK)
        st = take_frame(conn, &f);
    if (st == FP_CLOSED || st == FP_SYSTEM)
        fp_connection_destroy(&conn);
    else if (st != FP_OK)
        hang_up(conn, st);
}

static void on_writable(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct fp_connection *conn = watcher->data;
    fp_status st = fp_send_packet(conn->sock, conn->pending, conn->pending_len, conn->pending_fd);

    fp_turn_work(FP_WORK_CONNECTION);
    (void)events;
    if (st == FP_AGAIN)
        return;
    if (st != FP_OK) {
        fp_connection_destroy(&conn);
        return;
    }
    ev_io_stop(loop, &conn->writable);
    set_timer(conn, 0);
    drop_pending(conn);
    conn->state = READY;
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events)
{
    struct fp_connection *conn = watcher->data;

    fp_turn_work(FP_WORK_CONNECTION);
    (void)loop;
    (void)events;
    fp_log(FP_LOG_WARNING, 31, "closing a connection: its peer %s",
           conn->state == EXPECT_HELLO ? "said nothing" : "does not read its answer");
    fp_connection_destroy(&conn);
}

struct fp_connection *fp_connection_create(struct ev_loop *loop, int sock, bool root,
                                           const struct fp_connection_deps *deps, struct fp_connections *all)
{
    struct fp_connection *conn = fp_memory_take_zeroed(1, sizeof(*conn));

    if (conn == NULL) {
        fp_close(&sock);
        return NULL;
    }
    conn->loop = loop;
    conn->deps = deps;
    conn->all = all;
    conn->root = root;
    TAILQ_INSERT_HEAD(&all->list, conn, link);
    all->n++;
    conn->sock = sock;
    conn->pending_fd = -1;
    ev_io_init(&conn->readable, on_readable, sock, EV_READ);
    ev_io_init(&conn->writable, on_writable, sock, EV_WRITE);
    ev_init(&conn->timer, on_timer);
    conn->readable.data = conn->writable.data = conn->timer.data = conn;
    ev_io_start(loop, &conn->readable);
    set_timer(conn, HELLO_SECONDS);
    return conn;
}
