/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that this child may use again without asking: while the daemon's
 * shared table shows that it believes them itself (lease_table.h).  What is used is
 * marked there, so the daemon looks again in time and they go on.
 *
 * All leases on what lies in one directory share what is known of the way
 * there.
 */
#ifndef FP_LEASE_H
#define FP_LEASE_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdatomic.h>

#include "common/answer.h"
#include "table.h"

struct fp_file;
struct fp_lease_view;
struct fp_dir_chain;

/* The file's entity tag as FileETag wants it. */
struct fp_etag {
    unsigned bits;                /* of FileETag */
    char text[];                  /* empty: there is none */
};

/* What a response says of the file, formatted once. */
struct fp_headers {
    char last_modified[APR_RFC822_DATE_LEN];
    char length[24];
    _Atomic(struct fp_etag *) etag;   /* of who asked for it first; NULL: nobody yet */
};

struct fp_lease {
    struct fp_item item;          /* release with fp_item_release(&lease->item) */
    struct fp_lease_view *view;   /* the table of its slots; NULL: none, no lease */
    struct fp_dir_chain *way;           /* to the directory it lies in; NULL: it is "/" */
    struct fp_file *file;         /* the last step's, or NULL */
    apr_size_t path_len;
    const char *path;             /* not terminated; part of the key */
    unsigned n_steps, n_names;
    bool stale;                   /* the file system did not answer */
    struct fp_headers headers;    /* where there is a file */
    const struct fp_step *last;
};

/* Once in a child.  limit: how many.  No more of the process's descriptors than a
 * quarter are used for them: what would need another one is not kept.  alone: no thread
 * shares them; then what is asked about once is not kept either. */
void fp_lease_init(apr_pool_t *p, int limit, bool alone);

/*
 * The lease on what owner (a server's settings: they decide what is asked)
 * asked about the path, retained for the caller; NULL if there is none in
 * force.  Once a second what holds no longer goes, and its files are closed; of very
 * many leases a part each time.
 */
struct fp_lease *fp_lease_find(const void *owner, const char *path, apr_size_t len);

/*
 * Makes one of an answer (status FP_OK), whose descriptor it takes, and the
 * reference to the view (may be NULL), retained for the caller; and keeps it
 * if it may be used again.  NULL when out of memory.
 */
struct fp_lease *fp_lease_create(const void *owner, const char *path, apr_size_t len,
                                 struct fp_answer *a, struct fp_lease_view *view);

/* How many are kept now. */
unsigned fp_lease_count(void);

/* Step i of n_steps, "/" first. */
const struct fp_step *fp_lease_step(const struct fp_lease *lease, unsigned i);

/* The entity tag, if it was given with these bits of FileETag; else NULL. */
const char *fp_lease_etag(const struct fp_lease *lease, unsigned bits);
void fp_lease_set_etag(struct fp_lease *lease, unsigned bits, const char *text);

apr_time_t fp_lease_time(const struct fp_time *t);

#endif
