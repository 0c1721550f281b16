/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/request.h"

#include <http_config.h>
#include <http_log.h>
#include <http_request.h>
#include <string.h>

#include "base/clock.h"
#include "httpd13/counters.h"
#include "httpd13/htaccess.h"
#include "httpd13/lookup13.h"
#include "httpd13/path_info.h"
#include "httpd13/settings.h"
#include "question/held.h"
#include "question/shared.h"
#include "question/trouble.h"
#include "shared/client.h"

#define SILENCE_SECONDS 10 /* between two warnings of a child about missing answers */

struct fp_request *fp_request_of(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &flashpache_module);
}

/* ---- after this httpd's own changes ---- */

static bool may_write(const request_rec *r)
{
    switch (r->method_number) {
    case M_GET:
    case M_OPTIONS:
    case M_TRACE:
    case M_PROPFIND: return false;
    default: return true;
    }
}

/* True in a request of this connection that may change files, and after it, while an answer of before may be in
 * use. */
static bool has_written(const request_rec *r)
{
    static bool writing;
    static uint64_t wrote_ms; /* when the next request came after it; 0: there was none */

    if (r->main == NULL && r->prev == NULL) {
        if (writing)
            wrote_ms = fp_now_ms();
        if (r->connection->keepalives == 0)
            wrote_ms = 0;
        writing = false;
    }
    writing = writing || may_write(r);
    return writing || (wrote_ms != 0 && fp_shared_may_predate(fp_child_client, wrote_ms));
}

/* True if this request follows another one's handler, which may have changed files, or is a part of its
 * page. A directory's handler only looks for its index. */
static bool follows_handler(const request_rec *r)
{
    for (r = r->prev != NULL ? r->prev : r->main; r != NULL; r = r->prev != NULL ? r->prev : r->main) {
        if (!S_ISDIR(r->finfo.st_mode))
            return true;
    }
    return false;
}

/* ---- asking ---- */

/* The reason why this request is served without asking, or FP_OUTCOMES. */
static enum fp_count reason_not_to_ask(const request_rec *r, const struct fp_settings *settings,
                                       const char *path, size_t len)
{
    if (r->method_number != M_GET && r->method_number != M_POST && r->method_number != M_OPTIONS)
        return FP_COUNT_METHOD;
    if (len < 2)
        return FP_COUNT_PATH;
    if (fp_path_depth(path, len) > FP_MAX_STEPS)
        return FP_COUNT_DEEP;
    return fp_settings_excludes(settings, path, len) ? FP_COUNT_EXCLUDED : FP_OUTCOMES;
}

struct question {
    const struct fp_settings *settings;
    const char *path;
    size_t len;
    bool fresh;
};

static void note(request_rec *r, enum fp_count what)
{
    fp_counters13_add(what);
    ap_table_setn(r->notes, "flashpache", fp_outcomes[what].word);
    if (fp_outcomes[what].reason != NULL)
        ap_table_setn(r->notes, "flashpache-reason", fp_outcomes[what].reason);
}

/* Warns about a daemon that is not trusted, or that does not answer, and names the way out. */
static void warn(const request_rec *r, const struct fp_settings *settings, const char *path, fp_status st)
{
    if (st == FP_FOREIGN)
        ap_log_rerror(APLOG_MARK, APLOG_NOERRNO | APLOG_ERR, r,
                      FP_TEXT_NOT_TRUSTED("flashpached.socket or as root"), settings->socket,
                      (unsigned)fp_client_last(fp_child_client).maker);
    else if (st == FP_ELSEWHERE)
        ap_log_rerror(APLOG_MARK, APLOG_NOERRNO | APLOG_ERR, r, FP_TEXT_ELSEWHERE(""), settings->socket,
                      fp_sight_text(fp_client_last(fp_child_client).difference));
    else
        ap_log_rerror(APLOG_MARK, APLOG_NOERRNO | APLOG_WARNING, r, FP_TEXT_NO_ANSWER ": " FP_TEXT_AS_STOCK,
                      settings->socket, path, fp_outcomes[fp_outcome_of_failure(st)].reason,
                      fp_trouble_text(fp_child_client, st));
}

static void note_failure(request_rec *r, const struct fp_settings *settings, const char *path, fp_status st)
{
    static time_t last;

    note(r, fp_outcome_of_failure(st));
    /* A daemon that is down is not worth a line for each request. */
    if (st == FP_REFUSED || st == FP_TOODEEP || r->request_time - last < SILENCE_SECONDS)
        return;
    last = r->request_time;
    warn(r, settings, path, st);
}

