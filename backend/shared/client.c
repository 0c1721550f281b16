/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/socket_path.h"
#include "wire/wire.h"

/* Pauses after a failure of the daemon, doubled at each failure from the first to the longest.
 * An absent daemon costs a connect(), and a hanging one costs every client its timeout.  A daemon that sees
 * other files costs a look at the table of mounts. */
#define ABSENT_FIRST_MS   25u
#define ABSENT_LONGEST_MS 400u
#define HUNG_FIRST_MS     1000u
#define HUNG_LONGEST_MS   16000u

/* A busy daemon goes on writing its heartbeat.  A waiting thread looks for it every
 * HEARTBEAT_CHECK_MS, and gives up after a silence of SILENCE_MS.  For a daemon that is kept from the
 * processor for a moment does not hang. */
#define HEARTBEAT_CHECK_MS 1000u
#define SILENCE_MS         750u

/* A connection, and the lease table of its daemon. */
struct link {
    int sock;                   /* -1: none */
    struct fp_lease_view *view; /* NULL: there is no memory for it */
    struct fp_chosen chosen;    /* of its names of access files */
};

struct fp_client {
    struct sockaddr_un addr;
    struct fp_client_settings settings;
    pthread_mutex_t mutex; /* of all below */
    uint64_t last_id;
    uint64_t retry_at_ms;
    uint32_t pause_ms; /* the last one; 0 after a success */
    struct fp_client_last last;
    struct fp_lease_view *view; /* of the daemon of the last connection */
    pid_t pid;                  /* of the process that made it */
    unsigned n_idle;
    struct link idle[];
};

static void hang_up(struct link *l)
{
    fp_close(&l->sock);
    fp_lease_view_release(&l->view);
}

struct fp_client *fp_client_create(const struct fp_client_settings *settings)
{
    struct fp_client *c = calloc(1, sizeof(*c) + settings->max_idle * sizeof(c->idle[0]));

    if (c == NULL || !fp_unix_address(&c->addr, settings->path)) {
        free(c);
        return NULL;
    }
    c->settings = *settings;
    if (settings->patience_ms == 0)
        c->settings.patience_ms =
            settings->timeout_ms < HEARTBEAT_CHECK_MS ? settings->timeout_ms : HEARTBEAT_CHECK_MS;
    c->last.maker = (uid_t)-1;
    c->pid = getpid();
    pthread_mutex_init(&c->mutex, NULL);
    return c;
}

struct fp_client_last fp_client_last(struct fp_client *c)
{
    struct fp_client_last last;

    pthread_mutex_lock(&c->mutex);
    last = c->last;
    pthread_mutex_unlock(&c->mutex);
    return last;
}

void fp_client_destroy(struct fp_client **cp)
{
    struct fp_client *c = *cp;

    if (c == NULL)
        return;
    while (c->n_idle > 0)
        hang_up(&c->idle[--c->n_idle]);
    fp_lease_view_release(&c->view);
    pthread_mutex_destroy(&c->mutex);
    free(c);
    *cp = NULL;
}

/* ---- the state that threads share ---- */

/* Returns false during a pause, and in a process that was forked
 * from the client's: both would hear each other's answers. */
static bool begin(struct fp_client *c, struct link *l, uint64_t *id_r)
{
    bool allowed;

    if (getpid() != c->pid)
        return false;
    pthread_mutex_lock(&c->mutex);
    allowed = c->pause_ms == 0 || fp_now_ms() >= c->retry_at_ms;
    *id_r = ++c->last_id;
    *l = allowed && c->n_idle > 0 ? c->idle[--c->n_idle] : (struct link){ .sock = -1 };
    pthread_mutex_unlock(&c->mutex);
    return allowed;
}

/* A connection whose tables there was no room for is not kept: the next one may have room.  answered: the
 * daemon did, so no pause is needed any more. */
