/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer about a request's path, kept as long as the request, and its notes.  A main
 * request holds the list of all answers of its family: core uses for one what it found
 * in the walk of another.
 */
#ifndef FP_REQUEST_H
#define FP_REQUEST_H

#include <httpd.h>
#include <http_config.h>
#include <stdbool.h>

#include "common/answer.h"
#include "status/counters.h"

struct fp_file;
struct fp_item;
struct fp_lease;

struct fp_request {
    request_rec *r;
    struct fp_lease *lease;                 /* holds what follows, and the steps */
    apr_uint64_t links_asked[2];            /* bit n: core asked for the lstat of step n; [1]: when it
                                     knew the file, [0]: when it did not */
    unsigned access_opened;                 /* .htaccess files given to core from memory */
    apr_uint64_t access_given;              /* bit n: that of step n was */
    apr_uint64_t access_pure;               /* bit n: its result may be used again */
    bool access_left;                       /* one was opened by name */
    const struct htaccess_result *injected; /* head of the list that core was given */
    bool compared, different;               /* FlashpacheEngine Shadow: with what httpd found */
    enum fp_count found;                    /* of an answer to a test: how it was found */
    struct fp_request *next;                /* the next one of the same main request */
};

/* ---- for lookup.c ---- */

/* The request holds the reference to the lease until its pool is destroyed. */
void fp_request_remember(request_rec *r, struct fp_lease *lease);

/* Counts the outcome, and notes it for the log. */
void fp_request_note(request_rec *r, enum fp_count outcome);

/*
 * Room for the answer to one question, of the request's family: made at the first question, used
 * again at the next one.  The lease copies what it keeps.
 */
struct fp_answer *fp_request_room(const request_rec *r);

/* The same for an answer that is not the walk's, but a test's (RewriteCond, an expression). */
struct fp_request *fp_request_remember_test(request_rec *r, struct fp_lease *lease, enum fp_count found);
/*
 * What this very request was told before about a path in normal form: its walk's answer, or that of
 * a test.  NULL: nothing.
 */
struct fp_request *fp_request_told(const request_rec *r, const char *path, apr_size_t len);
/* The answer to a test of that very path in this request; NULL: there is none. */
const struct fp_request *fp_request_tested(const request_rec *r, const char *path, apr_size_t len);

/* Adds to the note "flashpache-us". */
void fp_request_add_us(request_rec *r, apr_uint64_t us);

/* ---- for htaccess.c ---- */

/* At the creation of a request, so that what is held is released after all other cleanups. */
void fp_request_begin(request_rec *r);
/* Takes the reference.  Holds the item for the life of the whole family's pool: a request may take
 * over the configuration of its subrequests. */
void fp_request_hold(request_rec *r, struct fp_item *item);

/* ---- for multiviews.c ---- */

/* For a while r has the configuration `shown` in the place of `hidden`. */
void fp_request_set_hidden(request_rec *r, ap_conf_vector_t *hidden, ap_conf_vector_t *shown);
/* What `shown` stands for; NULL: it is itself. */
ap_conf_vector_t *fp_request_hidden(const request_rec *r, const ap_conf_vector_t *shown);

/* ---- for fresh.c ---- */

/* A handler begins; false: this one did nothing, and it is as before it began. */
void fp_request_set_handled(request_rec *r, bool handled);
/* One did something, in any request of the family. */
bool fp_request_was_handled(const request_rec *r);

/* ---- hooks ---- */

/* log_transaction: copies outcome and reason to the environment, which CGI programs do not see
 * any more. */
int fp_request_log(request_rec *r);

/* insert_filter and insert_error_filter: FlashpacheServerTiming, the header Server-Timing (W3C
 * Server Timing), for browsers' developer tools and monitoring. */
void fp_request_add_timing(request_rec *r);

/* ---- answers ---- */

/* Serves the request once more from the beginning, without asking.  OK. */
int fp_request_again(request_rec *r);
/* True if r, or a request that it is part of, is being served once more. */
bool fp_request_is_again(const request_rec *r);

/* The answer for the walk of this very request; NULL: there is none. */
struct fp_request *fp_request_of(const request_rec *r);

/* With FlashpacheEngine Shadow: the answer that would have been used; NULL: there is none. */
struct fp_request *fp_request_shadow(const request_rec *r);

/*
 * The step of name, which is r->filename or a part of it (without a slash at its end).  Where
 * the walk ended above name, the last step, and *below_r is 1.  NULL: not in the answer.
 */
const struct fp_step *fp_request_find_step(const struct fp_request *q, const char *name, apr_size_t len,
                                           int *below_r);

/* Which one of q's steps s is, "/" being 0. */
unsigned fp_request_step_number(const struct fp_request *q, const struct fp_step *s);

/* The error of stat() for a name below the step at which the walk ended. */
fp_status fp_request_error_below(const struct fp_step *last);

/*
 * True if it is so for an answer of this request's family: its main request, the
 * subrequests, and the requests that were redirected internally to it.  Core uses
 * for one of them what it found in the walk of another.
 */
typedef bool fp_request_is(const struct fp_request *q, const void *ctx);
bool fp_request_any(const request_rec *r, fp_request_is *is, const void *ctx);

/*
 * The answer about the file of that name, from this request or from a subrequest whose
 * result it took over (DirectoryIndex).  NULL: there is none.
 */
const struct fp_request *fp_request_find(const request_rec *r, const char *name);

#endif
