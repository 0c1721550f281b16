/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/watch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "common/packet.h"

/*
 * A directory reports names and modes in it, a file the writes to it: a directory above
 * the documents may be full of files that are written all the time and not served.
 * IN_CLOSE_WRITE: no other event reports a write through a mapping.
 */
#define OF_NAMES     (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define BUFFER_BYTES 32768

int fp_inotify_open(void)
{
    return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

static void make_key(struct fp_watch_key *key, int wd)
{
    key->bytes[0] = FP_BY_INOTIFY;
    memcpy(key->bytes + 1, &wd, sizeof(wd));
    key->len = 1 + sizeof(wd);
}

fp_status fp_inotify_place(int inotify, int fd, bool directory, struct fp_watch_key *key)
{
    char name[FP_FD_NAME];
    int wd;

    fp_fd_name(name, fd);
    wd = inotify_add_watch(inotify, name,
                           directory ? IN_ATTRIB | OF_NAMES : IN_ATTRIB | IN_MODIFY | IN_CLOSE_WRITE);
    if (wd == -1)
        return errno == ENOSPC || errno == ENOMEM ? FP_BUSY : fp_status_from_errno(errno);
    make_key(key, wd);
    return FP_OK;
}

void fp_inotify_forget(int inotify, const struct fp_watch_key *key)
{
    int wd;

    memcpy(&wd, key->bytes + 1, sizeof(wd));
    inotify_rm_watch(inotify, wd); /* fails where the file is gone already */
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

void fp_inotify_drain(int inotify, const struct fp_watch_ops *ops, void *ctx)
{
    static char buf[BUFFER_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = 1;

    for (ssize_t left = fp_watch_queued(inotify); left > 0; left -= n) {
        n = read(inotify, buf, sizeof(buf));
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
}
