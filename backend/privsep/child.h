/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process begins that the daemon, or one of its processes, forks: with a name, and with
 * nothing of its parent's but what it is given.
 */
#ifndef FP_CHILD_H
#define FP_CHILD_H

#include <sys/types.h>

/* fork(2) with a socket (SOCK_SEQPACKET) between the two processes.  *sock_r is the caller's end
 * in each of them, close-on-exec; after a failure (-1 with errno) it is -1. */
pid_t fp_child_fork(int *sock_r);

/* Keeps the standard streams, sock and inotify (-1: none), closes the rest.  Signals to the
 * group do not end it: whoever forked it does, by closing the socket's other end. */
void fp_child_begin(const char *name, int sock, int inotify);

#endif
