/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access files of Apache 1.3: core finds in r->htaccess that there is none, or what the content that the
 * daemon has was parsed to. All others it opens itself.
 */
#ifndef FP_HTACCESS13_H
#define FP_HTACCESS13_H

#include <httpd.h>
#include <stdbool.h>

struct fp_held;

/* Before core's walk. fresh: as for the answer. Returns true if core may open access files of the path by
 * name. */
bool fp_htaccess_inject(request_rec *r, const struct fp_held *held, bool fresh);

#endif
