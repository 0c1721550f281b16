/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "body/reply.h"

#include <errno.h>
#include <http_config.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <sys/stat.h>
#include <util_filter.h>

#include "body/agreement.h"
#include "body/file_bucket.h"
#include "question/again.h"
#include "question/file.h"
#include "question/finfo.h"
#include "question/fresh.h"
#include "question/held.h"
#include "question/lookup.h"
#include "question/request.h"
#include "shared/lease_table.h"
#include "wire/packet.h"

APLOG_USE_MODULE(flashpache);

int fp_reply_take_body(request_rec *r)
{
    ap_allow_standard_methods(r, MERGE_ALLOW, M_GET, M_OPTIONS, M_POST, -1);
    return ap_discard_request_body(r);
}

int fp_reply_refuse(request_rec *r, fp_log_denied *log_denied)
{
    int status = fp_reply_take_body(r);

    if (status != OK)
        return status;
    if (r->finfo.filetype == APR_SOCK)
        log_denied(r, ENXIO); /* that of open() */
    else
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "FP0106: Forbidden: %s is a FIFO",
                      r->filename);
    return HTTP_FORBIDDEN;
}

int fp_reply_begin(request_rec *r, fp_log_denied *log_denied)
{
    const bool again = fp_again_is_by_core(r);

    fp_fresh_end_handler(r);
    /* Opening a FIFO waits for a writer, and stock httpd hangs there. A socket cannot be opened,
     * but a file may have its name by now. */
    if (r->method_number == M_GET && (r->finfo.filetype == APR_PIPE || r->finfo.filetype == APR_SOCK)
        && (again || fp_request_find(r, r->filename) != NULL))
        return fp_reply_refuse(r, log_denied);
    return again ? DECLINED : OK;
}

int fp_reply_by_core(request_rec *r)
{
    if (r->method_number != M_GET || r->finfo.filetype != APR_REG || fp_request_find(r, r->filename) == NULL
        || fp_agreement_is_unchanged(r))
        return DECLINED;
    return fp_again_serve(r);
}

/* Where the name leads to a file now, that one cannot be opened, and core would find the same. */
static int deny(request_rec *r, int error, fp_log_denied *log_denied)
{
    apr_finfo_t now;

    if (apr_stat(&now, r->filename, APR_FINFO_TYPE, r->pool) == APR_SUCCESS)
        log_denied(r, error);
    else
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                      "FP0107: file permissions denied access to %s when it was looked at", r->filename);
    return HTTP_FORBIDDEN;
}

int fp_reply_unreadable(request_rec *r, fp_log_denied *log_denied)
{
    int status = fp_reply_take_body(r);
    struct stat st;
    int fd, error;

    if (status != OK)
        return status;
    fd = fp_open_now(r->filename);
    /* Another process has a lease on it: core waits for that one. */
    if (fd == -1 && errno == EAGAIN)
        return DECLINED;
    error = fd == -1 || fstat(fd, &st) == -1 ? errno : 0;
    fp_close(&fd);
    if (error != 0)
        return deny(r, error, log_denied);
    if (!S_ISREG(st.st_mode))
        return fp_reply_refuse(r, log_denied);
    return fp_agreement_is_approved(r, &st) ? DECLINED : fp_again_serve(r);
}

void fp_reply_set_headers(request_rec *r)
{
    ap_update_mtime(r, r->finfo.mtime);
    ap_set_last_modified(r);
    ap_set_etag(r);
    ap_set_accept_ranges(r);
    ap_set_content_length(r, r->finfo.size);
}

bool fp_reply_look_again(request_rec *r, const struct fp_request *q)
{
    apr_off_t size;
    apr_time_t mtime;

    if (q->held->found == FP_COUNT_LOOK)
        return true;
    if (fp_held_is_stale(q->held) || q->held->file == NULL || !fp_file_look(q->held->file, &size, &mtime))
        return false;
    if (size != r->finfo.size || mtime != r->finfo.mtime) {
        r->finfo.size = size;
        r->finfo.mtime = mtime;
        fp_reply_set_headers(r);
    }
    return true;
}