static void keep(struct fp_client *c, struct link *l, bool answered)
{
    pthread_mutex_lock(&c->mutex);
    if (answered)
        c->pause_ms = 0;
    if (l->sock != -1 && l->view != NULL && c->n_idle < c->settings.max_idle) {
        c->idle[c->n_idle++] = *l;
        *l = (struct link){ .sock = -1 };
    }
    pthread_mutex_unlock(&c->mutex);
    hang_up(l);
}

/* Closes idle connections: their daemon is gone. */
static void drop_idle(struct fp_client *c)
{
    pthread_mutex_lock(&c->mutex);
    while (c->n_idle > 0)
        hang_up(&c->idle[--c->n_idle]);
    pthread_mutex_unlock(&c->mutex);
}

/* The descriptors that a daemon passes at the hello. */
struct passed {
    int generations, referenced, events, alive, answers, contents;
};

/* Returns NULL if one of them is not as it should be, or there is no memory. */
static struct fp_lease_view *create_view(const struct fp_client *c, const struct passed *p,
                                         const struct fp_chosen *chosen)
{
    struct fp_lease_view *v = fp_lease_view_create(p->generations, p->referenced, p->events, p->alive);
    struct fp_answer_view *answers;
    struct fp_contents_view *contents;

    if (v == NULL)
        return NULL;
    answers = fp_answer_view_create(p->answers, chosen);
    contents = fp_contents_view_create(p->contents, c->settings.maps_contents);
    fp_lease_view_attach(v, answers, contents);
    if (answers == NULL || contents == NULL)
        fp_lease_view_release(&v);
    return v;
}

/* All connections to one daemon share a mapping of its tables.  Its list of names only grows at the end. */
static struct fp_lease_view *view_of(struct fp_client *c, const struct passed *p,
                                     const struct fp_chosen *chosen)
{
    struct fp_lease_view *v;

    pthread_mutex_lock(&c->mutex);
    if (c->view == NULL || !fp_lease_view_is_of(c->view, p->generations)) {
        if (c->view != NULL)
            fp_lease_view_supersede(c->view);
        fp_lease_view_release(&c->view);
        c->view = create_view(c, p, chosen);
    }
    v = c->view;
    if (v != NULL)
        fp_lease_view_retain(v);
    pthread_mutex_unlock(&c->mutex);
    return v;
}

static void pause_asking(struct fp_client *c, fp_status why)
{
    const bool dear = why == FP_TIMEOUT || why == FP_ELSEWHERE;
    uint32_t first = dear ? HUNG_FIRST_MS : ABSENT_FIRST_MS;
    uint32_t longest = dear ? HUNG_LONGEST_MS : ABSENT_LONGEST_MS;
    uint64_t now = fp_now_ms();

    pthread_mutex_lock(&c->mutex);
    /* Failures of concurrent questions count once. */
    if (c->pause_ms == 0 || now >= c->retry_at_ms) {
        c->pause_ms = c->pause_ms < first ? first : c->pause_ms * 2;
        if (c->pause_ms > longest)
            c->pause_ms = longest;
        c->retry_at_ms = now + c->pause_ms;
    }
    pthread_mutex_unlock(&c->mutex);
}

/* ---- one connection ---- */

/* The status of a call that failed with errno: what this process lacks, or another one. */
static fp_status lack_or(fp_status other)
{
    switch (errno) {
    case EMFILE:
    case ENFILE: return FP_LOSTFD;
    case ENOMEM:
    case ENOBUFS: return FP_NOMEM;
    default: return other;
    }
}

/* Limits calls on the socket to the time until the deadline; false: no time is left. */
static bool limit(int sock, uint64_t deadline_ms)
{
    uint64_t now = fp_now_ms(), ms = deadline_ms > now ? deadline_ms - now : 0;
    const struct timeval tv = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000 };

    if (ms == 0)
        return false; /* a timeval of zero would mean no limit */
    return setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0
           && setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == 0;
}

