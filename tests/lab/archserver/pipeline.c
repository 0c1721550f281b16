/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "queue.h"

#define EVENTS_AT_ONCE  256
#define TICK_MS         1000
#define RESPOND_THREADS 2
#define PAUSE_US        100000 /* where no descriptors are left */

/* A connection, and whether the ready stage has it. */
struct member {
    struct conn conn;
    atomic_bool is_ready_stages;
};

struct pipeline {
    struct server *s;
    int epoll_fd;
    struct queue free;      /* connections to come; accept waits where there are none */
    struct queue respond;   /* something is to be done for them */
    struct queue disk;      /* a file is to be opened, or data read in */
    struct member *members; /* all */
};

static struct member *member_of(struct conn *c)
{
    return (struct member *)(void *)c; /* its first field */
}

static void end(struct pipeline *p, struct conn *c)
{
    conn_end(p->s, c);
    queue_put(&p->free, c);
}

/* Gives a connection to the ready stage until its socket is. */
static void make_ready(struct pipeline *p, struct conn *c, enum conn_want want, int operation)
{
    struct epoll_event event = { .events = (want == CONN_INPUT ? EPOLLIN : EPOLLOUT) | EPOLLONESHOT,
                                 .data.ptr = c };

    /* Not idle: end_idle does not take it before it is armed. */
    c->active_at = conn_now();
    atomic_store(&member_of(c)->is_ready_stages, true);
    if (epoll_ctl(p->epoll_fd, operation, c->fd, &event) != 0
        && atomic_exchange(&member_of(c)->is_ready_stages, false))
        end(p, c);
}

static void *run_accept(void *user)
{
    struct pipeline *p = user;

    for (;;) {
        struct conn *c = queue_take(&p->free);
        int fd = conn_accept(p->s);

        while (fd < 0) {
            if (errno != EINTR && errno != ECONNABORTED)
                (void)usleep(PAUSE_US);
            fd = conn_accept(p->s);
        }
        conn_begin(c, fd);
        make_ready(p, c, CONN_INPUT, EPOLL_CTL_ADD);
    }
    return NULL;
}

/* True if the ready stage had it, and has it no more. */
static bool take_back(struct conn *c)
{
    return atomic_exchange(&member_of(c)->is_ready_stages, false);
}

static void end_idle(struct pipeline *p)
{
    time_t now = conn_now();

    for (unsigned i = 0; i < p->s->options.connections; i++) {
        struct conn *c = &p->members[i].conn;

        if (!take_back(c)) /* another stage's: not to be looked at */
            continue;
        if (conn_is_idle(p->s, c, now))
            end(p, c);
        else
            atomic_store(&p->members[i].is_ready_stages, true);
    }
}

static void *run_ready(void *user)
{
    struct pipeline *p = user;
    struct epoll_event events[EVENTS_AT_ONCE];
    time_t ticked_at = conn_now();

    for (;;) {
        int n = epoll_wait(p->epoll_fd, events, EVENTS_AT_ONCE, TICK_MS);

        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;

            if (!take_back(c))
                continue;
            c->has_input = true;
            queue_put(&p->respond, c);
        }
        if (conn_now() != ticked_at) {
            ticked_at = conn_now();
            end_idle(p);
        }
    }
    return NULL;
}

static void *run_respond(void *user)
{
    struct pipeline *p = user;

    for (;;) {
        struct conn *c = queue_take(&p->respond);
        enum conn_want want = conn_advance(p->s, c);

        if (want == CONN_CLOSE)
            end(p, c);
        else if (want == CONN_INPUT || want == CONN_OUTPUT)
            make_ready(p, c, want, EPOLL_CTL_MOD);
        else
            queue_put(&p->disk, c);
    }
    return NULL;
}

static void *run_disk(void *user)
{
    struct pipeline *p = user;

    for (;;) {
        struct conn *c = queue_take(&p->disk);

        if (c->step == STEP_FIND)
            conn_open(p->s, c);
        else
            conn_read_in(c);
        queue_put(&p->respond, c);
    }
    return NULL;
}

static int start(struct pipeline *p, void *(*run)(void *), unsigned count)
{
    int error = 0;

    for (unsigned i = 0; error == 0 && i < count; i++) {
        pthread_t thread;

        error = pthread_create(&thread, NULL, run, p);
        if (error == 0)
            (void)pthread_detach(thread);
    }
    return error;
}

static int prepare(struct pipeline *p)
{
    struct options *o = &p->s->options;

    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->members = calloc(o->connections, sizeof(*p->members));
    if (o->cache != CACHE_NONE)
        p->s->cache = cache_create(o->cache_entries, o->cache_bytes, CACHE_THREADS);
    if (p->epoll_fd < 0 || p->members == NULL || (o->cache != CACHE_NONE && p->s->cache == NULL))
        return errno;
    queue_init(&p->free);
    queue_init(&p->respond);
    queue_init(&p->disk);
    for (unsigned i = 0; i < o->connections; i++)
        queue_put(&p->free, &p->members[i].conn);
    return 0;
}

int pipeline_process(struct server *s, void *unused)
{
    struct pipeline p = { .s = s };
    int error = prepare(&p);

    (void)unused;
    if (error == 0)
        error = start(&p, run_ready, 1);
    if (error == 0)
        error = start(&p, run_respond, RESPOND_THREADS);
    if (error == 0)
        error = start(&p, run_disk, s->options.workers);
    if (error == 0)
        (void)run_accept(&p);
    return error;
}
