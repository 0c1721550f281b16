/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: answers that this child uses again without asking, as long as the daemon's lease
 * table shows that they are valid (lease_table.h).  A use is marked there, so the daemon
 * refreshes the entry in time and the lease goes on.
 *
 * All leases on names in one directory share the chain of directories above.
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
    unsigned bits; /* of FileETag */
    char text[];   /* empty: there is none */
};

/* The headers of a response with the file, formatted once. */
struct fp_headers {
    char last_modified[APR_RFC822_DATE_LEN];
    char length[24];
    _Atomic(struct fp_etag *) etag; /* made at the first response; NULL: not yet */
};

struct fp_lease {
    struct fp_item item;                /* release with fp_item_release(&lease->item) */
    struct fp_lease_view *view;         /* the lease table of its slots; NULL: it is never kept */
    struct fp_dir_chain *chain;         /* to the directory it lies in; NULL: it is "/", or is not kept */
    const struct fp_step *const *above; /* the steps but the last: the chain's, or its own */
    struct fp_file *file;               /* the last step's, or NULL */
    apr_size_t path_len;
    const char *path; /* not terminated; part of the key */
    unsigned n_steps, n_names;
    bool watched;              /* this machine's changes of each step are reported */
    bool stale;                /* the file system did not answer, and this is the last answer */
    struct fp_headers headers; /* where there is a file */
    const struct fp_step *last;
};

/* Once in a child.  limit: the most leases.  They hold at most a quarter of the process's
 * descriptors; an answer that needs one more is not kept.  alone: the child has no threads; then
 * a path is leased at its second recent request, and few are without an open file. */
void fp_lease_init(apr_pool_t *p, int limit, bool alone);

/*
 * The lease of owner (a server's settings: they decide what is asked) on the path, retained
 * for the caller; NULL if there is none that may be used.  fresh: only one of which all changes
 * that this machine makes are reported.  Once a second expired leases go,
 * and their files are closed; of very many leases a part each time.
 */
struct fp_lease *fp_lease_find(const void *owner, const char *path, apr_size_t len, bool fresh);

/*
 * Makes a lease of an answer (status FP_OK), retained for the caller, and keeps it if it may
 * be used again.  Takes the answer's descriptor and the reference to the view (may be NULL).
 * NULL when out of memory, or where the content is gone already.
 */
struct fp_lease *fp_lease_create(const void *owner, const char *path, apr_size_t len, struct fp_answer *a,
                                 struct fp_lease_view *view);

/* The number of leases that are kept now. */
unsigned fp_lease_count(void);

/* Step i of n_steps, "/" first. */
const struct fp_step *fp_lease_step(const struct fp_lease *lease, unsigned i);

/* The entity tag, if it was given with these bits of FileETag; else NULL. */
const char *fp_lease_etag(const struct fp_lease *lease, unsigned bits);
void fp_lease_set_etag(struct fp_lease *lease, unsigned bits, const char *text);

apr_time_t fp_lease_time(const struct fp_time *t);

#endif
