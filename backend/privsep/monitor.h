/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that does for the daemon what the daemon's filter of system calls (sandbox.h)
 * refuses to itself: it opens and removes the files that the configuration names, connects to
 * the fleet's Redis and forks spawners.  It is the daemon's user, has no filter, and reads
 * nothing but what is to be done and the configuration.
 *
 * It is told which of these, never where: a daemon that somebody has taken over gets nothing
 * from it that the configuration does not name.
 */
#ifndef FP_MONITOR_H
#define FP_MONITOR_H

#include <stdbool.h>
#include <stddef.h>

struct fp_conf;
struct fp_fleet_settings;
struct fp_worker_job;

enum fp_monitor_task {
    FP_MONITOR_CONFIGURATION,   /* checks the file, which counts from then on; opens it */
    FP_MONITOR_LOG,             /* opens it for appending */
    FP_MONITOR_PASSWORD,        /* opens the fleet's password_file */
    FP_MONITOR_REDIS,           /* a non-blocking socket, perhaps still connecting */
    FP_MONITOR_SPAWNER,         /* starts one; the daemon's end of its socket */
    FP_MONITOR_LOCK,            /* the one beside the daemon's socket, if that was removed */
    FP_MONITOR_SOCKET,          /* the same, listening */
    FP_MONITOR_END_SOCKET       /* removes the daemon's socket */
};

struct fp_monitor_settings {
    const char *file;           /* of the configuration, with what overrides it */
    char *const *overrides;
    size_t n_overrides;
    const struct fp_conf *conf; /* as the daemon was started */
    const struct fp_worker_job *job;   /* of workers */
    int (*connect_fleet)(const struct fp_fleet_settings *settings);   /* to its Redis */
    int (*open_lock)(const char *socket_path);
    int (*listen)(const char *socket_path);
};

struct fp_monitor {
    int sock;                   /* readable while nothing is asked: it has ended; -1: none */
};

/* Forks it.  The calling process must have one thread.  0, or -1 with errno. */
int fp_monitor_start(struct fp_monitor *m, const struct fp_monitor_settings *settings);

/* Ends it; waits until it has. */
void fp_monitor_stop(struct fp_monitor *m);

/*
 * Has it done, and waits for that, as for the system call itself.  The descriptor, close-on-exec
 * and the caller's (0 where there is none to be had), or -1 with errno; EINVAL: the
 * configuration has mistakes, which were told on standard error.
 */
int fp_monitor_ask(const struct fp_monitor *m, enum fp_monitor_task task);

#endif
