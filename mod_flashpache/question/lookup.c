/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/lookup.h"

#include <apr_atomic.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>

#include "base/clock.h"
#include "question/again.h"
#include "question/file.h"
#include "question/finfo.h"
#include "question/fresh.h"
#include "question/held.h"
#include "question/look.h"
#include "question/note.h"
#include "question/open_files.h"
#include "question/request.h"
#include "question/shared.h"
#include "question/trouble.h"
#include "setup/settings.h"
#include "shared/client.h"
#include "shared/lease_table.h"
#include "status/counters.h"
#include "wire/wire.h"

APLOG_USE_MODULE(flashpache);

#define SILENCE_SECONDS 10   /* between two warnings of a child about missing answers */
#define RETRY_AFTER     "30" /* seconds: the daemon's longest pause between two probes of a file system */

struct fp_client *fp_child_client;

/* ---- which requests ---- */

/*
 * True for a subrequest that may send a file that httpd has looked at itself: an included file, or
 * a variant. httpd only names the entries of a listing. Of a link core looks at the target again.
 */
static bool may_send_known(const request_rec *r)
{
    return (r->finfo.filetype == APR_REG || r->finfo.filetype == APR_LNK) && r->main != NULL
           && r->main->finfo.filetype != APR_DIR;
}

/* The reason why this request is served without asking, or FP_OUTCOMES. */
static enum fp_count reason_not_to_ask(const request_rec *r)
{
    /* "OPTIONS *" is about the server, and looks at no file. */
    if (r->filename == NULL || r->filename[0] != '/' || r->proxyreq != PROXYREQ_NONE
        || strcmp(r->uri, "*") == 0)
        return FP_COUNT_NOFILE;
    if (fp_again_is_by_core(r))
        return FP_COUNT_CHANGED;
    if (r->finfo.filetype != APR_NOFILE && !may_send_known(r))
        return FP_COUNT_KNOWN;
    /* Methods that change files (WebDAV) need the present state. */
    if (r->method_number != M_GET && r->method_number != M_POST && r->method_number != M_OPTIONS)
        return FP_COUNT_METHOD;
    return FP_OUTCOMES;
}

/*
 * The path as core's walk will see it, without a slash at its end. NULL: the path has no normal
 * form.
 */
static const char *normal_path(const request_rec *r, apr_size_t *len_r)
{
    char *path;
    apr_size_t len = strlen(r->filename);

    *len_r = len;
    if (fp_path_is_normal(r->filename, len))
        return r->filename;
    if (apr_filepath_merge(&path, NULL, r->filename, APR_FILEPATH_NOTRELATIVE, r->pool) != APR_SUCCESS)
        return NULL;
    len = fp_path_len(path);
    path[len] = '\0';
    *len_r = len;
    return fp_path_is_normal(path, len) ? path : NULL;
}

/* ---- asking ---- */

/* True once in SILENCE_SECONDS: a daemon that is down is not worth a line for each request. */
static bool may_warn(void)
{
    static apr_uint32_t last;
    apr_uint32_t now = (apr_uint32_t)apr_time_sec(apr_time_now());
    apr_uint32_t before = apr_atomic_read32(&last);

    return now - before >= SILENCE_SECONDS && apr_atomic_cas32(&last, now, before) == before;
}

/* FlashpacheUnavailable 503: nothing that may hang is begun at a file system that does not answer. */
static bool refuses(const struct fp_settings *settings)
{
    return settings->engine == FP_ENGINE_ON && settings->refuses_unavailable == 1;
}

/* A question about a path in normal form. */
struct wish {
    const char *path;
    apr_size_t len;
    bool fresh;   /* only an answer of which this machine's changes are all reported */
    bool to_send; /* the file is to be sent, so the child's own look opens it */
    apr_pool_t *pool; /* for the answer; NULL: the request's */
};

static bool wants_fresh(const request_rec *r)
{
    return fp_again_is_afresh(r) || fp_fresh_is_wanted(r, fp_child_client);
}

static struct fp_held begin(const request_rec *r, const struct wish *wish)
{
    return (struct fp_held){ .answer = fp_request_buf(r), .path = wish->path, .path_len = wish->len };
}

static apr_status_t end(void *held)
{
    fp_held_end(held);
    return APR_SUCCESS;
}

/* The pool holds the answer from now on. */
static struct fp_held *keep(const request_rec *r, apr_pool_t *p, const struct fp_held *h)
{
    struct fp_held *held = apr_pmemdup(p, h, sizeof(*h));

