/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directives of mod_flashpache_srpt (docs/scheduling.md).
 */
#ifndef FP_SRPT_SETTINGS_H
#define FP_SRPT_SETTINGS_H

#include <httpd.h>
#include <http_config.h>

#include "srpt/schedule_class.h"

extern module AP_MODULE_DECLARE_DATA flashpache_srpt_module;
extern const command_rec fp_srpt_directives[];

void *fp_srpt_settings_create(apr_pool_t *p, server_rec *s);
void *fp_srpt_settings_merge(apr_pool_t *p, void *base, void *add);

/* check_config: OK if each server's priorities fit its classes; an error is logged. */
int fp_srpt_settings_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s);

/* post_config, once the directives are merged: computes the classes of all servers. */
void fp_srpt_settings_finish(server_rec *s);

/* The size classes of a server's responses; NULL: they are not scheduled. */
const struct fp_classes *fp_srpt_settings_classes(const server_rec *s);

#endif
