/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "srpt/schedule.h"

#include <apr_portable.h>
#include <apr_strings.h>
#include <http_connection.h>
#include <http_config.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <linux/sockios.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <util_filter.h>

#include "srpt/schedule_class.h"
#include "srpt/srpt_settings.h"

APLOG_USE_MODULE(flashpache_srpt);

/*
 * Bytes: the socket takes a response up to this size at once. Its remainder is never seen again, so
 * its priority is given once. The size is the usual one of a new send buffer, the middle value of
 * tcp_wmem.
 */
#define TAKEN_AT_ONCE 16384

/* Behind the filter that makes chunks, before all filters of a connection. */
#define AFTER_CHUNKS ((ap_filter_type)(AP_FTYPE_TRANSCODE + 1))

struct connection {
    conn_rec *c;
    int priority; /* the priority of the socket */
    /* HTTP/2: the threads of its streams write it, too. */
    _Atomic(const struct fp_classes *) classes;
    atomic_int_fast64_t announced; /* bytes of begun responses, not passed on yet */
    atomic_int streams;            /* responses that have begun and not ended */
};

struct response {
    struct connection *connection;
    const struct fp_classes *classes;
    int begun;
    int marked;          /* it is long enough for markers */
    apr_off_t remaining; /* bytes not passed on yet; -1: the length is unknown */
    apr_off_t passed;    /* bytes passed on, used where the length is unknown */
};

struct marker {
    struct connection *connection;
    const struct fp_classes *classes;
    apr_off_t remaining; /* bytes of the response behind the marker */
};

static ap_filter_rec_t *response_filter;
static ap_filter_rec_t *connection_filter;
static int some_scheduled;
static int has_streams;

/* -1 if the socket is closed. */
static int descriptor_of(const struct connection *connection)
{
    apr_socket_t *socket = ap_get_conn_socket(connection->c);
    apr_os_sock_t fd = -1;

    return socket != NULL && apr_os_sock_get(&fd, socket) == APR_SUCCESS ? fd : -1;
}

static void set_priority(struct connection *connection, int priority)
{
    int fd;

    if (connection->priority == priority)
        return;
    fd = descriptor_of(connection);
    if (fd < 0)
        return;
    connection->priority = priority;
    if (setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)) != 0)
        ap_log_cerror(APLOG_MARK, APLOG_DEBUG, errno, connection->c,
                      "FP0110: cannot give the connection priority %d", priority);
}

/* Bytes that were written to the socket and wait there. */
static apr_off_t unsent(const struct connection *connection)
{
    int fd = descriptor_of(connection);
    int bytes = 0;

    return fd >= 0 && ioctl(fd, SIOCOUTQNSD, &bytes) == 0 ? bytes : 0;
}

/* ---- markers ---- */

/*
 * The socket may still hold bytes of this and of an earlier response, and one write may have taken
 * bytes behind the marker with it. So the larger number counts, not the sum.
 */
static void reach(struct connection *connection, const struct fp_classes *classes, apr_off_t remaining)
{
    apr_off_t in_socket;

    if (fp_classes_priority(classes, remaining) == connection->priority)
        return;
    in_socket = unsent(connection);
    set_priority(connection, fp_classes_priority(classes, in_socket > remaining ? in_socket : remaining));
}

/*
 * A marker is a metadata bucket between two pieces of a response. Core's output filter destroys it
 * when everything before it was written to the socket, and not earlier. That filter is called by
 * this request, by the next one of a pipeline, or by the event MPM when the socket is writable
 * again. The MPM calls no other filter. If the connection breaks, the marker is destroyed with the
 * rest.
 */
static void marker_destroy(void *data)
{
    struct marker *m = data;

    if (!m->connection->c->aborted)
        reach(m->connection, m->classes, m->remaining);
    apr_bucket_free(m);
}

static apr_status_t marker_read(apr_bucket *e, const char **text, apr_size_t *len, apr_read_type_e block)
{
    (void)e;
    (void)block;
    *text = NULL;
    *len = 0;
    return APR_SUCCESS;
}

static const apr_bucket_type_t marker_type = { "FLASHPACHE_PRIORITY",
                                               5,
                                               APR_BUCKET_METADATA,
                                               marker_destroy,
                                               marker_read,
                                               apr_bucket_setaside_noop,
                                               apr_bucket_split_notimpl,
                                               apr_bucket_copy_notimpl };

