/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "changes/watch_inotify.h"
#include "changes/watch_remounts.h"
#include "wire/packet.h"

/* Clients share the pipe's own descriptor, and could make it block. */
int fp_watch_begin(struct fp_watch *w)
{
    char path[32];

    if (pipe2(w->alive, O_CLOEXEC) == -1)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", w->alive[0]);
    w->spoilt = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    w->remounts = fp_remounts_open();
    return 0;
}

void fp_watch_empty_pipe(const struct fp_watch *w)
{
    static char buf[65536];

    if (read(w->spoilt, buf, sizeof(buf)) == -1)
        return;
}

bool fp_watch_open(struct fp_watch *w)
{
    w->inotify = fp_inotify_open();
    return w->inotify != -1;
}

void fp_watch_close(struct fp_watch *w)
{
    fp_close(&w->alive[1]);
    fp_close(&w->alive[0]);
    fp_close(&w->spoilt);
    fp_close(&w->inotify);
    fp_close(&w->remounts);
}

fp_status fp_watch_place(const struct fp_watch *w, int fd, enum fp_watch_what what, struct fp_watch_key *key)
{
    *key = (struct fp_watch_key){ .len = 0 };
    return w->inotify != -1 ? fp_inotify_place(w->inotify, fd, what, key) : FP_IOERROR;
}

void fp_watch_forget(const struct fp_watch *w, const struct fp_watch_key *key)
{
    if (key->len > 0)
        fp_inotify_forget(w->inotify, key);
}

int fp_watch_event_set(const struct fp_watch *w)
{
    const int fds[] = { w->alive[0], w->inotify, w->remounts };
    int set = epoll_create1(EPOLL_CLOEXEC);

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        struct epoll_event e = { .events = EPOLLIN };

        if (fds[i] != -1 && set != -1 && epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &e) == -1)
            fp_close(&set);
    }
    return set;
}

bool fp_watch_is_pending(const struct fp_watch *w)
{
    return (w->inotify != -1 && (fp_inotify_has_more() || fp_watch_queued(w->inotify) > 0))
           || (w->remounts != -1 && fp_watch_queued(w->remounts) > 0);
}

void fp_watch_drain_remounts(const struct fp_watch *w)
{
    static char buf[4096];

    /* The rest, if buf is too small, waits for the next call, and clients ask until then. */
    if (w->remounts != -1 && read(w->remounts, buf, sizeof(buf)) == -1)
        return;
}

void fp_watch_drain(const struct fp_watch *w, const struct fp_watch_ops *ops, void *ctx)
{
    if (w->inotify == -1)
        return;
    fp_inotify_drain(w->inotify, ops, ctx);
    fp_inotify_forget_more(w->inotify, ops, ctx);
}
