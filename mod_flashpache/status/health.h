/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flashpache's health at one moment: a level, and findings that give the reason and the way out.
 */
#ifndef FP_HEALTH_H
#define FP_HEALTH_H

#include <apr_pools.h>
#include <apr_tables.h>

struct fp_snapshot;

enum fp_health_level {
    FP_HEALTHY,
    FP_DEGRADED, /* some requests do without answers */
    FP_DOWN      /* httpd serves each request by itself */
};

struct fp_finding {
    enum fp_health_level level; /* FP_HEALTHY: worth knowing, and no fault */
    const char *why;            /* may name paths: not escaped for HTML */
    const char *advice;         /* commands stand between backquotes; no name from outside */
};

struct fp_health {
    enum fp_health_level level;   /* the worst of the findings */
    apr_array_header_t *findings; /* of struct fp_finding, the worst first */
};

/* The health by f, a snapshot of all. */
struct fp_health fp_health_of(apr_pool_t *p, const struct fp_snapshot *f);

/* "healthy", "degraded", "down". */
const char *fp_health_text(enum fp_health_level level);

#endif
