/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups that took long: a line in the log for each that took a second, and the
 * longest of the last minute for a report.
 */
#ifndef FP_SLOW_H
#define FP_SLOW_H

#include <stddef.h>
#include <stdint.h>

#include "wire/walk_result.h"

struct fp_slow;

struct fp_slow_lookup {
    const char *path; /* path_len bytes */
    size_t path_len;
    const char *point;       /* where its file system is mounted */
    struct fp_effort effort; /* call FP_CALL_NONE: its worker was killed, or died */
    unsigned waited;         /* questions that waited for it */
    uint64_t now_ms;
};

/* NULL if there is no memory. */
struct fp_slow *fp_slow_create(void);
void fp_slow_destroy(struct fp_slow **s);

/* Notes a lookup that has ended: logs a slow one (FP0046), and keeps a copy of the longest ones. */
void fp_slow_add(struct fp_slow *s, const struct fp_slow_lookup *l);

/*
 * A report (control.h), the longest first; ctx is a struct fp_slow.  "AGO_MS US CALL
 * CALL_US WAITED POINT PATH", point and path escaped as by fp_text_escape().
 */
size_t fp_slow_line(void *ctx, uint32_t n, char *buf, size_t size);

#endif
