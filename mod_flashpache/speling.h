/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CheckSpelling: for an absent name mod_speling reads the directory to find a similar one. This
 * file spares it a search that would find none.
 */
#ifndef FP_SPELING_H
#define FP_SPELING_H

#include <httpd.h>

/* post_config: looks whether mod_speling is loaded. */
void fp_speling_begin(apr_pool_t *pconf);

/* fixups, just before mod_speling's. */
int fp_speling_before(request_rec *r);
/* fixups, after mod_speling's: restores the configuration that fp_speling_before() replaced. */
int fp_speling_after(request_rec *r);

#endif
