/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries whether flashpached would start: runs it with -t, as the user of httpd's children, before
 * anything depends on it.
 */
#ifndef FP_TRIAL_H
#define FP_TRIAL_H

#include <httpd.h>

/* NULL: the program can be run. Otherwise the reason, and the way out. */
const char *fp_trial_program(apr_pool_t *p, const char *program);

/*
 * In the parent, after the directives were read: tries the program with that configuration file
 * (NULL: none) and socket, for ten seconds at most. NULL: it would start. Otherwise the reason, and
 * the way out.
 */
const char *fp_trial_run(apr_pool_t *p, server_rec *s, const char *program, const char *configuration,
                         const char *socket);

#endif
