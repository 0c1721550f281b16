/* SPDX-License-Identifier: Apache-2.0
 *
 * An incremental parser of HTTP/1.1 responses to GET and HEAD (RFC 9112), fed with whatever the
 * socket gives. It knows no sockets. Bodies by Content-Length, chunked, or until close;
 * responses 1xx are skipped, 204 and 304 have no body.
 */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of a response; more is malformed. */
#define BENCH_HTTP_MAX_LINE  65536u
#define BENCH_HTTP_MAX_LINES 1000u

enum bench_http_result {
    BENCH_HTTP_MORE,  /* wants more input */
    BENCH_HTTP_DONE,  /* the response is complete */
    BENCH_HTTP_ERROR, /* malformed: see bench_http_problem() */
};

struct bench_http;

/* Called with each piece of the body, without chunk framing. */
typedef void bench_http_body(void *context, const char *data, size_t size);

/* NULL when there is no memory; body may be NULL. */
struct bench_http *bench_http_create(bench_http_body *body, void *context);
void bench_http_destroy(struct bench_http **http);

/* Forgets the last response; to be called before each. bodiless: the answer to HEAD has no body. */
void bench_http_reset(struct bench_http *http, bool bodiless);

/* *used_r is how much of the input belonged to this response. */
enum bench_http_result bench_http_feed(struct bench_http *http, const char *data, size_t size,
                                       size_t *used_r);

/* The server closed the connection: DONE where that ends the body, else ERROR. */
enum bench_http_result bench_http_eof(struct bench_http *http);

/* True if any byte of the response has come. */
bool bench_http_started(const struct bench_http *http);

/* After DONE. */
int bench_http_status(const struct bench_http *http);
uint64_t bench_http_body_bytes(const struct bench_http *http);
bool bench_http_keep_alive(const struct bench_http *http);

/* After ERROR: the mistake. */
const char *bench_http_problem(const struct bench_http *http);

#endif
