/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start with httpd 2.x: of the daemon by httpd's parent, and of what each child needs.
 */
#ifndef FP_START_H
#define FP_START_H

#include <httpd.h>
#include <stdbool.h>

/* True if FlashpacheEngine is On or Shadow in this server or in any behind it. */
bool fp_start_is_on(server_rec *s);

/*
 * Returns the reason why the daemon's answers would differ from httpd's own, or NULL. httpd may see other
 * paths, have other rights from one request to the next, or have a capability that the daemon lacks. The text
 * lives as long as the process. chroot_dir: of ChrootDir; NULL if there is none.
 */
const char *fp_start_obstacle(const char *chroot_dir);

/* In the parent: starts the daemon, goes on with the one that runs, or ends it, as the configuration says.
 * FP0103 names the obstacle; NULL if there is none. */
void fp_start_daemon(apr_pool_t *pconf, server_rec *s, const char *obstacle);

/*
 * In a child: makes its client of the daemon and its tables, which last as long as the pool.
 * False: nothing of Flashpache is needed here, or FP0108 says why not. Without memory for the client (FP0104)
 * fp_child_client is NULL, and httpd looks for itself.
 */
bool fp_start_child(apr_pool_t *p, server_rec *s, const char *obstacle);

/* pre_connection: makes room for connections where they need all descriptors (fp_open_files_yield()). */
int fp_start_connection(conn_rec *c, void *socket);

#endif
