/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/request.h"

#include <apr_hash.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <http_request.h>

#include "question/held.h"
#include "question/table.h"
#include "setup/settings.h"

APLOG_USE_MODULE(flashpache);

#define AGAIN           "flashpache-again" /* note: the request is served once more, and how: .. */
#define BY_CORE         "core"             /* .. without an answer, or .. */
#define AFRESH          "afresh"           /* .. by answers that no earlier request saw */
#define AFRESH_MOST     3                  /* times; each may see links before and after yet another change */
#define REWRITING_ENDED "rewrite_really_last" /* of mod_rewrite, in a request's pool: no more rules */
#define TIMED           "flashpache-timed"    /* note: the response has Server-Timing already */

/*
 * The data in the request_config of each request. A main request's slot also heads the list of its
 * own answer and those of its subrequests.
 */
struct slot {
    apr_pool_t *pool; /* the request's: a copy of the request may have another one */
    struct fp_request *own;
    struct fp_request *all;
    struct fp_request *shadow; /* like own, but httpd's walk does not use it */
    struct fp_request *tests;  /* answers to this request's tests of files, linked by next */
    struct fp_answer *buf;     /* see fp_request_buf(); NULL: there is none at present */
    bool kept;                 /* see fp_request_keep(): the first buffer was */
    const struct fp_outcome *outcome; /* the last one noted; NULL: none */
    bool begun;                /* fp_request_begin() ran */
    bool handled;              /* in the first request's slot: a handler ran in the family */
    bool serving;              /* this request's handler has begun */
    bool handled_before;       /* before this request's handler began */
    ap_conf_vector_t *hidden;  /* the configuration that .. */
    ap_conf_vector_t *shown;   /* .. this one replaces */
    apr_hash_t *held;          /* the items of the family, struct fp_item *; NULL: none yet */
};

static request_rec *main_request(const request_rec *r)
{
    while (r->main != NULL)
        r = r->main;
    return (request_rec *)r;
}

static struct slot *slot_of(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &flashpache_module);
}

static struct slot *make_slot(request_rec *r)
{
    struct slot *s = slot_of(r);

    if (s == NULL) {
        s = apr_pcalloc(r->pool, sizeof(*s));
        s->pool = r->pool;
        ap_set_module_config(r->request_config, &flashpache_module, s);
    }
    return s;
}

struct fp_answer *fp_request_buf(const request_rec *r)
{
    struct slot *s = make_slot((request_rec *)r);

    if (s->buf == NULL)
        s->buf = apr_palloc(s->pool, sizeof(*s->buf));
    return s->buf;
}

struct fp_answer *fp_request_keep(const request_rec *r, struct fp_answer *a)
{
    struct slot *s = slot_of(r);
    struct fp_answer *copy;

    if (!s->kept) {
        s->kept = true;
        s->buf = NULL;
        return a;
    }
    copy = apr_pmemdup(s->pool, a, fp_answer_size(a));
    a->fd = -1;
    return copy;
}

struct fp_request *fp_request_of(const request_rec *r)
{
    const struct slot *s = slot_of(r);

    return s != NULL ? s->own : NULL;
}

struct fp_request *fp_request_shadow(const request_rec *r)
{
    const struct slot *s = slot_of(r);

    return s != NULL ? s->shadow : NULL;
}

/* ---- held items ---- */

static apr_status_t release_item(void *item)
{
    fp_item_release(item);
    return APR_SUCCESS;
}

static apr_status_t release_held(void *data)
{
    const struct slot *s = data;

    for (apr_hash_index_t *i = s->held != NULL ? apr_hash_first(NULL, s->held) : NULL; i != NULL;
         i = apr_hash_next(i)) {
        void *held;

        apr_hash_this(i, NULL, NULL, &held);
        fp_item_release(*(struct fp_item **)held);
    }
    return APR_SUCCESS;
}

