/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsed access files, which each child keeps, each in a pool of its own, by server, directory and allowed
 * overrides. A parsed file is used while the answer about the directory shows the very file it was
 * made from (inode, length, times). After a reported change there the text is compared as well: a program
 * may have written through a mapping, which gives no new times. It is freed once the
 * file has changed and the pool of the last request that uses it is gone. Many requests
 * may share it: a parsed configuration is read-only, like that of a <Directory>. Only
 * files with directives that are known to be pure are kept (htaccess_pure.h).
 */
#ifndef FP_PARSED_H
#define FP_PARSED_H

#include <http_core.h>
#include <stdbool.h>

#include "question/request.h"
#include "question/child_cache.h"
#include "wire/answer.h"

/* The result of core's walk to a directory's files (sections.h). */
struct fp_merged {
    const struct fp_section *section; /* the last one that is in it */
    request_rec *walk;                /* with configuration and note; NULL: only core can walk there */
};

/* The result of parsing an access file, all in a pool without a parent. */
struct fp_parse {
    apr_pool_t *pool;
    int override_opts;       /* of core's result */
    ap_conf_vector_t *conf;  /* NULL: the file must be parsed for each request */
    const char *text;        /* that was parsed, as long as the file; NULL without conf */
    struct fp_merged merged; /* with the sections of its directory, if it is the only access file there */
    apr_size_t before;       /* fp_parsed_memory() when the parse began */
};

struct fp_parsed {
    struct fp_item item;
    struct fp_parse parse;   /* its pool holds this struct and all below */
    const char *dir;         /* as core names it, with a slash behind it */
    int override;
    unsigned name;           /* the index of its access file name */
    struct fp_access access; /* the file that was parsed */
    uint64_t view;           /* the number of the lease table of the directory's slot; 0: it has none */
    _Atomic apr_uint64_t confirmed; /* the slot and its generation when the file had that text */
};

/* Once in a child. limit: the most files that are kept; 0: none. bytes: about the most that they take. */
void fp_parsed_init(unsigned limit, apr_size_t bytes);

/* True if any may be kept in this child, whatever a server says. */
bool fp_parsed_is_used(void);

/* create_request, before others: the parsed files that this
 * request uses outlive all that others register with its pool. */
int fp_parsed_begin(request_rec *r);

/* Takes the reference. Holds the parsed file as long as the pool of the whole family, since a request may take over
 * the configuration of its subrequests. */
void fp_parsed_hold(const request_rec *r, struct fp_parsed *p);

/* True if they are kept for the request's server. */
bool fp_parsed_is_for(const request_rec *r);

/* The file that the step has under that name of the list. Retained
 * for the caller; NULL: that very file has not been parsed. */
struct fp_parsed *fp_parsed_find(const request_rec *r, const struct fp_request *q, const struct fp_step *s,
                                 unsigned name);

/* The index of the name of the file that core made the result from,
 * and its step. -1: that may not be kept, or is kept already. */
int fp_parsed_missing(const request_rec *r, const struct fp_request *q, const struct htaccess_result *h,
                      const struct fp_step **step_r);

/* True if there is room for what such a file is parsed to, as far as its length tells. */
bool fp_parsed_may_keep(const struct fp_access *access);

/*
 * The bytes that malloc() has given out, to all threads. Neither a text's length nor its pool tells the size
 * of its parse: a line of regular expression with repeats takes megabytes, from malloc().
 */
apr_size_t fp_parsed_memory(void);

/* Keeps it for the file of the result that core made (as missing() found it), or, if it takes too much, only the fact
 * that it is to be parsed for each request. The pool is the cache's now. */
void fp_parsed_keep(const request_rec *r, const struct fp_request *q, const struct fp_step *s, unsigned name,
                    const struct htaccess_result *h, const struct fp_parse *parse);

#endif
