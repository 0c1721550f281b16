/* SPDX-License-Identifier: Apache-2.0 */
/* mp and mt: a process or a thread serves one connection to its end, then the next. */
#ifndef ARCHSERVER_WORKERS_H
#define ARCHSERVER_WORKERS_H

#include "conn.h"

/* One of the processes of mp. Returns only with an errno. */
int workers_process(struct server *server, void *unused);

/* The process of mt, with all of its threads. Returns only with an errno. */
int workers_threads(struct server *server, void *unused);

#endif
