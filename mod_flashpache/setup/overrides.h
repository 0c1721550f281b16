/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AllowOverride of all sections of a server.
 */
#ifndef FP_OVERRIDES_H
#define FP_OVERRIDES_H

#include <httpd.h>
#include <stdbool.h>

/* Once the configuration is complete: true if core may look for access files anywhere in this server.
 * lists_r: whether AllowOverrideList stands somewhere. */
bool fp_overrides_allow(const server_rec *s, bool *lists_r);

#endif
