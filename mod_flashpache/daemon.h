/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpached as httpd's own (FlashpacheDaemon auto): httpd's parent starts it
 * as User and Group, starts it again when it dies, and ends it.  It lives on
 * across restarts, so that both generations of children use one cache, unless
 * what it was started from has changed.
 */
#ifndef FP_DAEMON_H
#define FP_DAEMON_H

#include <httpd.h>

/* The path of its socket: in a directory of its own below DefaultRuntimeDir. */
const char *fp_daemon_socket(apr_pool_t *p);

/*
 * post_config, in the parent: from now on one runs with that configuration file (NULL:
 * none) and socket.  A failed start is logged (FP0112).
 */
void fp_daemon_keep(apr_pool_t *pconf, server_rec *s, const char *program, const char *configuration,
                    const char *socket);

/* post_config, in the parent: ends the daemon if one runs. */
void fp_daemon_end(server_rec *s);

/* In a child: closes the parent's end of the daemon's channel. */
void fp_daemon_leave(server_rec *s);

#endif
