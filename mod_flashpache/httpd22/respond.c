/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd22/respond.h"

#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdbool.h>

#include "body/file_bucket.h"
#include "body/reply.h"
#include "question/again.h"
#include "question/file.h"
#include "question/held.h"
#include "question/request.h"

APLOG_USE_MODULE(flashpache);

/*
 * True for a file that core's handler would open for GET or HEAD, and send as it is. Core handles POST,
 * path-info, Content-MD5 (which it makes of its own descriptor), and a file too large for one bucket.
 */
static bool is_plain(const request_rec *r)
{
    const core_dir_config *d = ap_get_core_module_config(r->per_dir_config);

    return r->method_number == M_GET && r->finfo.filetype == APR_REG
           && (apr_uint64_t)r->finfo.size <= APR_SIZE_MAX / 2
           && (r->path_info == NULL || r->path_info[0] == '\0') && !(d->content_md5 & 1);
}

static bool may_map(const request_rec *r, const struct fp_request *q)
{
    const core_dir_config *d = ap_get_core_module_config(r->per_dir_config);
    const struct fp_meta *m = fp_step_target(fp_held_last(q->held));

    return q->held->file != NULL && d->enable_mmap != ENABLE_MMAP_OFF && r->finfo.size >= FP_FILE_MAP_LEAST
           && fp_file_may_be_mapped(q->held->file, r->filename, m->dev, m->ino);
}

static int send_file(request_rec *r, const struct fp_request *q)
{
    apr_bucket_brigade *bb;
    apr_bucket *e;
    int condition;

    fp_reply_set_headers(r);
    condition = ap_meets_conditions(r);
    /* 2.0's core returns it, and an error response follows. */
    if (condition != OK && FP_CONDITION_IS_RETURNED)
        return condition;
    bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    if (condition != OK) {
        r->status = condition;
        return fp_reply_send(r, bb);
    }
    e = fp_reply_body(r, q, !r->header_only && may_map(r, q));
    if (e == NULL)
        return fp_again_serve(r);
    APR_BRIGADE_INSERT_TAIL(bb, e);
    if (!fp_reply_can_be_read(r, e)) {
        apr_brigade_cleanup(bb);
        return fp_again_serve(r);
    }
    return fp_reply_send(r, bb);
}

static void log_denied(request_rec *r, int error)
{
    ap_log_rerror(APLOG_MARK, APLOG_ERR, error, r, "file permissions deny server access: %s", r->filename);
}

int fp_respond(request_rec *r)
{
    const struct fp_request *q;
    int status;

    status = fp_reply_begin(r, log_denied);
    if (status != OK)
        return status;
    q = fp_request_find(r, r->filename);
    if (!fp_reply_may_serve(r, &q, is_plain(r), log_denied, &status))
        return status;
    status = fp_reply_take_body(r);
    return status != OK ? status : send_file(r, q);
}
