/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between a service manager and us (sd_notify(3), sd_listen_fds(3)).
 * Without libsystemd, or where no manager started us, there are none.
 */
#ifndef FP_SERVICE_H
#define FP_SERVICE_H

#include <stdbool.h>

/*
 * Takes the listening socket that a manager holds for us and closes all other
 * descriptors that we were started with.  *sock_r: the caller's, or -1 if none was given.
 * False, after logging, if more than one was given.
 */
bool fp_service_take_socket(int *sock_r);

/* Each reports to the service manager; without one nothing happens. */
void fp_service_say_ready(void);
void fp_service_say_reloading(void);
void fp_service_say_stopping(void);

#endif
