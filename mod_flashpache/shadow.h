/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlashpacheEngine Shadow: the file system answers core's walk as without Flashpache. Each result
 * is compared with the one that Flashpache would have used.
 *
 * A file may have changed between the two looks. So after a difference both are repeated a moment
 * later: the daemon and the file system are asked once more. Only a difference that is still there
 * counts.
 *
 * The content of small files is not compared: the daemon reads it itself.
 */
#ifndef FP_SHADOW_H
#define FP_SHADOW_H

#include <httpd.h>
#include <http_config.h>

/* The hooks dirwalk_stat and open_htaccess, just before core's own functions; these do the same
 * work. */
apr_status_t fp_shadow_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted);
apr_status_t fp_shadow_htaccess(request_rec *r, const char *dir, const char *name, ap_configfile_t **file,
                                const char **full_name);

#endif
