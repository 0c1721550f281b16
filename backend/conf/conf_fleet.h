/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section "fleet" of the configuration.
 */
#ifndef FP_CONF_FLEET_H
#define FP_CONF_FLEET_H

#include <confuse.h>
#include <stdbool.h>

struct fp_fleet_settings;

/* The section's table, for the table of all settings, and what checks it there. */
cfg_opt_t fp_conf_fleet_section(void);
void fp_conf_fleet_check(cfg_t *cfg);

/* Of conf.c: is what was given last an absolute path in normal form? */
int fp_conf_check_path(cfg_t *cfg, cfg_opt_t *opt);

/* From what was checked; the strings stay cfg's.  False: there is no fleet, url is "". */
bool fp_conf_fleet_take(cfg_t *cfg, struct fp_fleet_settings *settings_r);

bool fp_fleet_settings_equal(const struct fp_fleet_settings *a,
                             const struct fp_fleet_settings *b);

#endif
