/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of a server's sections about links and access files, for a walk that has no hooks.
 */
#ifndef FP_RULES_H
#define FP_RULES_H

#include <httpd.h>
#include <stdbool.h>

struct fp_settings;

#define FP_MAX_OVERRIDES 16 /* different values of AllowOverride; for further ones core looks itself */

struct fp_rules {
    /* Every value with which core's walk may ask for an access file. Core finds a result only by the
     * very value. */
    int overrides[FP_MAX_OVERRIDES];
    unsigned n_overrides;
    unsigned n_names;      /* words in AccessFileName */
    bool restricts_links;  /* a section forbids links, or wants their targets' owners */
    bool access_files_may; /* access files may do so */
};

/* Once the configuration is complete, after fp_settings_finish(). */
void fp_rules_take(apr_pool_t *p, const server_rec *s, struct fp_settings *n);

/* True if core treats a name of the path as a directory's in a section of its own. That is, "name" with
 * a slash behind it matches the section. */
bool fp_rules_name(const server_rec *s, const char *name);

#endif
