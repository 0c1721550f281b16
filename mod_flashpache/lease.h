/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: answers that this child uses again without a question. A lease holds as long as the
 * daemon's lease table shows its slots as valid (lease_table.h). Each use sets a mark there, so the
 * daemon refreshes the entry in time and the lease goes on.
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

/* The file's entity tag as FileETag asks for it. */
struct fp_etag {
    unsigned bits; /* of FileETag */
    char text[];   /* empty: the file has none */
};

/* The headers of a response that sends the file, formatted once. */
struct fp_headers {
    char last_modified[APR_RFC822_DATE_LEN];
    char length[24];
    _Atomic(struct fp_etag *) etag; /* made at the first response; NULL: not yet */
};

struct fp_lease {
    struct fp_item item;                /* release with fp_item_release(&lease->item) */
    struct fp_lease_view *view;         /* the lease table of its slots; NULL: the lease is never kept */
    struct fp_answer *answer;           /* not kept: has the steps, and may be an outline; NULL: it is kept */
    struct fp_dir_chain *chain;         /* kept: the steps but the last; NULL: the path is "/" */
    const struct fp_step *last;
    struct fp_file *file;               /* the last step's, or NULL */
    apr_uint64_t content_at;            /* where its content is, if that is still to be read (contents.h) */
    apr_size_t path_len;
    const char *path; /* not terminated; part of the key */
    unsigned n_steps, n_names;
    bool watched;              /* every change that this machine makes to a step is reported */
    bool stale;                /* the file system did not answer, and this is its last answer */
    bool unopened;             /* the file can be read, and the daemon is to open it for a response */
    bool no_access_files;      /* of those asked about, in any directory above the last step */
    bool has_headers;          /* it is kept, and there is a file: */
    struct fp_headers headers; /* the last member: a lease that is not kept has no memory for them */
};

/* Call it once in a child. limit: the most leases; bytes: the most that their copied contents take.
 * Leases hold at most a quarter of the process's descriptors; an answer that needs one more is not kept.
 * alone: the child has no threads. Then it leases a path on its second recent request, and one without
 * an open file only if that comes at once; such leases take at most 64 KiB with their contents, or bytes
 * where that is less. A thread drops expired leases, a second after that where there are open files. */
void fp_lease_init(apr_pool_t *p, int limit, apr_size_t bytes, bool alone);

/*
 * The lease of owner on the path, retained for the caller; NULL if there is no valid one. owner is a
 * server's settings, as they decide the question. fresh: only a lease of which this machine's changes
 * are all reported.
 */
struct fp_lease *fp_lease_find(const void *owner, const char *path, apr_size_t len, bool fresh);

/* True if no step has changed since the answer. Only for a watched lease with a view; it need not
 * be kept. */
bool fp_lease_is_unchanged(const struct fp_lease *lease);

/*
 * Makes a lease of an answer (status FP_OK), retained for the caller, and keeps it if it may be used
 * again. Takes the answer's descriptor and the reference to the view (may be NULL). NULL when out of
 * memory, or where the content is gone. A lease that is not kept lies in the pool, and refers to the
 * answer's steps: neither may go or change before its last reference.
 */
struct fp_lease *fp_lease_create(apr_pool_t *pool, const void *owner, const char *path, apr_size_t len,
                                 struct fp_answer *a, struct fp_lease_view *view);

/* The number of kept leases. */
unsigned fp_lease_count(void);

/* Step i of n_steps, "/" first. NULL: it is unknown, as fp_lease_fill_in() is false; never the last step. */
const struct fp_step *fp_lease_step(const struct fp_lease *lease, unsigned i);
/* That of step i, also where it is all there is. */
struct fp_outline fp_lease_outline(const struct fp_lease *lease, unsigned i);
/* False: the answer is an outline, and the table has no longer the other steps of its moment. */
bool fp_lease_fill_in(const struct fp_lease *lease);

/* The entity tag, if it was set with these bits of FileETag; else NULL. */
const char *fp_lease_etag(const struct fp_lease *lease, unsigned bits);
void fp_lease_set_etag(struct fp_lease *lease, unsigned bits, const char *text);

apr_time_t fp_lease_time(const struct fp_time *t);

#endif
