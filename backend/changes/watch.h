/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of change events.  inotify has one watch for each directory and each open file.  Where the
 * kernel has it (Linux 6.15) a queue reports mounts and unmounts, so that clients see that at once as well.
 *
 * The sources are made before workers are forked, which share them.  A worker asks for a directory's
 * key (and so has it watched) before it looks inside; the daemon reads the
 * events.  Watch first, then look: a change in between is reported.
 */
#ifndef FP_WATCH_H
#define FP_WATCH_H

#include <stdbool.h>
#include <stddef.h>

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

struct fp_watch {
    int inotify;  /* -1: not at all */
    int remounts; /* something was mounted or unmounted; -1: the table of mounts alone shows that */
    int alive[2]; /* a pipe; clients get its reading end */
    int spoilt;   /* its reading end once more, non-blocking; -1: there is no /proc */
};

#define FP_WATCH_NONE \
    { \
        -1, -1, { -1, -1 }, -1 \
    } /* the state before fp_watch_begin() */

/* To be called before all else here.  A process that ends closes its descriptors in the order of their
 * numbers, and clients must see the end of the pipe first.  Opens the queue of mounts as well, as only root can.  -1 with errno. */
int fp_watch_begin(struct fp_watch *w);

/* Opens inotify.  False, with errno: it watches nothing. */
bool fp_watch_open(struct fp_watch *w);
void fp_watch_close(struct fp_watch *w);

/*
 * In a worker: has the directory or file that fd (O_PATH will do) stands for watched, and
 * returns the key of its events.  FP_OK, FP_DENIED (may not be read, so not be
 * watched), FP_BUSY (the system's limit on watches) or FP_IOERROR.  An existing watch
 * never shrinks.
 */
fp_status fp_watch_place(const struct fp_watch *w, int fd, enum fp_watch_what what, struct fp_watch_key *key);

/* Notes that the cache does not depend on that key any more.  Each end of a watch is an event itself.  So
 * very many watches do not end all at once, but some only behind the next calls of fp_watch_drain(). */
void fp_watch_forget(const struct fp_watch *w, const struct fp_watch_key *key);

/* For a client: an epoll set in which something is ready while an event waits to be read, and once the
 * daemon is gone.  The set is the caller's; -1 with errno. */
int fp_watch_event_set(const struct fp_watch *w);

/* Nobody writes to the pipe but a client that opened it
 * anew: takes out what makes all clients' sets ready. */
void fp_watch_empty_pipe(const struct fp_watch *w);

/* True if an event waits to be read, or a watch to be ended. */
bool fp_watch_is_pending(const struct fp_watch *w);

/* To be called before the table of mounts is read: the table shows these events' changes already. */
void fp_watch_drain_remounts(const struct fp_watch *w);
/* Passes on every event that was queued before the call, and not for ever those that follow.  The length of
 * the kernel's queues bounds the cost. */
void fp_watch_drain(const struct fp_watch *w, const struct fp_watch_ops *ops, void *ctx);

#endif
