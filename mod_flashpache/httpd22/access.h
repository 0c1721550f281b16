/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access files (.htaccess) for a core without the hook that opens them.
 *
 * Core looks at r->htaccess first. So before its walk each directory whose answer shows no access file
 * gets a result without a configuration. One whose file this child parsed before gets that result.
 * Core opens all others by name. After the walk this child parses them once more, from the content
 * that the daemon passes, and keeps that.
 */
#ifndef FP_HTTPD22_ACCESS_H
#define FP_HTTPD22_ACCESS_H

#include <httpd.h>

struct fp_request;

/* Before core's walk. n_dirs: how many of the answer's steps core takes for directories. */
void fp_access_give(request_rec *r, struct fp_request *q, unsigned n_dirs);

/* After core's walk: notes that core opened access files by name, and keeps those that may be kept. */
void fp_access_keep(request_rec *r, struct fp_request *q);

#endif
