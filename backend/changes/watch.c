/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "changes/watch_fanotify.h"
#include "changes/watch_inotify.h"
#include "common/packet.h"

/* Clients share the pipe's own descriptor, and could make it block. */
int fp_watch_begin(struct fp_watch *w)
{
    char path[32];

    if (pipe2(w->alive, O_CLOEXEC) == -1)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", w->alive[0]);
    w->spoilt = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
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
    fp_close(&w->fanotify);
    fp_close(&w->remounts);
    if (w->marks != NULL)
        fclose(w->marks);
    w->marks = NULL;
}

static bool holds_root(const struct fp_mounts *m, const struct fp_mount *mount, const char *const *roots)
{
    for (size_t i = 0; roots[i] != NULL; i++) {
        if (fp_mounts_of_path(m, roots[i], strlen(roots[i])) == mount
            || fp_path_is_below(mount->point, strlen(mount->point), roots[i]))
            return true;
    }
    return false;
}

void fp_watch_mark(struct fp_watch *w, const struct fp_mounts *m, const char *const *roots)
{
    for (size_t i = 0; i < fp_mounts_count(m); i++) {
        const struct fp_mount *mount = fp_mounts_at(m, i);
        bool asked;

        if (!fp_mounts_may_mark(m, i, &asked) || (!asked && !holds_root(m, mount, roots)))
            continue;
        if (w->fanotify == -1)
            w->fanotify = fp_fanotify_open();
        if (w->fanotify != -1)
            fp_fanotify_mark(w->fanotify, mount->point);
    }
    if (w->fanotify != -1)
        w->marks = fp_fanotify_open_marks(w->fanotify);
    if (w->remounts == -1 && geteuid() == 0)
        w->remounts = fp_fanotify_open_remounts();
}

/* A mount point may be hidden by another one on top of it: then the mark is on that
 * other one.  So only the kernel's list counts. */
size_t fp_watch_marked(const struct fp_watch *w, dev_t *devs, size_t max)
{
    return w->marks != NULL ? fp_fanotify_marked(w->marks, devs, max) : 0;
}

fp_status fp_watch_place(const struct fp_watch *w, enum fp_watch_by by, int fd, enum fp_watch_what what,
                         struct fp_watch_key *key)
{
    *key = (struct fp_watch_key){ .len = 0 };
    if (by == FP_BY_INOTIFY && w->inotify != -1)
        return fp_inotify_place(w->inotify, fd, what, key);
    if (by == FP_BY_FANOTIFY)
        return fp_fanotify_place(fd, key);
    return FP_IOERROR;
}

void fp_watch_forget(const struct fp_watch *w, const struct fp_watch_key *key)
{
    if (fp_watch_key_is_inotify(key))
        fp_inotify_forget(w->inotify, key);
}

int fp_watch_event_set(const struct fp_watch *w)
{
    const int fds[] = { w->alive[0], w->inotify, w->fanotify, w->remounts };
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
           || (w->fanotify != -1 && fp_watch_queued(w->fanotify) > 0)
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
    if (w->inotify != -1)
        fp_inotify_drain(w->inotify, ops, ctx);
    if (w->fanotify != -1)
        fp_fanotify_drain(w->fanotify, ops, ctx);
    if (w->inotify != -1)
        fp_inotify_forget_more(w->inotify, ops, ctx);
}