/* The daemon's answers decide what the client serves, so it must be trusted.  The kernel says who called
 * listen(2). */
static bool is_trusted(struct fp_client *c, int sock)
{
    const uid_t maker = fp_socket_path_maker(sock);

    pthread_mutex_lock(&c->mutex);
    c->last.maker = maker;
    pthread_mutex_unlock(&c->mutex);
    return maker == 0 || (!c->settings.root_only && maker != (uid_t)-1 && (maker == geteuid() || maker == c->settings.trusted));
}

/* A daemon that sees other files than this process answers with files that this one could not open, or
 * not by that name. */
static bool sees_the_same(struct fp_client *c, const struct fp_sight *daemons)
{
    const enum fp_sight_difference d =
        c->settings.compares ? fp_sight_compare(daemons, c->settings.compares_files) : FP_SIGHT_SAME;

    pthread_mutex_lock(&c->mutex);
    c->last.difference = d;
    pthread_mutex_unlock(&c->mutex);
    return d == FP_SIGHT_SAME;
}

/* Receives one frame within the socket's timeout. */
static fp_status receive(int sock, uint8_t *buf, struct fp_frame *f, int *fd_r)
{
    size_t len = 0;
    fp_status st = fp_recv_packet(sock, buf, FP_MAX_FRAME, &len, fd_r);

    if (st == FP_AGAIN)
        return FP_TIMEOUT;
    if (st != FP_OK)
        return st == FP_SYSTEM ? lack_or(st) : st;
    st = fp_frame_parse(f, buf, len);
    if (st != FP_OK && fd_r != NULL)
        fp_close(fd_r);
    return st;
}

/* encoded: whether w holds a frame. */
static fp_status send_frame(int sock, fp_status encoded, const struct fp_writer *w)
{
    fp_status st = encoded == FP_OK ? fp_send_packet(sock, w->data, w->len, -1) : encoded;

    if (st == FP_AGAIN)
        return FP_TIMEOUT;
    return st == FP_SYSTEM ? lack_or(st) : st;
}

/* Sends w and receives one frame in its place until the deadline, while the daemon writes its
 * heartbeat. */
static fp_status exchange(const struct link *l, fp_status encoded, const struct fp_writer *w,
                          struct fp_frame *f, int *fd_r, uint64_t deadline_ms)
{
    fp_status st = send_frame(l->sock, encoded, w);

    if (st != FP_OK)
        return st;
    do {
        st = receive(l->sock, w->data, f, fd_r);
    } while (st == FP_TIMEOUT && fp_now_ms() < deadline_ms && l->view != NULL
             && fp_lease_view_is_alive(l->view, fp_now_ms(), SILENCE_MS));
    return st;
}

/* Receives the daemon's WELCOME, and with it the first area of its lease table. */
static fp_status hear_welcome(struct fp_client *c, struct link *l, uint8_t *buf, int *generations_r)
{
    struct fp_frame f;
    struct fp_welcome welcome;
    fp_status st = receive(l->sock, buf, &f, generations_r), said;

    if (st != FP_OK)
        return st;
    if (f.type == FP_FRAME_ERROR && fp_error_decode(&f.body, &said) == FP_OK)
        return said == FP_VERSION ? FP_VERSION : FP_PROTOCOL;
    if (f.type != FP_FRAME_WELCOME || f.id != 0 || *generations_r == -1
        || fp_welcome_decode(&f.body, &welcome) != FP_OK)
        return FP_PROTOCOL;
    if (welcome.version != FP_WIRE_VERSION)
        return FP_VERSION;
    l->chosen = fp_choose(&c->settings.names, &welcome.names);
    return sees_the_same(c, &welcome.sight) ? FP_OK : FP_ELSEWHERE;
}

