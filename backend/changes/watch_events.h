/* SPDX-License-Identifier: Apache-2.0 */
/* The events of watches (watch.h). */
#ifndef FP_WATCH_EVENTS_H
#define FP_WATCH_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include "wire/walk_result.h"

/* How much inotify watches: a directory with the objects of its names, its names alone, or a file. */
enum fp_watch_what {
    FP_WATCH_FILE,
    FP_WATCH_DIRECTORY,
    FP_WATCH_WRITTEN, /* a directory, and writes to what lies in it */
    FP_WATCH_NAMES    /* a directory's names alone */
};

/* Called for events. */
struct fp_watch_ops {
    /*
     * In the directory with that key something happened to the name; an empty
     * name: to that directory or file itself.  replaced: the name stands for
     * something else now, or for nothing.
     */
    void (*changed)(void *ctx, const struct fp_watch_key *key, const char *name, size_t len, bool replaced);
    /* The watch on that directory or file has ended. */
    void (*gone)(void *ctx, const struct fp_watch_key *key);
    /* Events were lost, or cannot be read: anything may have changed. */
    void (*lost)(void *ctx);
    /* True if something depends on the key: again, perhaps, after fp_watch_forget(). */
    bool (*is_needed)(void *ctx, const struct fp_watch_key *key);
};

/* The answer of ioctl(FIONREAD): for inotify's queue its bytes; 0: it is empty. */
static inline int fp_watch_queued(int fd)
{
    int n = 0;

    return ioctl(fd, FIONREAD, &n) == 0 ? n : 0;
}

#endif
