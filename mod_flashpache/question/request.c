/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/request.h"

#include <apr_strings.h>
#include <http_core.h>

#include "question/held.h"
#include "setup/settings.h"

#define TESTS 8u /* of files that a request remembers at least */

static const request_rec *main_request(const request_rec *r)
{
    while (r->main != NULL)
        r = r->main;
    return r;
}

const request_rec *fp_request_first(const request_rec *r)
{
    while (r->main != NULL || r->prev != NULL)
        r = r->main != NULL ? r->main : r->prev;
    return r;
}

const struct fp_record *fp_record_of(const request_rec *r)
{
    static const struct fp_record none;
    const struct fp_record *record = ap_get_module_config(r->request_config, &flashpache_module);

    return record != NULL ? record : &none;
}

struct fp_record *fp_record_make(const request_rec *r)
{
    struct fp_record *record = ap_get_module_config(r->request_config, &flashpache_module);

    if (record == NULL) {
        record = apr_pcalloc(r->pool, sizeof(*record));
        record->pool = r->pool;
        ap_set_module_config(r->request_config, &flashpache_module, record);
    }
    return record;
}

struct fp_answer *fp_request_buf(const request_rec *r)
{
    struct fp_record *record = fp_record_make(r);

    if (record->buf == NULL)
        record->buf = apr_palloc(record->pool, sizeof(*record->buf));
    return record->buf;
}

struct fp_answer *fp_request_keep(const request_rec *r, apr_pool_t *p, struct fp_answer *a)
{
    struct fp_record *record = fp_record_make(r);
    struct fp_answer *copy;

    if (!record->kept && p == r->pool) {
        record->kept = true;
        record->buf = NULL;
        return a;
    }
    copy = apr_pmemdup(p == r->pool ? record->pool : p, a, fp_answer_size(a));
    a->fd = -1;
    return copy;
}

struct fp_request *fp_request_of(const request_rec *r)
{
    return fp_record_of(r)->own;
}

struct fp_request *fp_request_shadow(const request_rec *r)
{
    return fp_record_of(r)->shadow;
}

/* ---- answers ---- */

/* The request as part of which r is served once more; NULL if there is none. */
static const request_rec *begun_again(const request_rec *r)
{
    do
        r = r->prev != NULL ? r->prev : r->main;
    while (r != NULL && fp_record_of(r)->again == FP_AGAIN_NOT);
    return r;
}

/* True if r is a subrequest of top, or of one that is. NULL: of any. */
static bool is_part_of(const request_rec *r, const request_rec *top)
{
    while (r != NULL && r != top)
        r = r->main;
    return r == top;
}

bool fp_request_any(const request_rec *r, fp_request_is *is, const void *ctx)
{
    const request_rec *again = begun_again(r);
    const request_rec *top = again != NULL && main_request(again) == main_request(r) ? again : NULL;

    for (; r != NULL && r != again; r = main_request(r)->prev) {
        for (const struct fp_request *q = fp_record_of(main_request(r))->all; q != NULL; q = q->next) {
            if ((top == NULL || is_part_of(q->r, top)) && is(q, ctx))
                return true;
        }
        /* What was found before is another try's. */
        if (top != NULL)
            break;
    }
    return false;
}

const struct fp_request *fp_request_find(const request_rec *r, const char *name)
{
    apr_size_t len = strlen(name);

    for (const struct fp_request *q = fp_record_of(main_request(r))->all; q != NULL; q = q->next) {
        if (q->held->path_len == len && memcmp(q->held->path, name, len) == 0)
            return q;
    }
    return NULL;
}

const struct fp_step *fp_request_find_step(const struct fp_request *q, const char *name, apr_size_t len,
                                           int *below_r)
{
    const struct fp_step *last = fp_held_last(q->held);

    if (len > q->held->path_len || memcmp(name, q->held->path, len) != 0)
        return NULL;
    *below_r = len > last->end;
    if (*below_r)
        return last;
    for (unsigned i = q->held->answer->n_steps; i-- > 0;) {
        if (q->held->answer->steps[i].end == len)
            return &q->held->answer->steps[i];
    }
    return NULL;
}

apr_uint64_t fp_request_bit(const struct fp_request *q, const struct fp_step *s)
{
    return (apr_uint64_t)1 << (s - q->held->answer->steps);
}

bool fp_request_restricts_links(const request_rec *r)
{
    return (ap_allow_options((request_rec *)r) & OPT_SYM_LINKS) == 0;
}