/* Receives a frame of that type, which is nothing but a descriptor. */
static fp_status hear_descriptor(int sock, uint64_t deadline_ms, uint8_t *buf, enum fp_frame_type type,
                                 int *fd_r)
{
    struct fp_frame f;
    fp_status st = limit(sock, deadline_ms) ? receive(sock, buf, &f, fd_r) : FP_TIMEOUT;

    if (st == FP_OK && (f.type != type || *fd_r == -1 || !fp_reader_done(&f.body)))
        st = FP_PROTOCOL;
    return st;
}

static fp_status greet(struct fp_client *c, struct link *l, uint64_t deadline_ms, uint8_t buf[FP_MAX_FRAME])
{
    const struct fp_hello hello = { FP_WIRE_VERSION, FP_WIRE_VERSION,
                                    c->settings.tells_names ? c->settings.names : (struct fp_names){ .n = 0 } };
    struct fp_writer w;
    struct passed p = { -1, -1, -1, -1, -1, -1 };
    const struct {
        enum fp_frame_type type;
        int *fd_r;
    } rest[] = { { FP_FRAME_REFERENCED, &p.referenced },
                 { FP_FRAME_EVENTS, &p.events },
                 { FP_FRAME_ALIVE, &p.alive },
                 { FP_FRAME_ANSWERS, &p.answers },
                 { FP_FRAME_CONTENTS, &p.contents } };
    const size_t n_rest = sizeof(rest) / sizeof(rest[0]);
    fp_status st;

    fp_writer_init(&w, buf, FP_MAX_FRAME);
    st = send_frame(l->sock, fp_hello_encode(&w, &hello), &w);
    if (st == FP_OK)
        st = limit(l->sock, deadline_ms) ? hear_welcome(c, l, buf, &p.generations) : FP_TIMEOUT;
    for (size_t i = 0; i < n_rest && st == FP_OK; i++)
        st = hear_descriptor(l->sock, deadline_ms, buf, rest[i].type, rest[i].fd_r);
    if (st == FP_OK)
        l->view = view_of(c, &p, &l->chosen);
    fp_close(&p.generations);
    for (size_t i = 0; i < n_rest; i++)
        fp_close(rest[i].fd_r);
    return st;
}

static void note_no_connection(struct fp_client *c, enum fp_no_connection why)
{
    pthread_mutex_lock(&c->mutex);
    c->last.no_connection = why;
    pthread_mutex_unlock(&c->mutex);
}

/* Connects: FP_OK, or why not.  A daemon hangs if its queue of connections stays full. */
static fp_status reach(struct fp_client *c, int sock)
{
    fp_status st;

    if (connect(sock, (const struct sockaddr *)&c->addr, sizeof(c->addr)) == 0)
        return FP_OK;
    if (errno == EAGAIN)
        return FP_TIMEOUT;
    st = lack_or(errno == EPERM || errno == ENOSYS ? FP_SYSTEM : FP_CLOSED);
    if (st != FP_CLOSED)
        return st;
    note_no_connection(c, errno == ENOENT || errno == ENOTDIR ? FP_NO_CONNECTION_MISSING
                          : errno == EACCES                   ? FP_NO_CONNECTION_DENIED
                                                              : FP_NO_CONNECTION_DESERTED);
    return FP_CLOSED;
}

static fp_status dial(struct fp_client *c, uint64_t deadline_ms, struct link *l, uint8_t buf[FP_MAX_FRAME])
{
    fp_status st;

    /* The timeouts come first: while the backlog of a hanging daemon
     * is full, connect() waits within the timeout for sending. */
    l->view = NULL;
    l->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (l->sock == -1)
        return lack_or(FP_SYSTEM);
    st = limit(l->sock, deadline_ms) ? reach(c, l->sock) : FP_TIMEOUT;
    if (st == FP_OK) {
        st = is_trusted(c, l->sock) ? greet(c, l, deadline_ms, buf) : FP_FOREIGN;
        note_no_connection(c, st == FP_CLOSED ? FP_NO_CONNECTION_REFUSED : FP_NO_CONNECTION_ENDED);
    }
    if (st != FP_OK)
        hang_up(l);
    return st;
}

