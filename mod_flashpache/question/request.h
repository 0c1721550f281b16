/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer about a request's path, kept as long as the request, and what else the module has of it. A main request
 * has the list of all answers of its family, because core reuses one request's walk for another.
 */
#ifndef FP_REQUEST_H
#define FP_REQUEST_H

#include <httpd.h>
#include <http_config.h>
#include <stdbool.h>

#include "status/counters.h"
#include "wire/answer.h"

struct apr_hash_t;
struct fp_held;
struct fp_merged;

/* Whose access files have been used: those of the answer's directories; maybe others; those of another directory. */
enum fp_rules_are { FP_RULES_OWN, FP_RULES_UNKNOWN, FP_RULES_OTHER };

struct fp_request {
    request_rec *r;
    struct fp_held *held; /* its answer, with the steps */
    /* Bit n: core asked for the lstat of step n; [1]: when it knew the file, [0]: when it did not. */
    apr_uint64_t links_asked[2];
    unsigned access_opened;                 /* access files given to core from memory */
    const char *access_text;                /* the last of them */
    apr_uint64_t access_given;              /* bit n: the one of step n was given */
    apr_uint64_t access_pure;               /* bit n: the result of parsing it may be used again */
    enum fp_rules_are rules;                /* of the access files that core opened */
    const struct fp_merged *merged;         /* with the only access file on the way; NULL: not known */
    const struct fp_merged *walked;         /* in the place of core's walk; NULL: that has run */
    const struct htaccess_result *injected; /* head of the list given to core */
    bool compared, different;               /* FlashpacheEngine Shadow: compared with httpd's own result */
    struct fp_request *next;                /* the next one of the same main request */
};

/* A request is served once more, .. */
enum fp_again {
    FP_AGAIN_NOT,
    FP_AGAIN_BY_CORE, /* .. without an answer, .. */
    FP_AGAIN_AFRESH   /* .. by answers that no earlier request saw */
};

/* What each request has in its request_config. */
struct fp_record {
    apr_pool_t *pool; /* the request's: a copy of the request may have another one */
    struct fp_request *own;
    struct fp_request *all;    /* a main request's, and those of its subrequests, linked by next */
    struct fp_request *shadow; /* like own, but httpd's walk does not use it */
    struct fp_request *tests;  /* answers to this request's last tests of files, linked by next */
    unsigned n_tests;          /* all that it has made */
    apr_pool_t *tests_pool;    /* for all but the first; NULL: none yet */
    struct fp_answer *buf;     /* see fp_request_buf(); NULL if there is none at present */
    bool kept;                 /* see fp_request_keep(): the first buffer was */
    enum fp_again again;
    /* again.c: of a request that came by a redirect; NULL: they were empty */
    const apr_table_t *began_env, *began_err; /* subprocess_env and err_headers_out at its beginning */
    const struct fp_outcome *outcome; /* the last one noted; NULL: none */
    /* fresh.c */
    bool handled;        /* of the family's first request: a handler ran in the family */
    bool serving;        /* this request's handler has begun */
    bool handled_before; /* before this request's handler began */
    /* access/parsed.c, of the family's first request */
    bool begun;              /* fp_parsed_begin() ran */
    struct apr_hash_t *held; /* the parsed files of the family, struct fp_item *; NULL: none yet */
    /* walk/multiviews.c */
    ap_conf_vector_t *hidden; /* the configuration that .. */
    ap_conf_vector_t *shown;  /* .. this one replaces */
};

/* The record, empty if there is none. fp_record_make() makes it. */
const struct fp_record *fp_record_of(const request_rec *r);
struct fp_record *fp_record_make(const request_rec *r);
/* The request from which all subrequests and redirects of the family come. */
const request_rec *fp_request_first(const request_rec *r);

/* ---- for lookup.c ---- */

/* The answer lives as long as the request's pool. */
void fp_request_remember(request_rec *r, struct fp_held *held);

/* r is served without its answer, as if it had none. */
void fp_request_forget(request_rec *r);
/* Takes the answers of r and of its subrequests from the family. */
void fp_request_leave_out(const request_rec *r);

/* A buffer for the answer to one question of this request. The first question allocates it, the next ones
 * reuse it. It is large, but few of its steps are used. */
struct fp_answer *fp_request_buf(const request_rec *r);
/* Makes the answer live as long as the pool, and returns it. The request's first one for its own pool stays in place,
 * since a copy would touch memory once more. Others, such as those of file tests, are copied. Takes the
 * descriptor along. */
struct fp_answer *fp_request_keep(const request_rec *r, apr_pool_t *p, struct fp_answer *a);

/* For the answer to a test (RewriteCond, an expression), which is not the walk's. A tenant's access file may have thousands
 * of tests, so former ones of the request, and the files that they have opened, are forgotten then. */
apr_pool_t *fp_request_tests_pool(request_rec *r);
/* Keeps it in that pool, where it is. */
struct fp_request *fp_request_remember_test(request_rec *r, apr_pool_t *p, struct fp_held *held);
/* The answers of tests so far stay as long as the request. */
void fp_request_keep_tests(const request_rec *r);
/*
 * This very request's earlier answer about a path in normal form, from its walk or from a test.
 * NULL if there is none, or it is outdated: a change was reported, or a program may have made one.
 */
struct fp_request *fp_request_earlier(const request_rec *r, const char *path, apr_size_t len);
/* For rewrite.c. True: a map's program, which may change files, can run between two tests. */
void fp_request_expect_programs(bool expected);
/* True if such a program may have run for r, which has tested files. */
bool fp_request_may_follow_program(const request_rec *r);

/* ---- answers ---- */

/* True if httpd compares owners of links and targets in r's directory, or allows no links. */
bool fp_request_restricts_links(const request_rec *r);

/* The answer for the walk of this very request; NULL if there is none. */
struct fp_request *fp_request_of(const request_rec *r);

/* With FlashpacheEngine Shadow: the answer that the walk would have used; NULL if there is none. */
struct fp_request *fp_request_shadow(const request_rec *r);

/*
 * The step of name, which is r->filename or a part of it (without a slash at its end). Where the
 * walk ended above name, this is the last step, and *below_r is 1. NULL: the answer has no such step.
 */
const struct fp_step *fp_request_find_step(const struct fp_request *q, const char *name, apr_size_t len,
                                           int *below_r);

/* The bit of s, one of q's steps, in q's masks. */
apr_uint64_t fp_request_bit(const struct fp_request *q, const struct fp_step *s);

/* The error of stat() for a name below the step at which the walk ended. */
fp_status fp_request_error_below(const struct fp_step *last);

/*
 * True if is() holds for an answer of this request's family: of the main request, the subrequests,
 * and the requests redirected internally to it. Core reuses one request's walk for another of them. Of a request
 * that is served once more only the answers since then count.
 */
typedef bool fp_request_is(const struct fp_request *q, const void *ctx);
bool fp_request_any(const request_rec *r, fp_request_is *is, const void *ctx);

/*
 * The answer about the file of that name, from this request or from a subrequest whose result it
 * took over (DirectoryIndex). NULL if there is none.
 */
const struct fp_request *fp_request_find(const request_rec *r, const char *name);

#endif
