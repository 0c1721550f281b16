/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RewriteCond's tests of files (-f -d -s -l -L -h -x) are answered like paths of requests.
 *
 * httpd lets several modules have one directive, and the module added last gets it first. So a
 * second module record, added when all modules are loaded, translates each RewriteCond before
 * mod_rewrite reads it (condition.h), in httpd.conf as in .htaccess. The translation asks an
 * internal map; mod_rewrite lets modules register one. A condition without a translation stays as
 * it is. Nothing in mod_rewrite's memory is touched.
 */
#ifndef FP_REWRITE_H
#define FP_REWRITE_H

#include <stdbool.h>

/* FlashpacheRewrite Off: known when directives are carried out. */
bool fp_rewrite_is_off(void);

/* With the hooks of the module. */
void fp_rewrite_register(void);

#endif
