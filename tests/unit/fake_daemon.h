/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon for the tests of its clients: a thread that follows a script. The script notes its
 * observations; the test judges them after both have ended.
 */
#ifndef FP_FAKE_DAEMON_H
#define FP_FAKE_DAEMON_H

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/lease_table.h"
#include "unit.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define PATIENCE_MS 20000u /* of a script, so that no test hangs */
#define PATH        "/srv/file"
#define PATH_LEN    9

static struct daemon {
    int listener, sock; /* -1: none */
    pthread_t thread;
    bool running;
    int file;                      /* what it passes */
    struct fp_lease_table *leases; /* NULL: it passes none */
    struct fp_answer_table *answers;
    struct fp_contents *contents;
    unsigned connections, questions, hints;
    uint64_t ids[8];
    uint32_t deadline_ms;
    struct fp_names names; /* of access files, that it looks for */
    unsigned n_names;      /* that the client brought */
    char path[64];
    bool saw_end; /* the client closed the connection */
} d;

static char socket_path[108];
static struct fp_sight daemons_view; /* that it reports */

static inline void listen_there(int backlog)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    unlink(socket_path);
    strcpy(addr.sun_path, socket_path);
    d.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_ne(d.listener, -1);
    ck_assert_int_eq(bind(d.listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
    ck_assert_int_eq(listen(d.listener, backlog), 0);
}

static inline void join(void)
{
    if (d.running)
        ck_assert_int_eq(pthread_join(d.thread, NULL), 0);
    d.running = false;
}

static inline void start(void *(*script)(void *))
{
    if (d.listener == -1)
        listen_there(8);
    ck_assert_int_eq(pthread_create(&d.thread, NULL, script, NULL), 0);
    d.running = true;
}

/* ---- the parts of scripts; each false when the script should end ---- */

static inline bool d_receive(struct fp_frame *f, uint8_t *buf)
{
    size_t len = 0;

    if (!unit_wait_readable(d.sock, PATIENCE_MS)
        || fp_recv_packet(d.sock, buf, FP_MAX_FRAME, &len, NULL) != FP_OK) {
        d.saw_end = true;
        return false;
    }
    return fp_frame_parse(f, buf, len) == FP_OK;
}

static inline bool d_send(const struct fp_writer *w, int fd)
{
    return fp_send_packet(d.sock, w->data, w->len, fd) == FP_OK;
}

static inline bool d_accept(void)
{
    fp_close(&d.sock);
    if (!unit_wait_readable(d.listener, PATIENCE_MS))
        return false;
    d.sock = accept4(d.listener, NULL, NULL, SOCK_CLOEXEC);
    d.connections += d.sock != -1;
    return d.sock != -1;
}

static inline bool d_hello(void)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_frame f;
    struct fp_hello h;

    if (!d_receive(&f, buf) || f.type != FP_FRAME_HELLO || f.id != 0 || fp_hello_decode(&f.body, &h) != FP_OK)
        return false;
    d.n_names = h.names.n;
    return h.version_min <= FP_WIRE_VERSION && h.version_max >= FP_WIRE_VERSION;
}

/* The welcome with the first area of the table; the second comes behind it. */
static inline bool d_welcome(uint16_t version)
{
    const struct fp_welcome hello = { version, daemons_view, d.names };
    uint8_t buf[128];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    return fp_welcome_encode(&w, &hello) == FP_OK
           && d_send(&w, d.leases != NULL ? fp_lease_table_generations_fd(d.leases) : -1);
}

static inline bool d_marks(void)
{
    uint8_t buf[128];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    return fp_empty_encode(&w, FP_FRAME_REFERENCED, 0) == FP_OK
           && d_send(&w, d.leases != NULL ? fp_lease_table_referenced_fd(d.leases) : -1);
}