static apr_bucket *marker_create(const struct response *response, apr_off_t remaining,
                                 apr_bucket_alloc_t *list)
{
    apr_bucket *e = apr_bucket_alloc(sizeof(*e), list);
    struct marker *m = apr_bucket_alloc(sizeof(*m), list);

    *m = (struct marker){ response->connection, response->classes, remaining };
    APR_BUCKET_INIT(e);
    e->free = apr_bucket_free;
    e->list = list;
    e->type = &marker_type;
    e->length = 0;
    e->start = 0;
    e->data = m;
    return e;
}

/* ---- responses ---- */

/* NULL: the connection is not the client's, or nothing is scheduled. */
static struct connection *connection_of(const conn_rec *c)
{
    return ap_get_module_config(c->conn_config, &flashpache_srpt_module);
}

/* HTTP/2 gives each stream a connection of its own, below the client's. */
static conn_rec *master_of(conn_rec *c)
{
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 52)
    return c->master;
#else
    (void)c;
    return NULL;
#endif
}

/* The body's bytes by the header; -1: the header does not have them. */
static apr_off_t announced_length(const request_rec *r)
{
    const char *text = apr_table_get(r->headers_out, "Content-Length");
    apr_off_t length;
    char *end;

    if (r->header_only || r->status == HTTP_NO_CONTENT || r->status == HTTP_NOT_MODIFIED)
        return 0;
    if (text == NULL || r->chunked || apr_strtoff(&length, text, &end, 10) != APR_SUCCESS || *end != '\0'
        || length < 0)
        return -1;
    return length;
}

/* The bytes of the brigade's buckets whose length is known. */
static apr_off_t length_of(const apr_bucket_brigade *bb)
{
    apr_off_t length = 0;

    for (apr_bucket *e = APR_BRIGADE_FIRST(bb); e != APR_BRIGADE_SENTINEL(bb); e = APR_BUCKET_NEXT(e)) {
        if (e->length != (apr_size_t)-1)
            length += (apr_off_t)e->length;
    }
    return length;
}

/* Puts a marker at each place where the class changes. Bytes of the header count as bytes of the
 * body, so a class ends some hundred bytes early. */
static void mark(struct response *response, apr_bucket_brigade *bb)
{
    apr_bucket *e = APR_BRIGADE_FIRST(bb);

    while (e != APR_BRIGADE_SENTINEL(bb)) {
        apr_off_t bound = fp_classes_next_bound(response->classes, response->remaining);
        apr_off_t piece = response->remaining - bound;

        if (bound < 0)
            return;
        if (e->length != (apr_size_t)-1 && (apr_off_t)e->length > piece
            && apr_bucket_split(e, (apr_size_t)piece) != APR_SUCCESS)
            return;
        if (e->length != (apr_size_t)-1)
            response->remaining -= (apr_off_t)e->length;
        if (response->remaining < 0)
            response->remaining = 0;
        e = APR_BUCKET_NEXT(e);
        if (response->remaining == bound)
            APR_BUCKET_INSERT_BEFORE(e, marker_create(response, bound, bb->bucket_alloc));
    }
}

/*
 * Where the length is unknown, the bytes already sent stand for those that remain. Most responses
 * are short, and the longer one has lasted, the longer it will.
 */
static void pass_unknown(struct response *response, apr_bucket_brigade *bb)
{
    int before = fp_classes_priority(response->classes, response->passed);

    response->passed += length_of(bb);
    if (fp_classes_priority(response->classes, response->passed) != before)
        APR_BRIGADE_INSERT_HEAD(bb, marker_create(response, response->passed, bb->bucket_alloc));
}

/* ---- HTTP/2 ---- */

/*
 * Frames of all streams share one socket with one priority, and mod_http2 mixes them. So everything
 * that the connection has to send is one job.
 *
 * A stream that begins just as the last one ends may be forgotten. The connection then has too high
 * a priority for one response.
 */
static apr_status_t end_stream(void *data)
{
    struct connection *connection = data;

    /* Announced bytes that are left belong to streams that the client reset. */
    if (atomic_fetch_sub(&connection->streams, 1) == 1)
        atomic_store(&connection->announced, 0);
    return APR_SUCCESS;
}

static void begin_stream(struct response *response, const request_rec *r)
{
    struct connection *connection = response->connection;

    atomic_store(&connection->classes, response->classes);
    atomic_fetch_add(&connection->streams, 1);
    apr_pool_cleanup_register(r->pool, connection, end_stream, apr_pool_cleanup_null);
    if (response->remaining > 0)
        atomic_fetch_add(&connection->announced, response->remaining);
}

