/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May the result of parsing an .htaccess be used again? Only if parsing depends on nothing but the
 * text and httpd's own configuration, and changes nothing else.
 */
#ifndef FP_HTACCESS_PURE_H
#define FP_HTACCESS_PURE_H

#include <httpd.h>
#include <http_config.h>
#include <stdbool.h>

/*
 * Reads the file to its end as core does, with continued lines joined. True if each directive in it
 * is known to be pure. A directive that no module has is pure: core refuses it or leaves it out.
 */
bool fp_htaccess_is_pure(apr_pool_t *p, ap_configfile_t *file);

#endif
