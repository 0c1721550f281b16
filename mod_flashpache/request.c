/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "request.h"

#include <apr_atomic.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <sys/stat.h>

#include "common/client.h"
#include "common/clock.h"
#include "common/lease_table.h"
#include "common/packet.h"
#include "common/wire.h"
#include "file.h"
#include "lease.h"
#include "mod_flashpache.h"
#include "settings.h"
#include "status/counters.h"

APLOG_USE_MODULE(flashpache);

#define AGAIN "flashpache-again"   /* note: what follows is not ours */
#define MAX_LINKS 40         /* in one path; the kernel follows no more */
#define SILENCE_SECONDS 10   /* between two warnings of a child that it has no answers */

/*
 * In the request_config of each request; that of the main request also holds
 * the list of all that its subrequests know.
 */
struct slot {
    struct fp_request *own;
    struct fp_request *all;
    struct fp_request *shadow;    /* as own, but httpd's walk knows nothing of it */
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
        ap_set_module_config(r->request_config, &flashpache_module, s);
    }
    return s;
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

/* In this request and its subrequests, linked by next. */
static const struct fp_request *all_of(const request_rec *r)
{
    const struct slot *s = slot_of(main_request(r));

    return s != NULL ? s->all : NULL;
}

bool fp_request_any(const request_rec *r, fp_request_is *is, const void *ctx)
{
    for (; r != NULL; r = main_request(r)->prev) {
        for (const struct fp_request *q = all_of(r); q != NULL; q = q->next) {
            if (is(q, ctx))
                return true;
        }
    }
    return false;
}

const struct fp_request *fp_request_find(const request_rec *r, const char *name)
{
    apr_size_t len = strlen(name);

    for (const struct fp_request *q = all_of(r); q != NULL; q = q->next) {
        if (q->len == len && memcmp(q->path, name, len) == 0)
            return q;
    }
    return NULL;
}

const struct fp_step *fp_request_step(const struct fp_request *q, unsigned i)
{
    return fp_lease_step(q->lease, i);
}

const struct fp_step *fp_request_last_step(const struct fp_request *q)
{
    return q->lease->last;
}

const struct fp_step *fp_request_find_step(const struct fp_request *q, const char *name,
                                           apr_size_t len, int *beyond_r)
{
    const struct fp_step *last = fp_request_last_step(q);

    if (len > q->len || memcmp(name, q->path, len) != 0)
        return NULL;
    *beyond_r = len > last->end;
    if (*beyond_r)
        return last;
    for (unsigned i = q->n_steps; i-- > 0;) {
        if (fp_request_step(q, i)->end == len)
            return fp_request_step(q, i);
    }
    return NULL;
}

fp_status fp_step_beyond(const struct fp_step *last)
{
    if (last->status != FP_OK)
        return last->status;
    return last->target_status != FP_OK ? last->target_status : FP_NOTDIR;
}

/* ---- is it ours? ---- */

int fp_request_is_again(const request_rec *r)
{
    const request_rec *p = r;

    /* Also what it leads to: its subrequests, and further redirects. */
    while ((p = p->prev != NULL ? p->prev : p->main) != NULL) {
        if (apr_table_get(p->notes, AGAIN) != NULL)
            return 1;
    }
    return 0;
}

/* FP_OUTCOMES, or why this request is served without asking. */
static enum fp_count why_not(const request_rec *r)
{
    if (r->filename == NULL || r->filename[0] != '/' || r->proxyreq != PROXYREQ_NONE)
        return FP_COUNT_NOFILE;
    if (fp_request_is_again(r))
        return FP_COUNT_CHANGED;
    /* A directory listing's entries, say: httpd does not stat them. */
    if (r->finfo.filetype != APR_NOFILE)
        return FP_COUNT_KNOWN;
    /* Methods that change things (WebDAV) want to know how it is now. */
    if (r->method_number != M_GET && r->method_number != M_POST
        && r->method_number != M_OPTIONS)
        return FP_COUNT_METHOD;
    return FP_OUTCOMES;
}

/*
 * The path as core's walk will see it, without a slash at its end.  NULL
 * where it has no normal form.
 */
static const char *question_of(const request_rec *r, apr_size_t *len_r)
{
    char *path;
    apr_size_t len;

    if (apr_filepath_merge(&path, NULL, r->filename, APR_FILEPATH_NOTRELATIVE, r->pool)
        != APR_SUCCESS)
        return NULL;
    len = fp_path_len(path);
    path[len] = '\0';
    *len_r = len;
    return fp_path_is_normal(path, len) ? path : NULL;
}

/* ---- notes and environment ---- */

