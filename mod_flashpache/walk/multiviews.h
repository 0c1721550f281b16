/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options MultiViews: for an absent name mod_negotiation reads the directory to find variants. This
 * file spares it a search that would find none.
 */
#ifndef FP_MULTIVIEWS_H
#define FP_MULTIVIEWS_H

#include <httpd.h>

/* post_config: looks whether mod_negotiation is loaded. */
void fp_multiviews_begin(void);

/* type_checker, before mod_negotiation's. */
int fp_multiviews_before(request_rec *r);
/* fixups, first: restores the configuration that fp_multiviews_before() replaced. */
int fp_multiviews_after(request_rec *r);

#endif