/* Subtracts length from the announced bytes and returns their number before. */
static apr_off_t take_announced(struct connection *connection, apr_off_t length)
{
    int_fast64_t before = atomic_load(&connection->announced);

    while (
        !atomic_compare_exchange_weak(&connection->announced, &before, before > length ? before - length : 0))
        ;
    return before;
}

/* The filter of the client's connection, with the frames of all streams; it runs in one thread. */
static apr_status_t filter_connection(ap_filter_t *f, apr_bucket_brigade *bb)
{
    struct connection *connection = f->ctx;
    const struct fp_classes *classes = atomic_load(&connection->classes);
    apr_off_t length = classes != NULL ? length_of(bb) : 0;

    if (length > 0) {
        apr_off_t announced = take_announced(connection, length);

        reach(connection, classes, announced > length ? announced : length);
    }
    return ap_pass_brigade(f->next, bb);
}

/* ---- the filter of a response ---- */

static apr_status_t filter_response(ap_filter_t *f, apr_bucket_brigade *bb)
{
    struct response *response = f->ctx;
    const bool is_stream = master_of(f->c) != NULL;

    /* Only now the answering virtual host is known. */
    if (response->classes == NULL) {
        response->classes = fp_srpt_settings_classes(f->r->server);
        if (response->classes == NULL) {
            ap_remove_output_filter(f);
            return ap_pass_brigade(f->next, bb);
        }
    }
    if (!response->begun) {
        response->begun = 1;
        response->remaining = announced_length(f->r);
        response->marked = response->remaining > TAKEN_AT_ONCE;
        if (is_stream)
            begin_stream(response, f->r);
        else
            APR_BRIGADE_INSERT_HEAD(bb, marker_create(response, response->remaining, bb->bucket_alloc));
    }
    if (response->remaining < 0 && is_stream)
        atomic_fetch_add(&response->connection->announced, length_of(bb));
    else if (response->remaining < 0)
        pass_unknown(response, bb);
    else if (response->marked && !is_stream)
        mark(response, bb);
    return ap_pass_brigade(f->next, bb);
}

/* ---- hooks ---- */

void fp_schedule_register(void)
{
    response_filter = ap_register_output_filter("FLASHPACHE_SCHEDULE", filter_response, NULL, AFTER_CHUNKS);
    connection_filter = ap_register_output_filter("FLASHPACHE_SCHEDULE_CONNECTION", filter_connection, NULL,
                                                  AP_FTYPE_CONNECTION);
}

void fp_schedule_init(server_rec *s)
{
    some_scheduled = 0;
    for (; s != NULL; s = s->next) {
        if (fp_srpt_settings_classes(s) != NULL)
            some_scheduled = 1;
    }
    has_streams = ap_find_linked_module("mod_http2.c") != NULL;
}

int fp_schedule_connection(conn_rec *c, void *socket)
{
    struct connection *connection;

    (void)socket;
    if (!some_scheduled || master_of(c) != NULL)
        return OK;
    connection = apr_pcalloc(c->pool, sizeof(*connection));
    connection->c = c;
    connection->priority = FP_FIRST_PRIORITY;
    ap_set_module_config(c->conn_config, &flashpache_srpt_module, connection);
    if (has_streams)
        ap_add_output_filter_handle(connection_filter, connection, NULL, c);
    return OK;
}

int fp_schedule_request(request_rec *r)
{
    conn_rec *c = master_of(r->connection) != NULL ? master_of(r->connection) : r->connection;
    struct connection *connection = connection_of(c);
    struct response *response;

    /* Subrequests and internal redirects share the filters of the response. */
    if (connection == NULL || r->main != NULL || r->prev != NULL)
        return OK;
    response = apr_pcalloc(r->pool, sizeof(*response));
    response->connection = connection;
    ap_add_output_filter_handle(response_filter, response, r, r->connection);
    return OK;
}

int fp_schedule_body(request_rec *r)
{
    conn_rec *c = r->connection;
    struct connection *connection = connection_of(c);

    /* Not while an earlier response is in the socket: it would be raised, too. */
    if (connection != NULL && connection->priority != FP_FIRST_PRIORITY
        && (apr_table_get(r->headers_in, "Content-Length") != NULL
            || apr_table_get(r->headers_in, "Transfer-Encoding") != NULL)
        && !c->data_in_output_filters && unsent(connection) == 0)
        set_priority(connection, FP_FIRST_PRIORITY);
    return DECLINED;
}
