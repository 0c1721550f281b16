/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of values that the settings and the section "fleet"
 * share.  A mistake is one line on stderr, by cfg_error().
 */
#ifndef FP_CONF_CHECK_H
#define FP_CONF_CHECK_H

#include <stdbool.h>

struct cfg_opt_t;
struct cfg_t;

/* 0 if the last value given is an absolute path in normal form, and no other one of its list; else -1. */
int fp_conf_check_path(struct cfg_t *cfg, struct cfg_opt_t *opt);

/* Takes decimal numbers alone; *(long *)result is the value.  0, or -1. */
int fp_conf_parse_number(struct cfg_t *cfg, struct cfg_opt_t *opt, const char *value, void *result);

/* True if two NULL-terminated lists of roots are the same. */
bool fp_conf_roots_equal(const char *const *a, const char *const *b);

#endif
