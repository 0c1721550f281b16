/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that this child may use again without asking: while the daemon's
 * shared table shows that nothing in them has changed (slots.h), and for as
 * long as the daemon said, half of the time for which it believes them itself.
 * After that a question tells the daemon that the path is in use.
 */
#ifndef FP_LEASE_H
#define FP_LEASE_H

#include <apr_pools.h>

#include "answer.h"
#include "table.h"

struct fp_file;
struct fp_slots_view;

struct fp_lease {
    struct fp_item item;          /* release with fp_item_release(&lease->item) */
    apr_uint64_t until_ms;        /* of a monotonic clock */
    struct fp_slots_view *view;   /* the table of its slots; NULL: none, no lease */
    struct fp_file *file;         /* the last step's, or NULL */
    apr_size_t path_len;
    const char *path;             /* not terminated; part of the key */
    unsigned n_steps, n_names;
    struct fp_step steps[];
};

/* Once in a child.  limit: how many; fewer where few descriptors are allowed. */
void fp_lease_init(apr_pool_t *p, int limit);

/*
 * The lease on what owner (a server's settings: they decide what is asked)
 * asked about the path, retained for the caller; NULL if there is none in
 * force.  Once a second what holds no longer goes, and its files are closed.
 */
struct fp_lease *fp_lease_find(const void *owner, const char *path, apr_size_t len);

/*
 * Makes one of an answer (status FP_OK), whose descriptor it takes, and the
 * reference to the view (may be NULL), retained for the caller; and keeps it
 * if the answer is good for any time.  NULL when out of memory.
 */
struct fp_lease *fp_lease_create(const void *owner, const char *path, apr_size_t len,
                                 struct fp_answer *a, struct fp_slots_view *view);

#endif
