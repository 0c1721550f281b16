/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main loop of a worker process: it answers the daemon's tasks, one after another.
 */
#ifndef FP_WORKER_H
#define FP_WORKER_H

/* For struct fp_worker_job; ctx is a struct fp_resolver_settings.  Ends with the daemon's end of
 * the socket, or with status 1 where the walk cannot be prepared. */
void fp_worker_run(int sock, const void *ctx);

#endif
