/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlashpacheEngine Shadow: the file system answers core's walk as without Flashpache,
 * and each result is compared with the one that Flashpache would have used.
 *
 * A file may have changed between the two looks, so a difference is looked at again: the
 * daemon is asked once more, a moment later, and so is the file system.  Only a difference
 * that is still there counts.
 *
 * Not compared: the content of small files, which the daemon reads itself.
 */
#ifndef FP_SHADOW_H
#define FP_SHADOW_H

#include <httpd.h>
#include <http_config.h>

/* The hooks dirwalk_stat and open_htaccess, just before core's own: they do what those do. */
apr_status_t fp_shadow_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted);
apr_status_t fp_shadow_htaccess(request_rec *r, const char *dir, const char *name, ap_configfile_t **file,
                                const char **full_name);

#endif