    held->answer = fp_request_keep(r, p, h->answer);
    held->path = apr_pstrmemdup(p, h->path, h->path_len);
    apr_pool_cleanup_register(p, held, end, apr_pool_cleanup_null);
    return held;
}

/* The length of the document root if the path lies below it, else 0. */
static apr_size_t root_len_of(const request_rec *r, const struct wish *wish)
{
    const char *root = ap_document_root((request_rec *)r);
    const apr_size_t len = root != NULL ? strlen(root) : 0;

    return len > 1 && len < wish->len && wish->path[len] == '/' && memcmp(wish->path, root, len) == 0 ? len : 0;
}

/* Looks at a file below a known directory. Returns as fp_look_below_known(). */
static fp_status look(const request_rec *r, const struct wish *wish, struct fp_held *h)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    const struct fp_look_wish file = { wish->path,  wish->len,     &settings->names,
                                       wish->fresh, wish->to_send, root_len_of(r, wish) };
    fp_status st;

    /* Only the daemon knows which file systems are out of service. */
    if (refuses(settings))
        return FP_UNKNOWN;
    st = fp_look_below_known(fp_child_client, &file, h->answer, &h->view);
    if (st != FP_OK)
        return st;
    h->found = FP_COUNT_LOOK;
    if (!fp_held_take_file(h)) {
        fp_held_end(h);
        return FP_NOMEM;
    }
    if (h->file != NULL)
        fp_file_trust(h->file);
    return FP_OK;
}

static bool was_asked(const struct fp_held *held)
{
    return held->found != FP_COUNT_LEASE && held->found != FP_COUNT_LOOK;
}

/* Asks by a message. */
static fp_status ask(const request_rec *r, const struct wish *wish, struct fp_held *h)
{
    return fp_held_ask(fp_child_client, wish->fresh, refuses(fp_settings_of(r->server)), h);
}

/* Finds an answer, without a message if possible. Sets *held_r only with FP_OK. */
static fp_status find(const request_rec *r, const struct wish *wish, struct fp_held **held_r)
{
    struct fp_held h = begin(r, wish);
    fp_status st = fp_shared_find(fp_child_client, wish->fresh, &h);

    if (st == FP_UNKNOWN)
        st = look(r, wish, &h);
    if (st == FP_UNKNOWN || st == FP_ASK)
        st = ask(r, wish, &h);
    if (st == FP_OK)
        *held_r = keep(r, wish->pool != NULL ? wish->pool : r->pool, &h);
    return st;
}

/* Asks by a message for a new answer about the path of an earlier one. Sets *held_r only with FP_OK. */
static fp_status renew(const request_rec *r, const struct fp_held *earlier, struct fp_held **held_r)
{
    const struct wish wish = { earlier->path, earlier->path_len, .to_send = true };
    struct fp_held h = begin(r, &wish);
    fp_status st = ask(r, &wish, &h);

    if (st == FP_OK)
        *held_r = keep(r, r->pool, &h);
    return st;
}

/* Warns about a daemon that is not trusted, or that does not answer, and names the way out. */
static void warn(const request_rec *r, const struct fp_settings *settings, const char *path, fp_status st)
{
    if (st == FP_FOREIGN)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                      FP_TEXT_NOT_TRUSTED("flashpached.socket, by httpd (FlashpacheDaemon auto) or as root"),
                      settings->socket, (unsigned)fp_client_last(fp_child_client).maker);
    else if (st == FP_ELSEWHERE)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, FP_TEXT_ELSEWHERE(", as FlashpacheDaemon auto does"),
                      settings->socket, fp_sight_text(fp_client_last(fp_child_client).difference));
    else
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, FP_TEXT_NO_ANSWER ": " FP_TEXT_AS_STOCK,
                      settings->socket, path, fp_outcomes[fp_outcome_of_failure(st)].reason,
                      fp_trouble_text(fp_child_client, st));
}

static void note_failure(request_rec *r, const struct fp_settings *settings, const char *path, fp_status st)
{
    fp_note_outcome(r, fp_outcome_of_failure(st));
    if (st == FP_REFUSED || st == FP_TOODEEP || !may_warn())
        ap_log_rerror(APLOG_MARK, APLOG_DEBUG, 0, r, FP_TEXT_NO_ANSWER, settings->socket, path,
                      fp_outcomes[fp_outcome_of_failure(st)].reason, fp_trouble_text(fp_child_client, st));
    else
        warn(r, settings, path, st);
}

