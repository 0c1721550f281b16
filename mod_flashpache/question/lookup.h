/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the table of answers or the daemon about the path of a request.
 *
 * This room holds a request's question, the record of its answer, and what a child keeps from one request to the
 * next. body/, access/, walk/ and both modules for older httpds call it; it calls setup/ and status/. Nothing here
 * answers a call of core's walk, parses an access file or sends a response. The files that the module for Apache 1.3
 * uses, too, know no httpd and no APR: child_cache, file, held, open_files, open_path, shared, trouble.
 */
#ifndef FP_LOOKUP_H
#define FP_LOOKUP_H

#include <httpd.h>
#include <stdbool.h>

struct fp_client;
struct fp_held;
struct fp_request;

/* This child's connections to the daemon; NULL: it has none. */
extern struct fp_client *fp_child_client;

/*
 * map_to_storage: asks about r->filename if the module handles it. Three notes record the outcome:
 * "flashpache" (lease, hit, miss, stale, bypass, fallback), "flashpache-reason" and "flashpache-us"
 * (microseconds). Returns DECLINED, or the status of FlashpacheUnavailable.
 */
int fp_lookup_begin(request_rec *r);

/* Returns the status of FlashpacheUnavailable if a response by a stale answer would read its file system, or
 * DECLINED. */
int fp_lookup_refuse_stale(request_rec *r, const struct fp_request *q);

/* Asks about r->filename alone, where the first question included the path-info. NULL: there is no
 * answer. */
struct fp_request *fp_lookup_file(const request_rec *r);

/*
 * Asks about the first len bytes of path, a directory on the way of this request's answer. As the
 * end of a path the directory has current times. The answer lives as long as the request; NULL: there is
 * none.
 */
struct fp_held *fp_lookup_directory(const request_rec *r, const char *path, apr_size_t len);

/*
 * As apr_stat(): the file test of a condition about any name. Asks this request's earlier answers,
 * the table of answers or the daemon; without an answer, the file system. r NULL: only that is asked.
 */
apr_status_t fp_lookup_test(apr_finfo_t *finfo, request_rec *r, const char *name, apr_int32_t wanted,
                            apr_pool_t *pool);

/* Has the daemon open the file that the answer *q says can be read; *q becomes the answer with it, as good as the
 * request. False: *status_r is to be returned; DECLINED: core serves the request. */
bool fp_lookup_open(request_rec *r, const struct fp_request **q, int *status_r);

/* Asks the daemon once more, past the table of answers: q gets the new answer. False: there was none. */
bool fp_lookup_renew(const request_rec *r, struct fp_request *q);

#endif
