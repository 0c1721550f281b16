/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section "fleet" of the configuration.
 */
#ifndef FP_CONF_FLEET_H
#define FP_CONF_FLEET_H

#include <stdbool.h>

#define FP_MAX_FLEET_HOST  64
#define FP_MAX_FLEET_ROOTS 64

struct cfg_opt_t;
struct cfg_t;

/* The configuration owns the strings. */
struct fp_fleet_settings {
    const char *url;
    const char *path;             /* of a Unix-domain socket; "": host and port */
    char host[FP_MAX_FLEET_HOST]; /* a numeric address */
    int port;
    unsigned db;
    const char *user;          /* "": Redis' default user */
    const char *password_file; /* "": none */
    const char *name;
    const char *roots[FP_MAX_FLEET_ROOTS + 1]; /* NULL-terminated, normal form */
    bool publish_changes;
    long stream_max;
};

/* True if all settings are the same: the fleet need not connect anew. */
bool fp_fleet_settings_equal(const struct fp_fleet_settings *a, const struct fp_fleet_settings *b);

/* For conf.c: the section's row in the table of settings, and the checks of its keys. */
struct cfg_opt_t fp_conf_fleet_section(void);
void fp_conf_fleet_check(struct cfg_t *cfg);

/* Takes the settings of a checked section; the strings stay cfg's.  False: there is no fleet, url is "". */
bool fp_conf_fleet_take(struct cfg_t *cfg, struct fp_fleet_settings *settings_r);

#endif
