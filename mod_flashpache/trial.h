/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether flashpached would start: it is run with -t, as httpd's children's user, before anything depends on it.
 */
#ifndef FP_TRIAL_H
#define FP_TRIAL_H

#include <httpd.h>

/*
 * In the parent, when the directives have been read: tries the program with that configuration file
 * (NULL: none) and socket, for ten seconds at most.  NULL: it would start.  Otherwise why not, and
 * the way out.
 */
const char *fp_trial_run(apr_pool_t *p, server_rec *s, const char *program, const char *configuration,
                         const char *socket);

#endif
