/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/again.h"

#include <string.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <http_request.h>

#include "question/request.h"

APLOG_USE_MODULE(flashpache);

#define AFRESH_MOST     3 /* times; each may see links before and after yet another change */
/* Of mod_rewrite, in a request's pool: no more rules, and that cookie is set. */
#define REWRITING_ENDED "rewrite_really_last"
#define COOKIE_IS_SET   "_rewrite" /* behind its name */

/* How often the requests that r is part of were begun once more in that way. */
static unsigned times_again(const request_rec *r, enum fp_again how)
{
    unsigned n = 0;

    while ((r = r->prev != NULL ? r->prev : r->main) != NULL)
        n += fp_record_of(r)->again == how;
    return n;
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

/* True if r has the URI that the client asked for: it is that request, or the same once more. */
static bool is_as_asked(const request_rec *r)
{
    while (r->prev != NULL) {
        r = r->prev;
        if (fp_record_of(r)->again == FP_AGAIN_NOT)
            return false;
    }
    return true;
}

static bool may_try(const request_rec *r)
{
    return times_again(r, FP_AGAIN_AFRESH) + times_again(r, FP_AGAIN_BY_CORE) < AFRESH_MOST;
}

static int serve_again(request_rec *r, enum fp_again how)
{
    const bool as_asked = is_as_asked(r);

    fp_record_make(r)->again = how;
    /* The answers of this try are none of the next one's. */
    fp_request_leave_out(r);
    /* Core would reuse the results of its walk by the old answer. */
    *ap_get_request_note(r, AP_NOTE_DIRECTORY_WALK) = NULL;
    if (fp_request_of(r) != NULL)
        fp_request_of(r)->walked = NULL;
    r->htaccess = NULL;
    if (r->main != NULL)
        return look_up_part_again(r);
    /* Where the rules of a server ended rewriting, the URI is still the one of before: they apply again. */
    if (as_asked)
        apr_pool_userdata_setn(NULL, REWRITING_ENDED, NULL, r->pool);
    ap_internal_redirect(as_asked ? r->unparsed_uri
                                  : apr_pstrcat(r->pool, ap_escape_uri(r->pool, r->uri), r->args != NULL ? "?" : NULL,
                                                r->args, NULL),
                         r);
    return OK;
}

static int refuse(const request_rec *r)
{
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                  "FP0130: Forbidden: what leads to %s changes all the time", r->filename);
    return HTTP_FORBIDDEN;
}

int fp_again_serve(request_rec *r)
{
    if (may_try(r))
        return serve_again(r, FP_AGAIN_AFRESH);
    /* Core opens by name, so links may change between its look and its open. */
    return fp_request_restricts_links(r) ? refuse(r) : serve_again(r, FP_AGAIN_BY_CORE);
}

int fp_again_serve_elsewhere(request_rec *r)
{
    return may_try(r) ? serve_again(r, FP_AGAIN_AFRESH) : refuse(r);
}

bool fp_again_is_by_core(const request_rec *r)
{
    /* Subrequests and further redirects of such a request are served so, too. */
    return times_again(r, FP_AGAIN_BY_CORE) != 0;
}

bool fp_again_is_afresh(const request_rec *r)
{
    return times_again(r, FP_AGAIN_AFRESH) != 0;
}

static int is_other(void *value, const char *key, const char *other)
{
    (void)key;
    return strcmp(value, other) != 0;
}

/* Has mod_rewrite set a cookie again that the former try set, and that is gone with its headers. */
static int forget_cookie(void *request, const char *key, const char *value)
{
    request_rec *r = request;
    const apr_table_t *began = fp_record_of(r)->began_err;
    const char *name = apr_pstrmemdup(r->pool, value, strcspn(value, "="));

    if (began == NULL || apr_table_do(is_other, (void *)value, began, key, NULL) != 0)
        apr_pool_userdata_setn(NULL, apr_pstrcat(r->pool, name, COOKIE_IS_SET, NULL), NULL, r->pool);
    return 1;
}

static apr_table_t *table_again(apr_pool_t *p, const apr_table_t *began)
{
    return began != NULL ? apr_table_copy(p, began) : apr_table_make(p, 8);
}

int fp_again_restore(request_rec *r)
{
    const struct fp_record *former = r->prev != NULL ? fp_record_of(r->prev) : NULL;
    struct fp_record *own;

    if (former == NULL)
        return DECLINED;
    own = fp_record_make(r);
    if (former->again == FP_AGAIN_NOT) {
        own->began_env = apr_table_copy(r->pool, r->subprocess_env);
        own->began_err = apr_table_copy(r->pool, r->err_headers_out);
        return DECLINED;
    }
    own->began_env = former->began_env;
    own->began_err = former->began_err;
    apr_table_do(forget_cookie, r, r->err_headers_out, "Set-Cookie", NULL);
    r->subprocess_env = table_again(r->pool, own->began_env);
    r->err_headers_out = table_again(r->pool, own->began_err);
    r->vlist_validator = NULL;
    return DECLINED;
}

int fp_again_name(request_rec *r)
{
    if (r->main != NULL && fp_record_of(r->main)->again != FP_AGAIN_NOT)
        r->uri = r->main->uri;
    return DECLINED;
}

int fp_again_begin(request_rec *r)
{
    /* look_up_part_again(): rules have led to this name already. */
    if (r->main != NULL && fp_record_of(r->main)->again != FP_AGAIN_NOT)
        apr_pool_userdata_setn("", REWRITING_ENDED, NULL, r->pool);
    return OK;
}