/* True unless httpd has found another file before: the rest of the request goes by httpd's own
 * look. */
static bool agrees(const request_rec *r, const struct fp_held *held)
{
    const struct fp_meta *m = fp_held_target(held);
    apr_finfo_t f;

    if (r->finfo.filetype == APR_NOFILE || r->finfo.filetype == APR_LNK)
        return true;
    if (m == NULL)
        return false;
    fp_finfo_fill(&f, m, r->filename, r->pool);
    return f.filetype == r->finfo.filetype && f.inode == r->finfo.inode && f.device == r->finfo.device
           && f.size == r->finfo.size && f.mtime == r->finfo.mtime && f.ctime == r->finfo.ctime;
}

/*
 * As find(). If even a new answer is not about the file that httpd has found, the request goes by the answer: core
 * would open by name whatever the links on the way lead to by then.
 */
static fp_status find_agreeing(request_rec *r, const struct wish *wish, struct fp_held **held_r)
{
    const struct wish anew = { wish->path, wish->len, .fresh = true, .to_send = wish->to_send };
    fp_status st = find(r, wish, held_r);

    if (st != FP_OK || agrees(r, *held_r))
        return st;
    st = find(r, &anew, held_r);
    if (st == FP_OK && !agrees(r, *held_r))
        r->finfo.filetype = APR_NOFILE;
    return st;
}

/* httpd's own look would wait as long as the file system does, and hold a thread. */
static int refuse(request_rec *r)
{
    apr_table_setn(r->err_headers_out, "Retry-After", RETRY_AFTER);
    ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, r,
                  "FP0125: the file system of %s is out of service: 503 (FlashpacheUnavailable)",
                  r->filename);
    return HTTP_SERVICE_UNAVAILABLE;
}

int fp_lookup_refuse_stale(request_rec *r, const struct fp_request *q)
{
    if (!refuses(fp_settings_of(r->server)) || q->held->found != FP_COUNT_STALE || r->finfo.filetype != APR_REG
        || r->method_number == M_OPTIONS || (q->held->file == NULL && fp_held_has_file(q->held)))
        return DECLINED;
    return refuse(r);
}

static int look_up(request_rec *r, const struct fp_settings *settings, const char *path, apr_size_t len)
{
    const struct wish wish = { path, len, .fresh = wants_fresh(r), .to_send = true };
    const struct fp_request *tested = wish.fresh ? NULL : fp_request_earlier(r, path, len);
    const uint64_t began_ns = fp_now_ns();
    struct fp_held *held;
    fp_status st;

    if (tested != NULL && tested->held->path_len == len && agrees(r, tested->held)) {
        /* A test of this path has an answer already: walk and test share one view. */
        fp_request_keep_tests(r);
        fp_request_remember(r, tested->held);
        fp_note_outcome(r, tested->held->found);
        return DECLINED;
    }
    st = find_agreeing(r, &wish, &held);
    if (st != FP_OK || was_asked(held))
        fp_note_us(r, (fp_now_ns() - began_ns) / 1000);
    if (st == FP_UNAVAILABLE && refuses(settings)) {
        fp_note_outcome(r, FP_COUNT_UNAVAILABLE);
        return refuse(r);
    }
    if (st != FP_OK) {
        note_failure(r, settings, path, st);
        return DECLINED;
    }
    fp_request_remember(r, held);
    fp_note_outcome(r, held->found);
    return DECLINED;
}

struct fp_request *fp_lookup_file(const request_rec *r)
{
    const struct fp_request *whole = fp_request_of(r);
    struct fp_request *q;
    struct fp_held *held;
    const apr_size_t len = strlen(r->filename);
    const struct wish wish = { r->filename, len, .fresh = wants_fresh(r), .to_send = true };

    if (whole == NULL || whole->held->path_len <= len || memcmp(whole->held->path, r->filename, len) != 0
        || !fp_path_is_normal(r->filename, len) || find(r, &wish, &held) != FP_OK)
        return NULL;
    q = apr_pcalloc(r->pool, sizeof(*q));
    q->held = held;
    return q;
}

struct fp_held *fp_lookup_directory(const request_rec *r, const char *path, apr_size_t len)
{
    const struct wish wish = { path, len, .fresh = wants_fresh(r) };
    struct fp_held *held;

    if (!fp_path_is_normal(path, len) || find(r, &wish, &held) != FP_OK)
        return NULL;
    return held;
}

bool fp_lookup_renew(const request_rec *r, struct fp_request *q)
{
    return renew(r, q->held, &q->held) == FP_OK;
}

