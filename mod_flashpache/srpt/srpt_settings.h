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

/* The size classes of a server's responses; NULL: they are not scheduled. */
const struct fp_classes *fp_srpt_settings_classes(const server_rec *s);

#endif
