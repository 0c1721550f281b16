/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the socket of httpd's own flashpached lies: in a directory of its own
 * below DefaultRuntimeDir.
 */
#ifndef FP_DAEMON_PLACE_H
#define FP_DAEMON_PLACE_H

#include <apr_pools.h>
#include <sys/types.h>

const char *fp_daemon_socket(apr_pool_t *p);

/*
 * Makes the directory, or sees to it that it is uid's and gid's and nobody
 * else's.  NULL, or what is wrong and the way out.
 */
const char *fp_daemon_place_make(apr_pool_t *p, uid_t uid, gid_t gid);

#endif
