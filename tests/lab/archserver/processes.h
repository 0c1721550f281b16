/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process: it starts those that serve, and waits.  SIGTERM and
 * SIGINT end all of them; so does the end of any.
 */
#ifndef ARCHSERVER_PROCESSES_H
#define ARCHSERVER_PROCESSES_H

#include "conn.h"

/* Runs the server; returns the status to exit with. */
int processes_run(struct server *server);

#endif
