/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How Flashpache is at one moment: a level, and findings that say why and what to do.
 */
#ifndef FP_HEALTH_H
#define FP_HEALTH_H

#include <apr_pools.h>
#include <apr_tables.h>

struct fp_snapshot;

enum fp_health_level {
    FP_HEALTHY,
    FP_DEGRADED, /* some requests lose what they would gain */
    FP_DOWN      /* httpd serves each request by itself */
};

struct fp_finding {
    enum fp_health_level level; /* FP_HEALTHY: worth to know, and no fault */
    const char *why;            /* may name paths: not escaped for HTML */
    const char *advice;         /* commands stand between backquotes; no name from outside */
};

struct fp_health {
    enum fp_health_level level;   /* the worst of the findings */
    apr_array_header_t *findings; /* of struct fp_finding, the worst first */
};

/* f: of depth FP_SNAPSHOT_ALL. */
struct fp_health fp_health_of(apr_pool_t *p, const struct fp_snapshot *f);

/* "healthy", "degraded", "down". */
const char *fp_health_text(enum fp_health_level level);

#endif
