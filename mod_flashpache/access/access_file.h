/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory's access file (.htaccess) as an answer shows it, and its content.
 */
#ifndef FP_ACCESS_FILE_H
#define FP_ACCESS_FILE_H

#include <httpd.h>
#include <http_config.h>
#include <stdbool.h>

struct fp_access;
struct fp_request;
struct fp_step;

#define FP_ACCESS_FILE_MOST ((apr_size_t)1024 * 1024) /* bytes; larger ones are core's */

/*
 * The directory's access file that core would take: the first that is there, if those before it are
 * absent. -1: there is none, or it is unknown.
 */
int fp_access_file_of(const request_rec *r, const struct fp_request *q, const struct fp_step *s);

/* True if an earlier request of the family has looked into the directory, as core names it: its result
 * goes on. */
bool fp_access_file_is_known(const struct htaccess_result *h, const char *dir);

/* True if a later change gives the file other times, however coarse the file system's or the kernel's
 * clock is. */
bool fp_access_file_is_settled(const request_rec *r, const char *dir, const struct fp_access *a);

/* The path of the file of that index in the server's list of names. */
const char *fp_access_file_path(const request_rec *r, const char *dir, unsigned name);

/* The part of a content that was not read yet. */
struct fp_access_text {
    const char *pos, *end;
};

/* The content of the file that the walk saw; NULL: unavailable. */
struct fp_access_text *fp_access_file_fetch(const request_rec *r, const char *path,
                                            const struct fp_access *x);

/* True if the result of parsing may be kept (htaccess_pure.h). Leaves the content's position as it is. */
bool fp_access_file_is_pure(const request_rec *r, const char *path, const struct fp_access_text *c);

/* Opens the content for core's parser, which moves its position. */
ap_configfile_t *fp_access_file_open(apr_pool_t *p, const char *path, struct fp_access_text *c);

#endif