void fp_request_begin(request_rec *r)
{
    struct slot *s = make_slot(r);

    s->begun = true;
    apr_pool_cleanup_register(r->pool, s, release_held, apr_pool_cleanup_null);
    /* look_up_part_again(): rules have led to this name already. */
    if (r->main != NULL && apr_table_get(r->main->notes, AGAIN) != NULL)
        apr_pool_userdata_setn("", REWRITING_ENDED, NULL, r->pool);
}

/* The request from which all subrequests and redirects of the family come. */
static request_rec *first_request(request_rec *r)
{
    while (r->main != NULL || r->prev != NULL)
        r = r->main != NULL ? r->main : r->prev;
    return r;
}

void fp_request_hold(request_rec *r, struct fp_item *item)
{
    request_rec *first = first_request(r);
    struct slot *s = make_slot(first);
    struct fp_item **held;

    if (!s->begun) {
        apr_pool_cleanup_register(first->pool, item, release_item, apr_pool_cleanup_null);
        return;
    }
    if (s->held == NULL)
        s->held = apr_hash_make(first->pool);
    if (apr_hash_get(s->held, &item, sizeof(item)) != NULL) {
        fp_item_release(item);
        return;
    }
    held = apr_palloc(first->pool, sizeof(*held));
    *held = item;
    apr_hash_set(s->held, held, sizeof(*held), held);
}

/* ---- handlers ---- */

void fp_request_begin_handler(request_rec *r)
{
    struct slot *own = make_slot(r), *first = make_slot(first_request(r));

    own->serving = true;
    own->handled_before = first->handled;
    first->handled = true;
}

void fp_request_undo_handler(request_rec *r)
{
    const struct slot *own = make_slot(r);

    make_slot(first_request(r))->handled = own->handled_before;
}

bool fp_request_was_handled(const request_rec *r)
{
    const struct slot *s = slot_of(first_request((request_rec *)r));

    return s != NULL && s->handled;
}

/* ---- a configuration in another one's place ---- */

void fp_request_replace(request_rec *r, const module *m, void *conf)
{
    struct slot *s = make_slot(r);

    s->hidden = r->per_dir_config;
    s->shown = ap_merge_per_dir_configs(r->pool, s->hidden, ap_create_request_config(r->pool));
    ap_set_module_config(s->shown, m, conf);
    r->per_dir_config = s->shown;
}

void fp_request_restore(request_rec *r)
{
    const struct slot *s = slot_of(r);

    if (s != NULL && s->shown != NULL && s->shown == r->per_dir_config)
        r->per_dir_config = s->hidden;
}

/* ---- answers ---- */

/* The list of the main request and its subrequests, linked by next. */
static const struct fp_request *all_of(const request_rec *r)
{
    const struct slot *s = slot_of(main_request(r));

    return s != NULL ? s->all : NULL;
}