/* The table of answers, and their contents. */
static inline bool d_areas(void)
{
    uint8_t buf[64];
    struct fp_writer w;
    bool sent;

    fp_writer_init(&w, buf, sizeof(buf));
    sent = fp_empty_encode(&w, FP_FRAME_ANSWERS, 0) == FP_OK && d_send(&w, fp_answer_table_fd(d.answers));
    fp_writer_init(&w, buf, sizeof(buf));
    return sent && fp_empty_encode(&w, FP_FRAME_CONTENTS, 0) == FP_OK && d_send(&w, fp_contents_fd(d.contents));
}

/* The set of events, and behind it a descriptor in place of a pipe's end. */
static inline bool d_events(void)
{
    uint8_t buf[128];
    struct fp_writer w;
    int events = epoll_create1(EPOLL_CLOEXEC);
    bool sent;

    fp_writer_init(&w, buf, sizeof(buf));
    sent = fp_empty_encode(&w, FP_FRAME_EVENTS, 0) == FP_OK && d_send(&w, events);
    fp_writer_init(&w, buf, sizeof(buf));
    sent = sent && fp_empty_encode(&w, FP_FRAME_ALIVE, 0) == FP_OK && d_send(&w, events);
    close(events);
    return sent;
}

static inline bool d_greet(void)
{
    return d_accept() && d_hello() && d_welcome(FP_WIRE_VERSION) && d_marks() && d_events() && d_areas();
}

static inline bool d_question(uint64_t *id_r)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_frame f;
    struct fp_lookup l;

    if (!d_receive(&f, buf) || f.type != FP_FRAME_LOOKUP || fp_lookup_decode(&f.body, &l) != FP_OK
        || l.path_len >= sizeof(d.path))
        return false;
    memcpy(d.path, l.path, l.path_len);
    d.path[l.path_len] = '\0';
    d.deadline_ms = l.deadline_ms;
    d.hints += l.hint;
    if (d.questions < sizeof(d.ids) / sizeof(d.ids[0]))
        d.ids[d.questions] = f.id;
    d.questions++;
    *id_r = f.id;
    return true;
}

static inline void step(struct fp_answer *a, size_t end, uint32_t mode, uint64_t size)
{
    struct fp_step *s = &a->steps[a->n_steps++];

    memset(s, 0, sizeof(*s));
    s->end = (uint16_t)end;
    s->self.mode = mode;
    s->self.size = size;
}

/* "/", "/srv" and the file, which has that size. */
static inline void make_answer(struct fp_answer *a, uint64_t size)
{
    fp_answer_init(a, FP_OK);
    step(a, 1, S_IFDIR | 0755, 0);
    step(a, 4, S_IFDIR | 0755, 0);
    step(a, PATH_LEN, S_IFREG | 0644, size);
    a->fd = d.file;
}

static inline bool d_send_answer(uint64_t id, const struct fp_answer *a)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    return fp_answer_encode(&w, id, a) == FP_OK && d_send(&w, a->fd);
}

static inline bool d_answer(uint64_t id)
{
    static struct fp_answer a;

    make_answer(&a, 7);
    return d_send_answer(id, &a);
}

/* A CONTROL; its path is noted. */
static inline bool d_control(uint64_t *id_r, struct fp_control *c)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_frame f;

    if (!d_receive(&f, buf) || f.type != FP_FRAME_CONTROL || fp_control_decode(&f.body, c) != FP_OK
        || c->path_len >= sizeof(d.path))
        return false;
    if (c->path_len > 0)
        memcpy(d.path, c->path, c->path_len);
    d.path[c->path_len] = '\0';
    d.questions++;
    *id_r = f.id;
    return true;
}

static inline bool d_done(uint64_t id, const struct fp_reply *done, int fd)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    return fp_reply_encode(&w, id, done) == FP_OK && d_send(&w, fd);
}

static inline bool d_error(fp_status st)
{
    uint8_t buf[512];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    return fp_error_encode(&w, 0, st, "no") == FP_OK && d_send(&w, -1);
}

/* Waits until the client has closed the connection. */
static inline void d_wait_for_end(void)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_frame f;

    d.saw_end = false;
    d_receive(&f, buf);
}

#endif
