/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages with threads and queues. Accept and ready have one thread each; ready
 * takes the events of all sockets. The threads of respond never wait for a disk,
 * those of disk do.
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
