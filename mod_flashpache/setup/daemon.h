/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpached as httpd's own (FlashpacheDaemon auto). httpd's parent starts it as User and Group,
 * restarts it when it dies, and ends it. The daemon lives on across restarts, so that both
 * generations of children use one cache. It is replaced when its program, files or user have
 * changed.
 */
#ifndef FP_DAEMON_H
#define FP_DAEMON_H

#include <httpd.h>
#include <stdbool.h>
#include <stdint.h>

struct fp_client;
struct fp_client_settings;

/* The path of the daemon's socket, in a directory of its own below DefaultRuntimeDir. */
const char *fp_daemon_socket(apr_pool_t *p);

/*
 * post_config, in the parent: from now on a daemon runs with that configuration file (NULL: none)
 * and socket. A failed start is logged (FP0112). A running daemon goes on where its replacement
 * would not start (FP0116).
 */
void fp_daemon_keep(apr_pool_t *pconf, server_rec *s, const char *program, const char *configuration,
                    const char *socket);

/* post_config, in the parent: ends the daemon if one runs. */
void fp_daemon_end(server_rec *s);

/* post_config, in the parent, before all else: notes whether root started this httpd. same_files:
 * the operator states that a daemon in another container has the children's files. */
void fp_daemon_begin(bool same_files);

/* fp_client_create() for a daemon that children may trust, whatever the settings say of that. Where root started this httpd, the
 * socket must be root's: no process of Apache's user can have made it. */
struct fp_client *fp_daemon_client(const struct fp_client_settings *settings);

/* In a child: closes the parent's end of the daemon's channel. */
void fp_daemon_leave(server_rec *s);

#endif
