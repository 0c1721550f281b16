/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a forked process: it gets a name, a socket to its parent, and nothing else of its
 * parent's.
 */
#ifndef FP_CHILD_H
#define FP_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Does fork(2) with a socket (SOCK_SEQPACKET) between the two processes.  *sock_r is the caller's end
 * in each of them, close-on-exec; after a failure (-1 with errno) it is -1. */
pid_t fp_child_fork(int *sock_r);

/* A terminal's or a service manager's signal to the whole group does not end this process before the
 * daemon. */
void fp_child_ignore_signals(void);

/*
 * Keeps the standard streams, sock and inotify (-1: none), closes the rest.  Signals to the
 * process group do not end the process: its parent does, by closing the socket's other end.
 * lent_log: standard error is a log that somebody else rotates, and only the daemon is given the
 * next one.  A child that kept it would keep the old file's space.
 */
void fp_child_begin(const char *name, int sock, int inotify, bool lent_log);

#endif
