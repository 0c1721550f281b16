/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer's part in a request of Apache 1.3: asked by the translate handler, used by core's walk and
 * the handler that sends the file.
 */
#ifndef FP_REQUEST13_H
#define FP_REQUEST13_H

#include <stdbool.h>

#include <httpd.h>

struct fp_held;

struct fp_request {
    struct fp_held *held; /* in the request's memory */
    const char *filename; /* as core's walk got it */
    bool disguised;       /* st_mode says "link" for an absent file, so that core does not look */
    bool access_left;     /* core may have opened an access file of the path by name */
};

/* The answer about this very request; NULL: none. */
struct fp_request *fp_request_of(const request_rec *r);

/* Asks about r->filename, and fills in what core's walk would find: r->finfo, r->filename, r->path_info,
 * r->htaccess. rewritten: mod_rewrite chose the file, after it may have looked at files itself. The notes
 * flashpache, flashpache-reason and flashpache-us record the outcome. */
void fp_request_ask(request_rec *r, bool rewritten);

/* header_parser and access_checker, first: an absent file is absent again. */
int fp_request_undisguise(request_rec *r);

/* logger, first: the environment's variables for the log. */
int fp_request_log(request_rec *r);

#endif
