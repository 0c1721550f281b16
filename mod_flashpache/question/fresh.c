/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/fresh.h"

#include <apr_strings.h>
#include <http_config.h>
#include <stdatomic.h>
#include <util_filter.h>

#include "base/clock.h"
#include "question/request.h"
#include "question/shared.h"
#include "setup/settings.h"

/* mod_rewrite sets this note where the server's own rules were applied to a request; "0": none
 * matched. */
#define REWRITTEN "mod_rewrite_rewritten"

/* A client's connection; the requests of HTTP/2 share it. */
struct connection {
    atomic_uint writing;           /* requests that may write, and have not ended */
    _Atomic apr_uint64_t wrote_ms; /* when the last of them ended; 0: none has */
};

static conn_rec *client_connection(conn_rec *c)
{
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 52)
    return c->master != NULL ? c->master : c;
#else
    return c;
#endif
}

static struct connection *connection_of(const request_rec *r)
{
    return ap_get_module_config(client_connection(r->connection)->conn_config, &flashpache_module);
}

int fp_fresh_connect(conn_rec *c, void *csd)
{
    (void)csd;
    if (client_connection(c) == c)
        ap_set_module_config(c->conn_config, &flashpache_module,
                             apr_pcalloc(c->pool, sizeof(struct connection)));
    return OK;
}

static bool may_write(const request_rec *r)
{
    switch (r->method_number) {
    case M_GET:
    case M_OPTIONS:
    case M_TRACE:
    case M_PROPFIND:
    case M_REPORT: return false;
    default: return true;
    }
}

static apr_status_t end_writing(void *data)
{
    struct connection *c = data;

    atomic_store(&c->wrote_ms, fp_now_ms());
    atomic_fetch_sub(&c->writing, 1);
    return APR_SUCCESS;
}

void fp_fresh_note_method(const request_rec *r)
{
    struct connection *c = may_write(r) ? connection_of(r) : NULL;

    if (c == NULL)
        return;
    atomic_fetch_add(&c->writing, 1);
    apr_pool_cleanup_register(r->pool, c, end_writing, apr_pool_cleanup_null);
}

/* True if an answer of before the connection's last change may still be in use. */
static bool has_written(const struct connection *c, struct fp_client *client)
{
    apr_uint64_t wrote_ms;

    if (atomic_load(&c->writing) > 0)
        return true;
    wrote_ms = atomic_load(&c->wrote_ms);
    return wrote_ms != 0 && fp_shared_may_predate(client, wrote_ms);
}

int fp_fresh_begin_handler(request_rec *r)
{
    struct fp_record *own = fp_record_make(r), *first = fp_record_make(fp_request_first(r));

    own->serving = true;
    own->handled_before = first->handled;
    first->handled = true;
    return DECLINED;
}

void fp_fresh_end_handler(const request_rec *r)
{
    fp_record_make(fp_request_first(r))->handled = fp_record_of(r)->handled_before;
}

static bool was_rewritten(const request_rec *r)
{
    for (; r != NULL; r = r->main) {
        const char *note = apr_table_get(r->notes, REWRITTEN);

        if (note != NULL && strcmp(note, "0") != 0)
            return true;
    }
    return false;
}

/* A page may run a command before it includes what that has written. */
static bool is_part_of_page(const request_rec *r)
{
    for (r = r->main; r != NULL; r = r->main) {
        for (const ap_filter_t *f = r->output_filters; f != NULL; f = f->next) {
            if (strcmp(f->frec->name, "includes") == 0)
                return true;
        }
    }
    return false;
}

bool fp_fresh_is_wanted(const request_rec *r, struct fp_client *client)
{
    const struct connection *c = connection_of(r);

    return (c != NULL && has_written(c, client)) || fp_record_of(fp_request_first(r))->handled || was_rewritten(r)
           || fp_request_may_follow_program(r) || is_part_of_page(r);
}
