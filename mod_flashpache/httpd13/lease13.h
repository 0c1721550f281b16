/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that a request holds, and those that a child of Apache 1.3 keeps. Knows neither httpd nor
 * APR, which Apache 1.3 has not: lease.h keeps its leases by APR. A child has one thread.
 *
 * A child keeps answers with an open file only. It finds all others in the table of answers, without a
 * message and at little cost (shared.h).
 */
#ifndef FP_LEASE13_H
#define FP_LEASE13_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/answer.h"

struct fp_lease_view;

struct fp_lease13 {
    unsigned references;
    const void *owner;          /* whose question it was: a server's settings */
    struct fp_lease_view *view; /* NULL: the lease is never kept */
    size_t path_len;
    char *path;
    unsigned n_steps, n_names;
    const struct fp_step **steps; /* "/" first */
    enum fp_source source;
    bool watched, local;
    int fd; /* the last step's file; -1: none */
    bool content;
    uint64_t content_at; /* of the view's contents */
};

/* Makes a lease of an answer with status FP_OK, with one reference for the caller, and keeps it if it
 * may be used again. Takes the answer's descriptor and the reference to the view. NULL: no memory. */
struct fp_lease13 *fp_lease13_create(const void *owner, const char *path, size_t len, struct fp_answer *a,
                                     struct fp_lease_view *view);

/* The kept lease, with a reference for the caller; NULL if there is no valid one. fresh: only one of
 * which this machine's changes are all reported. */
struct fp_lease13 *fp_lease13_find(const void *owner, const char *path, size_t len, bool fresh);

/* Drops the reference and leaves NULL. */
void fp_lease13_release(struct fp_lease13 **lease);

/* Closes the files of all kept leases. */
void fp_lease13_forget(void);

/* The last step's metadata if the path ends there and leads to something; else NULL. */
const struct fp_meta *fp_lease13_file(const struct fp_lease13 *lease);

#endif
