/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that forks workers.  It is forked before the daemon holds
 * anything worth inheriting.  So a worker has one socket and nothing else, and
 * forking stays cheap however large the cache grows.
 *
 * It is the parent of the workers and reaps one only after the daemon has it
 * killed.  So a process id that the daemon knows is never another process's.
 */
#ifndef FP_SPAWNER_H
#define FP_SPAWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/errors.h"

/* The code of each worker, and its context. */
struct fp_worker_job {
    void (*run)(int sock, const void *ctx); /* serves the daemon at the other end; does not return */
    const void *ctx;
    int inherited; /* the one descriptor beside sock that is left open; -1: none */
    bool lent_log; /* standard error is the log of who started the daemon: see child.h */
};

struct fp_spawner {
    pid_t pid; /* for its parent */
    int sock;  /* the daemon's end, non-blocking, close-on-exec; -1: none */
};

/*
 * Forks the spawner.  The calling process must have one thread.  The
 * job is the caller's and outlives the process.  0, or -1 with errno.
 */
int fp_spawner_start(struct fp_spawner *s, const struct fp_worker_job *job);

/* Asks for one more worker, which fp_spawner_read() returns.  FP_OK or why not. */
fp_status fp_spawner_ask(const struct fp_spawner *s);

/*
 * Reads one worker that was asked for: its process id and the daemon's end of its
 * socket, non-blocking, the caller's.  FP_AGAIN if there is none yet.  FP_BUSY: the
 * spawner could not fork.  FP_LOSTFD: this process has no descriptor free, and the
 * worker is killed.  FP_CLOSED: the spawner is gone.
 */
fp_status fp_spawner_read(const struct fp_spawner *s, pid_t *pid_r, int *sock_r);

/* Kills (SIGKILL) and reaps a worker. */
fp_status fp_spawner_kill(const struct fp_spawner *s, pid_t pid);

/* Ends the spawner and with it every worker; waits until it has closed its socket. */
void fp_spawner_stop(struct fp_spawner *s);

#endif
