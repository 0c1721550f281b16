/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the result of core's walk: the merged <Directory> sections of a directory's files, and its access
 * file. Core merges them for each request, in memory of its own. Here they are merged once: sections before
 * children start, so that children share them. Core itself does it, by its walk to a file that the directory
 * might have.
 */
#ifndef FP_SECTIONS_H
#define FP_SECTIONS_H

#include <httpd.h>
#include <http_config.h>
#include <http_core.h>

#include "access/parsed.h"

/* Call it once the configuration is complete and no module changes it any more, before there are
 * children. The result lives in p. Merges nothing if another module has a hook in core's walk: then each
 * walk must be core's. */
void fp_sections_merge(apr_pool_t *p, server_rec *s);

/* Merges the sections of a directory, as core names it, with its access file. The result lives in p; that of
 * the access file must live as long. */
struct fp_merged fp_sections_merge_with(apr_pool_t *p, server_rec *s, const struct htaccess_result *file);

/* map_to_storage, just before core's: takes the place of core's walk to a regular file. The answer must have
 * all that core would look at, and one access file at most. */
int fp_sections_walk(request_rec *r);

/* map_to_storage, first: core begins at the note of an earlier walk, of this request or the one that it comes
 * from. Has core make that note if the walk was left out. */
void fp_sections_begin(request_rec *r);

/* dirwalk_stat and open_htaccess, first: answer core's walk for a merge, and decline all others. */
apr_status_t fp_sections_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted);
apr_status_t fp_sections_open(request_rec *r, const char *dir, const char *name, ap_configfile_t **file,
                              const char **full_name);

#endif
