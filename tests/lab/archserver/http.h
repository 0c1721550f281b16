/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 as far as static files need it: a request's head in, a response's
 * head out.  GET and HEAD; no bodies of requests, no ranges, no conditions.
 */
#ifndef ARCHSERVER_HTTP_H
#define ARCHSERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define HTTP_HEAD_MAX  8192 /* of a request; what is longer is answered 431 */
#define HTTP_PATH_MAX  1024 /* of a path, decoded, with its end; what is longer is answered 414 */
#define HTTP_REPLY_MAX 512  /* head of a response, with the text of an error */
#define HTTP_DATE_MAX  32

struct http_request {
    bool is_head;
    bool keep_alive;
    int status;               /* 0: to be served; else the answer */
    char path[HTTP_PATH_MAX]; /* below the root, without the slash it began with; "." for the root */
};

/*
 * Reads one request head. Returns its length, or 0 if its end is not there
 * yet. With status >= 400 and !keep_alive the rest of the input means nothing.
 */
size_t http_parse(const char *data, size_t length, struct http_request *request_r);

/* A response's head; of an error, its text too unless the request was HEAD. Returns its length. */
size_t http_reply(const struct http_request *request, int status, uint64_t length, const char *modified,
                  char reply_r[HTTP_REPLY_MAX]);

/* As HTTP writes a time. */
void http_date(time_t when, char date_r[HTTP_DATE_MAX]);

#endif