/* ---- questions ---- */

/* A question, and the function that asks it on a connection: FP_OK when it was answered. */
struct question {
    fp_status (*ask)(const struct link *l, uint64_t id, struct question *q);
    uint64_t deadline_ms;
    const struct fp_lookup *lookup;
    struct fp_answer *answer;
    struct fp_lease_view **view_r; /* NULL: not wanted */
    const struct fp_control *control;
    struct fp_reply *reply;
    uint8_t *buf; /* of FP_MAX_FRAME bytes, for frames; the reply's text lies there. NULL: ask() makes one */
};

static fp_status ask_lookup(const struct link *link, uint64_t id, struct question *q)
{
    const uint64_t now_ms = fp_now_ms();
    struct fp_lookup l = *q->lookup;
    struct fp_answer *a = q->answer;
    struct fp_writer w;
    struct fp_frame f;
    int fd = -1;
    fp_status st;

    fp_writer_init(&w, q->buf, FP_MAX_FRAME);
    l.deadline_ms = q->deadline_ms > now_ms ? (uint32_t)(q->deadline_ms - now_ms) : 0;
    st = exchange(link, fp_lookup_encode(&w, id, &l), &w, &f, &fd, q->deadline_ms);
    if (st != FP_OK)
        return st;
    if (f.type != FP_FRAME_ANSWER || f.id != id || fp_answer_decode(&f.body, l.path_len, fd, a) != FP_OK) {
        fp_close(&fd);
        return FP_PROTOCOL;
    }
    fp_steps_choose(a->steps, a->n_steps, &link->chosen);
    a->n_names = fp_chosen_of(&link->chosen, a->n_names);
    /* A FIFO or a directory would fail, or wait, in the middle of a response. */
    if (a->fd != -1 && !fp_is_readable_file(a->fd)) {
        fp_close(&a->fd);
        return FP_PROTOCOL;
    }
    return FP_OK;
}

static fp_status ask_control(const struct link *link, uint64_t id, struct question *q)
{
    struct fp_writer w;
    struct fp_frame f;
    fp_status st;

    fp_writer_init(&w, q->buf, FP_MAX_FRAME);
    st = exchange(link, fp_control_encode(&w, id, q->control), &w, &f, NULL, q->deadline_ms);
    if (st != FP_OK)
        return st;
    if (f.type != FP_FRAME_REPLY || f.id != id || fp_reply_decode(&f.body, q->reply) != FP_OK)
        return FP_PROTOCOL;
    /* Only a report has further parts, and it comes to an end. */
    return q->reply->next == 0 || (q->control->op == FP_CONTROL_REPORT && q->reply->next > q->control->from)
               ? FP_OK
               : FP_PROTOCOL;
}

/* The time at which the daemon has to show a heartbeat, or to have answered. */
static uint64_t next_deadline(const struct fp_client *c, const struct question *q)
{
    uint64_t ms = fp_now_ms() + c->settings.patience_ms;

    return ms < q->deadline_ms ? ms : q->deadline_ms;
}

static fp_status ask_afresh(struct fp_client *c, uint64_t id, struct question *q, struct link *link)
{
    fp_status st = dial(c, next_deadline(c, q), link, q->buf);

    if (st == FP_OK)
        st = limit(link->sock, next_deadline(c, q)) ? q->ask(link, id, q) : FP_TIMEOUT;
    /* Later questions on this connection have all of their time. */
    if (st == FP_OK && !limit(link->sock, fp_now_ms() + c->settings.patience_ms))
        fp_close(&link->sock);
    return st;
}

