/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service manager and we tell each other (sd_notify(3), sd_listen_fds(3)).
 * Without libsystemd, or where no manager started us, nothing is told.
 */
#ifndef FP_SERVICE_H
#define FP_SERVICE_H

#include <stdbool.h>

/*
 * Takes the listening socket that a manager holds for us and closes whatever
 * else we were started with.  *sock_r: the caller's, or -1 if none was given.
 * False, after logging, if more than one was.
 */
bool fp_service_take_socket(int *sock_r);

/* Is it a listening socket of our kind, and at that path? */
bool fp_service_is_socket_at(int sock, const char *path);

void fp_service_say_ready(void);
void fp_service_say_reloading(void);
void fp_service_say_stopping(void);

#endif
