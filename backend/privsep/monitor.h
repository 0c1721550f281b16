/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that makes system calls for the daemon which the daemon's own filter (sandbox.h)
 * refuses.  It opens and removes the files that the configuration names, has the fleet's password read,
 * connects to the fleet's Redis and forks spawners.  It runs as the daemon's user, has no filter, and reads
 * nothing but the daemon's task and the configuration.
 *
 * A task has a number and no path: a compromised daemon gets nothing from the monitor that the
 * configuration does not name.
 */
#ifndef FP_MONITOR_H
#define FP_MONITOR_H

#include <stddef.h>
#include <sys/types.h>

struct fp_conf;
struct fp_fleet_settings;
struct fp_worker_job;

enum fp_monitor_task {
    FP_MONITOR_CONFIGURATION, /* checks the file, adopts it, and opens it */
    FP_MONITOR_LOG,           /* opens it for appending */
    FP_MONITOR_PASSWORD,      /* has the fleet's password_file read; returns a pipe for its text */
    FP_MONITOR_REDIS,         /* makes a non-blocking socket, perhaps still connecting */
    FP_MONITOR_SPAWNER,       /* starts one; returns the daemon's end of its socket */
    FP_MONITOR_LOCK,          /* makes the lock beside the daemon's socket again */
    FP_MONITOR_SOCKET,        /* makes the listening socket again */
    FP_MONITOR_END_SOCKET     /* removes the daemon's socket */
};

#define FP_MAX_PASSWORD 512 /* bytes of password_file that are read */

struct fp_monitor_settings {
    const char *file; /* of the configuration */
    char *const *overrides;
    size_t n_overrides;
    const struct fp_conf *conf;                                     /* of the daemon's start */
    const struct fp_worker_job *job;                                /* of workers */
    int (*connect_fleet)(const struct fp_fleet_settings *settings); /* to its Redis */
};

struct fp_monitor {
    int sock; /* readable without a task: the monitor has ended; -1: none */
};

/* Forks the monitor.  The calling process must have one thread.  0, or -1 with errno. */
int fp_monitor_start(struct fp_monitor *m, const struct fp_monitor_settings *settings);

/* Ends the monitor, and waits for its end. */
void fp_monitor_stop(struct fp_monitor *m);

/*
 * Waits until the task is done, as for the system call itself.  Returns the descriptor, close-on-exec and
 * the caller's (0 for a task without one), or -1 with errno.  EINVAL: the configuration has
 * mistakes, which the monitor has written to standard error.
 */
int fp_monitor_ask(const struct fp_monitor *m, enum fp_monitor_task task);

#endif
