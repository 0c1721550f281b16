/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlashpacheEngine Shadow: core's walk is answered by the file system as without
 * Flashpache, and each answer compared with what would have been used instead.
 *
 * What was asked a moment before may have changed since, so a difference is
 * looked at again: the daemon is asked once more, a moment later, and so is the
 * file system.  Only what then still differs is one.
 *
 * Not compared: the content of small files, which the daemon reads itself.
 */
#ifndef FP_SHADOW_H
#define FP_SHADOW_H

#include <httpd.h>
#include <http_config.h>

/* The hooks dirwalk_stat and open_htaccess, just before core's own: they do what those do. */
apr_status_t fp_shadow_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted);
apr_status_t fp_shadow_htaccess(request_rec *r, const char *dir, const char *name,
                                ap_configfile_t **file, const char **full_name);

#endif
