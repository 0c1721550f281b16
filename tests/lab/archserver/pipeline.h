/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages with threads and queues: accept (one thread), ready (one thread, the
 * events of all sockets), respond (threads that never wait for a disk), disk
 * (threads for all that does).
 *
 *   accept -> ready <-> respond <-> disk
 *
 * A connection belongs to one stage at a time. WatPipe has the disk's waiting
 * in its writers; Haboob has it in a stage of its own, as here.
 */
#ifndef ARCHSERVER_PIPELINE_H
#define ARCHSERVER_PIPELINE_H

#include "conn.h"

/* The process with all threads. Returns only with an errno. */
int pipeline_process(struct server *server, void *unused);

#endif
