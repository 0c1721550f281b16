/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that forks helpers.  It is forked before the daemon holds
 * anything worth inheriting, so a helper has one socket and nothing else, and
 * forking stays cheap however large the cache grows.
 *
 * It is the parent of the helpers and reaps one only when told to kill it: a
 * process number that the daemon knows is never somebody else's.
 */
#ifndef FP_SPAWNER_H
#define FP_SPAWNER_H

#include <sys/types.h>

#include "common/errors.h"

/* What is to run in each of the processes, and what that needs. */
struct fp_worker_job {
    void (*run)(int sock, const void *ctx);   /* serves the daemon at the other end; does not return */
    const void *ctx;
    int inherited;     /* the one descriptor beside sock that is left open; -1: none */
};

struct fp_spawner {
    pid_t pid;     /* for the process that forked it */
    int sock;      /* the daemon's end, non-blocking, close-on-exec; -1: none */
};

/*
 * Forks the spawner.  The calling process must have one thread.  The
 * job is the caller's and outlives the process.  0, or -1 with errno.
 */
int fp_spawner_start(struct fp_spawner *s, const struct fp_worker_job *job);

/* Asks for one more helper; fp_spawner_read() gives it.  FP_OK or why not. */
fp_status fp_spawner_ask(const struct fp_spawner *s);

/*
 * One helper that was asked for: its number and the daemon's end of its
 * socket, non-blocking, the caller's.  FP_AGAIN when there is none yet,
 * FP_BUSY when the spawner could not fork, FP_CLOSED when it is gone.
 */
fp_status fp_spawner_read(const struct fp_spawner *s, pid_t *pid_r, int *sock_r);

/* Kills (SIGKILL) and reaps a helper. */
fp_status fp_spawner_kill(const struct fp_spawner *s, pid_t pid);

/* Ends the spawner and with it every helper; waits until it has let go of its socket. */
void fp_spawner_stop(struct fp_spawner *s);

#endif
