/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options MultiViews: for an absent name mod_negotiation reads the directory, to find variants.  Where it
 * would find none it is spared that.
 */
#ifndef FP_MULTIVIEWS_H
#define FP_MULTIVIEWS_H

#include <httpd.h>

/* post_config: whether mod_negotiation is there. */
void fp_multiviews_begin(void);

/* type_checker, before mod_negotiation's. */
int fp_multiviews_before(request_rec *r);
/* fixups, first: what the function above has set is as it was. */
int fp_multiviews_after(request_rec *r);

#endif
