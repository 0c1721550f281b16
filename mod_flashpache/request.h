/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer about a request's path, kept as long as the request, and its notes.  A main
 * request holds the list of all answers of its family: core uses for one what it found
 * in the walk of another.
 */
#ifndef FP_REQUEST_H
#define FP_REQUEST_H

#include <httpd.h>
#include <stdbool.h>

#include "common/answer.h"
#include "status/counters.h"

struct fp_file;
struct fp_lease;

struct fp_request {
    struct fp_lease *lease;       /* holds what follows, and the steps */
    const char *path;             /* normal form, without a slash at its end;
                                     not terminated */
    apr_size_t len;
    unsigned n_steps;
    unsigned n_names;             /* access files told of each directory */
    apr_uint64_t links_asked[2];  /* bit n: core asked for the lstat of step n; [1]: knowing the
                                     file, [0]: while it knew of none */
    unsigned access_opened;       /* .htaccess files given to core from memory */
    int access_left;              /* one was looked for by name */
    int conditional;              /* one says something else from one moment to the next */
    const struct htaccess_result *injected;   /* head of the list that core was given */
    struct fp_file *file;         /* the last step's, or NULL */
    int compared, different;      /* FlashpacheEngine Shadow: with what httpd found */
    struct fp_request *next;      /* another one of the same main request */
};

/* ---- for lookup.c ---- */

/* Gives q the lease's answer; the reference to the lease is still the caller's. */
void fp_request_set_lease(struct fp_request *q, struct fp_lease *lease);

/* The request holds the reference to the lease until its pool is destroyed. */
void fp_request_remember(request_rec *r, struct fp_lease *lease);

/* Counts the outcome, and notes it for the log. */
void fp_request_note(request_rec *r, enum fp_count outcome);

/* ---- hooks ---- */

/* log_transaction: copies outcome and reason to the environment, which CGI programs do not see
 * any more. */
int fp_request_log(request_rec *r);

/* insert_filter and insert_error_filter: FlashpacheServerTiming, the header Server-Timing (W3C
 * Server Timing), for browsers' developer tools and monitoring. */
void fp_request_add_timing(request_rec *r);

/* ---- what is known ---- */

/* Serves the request once more from the beginning, without asking.  OK. */
int fp_request_again(request_rec *r);
/* Is it being served once more, or part of what is? */
int fp_request_is_again(const request_rec *r);

/* What is known for the walk of this very request; NULL: nothing. */
struct fp_request *fp_request_of(const request_rec *r);

/* With FlashpacheEngine Shadow: what would have been used; NULL: nothing. */
struct fp_request *fp_request_shadow(const request_rec *r);

/* Step i of n_steps, "/" first; see answer.h. */
const struct fp_step *fp_request_step(const struct fp_request *q, unsigned i);
const struct fp_step *fp_request_last_step(const struct fp_request *q);

/*
 * What httpd knows of name, r->filename or a part of it (a slash behind it
 * does not count): the step that it is, or, where the walk ended above it,
 * that last step, *beyond_r being 1.  NULL: nothing is known.
 */
const struct fp_step *fp_request_find_step(const struct fp_request *q, const char *name,
                                           apr_size_t len, int *beyond_r);

/* What stat() says of a name behind a step at which the walk ended. */
fp_status fp_step_beyond(const struct fp_step *last);

/*
 * Is it so for anything that is known in this request's family: its main request, the
 * subrequests, and those before of which it is an internal redirect?  Core uses
 * what a walk of one of them found for the others.
 */
typedef bool fp_request_is(const struct fp_request *q, const void *ctx);
bool fp_request_any(const request_rec *r, fp_request_is *is, const void *ctx);

/*
 * What is known of the file name, be it from this request or from a
 * subrequest whose result it took over (DirectoryIndex).  NULL: nothing.
 */
const struct fp_request *fp_request_find(const request_rec *r, const char *name);

#endif