/* ---- what core's walk finds ---- */

static void release(void *data)
{
    fp_held_end(((struct fp_request *)data)->held);
}

/* Does what get_path_info() would do, so core's walk has nothing to do there. With a link's mode core does
 * not look for an absent file, and allows it. */
static void fill(request_rec *r, struct fp_request *q, bool fresh)
{
    const struct fp_path_info found = fp_path_info_find(q->held, r->filename);

    if (found.found == FP_FOUND_UNKNOWN)
        return;
    if (found.meta != NULL)
        fp_path_info_fill(&r->finfo, found.meta);
    if (found.found != FP_FOUND_NOTHING) {
        r->path_info = ap_pstrdup(r->pool, r->filename + found.cut);
        r->filename[found.cut] = '\0';
    }
    if (found.found != FP_FOUND_FILE) {
        r->finfo.st_mode = S_IFLNK;
        q->disguised = true;
    }
    q->filename = ap_pstrdup(r->pool, r->filename);
    q->access_left = fp_htaccess_inject(r, q->held, fresh);
    if (q->disguised)
        fp_counters13_add(FP_COUNT_ABSENT);
}

static void *copy(pool *p, const void *data, size_t size)
{
    return memcpy(ap_palloc(p, (int)size), data, size);
}

/* The request holds the answer from now on. */
static void use(request_rec *r, const struct fp_held *held, bool fresh)
{
    struct fp_request *q = ap_pcalloc(r->pool, sizeof(*q));

    q->held = copy(r->pool, held, sizeof(*held));
    q->held->answer = copy(r->pool, held->answer, fp_answer_size(held->answer));
    q->held->path = copy(r->pool, held->path, held->path_len);
    ap_register_cleanup(r->pool, q, release, ap_null_cleanup);
    ap_set_module_config(r->request_config, &flashpache_module, q);
    fill(r, q, fresh);
}

/* Signals that end the child, and timeouts that leave by longjmp(), wait meanwhile. */
static void look_up(request_rec *r, const struct question *q)
{
    const uint64_t began_us = fp_now_us();
    struct fp_held held;
    fp_status st;

    ap_block_alarms();
    st = fp_lookup13(q->path, q->len, q->fresh, &held);
    if (st == FP_OK)
        use(r, &held, q->fresh);
    ap_unblock_alarms();
    if (st != FP_OK || held.found != FP_COUNT_LEASE)
        ap_table_setn(r->notes, "flashpache-us",
                      ap_psprintf(r->pool, "%lu", (unsigned long)(fp_now_us() - began_us)));
    if (st == FP_OK)
        note(r, held.found);
    else
        note_failure(r, q->settings, q->path, st);
}

void fp_request_ask(request_rec *r, bool rewritten)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    const bool wrote = has_written(r);
    char path[FP_MAX_PATH + 1];
    struct question q = { settings, path, 0, wrote || rewritten || follows_handler(r) };
    enum fp_count reason;

    if (settings->engine != 1)
        return;
    if (fp_child_client == NULL)
        reason = FP_COUNT_DISABLED;
    else if (r->filename == NULL || r->filename[0] != '/' || r->proxyreq != NOT_PROXY)
        reason = FP_COUNT_NOFILE;
    else if (r->finfo.st_mode != 0)
        reason = FP_COUNT_KNOWN;
    else {
        q.len = fp_path_info_normalise(r->filename, path);
        reason = reason_not_to_ask(r, settings, path, q.len);
    }
    if (reason != FP_OUTCOMES)
        note(r, reason);
    else
        look_up(r, &q);
}

int fp_request_undisguise(request_rec *r)
{
    struct fp_request *q = fp_request_of(r);

    if (q != NULL && q->disguised) {
        r->finfo.st_mode = 0;
        q->disguised = false;
    }
    return DECLINED;
}

/* ---- the log ---- */

static void set_environment(request_rec *r, const char *name, const char *note_name)
{
    const char *value = ap_table_get(r->notes, note_name);

    if (value != NULL)
        ap_table_setn(r->subprocess_env, name, value);
}

int fp_request_log(request_rec *r)
{
    for (; r != NULL; r = r->next) {
        set_environment(r, "FLASHPACHE", "flashpache");
        set_environment(r, "FLASHPACHE_REASON", "flashpache-reason");
    }
    return DECLINED;
}
