/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section "fleet" of the configuration.
 */
#ifndef FP_CONF_FLEET_H
#define FP_CONF_FLEET_H

#include <stdbool.h>

#define FP_MAX_FLEET_HOST 64

struct fp_conf_text;

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
    const char *const *roots;  /* NULL-terminated, normal form */
    bool publish_changes;
    long stream_max;
};

/* True if all settings are the same: the fleet need not connect anew. */
bool fp_fleet_settings_equal(const struct fp_fleet_settings *a, const struct fp_fleet_settings *b);

/* For conf.c: checks of single values, and of the section, which end with a message where they fail. */
bool fp_conf_fleet_check_url(const struct fp_conf_text *t, const char *key, const char *url);
bool fp_conf_fleet_check_name(const struct fp_conf_text *t, const char *key, const char *name);
bool fp_conf_fleet_check_user(const struct fp_conf_text *t, const char *key, const char *user);
/* Also sets what the url says. */
bool fp_conf_fleet_finish(const struct fp_conf_text *t, struct fp_fleet_settings *s);

#endif
