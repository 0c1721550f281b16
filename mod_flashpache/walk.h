/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core's directory walk, its stat and lstat answered from what is known.
 */
#ifndef FP_WALK_H
#define FP_WALK_H

#include <httpd.h>

struct fp_meta;

/*
 * The dirwalk_stat hook: about r->filename, which core changes while it walks.
 * What is not known is AP_DECLINED, and core asks the file system.
 */
apr_status_t fp_walk_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted);

/* Fills finfo as apr_stat() does, with what it then calls valid. */
void fp_walk_fill(apr_finfo_t *finfo, const struct fp_meta *m, const char *name,
                  apr_pool_t *pool);

#endif
