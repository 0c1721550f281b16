/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: how many bytes of a response remain decides with which
 * priority its socket is served (Harchol-Balter et al., "Size-based Scheduling
 * to Improve Web Performance", section 2.2.2).  Arithmetic alone: no socket and
 * no httpd type.
 */
#ifndef FP_SCHEDULE_CLASS_H
#define FP_SCHEDULE_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#define FP_MAX_BOUNDS  6
#define FP_MAX_CLASSES (FP_MAX_BOUNDS + 1)
/* The largest SO_PRIORITY that a process without CAP_NET_ADMIN may set, and the one that
 * every socket begins with. */
#define FP_MAX_PRIORITY   6
#define FP_FIRST_PRIORITY 0

/* Class n has remainders up to bounds[n], the last class all larger ones. */
struct fp_classes {
    unsigned n_bounds;
    int64_t bounds[FP_MAX_BOUNDS];  /* ascending */
    int priorities[FP_MAX_CLASSES]; /* SO_PRIORITY of each class */
};

/* 1K 2K 5K 20K 50K, and priorities 1 to 6. */
extern const struct fp_classes fp_usual_classes;

/* A number of bytes with or without K or M (1K is 1024); false: it is none. */
bool fp_bytes_parse(const char *text, int64_t *bytes_r);

/* A whole number up to FP_MAX_PRIORITY; false: it is none. */
bool fp_priority_parse(const char *text, int *priority_r);

/* Priorities for the bounds: 1 for the smallest class and so on; with the most
 * bounds there can be, 0 for it. */
void fp_classes_number(struct fp_classes *classes);

/* The priority of a socket with so many bytes left. */
int fp_classes_priority(const struct fp_classes *classes, int64_t remaining);

/* The class below begins where so many bytes are left; -1: there is none. */
int64_t fp_classes_next_bound(const struct fp_classes *classes, int64_t remaining);

#endif