apr_bucket *fp_reply_body(request_rec *r, const struct fp_request *q, bool map)
{
    const struct fp_held *h = q->held;
    const struct fp_meta *m = fp_step_target(fp_held_last(h));
    apr_bucket_alloc_t *list = r->connection->bucket_alloc;

    if (h->file == NULL)
        return m != NULL && m->size == (apr_uint64_t)r->finfo.size
                   ? fp_file_bucket_of_content(fp_lease_view_contents(h->view), h->answer->content_at,
                                               r->finfo.size, list)
                   : NULL;
    map = !r->header_only && fp_reply_look_again(r, q) && map;
    return fp_file_bucket_create(h->file, 0, (apr_size_t)r->finfo.size, map, list);
}

bool fp_reply_can_be_read(const request_rec *r, apr_bucket *e)
{
    const char *data;
    apr_size_t n;
    apr_status_t rv;

    if (!fp_file_bucket_reads(e) || r->header_only
        || (e->length > FP_FILE_SMALL && apr_table_get(r->headers_in, "Range") != NULL))
        return true;
    rv = apr_bucket_read(e, &data, &n, APR_BLOCK_READ);
    return rv == APR_SUCCESS || rv == APR_EGENERAL;
}

int fp_reply_send(request_rec *r, apr_bucket_brigade *bb)
{
    conn_rec *c = r->connection;
    apr_status_t rv;

    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_eos_create(c->bucket_alloc));
    rv = ap_pass_brigade(r->output_filters, bb);
    apr_brigade_cleanup(bb);
    if (rv == APR_SUCCESS || r->status != HTTP_OK || c->aborted)
        return OK;
    /* The body is cut. mod_ssl leaves the connection as it is, and the next response would be part of it. */
    if (rv != AP_FILTER_ERROR) {
        c->keepalive = AP_CONN_CLOSE;
        c->aborted = 1;
    }
    ap_log_rerror(APLOG_MARK, APLOG_DEBUG, rv, r, "FP0102: sending %s failed", r->filename);
    return AP_FILTER_ERROR;
}

/* Asks once more, after all that httpd has decided. It decided by a file of that name, as stock does before it opens
 * what has the name then. */
static bool renew(request_rec *r, const struct fp_request **found, int *status_r)
{
    const struct fp_request *before = *found;
    const struct fp_meta *m;

    if (!fp_lookup_open(r, found, status_r))
        return false;
    m = fp_step_target(fp_held_last((*found)->held));
    if (m != NULL && S_ISREG(m->mode) && fp_agreement_is_same_way(before, *found))
        fp_finfo_fill(&r->finfo, m, r->filename, r->pool);
    return true;
}

bool fp_reply_may_serve(request_rec *r, const struct fp_request **found, bool plain, fp_log_denied *log_denied,
                        int *status_r)
{
    const struct fp_request *q = *found;

    *status_r = q != NULL ? fp_lookup_refuse_stale(r, q) : DECLINED;
    if (*status_r != DECLINED)
        return false;
    if (plain && q != NULL && (fp_held_is_unopened(q->held) || !fp_agreement_still_holds(r, q))) {
        if (!renew(r, found, status_r))
            return false;
        q = *found;
    }
    if (!plain)
        *status_r = fp_reply_by_core(r);
    else if (q == NULL)
        *status_r = DECLINED;
    /* Core reuses one request's walk for another of the family. */
    else if (fp_agreement_has_rules(r, FP_RULES_OTHER) || fp_request_any(r, fp_agreement_went_elsewhere, q))
        *status_r = fp_again_serve_elsewhere(r);
    else if (!fp_agreement_is_same(r, q))
        *status_r = fp_again_serve(r);
    else if (!fp_held_has_file(q->held))
        *status_r = fp_reply_unreadable(r, log_denied);
    else if (fp_agreement_has_rules(r, FP_RULES_UNKNOWN))
        *status_r = fp_again_serve(r);
    else
        return true;
    return false;
}
