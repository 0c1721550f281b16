/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon tells of itself: who it is, since when, and what it may hold.
 */
#ifndef FP_ABOUT_H
#define FP_ABOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fp_conf;

struct fp_about {
    const struct fp_conf *conf;   /* as it was started */
    const char *file;             /* where that was read */
    size_t descriptors;           /* the process may hold */
    size_t max_connections;       /* of which there may be so many */
    uint64_t began_ms;            /* clock.h */
    bool seccomp;                 /* filters of system calls hold */
};

/* A report (control.h), "KEY VALUE" a line; ctx is a struct fp_about. */
size_t fp_about_line(void *ctx, uint32_t n, char *room, size_t size);

#endif
