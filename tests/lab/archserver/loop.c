/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "helpers.h"
#include "turns.h"

/* Of one turn, so that several loops get their share. */
#define ACCEPTS_AT_ONCE 8
#define TICK_MS         1000

/* The source of an event: one of these, or a connection's slot below its generation. */
#define OF_LISTENER UINT64_MAX
#define OF_HELPERS  (UINT64_MAX - 1)

struct loop {
    struct server *s;
    int epoll_fd;
    struct conn **table; /* as many as may be; made when needed */
    unsigned limit, made, open;
    struct conn *free;
    bool is_listening;
    bool has_helpers;
    struct helpers helpers;
    time_t ticked_at;
};

/* Level-triggered, and only one of the loops that wait is woken. Returns 0 or an errno. */
static int listen_on(struct loop *l)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.u64 = OF_LISTENER };

    if (l->is_listening)
        return 0;
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->s->listen_fd, &event) != 0)
        return errno;
    l->is_listening = true;
    return 0;
}

/* Others wait in the backlog, or go to another loop. */
static void listen_off(struct loop *l)
{
    if (l->is_listening)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, l->s->listen_fd, NULL);
    l->is_listening = false;
}

static struct conn *new_conn(struct loop *l)
{
    struct conn *c = l->free;

    if (c != NULL) {
        l->free = c->next;
        return c;
    }
    if (l->made == l->limit)
        return NULL;
    c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->slot = l->made;
        l->table[l->made++] = c;
    }
    return c;
}

static void close_conn(struct loop *l, struct conn *c)
{
    conn_end(l->s, c);
    c->generation++;
    c->next = l->free;
    l->free = c;
    l->open--;
    (void)listen_on(l);
}

static void advance(struct loop *l, struct conn *c)
{
    enum conn_want want = conn_advance(l->s, c);

    if (want == CONN_CLOSE)
        close_conn(l, c);
    else if (want == CONN_FILE || want == CONN_DATA)
        helpers_ask(&l->helpers, c, want);
    /* Input and output: the event comes, whatever is waited for. */
}

/* Edge-triggered for both directions, once and for all. */
static bool watch(const struct loop *l, const struct conn *c)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.u64 = (uint64_t)c->generation << 32 | c->slot };

    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) == 0;
}

static void accept_one(struct loop *l, int fd)
{
    struct conn *c = new_conn(l);

    if (c == NULL) {
        (void)close(fd);
        return;
    }
    l->open++;
    conn_begin(c, fd);
    if (!watch(l, c))
        close_conn(l, c);
}

static void accept_some(struct loop *l)
{
    for (unsigned i = 0; i < ACCEPTS_AT_ONCE && l->open < l->limit; i++) {
        int fd = conn_accept(l->s);

        if (fd >= 0) {
            accept_one(l, fd);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            listen_off(l); /* no descriptors or memory: until a connection ends, or the next tick */
        return;
    }
    if (l->open == l->limit)
        listen_off(l);
}

static void on_helpers(struct loop *l)
{
    struct conn *c;

    while ((c = helpers_take(l->s, &l->helpers, l->table)) != NULL)
        advance(l, c);
}

static void on_conn(struct loop *l, const struct epoll_event *event)
{
    struct conn *c = l->table[event->data.u64 & UINT32_MAX];

    if (c->fd < 0 || c->generation != event->data.u64 >> 32)
        return; /* ended since the event */
    if ((event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        c->hung_up = true;
    if ((event->events & ~(uint32_t)EPOLLOUT) != 0)
        c->has_input = true;
    if (!c->is_offloaded)
        advance(l, c);
}

static void dispatch(struct loop *l, const struct epoll_event *event)
{
    if (event->data.u64 == OF_LISTENER)
        accept_some(l);
    else if (event->data.u64 == OF_HELPERS)
        on_helpers(l);
    else
        on_conn(l, event);
}

static void tick(struct loop *l)
{
    time_t now = conn_now();

    if (now == l->ticked_at)
        return;
    l->ticked_at = now;
    for (unsigned i = 0; i < l->made; i++) {
        struct conn *c = l->table[i];

        if (c->fd >= 0 && !c->is_offloaded && conn_is_idle(l->s, c, now))
            close_conn(l, c);
    }
    if (l->open < l->limit)
        (void)listen_on(l);
}

static int run(struct loop *l)
{
    struct epoll_event events[TURNS_EVENTS_MOST];

    for (;;) {
        int n = epoll_wait(l->epoll_fd, events, TURNS_EVENTS_MOST, TICK_MS);

        if (n < 0 && errno != EINTR)
            return errno;
        turns_count(l->s->turns, n);
        for (int i = 0; i < n; i++)
            dispatch(l, &events[i]);
        tick(l);
    }
}

static int watch_helpers(struct loop *l, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = OF_HELPERS };

    l->has_helpers = true;
    l->helpers.fd = fd;
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

/* All loops together have no more connections than the server may have. */
static unsigned share(const struct server *s)
{
    unsigned loops = s->has_offload ? 1 : s->options.workers;

    return s->options.connections / loops;
}

int loop_process(struct server *s, void *user)
{
    struct loop l = { .s = s, .limit = share(s) };
    int error;

    if (s->cache == NULL && s->options.cache != CACHE_NONE) {
        s->cache = cache_create(s->options.cache_entries, s->options.cache_bytes, CACHE_ONE);
        if (s->cache == NULL)
            return errno;
    }
    l.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l.table = calloc(l.limit, sizeof(struct conn *));
    if (l.epoll_fd < 0 || l.table == NULL)
        return errno;
    error = user != NULL ? watch_helpers(&l, *(const int *)user) : 0;
    if (error == 0)
        error = listen_on(&l);
    if (error == 0)
        error = run(&l);
    free(l.table);
    return error;
}