static fp_status ask_with_buffer(struct fp_client *c, struct question *q)
{
    fp_status st = FP_CLOSED;
    struct link link;
    uint64_t id;

    if (!begin(c, &link, &id))
        return FP_AGAIN;
    q->deadline_ms = fp_now_ms() + c->settings.timeout_ms;
    if (link.sock != -1)
        st = q->ask(&link, id, q);
    /* An idle connection may have outlived its daemon: a new one is tried first. */
    if (st == FP_CLOSED) {
        if (link.sock != -1)
            drop_idle(c);
        hang_up(&link);
        st = ask_afresh(c, id, q, &link);
    }
    if (st == FP_OK) {
        if (q->view_r != NULL && link.view != NULL) {
            fp_lease_view_retain(link.view);
            *q->view_r = link.view;
        }
        keep(c, &link, true);
        return FP_OK;
    }
    hang_up(&link);
    /* A lack of descriptors or memory in this process says nothing about the daemon. */
    if (st != FP_LOSTFD && st != FP_NOMEM)
        pause_asking(c, st);
    return st;
}

/* The buffer is not on the stack. A compiler may touch each page of a large frame, and the thread would keep
 * them all. */
static fp_status ask(struct fp_client *c, struct question *q)
{
    uint8_t *own = q->buf == NULL ? malloc(FP_MAX_FRAME) : NULL;
    fp_status st = FP_NOMEM;

    if (own != NULL)
        q->buf = own;
    if (q->buf != NULL)
        st = ask_with_buffer(c, q);
    free(own);
    return st;
}

fp_status fp_client_lookup_with(struct fp_client *c, const struct fp_lookup *wish, struct fp_answer *a,
                                struct fp_lease_view **view_r)
{
    struct fp_lookup l = *wish;
    struct question q = { .ask = ask_lookup, .lookup = &l, .answer = a, .view_r = view_r };

    if (view_r != NULL)
        *view_r = NULL;
    fp_answer_init(a, FP_FAILED);
    return ask(c, &q);
}

/* Asks nothing: the caller wants a connection alone. */
static fp_status ask_nothing(const struct link *l, uint64_t id, struct question *q)
{
    (void)l;
    (void)id;
    (void)q;
    return FP_OK;
}

fp_status fp_client_connect(struct fp_client *c)
{
    struct question q = { .ask = ask_nothing };

    return ask(c, &q);
}

fp_status fp_client_view(struct fp_client *c, struct fp_lease_view **view_r)
{
    struct question q = { .ask = ask_nothing, .view_r = view_r };

    pthread_mutex_lock(&c->mutex);
    *view_r = c->view;
    if (*view_r != NULL)
        fp_lease_view_retain(*view_r);
    pthread_mutex_unlock(&c->mutex);
    return *view_r != NULL ? FP_OK : ask(c, &q);
}

fp_status fp_client_lookup(struct fp_client *c, const char *path, size_t len, struct fp_answer *a,
                           struct fp_lease_view **view_r)
{
    const struct fp_lookup l = { .path = path, .path_len = len };

    return fp_client_lookup_with(c, &l, a, view_r);
}

bool fp_client_hint(struct fp_client *c, const char *path, size_t len)
{
    const struct fp_lookup l = { .path = path, .path_len = len, .hint = true };
    uint8_t buf[FP_FRAME_HEADER + 16 + FP_MAX_PATH];
    struct fp_writer w;
    struct link link;
    uint64_t id;
    fp_status st;

    if (!begin(c, &link, &id) || link.sock == -1)
        return false;
    fp_writer_init(&w, buf, sizeof(buf));
    st = fp_lookup_encode(&w, id, &l);
    if (st == FP_OK)
        st = fp_send_packet_now(link.sock, w.data, w.len);
    if (st == FP_OK || st == FP_AGAIN)
        keep(c, &link, false);
    else
        hang_up(&link);
    return st == FP_OK;
}

fp_status fp_client_control(struct fp_client *c, const struct fp_control *question, struct fp_reply *reply,
                            uint8_t *buf)
{
    struct question q = { .ask = ask_control, .control = question, .reply = reply, .buf = buf };

    memset(reply, 0, sizeof(*reply));
    reply->status = FP_FAILED;
    return ask(c, &q);
}
