/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outcomes of requests, counted in memory that a server's children share, since its last restart.
 * Knows neither httpd nor APR.
 */
#ifndef FP_COUNTERS13_H
#define FP_COUNTERS13_H

#include <stdint.h>

#include "status/outcomes.h"

/* In the parent, before it makes children. Without memory nothing is counted. */
void fp_counters13_begin(void);
/* Unmaps the memory; children that still have it go on. */
void fp_counters13_end(void);

void fp_counters13_add(enum fp_count what);
uint64_t fp_counters13_get(enum fp_count what);

#endif
