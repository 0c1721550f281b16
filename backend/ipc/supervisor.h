/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that started this daemon and looks after it (flashpached
 * --supervised; httpd's parent): a socket to it is our standard input.
 */
#ifndef FP_SUPERVISOR_H
#define FP_SUPERVISOR_H

#include <stdbool.h>

struct ev_loop;

/*
 * To be called before anything is shared.  Takes the socket, so that no worker has it, and
 * asks the kernel for SIGTERM when the supervisor dies.  False: the supervisor is gone
 * already, or standard input is no such socket, which is logged.
 */
bool fp_supervisor_take(void);

/* Takes the listening socket and its lock, which the supervisor made as root, and closes all other
 * descriptors.  False: they are not there, which is logged. */
bool fp_supervisor_take_socket(int *sock_r, int *lock_r);

/*
 * Watches the socket.  From now on a descriptor that comes through it becomes standard
 * error (httpd's error log was reopened), and its end ends the loop.
 */
void fp_supervisor_watch(struct ev_loop *loop);

#endif