static void note(request_rec *r, enum fp_count what)
{
    const struct fp_outcome *o = &fp_outcomes[what];

    fp_count(fp_settings_of(r->server)->host, what);
    apr_table_setn(r->notes, "flashpache", o->word);
    if (o->reason != NULL)
        apr_table_setn(r->notes, "flashpache-reason", o->reason);
}

static void set_environment(request_rec *r, const char *name, const char *note)
{
    const char *value = apr_table_get(r->notes, note);

    if (value != NULL)
        apr_table_setn(r->subprocess_env, name, value);
}

int fp_request_log(request_rec *r)
{
    for (; r != NULL; r = r->next) {
        set_environment(r, "FLASHPACHE", "flashpache");
        set_environment(r, "FLASHPACHE_REASON", "flashpache-reason");
    }
    return DECLINED;
}

static void note_time(request_rec *r, uint64_t began_us)
{
    apr_table_setn(r->notes, "flashpache-us",
                   apr_psprintf(r->pool, "%" APR_UINT64_T_FMT, fp_now_us() - began_us));
}

/* A word for the log; the daemon's log has more. */
static enum fp_count failure(fp_status st)
{
    switch (st) {
    case FP_TIMEOUT: return FP_COUNT_TIMEOUT;
    case FP_BUSY: return FP_COUNT_BUSY;
    case FP_REFUSED: return FP_COUNT_ROOTS;
    case FP_TOODEEP: return FP_COUNT_DEEP;
    case FP_AGAIN: return FP_COUNT_PAUSED;
    case FP_CLOSED: return FP_COUNT_NOBODY;
    case FP_VERSION: return FP_COUNT_VERSION;
    case FP_DENIED: return FP_COUNT_FOREIGN;
    case FP_LOSTFD: return FP_COUNT_DESCRIPTORS;
    case FP_FAILED: return FP_COUNT_FAILED;
    case FP_UNAVAILABLE: return FP_COUNT_UNAVAILABLE;
    default: return FP_COUNT_ERROR;
    }
}

static enum fp_count success(enum fp_source source)
{
    switch (source) {
    case FP_SOURCE_CACHE: return FP_COUNT_HIT;
    case FP_SOURCE_STALE: return FP_COUNT_STALE;
    default: return FP_COUNT_MISS;
    }
}

static int is_absent(const struct fp_step *last)
{
    return last->status == FP_ABSENT
        || (last->status == FP_OK && last->target_status == FP_ABSENT);
}

static int is_bypass(fp_status st)
{
    return st == FP_REFUSED || st == FP_TOODEEP;
}

/* ---- asking ---- */

/* In a subrequest's pool the answer goes before the main request does. */
static apr_status_t forget(void *data)
{
    request_rec *r = data;
    struct slot *own = slot_of(r), *top = slot_of(main_request(r));
    struct fp_request **p = &top->all;

    while (*p != NULL && *p != own->own)
        p = &(*p)->next;
    if (*p != NULL)
        *p = (*p)->next;
    fp_item_release(&own->own->lease->item);
    own->own = NULL;
    return APR_SUCCESS;
}

static apr_status_t forget_shadow(void *data)
{
    struct slot *s = data;

    fp_item_release(&s->shadow->lease->item);
    s->shadow = NULL;
    return APR_SUCCESS;
}

static void take(struct fp_request *q, struct fp_lease *lease)
{
    q->lease = lease;
    q->path = lease->path;
    q->len = lease->path_len;
    q->n_steps = lease->n_steps;
    q->n_names = lease->n_names;
    q->file = lease->file;
}

/* The request has a reference to the lease until its pool is gone. */
static void remember(request_rec *r, struct fp_lease *lease)
{
    struct slot *top = make_slot(main_request(r)), *own = make_slot(r);
    const struct fp_settings *settings = fp_settings_of(r->server);
    struct fp_request *q = apr_pcalloc(r->pool, sizeof(*q));

    take(q, lease);
    if (is_absent(lease->last))
        fp_count(settings->host, FP_COUNT_ABSENT);
    if (settings->engine == FP_ENGINE_SHADOW) {
        own->shadow = q;
        apr_pool_cleanup_register(r->pool, own, forget_shadow, apr_pool_cleanup_null);
        return;
    }
    q->next = top->all;
    top->all = q;
    own->own = q;
    apr_pool_cleanup_register(r->pool, r, forget, apr_pool_cleanup_null);
}

/* A daemon that is away is worth a line now and then, not one a request. */
static int is_news(void)
{
    static apr_uint32_t last;
    apr_uint32_t now = (apr_uint32_t)apr_time_sec(apr_time_now());
    apr_uint32_t before = apr_atomic_read32(&last);

    return now - before >= SILENCE_SECONDS
        && apr_atomic_cas32(&last, now, before) == before;
}

