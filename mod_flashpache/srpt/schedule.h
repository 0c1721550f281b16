/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size-based scheduling: the connection's socket has a priority (SO_PRIORITY) by the remaining
 * bytes of the response. So a queueing discipline can send the shortest remainder first
 * (docs/scheduling.md).
 *
 * The remaining bytes are those that httpd has not written and those that the kernel has not sent.
 * A packet in the device's queue keeps the priority with which it came there. The kernel lets a
 * connection have about two packets there.
 */
#ifndef FP_SCHEDULE_H
#define FP_SCHEDULE_H

#include <httpd.h>

/* Once, when hooks are registered. */
void fp_schedule_register(void);

/* post_config: looks whether any server is scheduled. If none is, the hooks below do nothing. */
void fp_schedule_init(server_rec *s);

/* pre_connection: makes the state of this connection. */
int fp_schedule_connection(conn_rec *c, void *socket);

/* create_request: its response goes through the filter. */
int fp_schedule_request(request_rec *r);

/* post_read_request: a request with a body begins at the first priority. */
int fp_schedule_body(request_rec *r);

#endif
