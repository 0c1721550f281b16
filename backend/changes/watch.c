/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/refused.h"
#include "wire/packet.h"

#ifndef FAN_REPORT_MNT
#define FAN_REPORT_MNT 0x00004000
#define FAN_MARK_MNTNS 0x00000110
#define FAN_MNT_ATTACH 0x01000000
#define FAN_MNT_DETACH 0x02000000
#endif

/*
 * A directory's watch reports its names and their modes, a file's the writes to it.  A directory above
 * the documents may be full of files that are written all the time and not served.
 * IN_CLOSE_WRITE: no other event reports a write through a mapping.
 */
#define OF_NAMES     (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define BUFFER_BYTES 32768

/*
 * The kernel reports the end of each watch that we end (IN_IGNORED).  A purge of more entries than its
 * queue holds would have it drop the reports of changes.  So few are ended between two looks at
 * the queue, and the rest waits here.
 */
#define ENDS_AT_ONCE  256
#define TRIES_AT_ONCE 1024 /* watches whose file is gone end without a report, and others are needed again */
static struct {
    int *wds; /* the last one is the next to go */
    size_t n, capacity, ended;
} waiting;

/* ---- the sources ---- */

/* Opens the queue of this mount namespace, by fanotify. -1 if the kernel, or our rights, do not do. */
static int open_remounts(void)
{
    int fd, ns;

    if (geteuid() != 0)
        return -1;
    fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_MNT, O_RDONLY);
    ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (fd != -1
        && (ns == -1
            || fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MNTNS, FAN_MNT_ATTACH | FAN_MNT_DETACH, ns, NULL)
                   == -1))
        fp_close(&fd);
    fp_close(&ns);
    return fd;
}

/* Clients share the pipe's own descriptor, and could make it block. */
int fp_watch_begin(struct fp_watch *w)
{
    char path[32];

    if (pipe2(w->alive, O_CLOEXEC) == -1)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", w->alive[0]);
    w->spoilt = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    w->remounts = open_remounts();
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
    w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    waiting.n = waiting.ended = 0;
    if (w->inotify != -1 && fp_call_is_refused(SYS_inotify_add_watch))
        fp_close(&w->inotify);
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

/* ---- watches ---- */

static void make_key(struct fp_watch_key *key, int wd)
{
    memcpy(key->bytes, &wd, sizeof(wd));
    key->len = sizeof(wd);
}

/*
 * All have IN_MASK_ADD.  Without it the kernel empties the mask of a watch that is there already before it
 * fills it again, and drops what happens in between.  Another worker may also have more of a directory
 * watched, and report it to the daemon: that stays.
 */
static const uint32_t masks[] = { [FP_WATCH_FILE] = IN_ATTRIB | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVE_SELF,
                                  [FP_WATCH_DIRECTORY] = IN_ATTRIB | IN_MOVE_SELF | OF_NAMES,
                                  [FP_WATCH_WRITTEN] =
                                      IN_ATTRIB | IN_MOVE_SELF | OF_NAMES | IN_MODIFY | IN_CLOSE_WRITE,
                                  [FP_WATCH_NAMES] = OF_NAMES };

fp_status fp_watch_place(const struct fp_watch *w, int fd, enum fp_watch_what what, struct fp_watch_key *key)
{
    char name[FP_FD_NAME];
    int wd;

    *key = (struct fp_watch_key){ .len = 0 };
    if (w->inotify == -1)
        return FP_IOERROR;
    fp_fd_name(name, fd);
    wd = inotify_add_watch(w->inotify, name, IN_MASK_ADD | masks[what]);
    if (wd == -1)
        return errno == ENOSPC || errno == ENOMEM ? FP_BUSY : fp_status_from_errno(errno);
    make_key(key, wd);
    return FP_OK;
}

/* The call fails, and reports nothing, where the file is gone already. */
static void end_watch(int inotify, int wd)
{
    waiting.ended += inotify_rm_watch(inotify, wd) == 0;
}

/* False: out of memory. */
static bool wait_for_end(int wd)
{
    if (waiting.n == waiting.capacity) {
        const size_t capacity = waiting.capacity != 0 ? 2 * waiting.capacity : ENDS_AT_ONCE;
        int *wds = fp_memory_resize(waiting.wds, capacity * sizeof(*wds));

        if (wds == NULL)
            return false;
        waiting.wds = wds;
        waiting.capacity = capacity;
    }
    waiting.wds[waiting.n++] = wd;
    return true;
}

void fp_watch_forget(const struct fp_watch *w, const struct fp_watch_key *key)
{
    int wd;

    if (key->len == 0)
        return;
    memcpy(&wd, key->bytes, sizeof(wd));
    if (waiting.ended < ENDS_AT_ONCE || !wait_for_end(wd))
        end_watch(w->inotify, wd);
}

/* Ends more watches: the events of those that were ended have been read. */
static void end_more(int inotify, const struct fp_watch_ops *ops, void *ctx)
{
    waiting.ended = 0;
    for (unsigned tries = 0; waiting.n > 0 && waiting.ended < ENDS_AT_ONCE && tries < TRIES_AT_ONCE;
         tries++) {
        const int wd = waiting.wds[--waiting.n];
        struct fp_watch_key key;

        /* The kernel gives the same number for the same file, as long as it is watched. */
        make_key(&key, wd);
        if (ops->is_needed == NULL || !ops->is_needed(ctx, &key))
            end_watch(inotify, wd);
    }
    if (waiting.n > 0)
        return;
    free(waiting.wds);
    waiting.wds = NULL;
    waiting.capacity = 0;
}

/* ---- events ---- */

/* For inotify's queue its bytes; 0: it is empty. */
static int queued(int fd)
{
    int n = 0;

    return fd != -1 && ioctl(fd, FIONREAD, &n) == 0 ? n : 0;
}

bool fp_watch_is_pending(const struct fp_watch *w)
{
    return waiting.n > 0 || queued(w->inotify) > 0 || queued(w->remounts) > 0;
}

void fp_watch_drain_remounts(const struct fp_watch *w)
{
    static char buf[4096];

    /* The rest, if buf is too small, waits for the next call, and clients ask until then. */
    if (w->remounts != -1 && read(w->remounts, buf, sizeof(buf)) == -1)
        return;
}

static void report(const struct inotify_event *e, const struct fp_watch_ops *ops, void *ctx)
{
    struct fp_watch_key key;

    if (e->mask & IN_Q_OVERFLOW) {
        ops->lost(ctx);
        return;
    }
    make_key(&key, e->wd);
    if (e->mask & IN_IGNORED)
        ops->gone(ctx, &key);
    else
        ops->changed(ctx, &key, e->len > 0 ? e->name : "", e->len > 0 ? strnlen(e->name, e->len) : 0,
                     (e->mask & OF_NAMES) != 0);
}

void fp_watch_drain(const struct fp_watch *w, const struct fp_watch_ops *ops, void *ctx)
{
    static char buf[BUFFER_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = 1;

    for (ssize_t left = queued(w->inotify); left > 0; left -= n) {
        n = read(w->inotify, buf, sizeof(buf));
        if (n <= 0)
            break;
        for (char *p = buf; p < buf + n;) {
            const struct inotify_event *e = (const struct inotify_event *)(void *)p;

            report(e, ops, ctx);
            p += sizeof(*e) + e->len;
        }
    }
    /* An end or an error: events may be missing, and none may come any more. */
    if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
        ops->lost(ctx);
    end_more(w->inotify, ops, ctx);
}