fp_status fp_request_error_below(const struct fp_step *last)
{
    if (last->status != FP_OK)
        return last->status;
    return last->target_status != FP_OK ? last->target_status : FP_NOTDIR;
}

/* A subrequest's pool may be destroyed before the main request's. A request has several answers if
 * map_to_storage ran for it several times. */
static apr_status_t forget(void *data)
{
    struct fp_request *q = data;
    struct fp_record *own = fp_record_make(q->r), *top = fp_record_make(main_request(q->r));
    struct fp_request **p = &top->all;

    while (*p != NULL && *p != q)
        p = &(*p)->next;
    if (*p != NULL)
        *p = (*p)->next;
    if (own->own == q)
        own->own = NULL;
    if (own->shadow == q)
        own->shadow = NULL;
    return APR_SUCCESS;
}

static struct fp_request *make(request_rec *r, apr_pool_t *p, struct fp_held *held)
{
    struct fp_request *q = apr_pcalloc(p, sizeof(*q));

    q->held = held;
    q->r = r;
    return q;
}

void fp_request_remember(request_rec *r, struct fp_held *held)
{
    struct fp_record *top = fp_record_make(main_request(r)), *own = fp_record_make(r);
    const struct fp_settings *settings = fp_settings_of(r->server);
    struct fp_request *q = make(r, r->pool, held);
    const struct fp_step *last = fp_held_last(held);

    if (last->status == FP_ABSENT || (last->status == FP_OK && last->target_status == FP_ABSENT))
        fp_count(settings->host, FP_COUNT_ABSENT);
    if (settings->engine == FP_ENGINE_SHADOW) {
        own->shadow = q;
    } else {
        q->next = top->all;
        top->all = own->own = q;
    }
    apr_pool_cleanup_register(r->pool, q, forget, apr_pool_cleanup_null);
}

void fp_request_forget(request_rec *r)
{
    struct fp_request *q = fp_request_of(r);

    if (q != NULL)
        apr_pool_cleanup_run(r->pool, q, forget);
}

void fp_request_leave_out(const request_rec *r)
{
    struct fp_request **p = &fp_record_make(main_request(r))->all;

    while (*p != NULL) {
        if (is_part_of((*p)->r, r))
            *p = (*p)->next;
        else
            p = &(*p)->next;
    }
}

/* ---- tests of files ---- */

void fp_request_keep_tests(const request_rec *r)
{
    fp_record_make(r)->tests_pool = NULL;
}

apr_pool_t *fp_request_tests_pool(request_rec *r)
{
    struct fp_record *record = fp_record_make(r);

    if (record->n_tests < TESTS)
        return r->pool;
    if (record->tests_pool == NULL) {
        apr_pool_create(&record->tests_pool, r->pool);
    } else if (record->n_tests % TESTS == 0) {
        record->tests = NULL;
        apr_pool_clear(record->tests_pool);
    }
    return record->tests_pool;
}

struct fp_request *fp_request_remember_test(request_rec *r, apr_pool_t *p, struct fp_held *held)
{
    struct fp_record *record = fp_record_make(r);
    struct fp_request *q = make(r, p, held);

    q->next = record->n_tests == TESTS ? NULL : record->tests;
    record->tests = q;
    record->n_tests++;
    return q;
}

static bool runs_programs; /* fp_request_expect_programs() */

void fp_request_expect_programs(bool expected)
{
    runs_programs = expected;
}

/*
 * True if a test in stock httpd, which looks anew each time, could see something else. A child's own
 * look is of its moment. An answer without reported changes stays this request's view, unless a program
 * may run between two tests.
 */
static bool is_outdated(const struct fp_request *q)
{
    if (q->held->found == FP_COUNT_LOOK)
        return true;
    return q->held->answer->watched && q->held->view != NULL ? !fp_held_holds(q->held) : runs_programs;
}

struct fp_request *fp_request_earlier(const request_rec *r, const char *path, apr_size_t len)
{
    const struct fp_record *record = fp_record_of(r);
    struct fp_request *own = record->own;
    int below;

    /* An answer may be outdated once a handler has begun. */
    if (record->serving)
        return NULL;
    if (own != NULL && fp_request_find_step(own, path, len, &below) != NULL && !is_outdated(own))
        return own;
    for (struct fp_request *q = record->tests; q != NULL; q = q->next) {
        if (fp_request_find_step(q, path, len, &below) != NULL && !is_outdated(q))
            return q;
    }
    return NULL;
}

bool fp_request_may_follow_program(const request_rec *r)
{
    return runs_programs && fp_record_of(r)->n_tests > 0;
}
