/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: the remaining bytes of a response decide its socket's priority (Harchol-Balter et
 * al., "Size-based Scheduling to Improve Web Performance", section 2.2.2). Arithmetic alone: no
 * socket and no httpd type.
 */
#ifndef FP_SCHEDULE_CLASS_H
#define FP_SCHEDULE_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#define FP_MAX_BOUNDS 6
/* The largest SO_PRIORITY that a process without CAP_NET_ADMIN may set, and the one that
 * every socket begins with. */
#define FP_MAX_PRIORITY   6
#define FP_FIRST_PRIORITY 0

/* Class n has remainders up to bounds[n], the last class all larger ones. */
struct fp_classes {
    unsigned n_bounds;
    int64_t bounds[FP_MAX_BOUNDS]; /* ascending */
};

/* 1K 2K 5K 20K 50K. */
extern const struct fp_classes fp_usual_classes;

/* Parses a number of bytes with or without K or M (1K is 1024). False: the text is no such number. */
bool fp_bytes_parse(const char *text, int64_t *bytes_r);

/* The priority (SO_PRIORITY) of a socket with so many remaining bytes: 1 for the smallest class, and so on. With the
 * most bounds possible, 0 for it. */
int fp_classes_priority(const struct fp_classes *classes, int64_t remaining);

/* The remainder at which the class below begins; -1: there is no class below. */
int64_t fp_classes_next_bound(const struct fp_classes *classes, int64_t remaining);

#endif
