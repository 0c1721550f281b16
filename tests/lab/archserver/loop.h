/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop over connections: all of sped, one of several of symped and
 * shared-symped, the main process of amped and new-flash.
 */
#ifndef ARCHSERVER_LOOP_H
#define ARCHSERVER_LOOP_H

#include "conn.h"

/*
 * Runs a loop. user: the loop's side of the helpers' socket, or NULL where
 * there are none. A cache that the server has already is shared. Returns only with an errno.
 */
int loop_process(struct server *server, void *user);

#endif
