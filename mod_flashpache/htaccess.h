/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .htaccess without the file system: presence, content, and the result of parsing.
 *
 * Each child keeps parsed files, each in a pool of its own, by server, directory and allowed
 * overrides. A parsed file is used while the answer about the directory shows the very file it was
 * made from (inode, length, times). It is freed once the file has changed and the pool of the last
 * request that uses it is gone. Many requests may share it: a parsed configuration is read-only,
 * like that of a <Directory>. Only files with directives that are known to be pure are kept
 * (htaccess_pure.h).
 */
#ifndef FP_HTACCESS_H
#define FP_HTACCESS_H

#include <httpd.h>
#include <http_config.h>

#include "common/errors.h"

struct fp_access;
struct fp_request;

/* limit: the most parsed files that this child keeps. Call it once, before requests. Everything is
 * freed with the pool. */
void fp_htaccess_init(apr_pool_t *p, int limit);

/* create_request, before others: the parsed files that this request uses outlive all that others
 * register with its pool. */
int fp_htaccess_begin(request_rec *r);

/*
 * The open_htaccess hook: absent, or the content from a descriptor that the daemon passes. Else
 * AP_DECLINED, and core opens the file itself. A missing answer must never look like an absent
 * file, since the file may hold Require.
 */
apr_status_t fp_htaccess_open(request_rec *r, const char *dir, const char *name, ap_configfile_t **file,
                              const char **full_name);

/*
 * Finds the access file of that name in q's answer about the directory. FP_OK (it is there, in
 * *access_r), FP_ABSENT or FP_NOTDIR; with any other status core must look itself.
 */
fp_status fp_htaccess_find(const request_rec *r, const struct fp_request *q, const char *dir,
                           const char *name, const struct fp_access **access_r);

/* Before core's walk: gives it the parsed files of the path's directories. */
void fp_htaccess_inject(request_rec *r);

/* post_perdir_config, after core's walk: keeps the files that core had to parse. */
int fp_htaccess_keep(request_rec *r);

#endif