/* The request as part of which r is served once more; NULL: there is none. */
static const request_rec *begun_again(const request_rec *r)
{
    do
        r = r->prev != NULL ? r->prev : r->main;
    while (r != NULL && apr_table_get(r->notes, AGAIN) == NULL);
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
        for (const struct fp_request *q = all_of(r); q != NULL; q = q->next) {
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

    for (const struct fp_request *q = all_of(r); q != NULL; q = q->next) {
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
    struct slot *own = slot_of(q->r), *top = slot_of(main_request(q->r));
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

void fp_request_remember(request_rec *r, struct fp_held *held, enum fp_count found)
{
    struct slot *top = make_slot(main_request(r)), *own = make_slot(r);
    const struct fp_settings *settings = fp_settings_of(r->server);
    struct fp_request *q = apr_pcalloc(r->pool, sizeof(*q));
    const struct fp_step *last = fp_held_last(held);

    q->held = held;
    q->r = r;
    q->found = found;
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

/* ---- tests of files ---- */

struct fp_request *fp_request_remember_test(request_rec *r, struct fp_held *held, enum fp_count found)
{
    struct slot *s = make_slot(r);
    struct fp_request *q = apr_pcalloc(r->pool, sizeof(*q));

    q->held = held;
    q->r = r;
    q->found = found;
    q->next = s->tests;
    s->tests = q;
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
    if (q->found == FP_COUNT_LOOK)
        return true;
    return q->held->answer->watched && q->held->view != NULL ? !fp_held_holds(q->held) : runs_programs;
}

struct fp_request *fp_request_earlier(const request_rec *r, const char *path, apr_size_t len)
{
    const struct slot *s = slot_of(r);
    int below;

    /* An answer may be outdated once a handler has begun. */
    if (s == NULL || s->serving)
        return NULL;
    if (s->own != NULL && fp_request_find_step(s->own, path, len, &below) != NULL && !is_outdated(s->own))
        return s->own;
    for (struct fp_request *q = s->tests; q != NULL; q = q->next) {
        if (fp_request_find_step(q, path, len, &below) != NULL && !is_outdated(q))
            return q;
    }
    return NULL;
}

bool fp_request_may_follow_program(const request_rec *r)
{
    const struct slot *s = slot_of(r);

    return runs_programs && s != NULL && s->tests != NULL;
}

const struct fp_request *fp_request_tested(const request_rec *r, const char *path, apr_size_t len)
{
    const struct slot *s = slot_of(r);

    for (const struct fp_request *q = s != NULL ? s->tests : NULL; q != NULL; q = q->next) {
        if (q->held->path_len == len && memcmp(q->held->path, path, len) == 0 && !is_outdated(q))
            return q;
    }
    return NULL;
}

/* ---- once more ---- */

/* How often the requests that r is part of were begun once more in that way; NULL: in any. */
static unsigned times_again(const request_rec *r, const char *how)
{
    unsigned n = 0;

    while ((r = r->prev != NULL ? r->prev : r->main) != NULL) {
        const char *again = apr_table_get(r->notes, AGAIN);

        n += again != NULL && (how == NULL || strcmp(again, how) == 0);
    }
    return n;
}

bool fp_request_restricts_links(const request_rec *r)
{
    return (ap_allow_options((request_rec *)r) & OPT_SYM_LINKS) == 0;
}

/*
 * A part of another request's response is looked up by its file name, which core would open now. Its status goes
 * to whoever asked for the part: a redirect's error page would end the whole response. The new request has
 * filters of its own in the place of the old one's.
 */
static int look_up_part_again(request_rec *r)
{
    ap_filter_t *next = r->output_filters;
    request_rec *again;
    int status;

    while (next != NULL && next->r == r)
        next = next->next;
    again = ap_sub_req_lookup_file(r->filename, r, next);
    again->args = r->args;
    if (again->path_info == NULL || again->path_info[0] == '\0')
        again->path_info = r->path_info;
    status = again->status == HTTP_OK ? ap_run_sub_req(again) : again->status;
    ap_destroy_sub_req(again);
    return status;
}

/* The answers of this try are none of the next one's. */
static void leave_out_answers(const request_rec *r)
{
    struct fp_request **p = &make_slot(main_request(r))->all;

    while (*p != NULL) {
        if (is_part_of((*p)->r, r))
            *p = (*p)->next;
        else
            p = &(*p)->next;
    }
}

/* True if r has the URI that the client asked for: it is that request, or the same once more. */
static bool is_as_asked(const request_rec *r)
{
    while (r->prev != NULL) {
        r = r->prev;
        if (apr_table_get(r->notes, AGAIN) == NULL)
            return false;
    }
    return true;
}

static int serve_again(request_rec *r, const char *how)
{
    apr_table_setn(r->notes, AGAIN, how);
    leave_out_answers(r);
    /* Core would reuse the results of its walk by the old answer. */
    *ap_get_request_note(r, AP_NOTE_DIRECTORY_WALK) = NULL;
    if (fp_request_of(r) != NULL)
        fp_request_of(r)->walked = NULL;
    r->htaccess = NULL;
    if (r->main != NULL)
        return look_up_part_again(r);
    /* Where the rules of a server ended rewriting, the URI is still the one of before: they apply again. */
    if (is_as_asked(r))
        apr_pool_userdata_setn(NULL, REWRITING_ENDED, NULL, r->pool);
    ap_internal_redirect(
        apr_pstrcat(r->pool, ap_escape_uri(r->pool, r->uri), r->args != NULL ? "?" : NULL, r->args, NULL), r);
    return OK;
}

static int refuse(const request_rec *r)
{
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                  "FP0130: Forbidden: what leads to %s changes all the time", r->filename);
    return HTTP_FORBIDDEN;
}

int fp_request_again(request_rec *r)
{
    if (times_again(r, NULL) < AFRESH_MOST)
        return serve_again(r, AFRESH);
    /* Core opens by name, so links may change between its look and its open. */
    return fp_request_restricts_links(r) ? refuse(r) : serve_again(r, BY_CORE);
}

int fp_request_again_elsewhere(request_rec *r)
{
    return times_again(r, NULL) < AFRESH_MOST ? serve_again(r, AFRESH) : refuse(r);
}

bool fp_request_is_again(const request_rec *r)
{
    /* Subrequests and further redirects of such a request are served so, too. */
    return times_again(r, BY_CORE) != 0;
}

bool fp_request_is_afresh(const request_rec *r)
{
    return times_again(r, AFRESH) != 0;
}

/* ---- notes, environment and Server-Timing ---- */

void fp_request_note(request_rec *r, enum fp_count what)
{
    const struct fp_outcome *o = &fp_outcomes[what];
    struct slot *slot = make_slot(r);

    /* Its file may be asked for later: the log says so, and the request counts once. */
    if (slot->outcome == NULL)
        fp_count(fp_settings_of(r->server)->host, what);
    slot->outcome = o;
    apr_table_setn(r->notes, "flashpache", o->word);
    if (o->reason != NULL)
        apr_table_setn(r->notes, "flashpache-reason", o->reason);
}

void fp_request_add_us(request_rec *r, apr_uint64_t us)
{
    const char *before = apr_table_get(r->notes, "flashpache-us");

    if (before != NULL)
        us += (apr_uint64_t)apr_atoi64(before);
    apr_table_setn(r->notes, "flashpache-us", apr_psprintf(r->pool, "%" APR_UINT64_T_FMT, us));
}

int fp_request_log(request_rec *r)
{
    for (; r != NULL; r = r->next) {
        const struct slot *s = slot_of(r);

        if (s == NULL || s->outcome == NULL)
            continue;
        apr_table_setn(r->subprocess_env, "FLASHPACHE", s->outcome->word);
        if (s->outcome->reason != NULL)
            apr_table_setn(r->subprocess_env, "FLASHPACHE_REASON", s->outcome->reason);
    }
    return DECLINED;
}

/* In milliseconds, for the header; "" where the daemon was not asked. */
static const char *duration(request_rec *r)
{
    const char *us = apr_table_get(r->notes, "flashpache-us");
    apr_int64_t n = us != NULL ? apr_atoi64(us) : 0;

    if (us == NULL)
        return "";
    return apr_psprintf(r->pool, ";dur=%" APR_INT64_T_FMT ".%03d", n / 1000, (int)(n % 1000));
}

void fp_request_add_timing(request_rec *r)
{
    const struct slot *s = slot_of(r);
    const struct fp_outcome *o = s != NULL ? s->outcome : NULL;

    if (fp_settings_of(r->server)->server_timing != 1 || r->main != NULL || o == NULL
        || apr_table_get(r->notes, TIMED) != NULL)
        return;
    apr_table_setn(r->notes, TIMED, "1");
    /* These headers stay when an error response replaces the first one. */
    apr_table_mergen(r->err_headers_out, "Server-Timing",
                     apr_pstrcat(r->pool, "flashpache;desc=\"", o->word, o->reason != NULL ? " " : "",
                                 o->reason != NULL ? o->reason : "", "\"", duration(r), NULL));
}