/* The daemon follows each by itself and has no number of all. */
static int has_too_many_links(const struct fp_answer *a)
{
    unsigned n = 0;

    for (unsigned i = 0; i < a->n_steps; i++)
        n += a->steps[i].status == FP_OK && S_ISLNK(a->steps[i].self.mode);
    return n > MAX_LINKS;
}

/* *lease_r, retained for the caller, only with FP_OK. */
static fp_status fetch(const struct fp_settings *settings, const char *path, apr_size_t len,
                       struct fp_lease **lease_r, enum fp_source *source_r)
{
    struct fp_lease_view *view;
    struct fp_answer a;
    fp_status st = fp_client_lookup(fp_child_client, path, len, &settings->names, &a, &view);

    if (st == FP_OK)
        st = a.status;
    if (st == FP_OK && has_too_many_links(&a)) {
        fp_close(&a.fd);
        st = FP_TOODEEP;
    }
    if (st == FP_OK) {
        *source_r = a.source;
        *lease_r = fp_lease_create(settings, path, len, &a, view);
        view = NULL;
        st = *lease_r != NULL ? FP_OK : FP_NOMEM;
    }
    fp_lease_view_release(&view);
    return st;
}

static void ask(request_rec *r, const char *path, apr_size_t len)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    uint64_t began_us = fp_now_us();
    struct fp_lease *lease;
    enum fp_source source;
    fp_status st = fetch(settings, path, len, &lease, &source);
    int level;

    note_time(r, began_us);
    if (st == FP_OK) {
        remember(r, lease);
        note(r, success(source));
        return;
    }
    note(r, failure(st));
    level = is_bypass(st) || !is_news() ? APLOG_DEBUG : APLOG_WARNING;   /* a macro takes it twice */
    ap_log_rerror(APLOG_MARK, level, 0, r, "FP0101: no answer from flashpached at %s for %s (%s: "
                  "%s): serving it as without Flashpache", fp_settings_socket(settings), path,
                  fp_outcomes[failure(st)].reason, fp_status_text(st));
}

static void use_lease_or_ask(request_rec *r, const struct fp_settings *settings,
                             const char *path, apr_size_t len)
{
    struct fp_lease *lease = fp_lease_find(settings, path, len);

    if (lease == NULL) {
        ask(r, path, len);
        return;
    }
    remember(r, lease);
    note(r, FP_COUNT_LEASE);
}

struct fp_request *fp_request_of_file(const request_rec *r)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    const struct fp_request *whole = fp_request_of(r);
    struct fp_request *q;
    struct fp_lease *lease;
    enum fp_source source;
    apr_size_t len = strlen(r->filename);

    if (whole == NULL || whole->len <= len || memcmp(whole->path, r->filename, len) != 0
        || !fp_path_is_normal(r->filename, len))
        return NULL;
    lease = fp_lease_find(settings, r->filename, len);
    if (lease == NULL && fetch(settings, r->filename, len, &lease, &source) != FP_OK)
        return NULL;
    q = apr_pcalloc(r->pool, sizeof(*q));
    take(q, lease);
    fp_item_release_with(r->pool, &lease->item);
    return q;
}

static void tell_held(void)
{
    const struct fp_usage now = { fp_lease_count(), fp_file_descriptors(), fp_file_mapped() };

    fp_counters_set_usage(&now);
}

int fp_request_renew(const request_rec *r, struct fp_request *q)
{
    struct fp_lease *lease, *old = q->lease;
    enum fp_source source;

    if (fetch(fp_settings_of(r->server), q->path, q->len, &lease, &source) != FP_OK)
        return 0;
    take(q, lease);
    fp_item_release(&old->item);
    return 1;
}

int fp_request_again(request_rec *r)
{
    apr_table_setn(r->notes, AGAIN, "1");
    /* Core would use again what its walk found and parsed, by what we told. */
    *ap_get_request_note(r, AP_NOTE_DIRECTORY_WALK) = NULL;
    r->htaccess = NULL;
    ap_internal_redirect(apr_pstrcat(r->pool, ap_escape_uri(r->pool, r->uri),
                                     r->args != NULL ? "?" : NULL, r->args, NULL), r);
    return OK;
}

void fp_request_begin(request_rec *r)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    enum fp_count reason;
    const char *path;
    apr_size_t len = 0;

    if (settings->engine <= FP_ENGINE_OFF)
        return;
    reason = fp_child_client == NULL ? FP_COUNT_DISABLED : why_not(r);
    if (reason != FP_OUTCOMES) {
        note(r, reason);
        return;
    }
    path = question_of(r, &len);
    if (path == NULL) {
        note(r, FP_COUNT_PATH);
    } else if (fp_settings_excludes(settings, path, len)) {
        note(r, FP_COUNT_EXCLUDED);
    } else {
        use_lease_or_ask(r, settings, path, len);
        tell_held();
    }
}
