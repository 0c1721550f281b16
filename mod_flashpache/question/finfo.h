/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer's metadata in the form in which APR gives it.
 */
#ifndef FP_FINFO_H
#define FP_FINFO_H

#include <apr_file_info.h>

struct fp_meta;
struct fp_request;
struct fp_step;

/* Fills finfo as apr_stat() does, with the members that apr_stat() would call valid. */
void fp_finfo_fill(apr_finfo_t *finfo, const struct fp_meta *m, const char *name, apr_pool_t *pool);

/*
 * apr_stat() of name, a path with or without slashes behind it, of which s is the step; with below set, s is the
 * last step and the walk ended above name. AP_DECLINED: the file system itself should report the error.
 */
apr_status_t fp_finfo_of_step(apr_finfo_t *finfo, const struct fp_step *s, int below, apr_int32_t wanted,
                              const char *name, apr_pool_t *pool);

/* apr_stat() of name from q's answer; path of len bytes is its normal form. AP_DECLINED: the answer does not have it, or
 * the file system itself should report the error. */
apr_status_t fp_finfo_of_name(apr_finfo_t *finfo, const struct fp_request *q, const char *path, apr_size_t len,
                              apr_int32_t wanted, const char *name, apr_pool_t *pool);

#endif
