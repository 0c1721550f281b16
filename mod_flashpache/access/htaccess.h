/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .htaccess without the file system: presence, content, and the result of parsing.
 *
 * This room holds access files, and the sections of the configuration that core merges with them. main calls its
 * hooks; it calls walk/ and question/. It decides nothing about access: core and other modules' directives do, from
 * the same text. For httpd 2.2, access_file, parsed and htaccess_pure serve alike.
 */
#ifndef FP_HTACCESS_H
#define FP_HTACCESS_H

#include <httpd.h>
#include <http_config.h>
#include <http_core.h>

#include "base/errors.h"

struct fp_access;
struct fp_request;

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

/* error_log: notes whether a parse logs. The result of one that does is not kept, so each request logs
 * as in stock. */
void fp_htaccess_note_line(const ap_errorlog_info *info, const char *line);

/* Before core's walk: gives it the parsed files of the path's directories. */
void fp_htaccess_inject(request_rec *r);

/* post_perdir_config, after core's walk: keeps the files that core had to parse. */
int fp_htaccess_keep(request_rec *r);

#endif
