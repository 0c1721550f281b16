/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (256u << 10)

/* Returns false if the client is silent for too long. A socket that blocks has waited already. */
static bool wait_for(const struct server *s, const struct conn *c, enum conn_want want)
{
    struct pollfd one = { c->fd, want == CONN_INPUT ? POLLIN : POLLOUT, 0 };
    int n;

    if (s->sockets_block)
        return false;
    do {
        n = poll(&one, 1, (int)s->options.idle_s * 1000);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

static void serve(const struct server *s, struct conn *c)
{
    enum conn_want want;

    do {
        want = conn_advance(s, c);
    } while (want != CONN_CLOSE && wait_for(s, c, want));
}

static bool is_passing(int error)
{
    return error == EINTR || error == ECONNABORTED || error == EAGAIN || error == EMFILE || error == ENFILE
           || error == ENOBUFS || error == ENOMEM || error == EPROTO;
}

static int serve_all(const struct server *s)
{
    struct conn *c = calloc(1, sizeof(*c));

    while (c != NULL) {
        int fd = conn_accept(s);

        if (fd >= 0) {
            conn_begin(c, fd);
            serve(s, c);
            conn_end(s, c);
        } else if (!is_passing(errno)) {
            free(c);
            return errno;
        }
    }
    return ENOMEM;
}

static int make_cache(struct server *s, enum cache_users users)
{
    if (s->options.cache == CACHE_NONE)
        return 0;
    s->cache = cache_create(s->options.cache_entries, s->options.cache_bytes, users);
    return s->cache != NULL ? 0 : errno;
}

int workers_process(struct server *s, void *unused)
{
    int error = make_cache(s, CACHE_ONE);

    (void)unused;
    return error != 0 ? error : serve_all(s);
}

static void *run_thread(void *user)
{
    errno = serve_all(user);
    return NULL;
}

int workers_threads(struct server *s, void *unused)
{
    int error = make_cache(s, CACHE_THREADS);
    pthread_attr_t attributes;

    (void)unused;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (unsigned i = 1; error == 0 && i < s->options.workers; i++) {
        pthread_t thread;

        error = pthread_create(&thread, &attributes, run_thread, s);
        if (error == 0)
            (void)pthread_detach(thread);
    }
    (void)pthread_attr_destroy(&attributes);
    return error != 0 ? error : serve_all(s);
}