bool fp_lookup_open(request_rec *r, const struct fp_request **q, int *status_r)
{
    const uint64_t began_us = fp_now_us();
    struct fp_request *opened;
    struct fp_held *held;
    const fp_status st = renew(r, (*q)->held, &held);

    fp_note_us(r, fp_now_us() - began_us);
    if (st != FP_OK) {
        fp_note_outcome(r, fp_outcome_of_failure(st));
        *status_r = st == FP_UNAVAILABLE && refuses(fp_settings_of(r->server)) ? refuse(r) : DECLINED;
        return false;
    }
    fp_note_outcome(r, held->found);
    opened = apr_pmemdup(r->pool, *q, sizeof(**q));
    opened->held = held;
    *q = opened;
    return true;
}

/* ---- tests of files ---- */

/* True if this server's requests may ask. */
static bool may_test(const request_rec *r, const char *path, apr_size_t len)
{
    const struct fp_settings *settings = fp_settings_of(r->server);

    return settings->engine == FP_ENGINE_ON && fp_child_client != NULL && !fp_again_is_by_core(r)
           && (r->method_number == M_GET || r->method_number == M_POST || r->method_number == M_OPTIONS)
           && fp_path_is_normal(path, len) && fp_path_depth(path, len) <= FP_MAX_STEPS
           && !fp_settings_excludes(settings, path, len);
}

/*
 * Stock httpd looks at the file itself, so it sees any process's latest change on this machine.
 * Therefore the answer must be a watched one, or a walk that begins now.
 */
static const struct fp_request *ask_test(request_rec *r, const char *path, apr_size_t len)
{
    const struct wish wish = { path, len, .fresh = true, .pool = fp_request_tests_pool(r) };
    const uint64_t began_us = fp_now_us();
    struct fp_held *held;
    const fp_status st = find(r, &wish, &held);

    if (st != FP_OK || was_asked(held))
        fp_note_us(r, fp_now_us() - began_us);
    return st == FP_OK ? fp_request_remember_test(r, wish.pool, held) : NULL;
}

/* The name without double slashes: the kernel takes both for the same. */
static const char *without_slashes(apr_pool_t *p, const char *name)
{
    char *path = apr_palloc(p, strlen(name) + 1), *to = path;

    for (const char *s = name; *s != '\0'; s++) {
        if (s[0] != '/' || s[1] != '/')
            *to++ = *s;
    }
    *to = '\0';
    return path;
}

apr_status_t fp_lookup_test(apr_finfo_t *finfo, request_rec *r, const char *name, apr_int32_t wanted,
                            apr_pool_t *pool)
{
    const struct fp_request *q = NULL;
    apr_status_t rv = AP_DECLINED;
    apr_size_t len;

    if (r != NULL && name[0] == '/' && strlen(name) <= FP_MAX_PATH) {
        const char *path = strstr(name, "//") != NULL ? without_slashes(pool, name) : name;

        len = fp_path_len(path);
        /* Where there is an answer, the request may ask, and the path is in normal form. */
        q = fp_request_earlier(r, path, len);
        if (q == NULL && may_test(r, path, len))
            q = ask_test(r, path, len);
        if (q != NULL)
            rv = fp_finfo_of_name(finfo, q, path, len, wanted, name, pool);
    }
    return rv != AP_DECLINED ? rv : apr_stat(finfo, name, wanted, pool);
}

int fp_lookup_begin(request_rec *r)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    enum fp_count reason;
    const char *path;
    apr_size_t len = 0;
    int status;

    if (settings->engine <= FP_ENGINE_OFF)
        return DECLINED;
    reason = fp_child_client == NULL ? FP_COUNT_DISABLED : reason_not_to_ask(r);
    if (reason != FP_OUTCOMES) {
        fp_note_outcome(r, reason);
        return DECLINED;
    }
    path = normal_path(r, &len);
    if (path == NULL || fp_settings_excludes(settings, path, len)) {
        fp_note_outcome(r, path == NULL ? FP_COUNT_PATH : FP_COUNT_EXCLUDED);
        return DECLINED;
    }
    /* The daemon would refuse the path for the same reason. */
    if (fp_path_depth(path, len) > FP_MAX_STEPS) {
        fp_note_outcome(r, FP_COUNT_DEEP);
        return DECLINED;
    }
    status = look_up(r, settings, path, len);
    fp_counters_set_usage(&(struct fp_usage){ fp_open_files_count(), fp_file_descriptors(), fp_file_mapped() });
    return status;
}
