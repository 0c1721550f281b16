/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "body/respond.h"

#include <ap_mpm.h>
#include <apr_strings.h>
#include <apu_version.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <http_request.h>
#include <sys/stat.h>
#include <util_filter.h>

#include "body/agreement.h"
#include "body/file_bucket.h"
#include "body/reply.h"
#include "question/again.h"
#include "question/file.h"
#include "question/finfo.h"
#include "question/held.h"
#include "question/lookup.h"
#include "question/request.h"
#include "walk/walk.h"
#include "wire/packet.h"

APLOG_USE_MODULE(flashpache);

#define FIRST_PIECE ((apr_off_t)16 * 1024) /* read before the header; less than FlushMaxThreshold */
#define PIECE       ((apr_size_t)32 * 1024)
#define CORE_KEEPS  4096 /* bytes; core's output filter holds back less than this */

#define HAS_READ_BUF_SIZE                                                                                    \
    (AP_MODULE_MAGIC_AT_LEAST(20120211, 97) && (APU_MAJOR_VERSION > 1 || APU_MINOR_VERSION >= 6))

/*
 * True for Content-MD5 and entity tags of the content: core makes them by reading the file through
 * its own descriptor.
 */
static bool wants_content(const request_rec *r)
{
    const core_dir_config *d = ap_get_core_module_config(r->per_dir_config);

#ifdef AP_REQUEST_IS_STRONG_ETAG
    if (AP_REQUEST_IS_STRONG_ETAG(r))
        return true;
#endif
#ifdef ETAG_DIGEST
    if ((((d->etag_bits & ~d->etag_remove) | d->etag_add) & ETAG_DIGEST) != 0)
        return true;
#endif
    return (d->content_md5 & 1) != 0;
}

static bool has_path_info(const request_rec *r)
{
    return r->path_info != NULL && r->path_info[0] != '\0';
}

/*
 * True for a file that core's handler would open for GET or HEAD. Core handles POST, path-info that
 * is not accepted and errors, with its rules and log lines. Core also handles a file too large for
 * one bucket, on 32-bit machines.
 */
static bool is_plain(const request_rec *r)
{
    return r->method_number == M_GET && r->finfo.filetype == APR_REG
           && (apr_uint64_t)r->finfo.size <= APR_SIZE_MAX / 2
           && (!has_path_info(r) || r->used_path_info == AP_REQ_ACCEPT_PATH_INFO) && !wants_content(r);
}

static bool is_secondary(const conn_rec *c)
{
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 52)
    return c->master != NULL;
#else
    /* It does not say so, so any may be. */
    (void)c;
    return ap_find_linked_module("mod_http2.c") != NULL || ap_find_linked_module("mod_h2.c") != NULL;
#endif
}

/*
 * True if a filter changes the content. INCLUDES passes on what it has read so far, so the sizes of its reads
 * decide whether the response has a Content-Length.
 */
static bool is_filtered(const request_rec *r)
{
    const ap_filter_t *f = r->output_filters;

    while (f != NULL && f->frec->ftype > AP_FTYPE_RESOURCE)
        f = f->next;
    return f != NULL;
}

/* Bytes of one read of core's bucket: a mapping, or a buffer. */
static apr_size_t core_piece(const request_rec *r)
{
    const core_dir_config *d = ap_get_core_module_config(r->per_dir_config);

    if (d->enable_mmap != ENABLE_MMAP_OFF)
        return FP_FILE_MAP_MOST;
#if HAS_READ_BUF_SIZE
    if (d->read_buf_size > APR_BUCKET_BUFF_SIZE) {
        const apr_size_t most =
            apr_bucket_alloc_aligned_floor(r->connection->bucket_alloc, d->read_buf_size);

        return d->read_buf_size < most ? d->read_buf_size : most;
    }
#endif
    return APR_BUCKET_BUFF_SIZE;
}

/*
 * HTTP/2's secondary connections copy the whole result of one bucket read. There small reads are
 * better than one large mapping, if no filter reads it.
 */
static bool may_map(const request_rec *r)
{
    const core_dir_config *d = ap_get_core_module_config(r->per_dir_config);

    return d->enable_mmap != ENABLE_MMAP_OFF && (!is_secondary(r->connection) || is_filtered(r));
}

/* Below that size a file is never mapped. */
static bool may_map_file(const request_rec *r, const struct fp_request *q)
{
    const struct fp_meta *m = fp_step_target(fp_held_last(q->held));

    return q->held->file != NULL && may_map(r) && r->finfo.size >= FP_FILE_MAP_LEAST && m != NULL
           && fp_file_may_be_mapped(q->held->file, r->filename, m->dev, m->ino);
}

/*
 * Larger files, in bytes, need APR's bucket so that a thread does not wait for the client over all
 * of them. Core of 2.4.47 and later waits over what is mapped, 4 MiB at a time, whoever mapped it.
 * Earlier ones wait over all but APR's buckets.
 */
static apr_off_t most_without_apr_bucket(bool map)
{
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 97)
    return map ? (apr_off_t)FP_FILE_MAP_MOST : FP_FILE_SMALL;
#else
    (void)map;
    return FP_FILE_SMALL;
#endif
}

/* Core uses sendfile for APR's file buckets alone, and they spare an event worker a wait. A stale answer's file system
 * may not be asked, and a new descriptor asks it. To open one costs more than to copy a small file. */
static bool may_use_apr_bucket(const request_rec *r, const struct fp_request *q, bool sendfile)
{
    const struct fp_file *file = q->held->file;
    int async = 0;

    return file != NULL && !fp_held_is_stale(q->held) && !r->header_only && r->main == NULL
           && !is_secondary(r->connection) && r->finfo.size > FP_FILE_SMALL
           && (sendfile || (ap_mpm_query(AP_MPMQ_IS_ASYNC, &async) == APR_SUCCESS && async));
}

/* APR reads 8 KB at a time, and a file system that is not local may be asked each time. */
static void read_more_at_once(const request_rec *r, apr_bucket *e, bool filtered)
{
#if HAS_READ_BUF_SIZE
    const apr_size_t set = ap_get_read_buf_size(r);

    apr_bucket_file_set_buf_size(e, filtered ? core_piece(r) : set > PIECE ? set : PIECE);
#else
    /* Earlier cores read sixteen pieces before they send any. */
    (void)r;
    (void)e;
    (void)filtered;
#endif
}

/* Core reads such a file by its descriptor's offset, so each response opens one of its own. It may fail. */
static apr_status_t open_own(const request_rec *r, const struct fp_file *file, bool sendfile, apr_file_t **own)
{
    char name[FP_FD_NAME];

    fp_fd_name(name, fp_file_descriptor(file));
    return apr_file_open(own, name, APR_FOPEN_READ | (sendfile ? APR_FOPEN_SENDFILE_ENABLED : 0), 0, r->pool);
}

/* False: no such bucket is wanted, or none can be opened. Nothing was inserted then. */
static bool insert_apr_bucket(request_rec *r, const struct fp_request *q, apr_bucket_brigade *bb, bool filtered)
{
    const core_dir_config *d = ap_get_core_module_config(r->per_dir_config);
    const bool sendfile = d->enable_sendfile == ENABLE_SENDFILE_ON;
    struct fp_file *file = q->held->file;
    apr_file_t *own;
    apr_off_t first;
    apr_bucket *e;
    bool map;

    if (!may_use_apr_bucket(r, q, sendfile))
        return false;
    map = may_map_file(r, q);
    if (!sendfile && r->finfo.size <= most_without_apr_bucket(map))
        return false;
    (void)fp_reply_look_again(r, q);
    /* A file system of another machine may have died under the answer. A read before
     * the header usually shows it (fp_reply_can_be_read). */
    first = fp_file_is_local(file) ? 0 : filtered ? (apr_off_t)core_piece(r) : FIRST_PIECE;
    if (r->finfo.size <= first || open_own(r, file, sendfile, &own) != APR_SUCCESS)
        return false;
    e = apr_brigade_insert_file(bb, own, first, r->finfo.size - first, r->pool);
    if (first > 0)
        APR_BRIGADE_INSERT_HEAD(
            bb, fp_file_bucket_create(file, 0, (apr_size_t)first, false, r->connection->bucket_alloc));
    if (!map)
        apr_bucket_file_enable_mmap(e, 0);
    read_more_at_once(r, e, filtered);
    return true;
}

/*
 * Core sends a file bucket at once, but holds a few KiB of memory back until it has looked for the
 * next request. A small file's client should not wait for that. This thread should not wait for a
 * slow client either.
 */
static void send_now(conn_rec *c)
{
    ap_filter_t *f = c->output_filters;

    if (!c->data_in_output_filters || is_secondary(c))
        return;
    while (f->next != NULL)
        f = f->next;
    if (f->frec == ap_core_output_filter_handle)
        f->frec->filter_func.out_func(f, NULL);
}

static int send_file(request_rec *r, const struct fp_request *q)
{
    conn_rec *c = r->connection;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, c->bucket_alloc);
    int condition = ap_meets_conditions(r);
    const bool filtered = is_filtered(r);
    int status;

    if (condition != OK) {
        r->status = condition;
    } else if (!insert_apr_bucket(r, q, bb, filtered)) {
        apr_bucket *body = fp_reply_body(r, q, !r->header_only && may_map_file(r, q));

        if (body == NULL)
            return fp_again_serve(r);
        APR_BRIGADE_INSERT_TAIL(bb, body);
    }
    if (!APR_BRIGADE_EMPTY(bb) && filtered)
        fp_file_bucket_set_piece(APR_BRIGADE_FIRST(bb), core_piece(r));
    if (!APR_BRIGADE_EMPTY(bb) && !fp_reply_can_be_read(r, APR_BRIGADE_FIRST(bb))) {
        apr_brigade_cleanup(bb);
        return fp_again_serve(r);
    }
    status = fp_reply_send(r, bb);
    if (condition == OK && r->finfo.size < CORE_KEEPS && !r->header_only)
        send_now(c);
    return status;
}

static void log_denied(request_rec *r, int error)
{
    ap_log_rerror(__FILE__, __LINE__, core_module.module_index, APLOG_ERR, error, r,
                  "AH00132: file permissions deny server access: %s", r->filename);
}

/* OK: *q_r is the answer about the file in front of the path-info. */
static int take_file(request_rec *r, const struct fp_request **q_r)
{
    const struct fp_request *q = fp_lookup_file(r);
    const struct fp_meta *m = q != NULL ? fp_step_target(fp_held_last(q->held)) : NULL;
    const struct fp_request *walked = fp_request_of(r);

    if (q == NULL)
        return DECLINED;
    if (m != NULL && (S_ISFIFO(m->mode) || S_ISSOCK(m->mode)))
        return fp_reply_refuse(r, log_denied);
    /* Core walked by the answer for the longer path, which must lead to the same file. */
    if (m == NULL || walked->held->answer->n_steps != q->held->answer->n_steps || fp_agreement_went_elsewhere(walked, q))
        return fp_again_serve(r);
    /* Where core does not know the file, it does not show whether links need their target's owner
     * (fp_walk_restricted). So core handles such a path. */
    for (unsigned i = 0; i < q->held->answer->n_steps; i++) {
        if (fp_walk_is_foreign(&q->held->answer->steps[i]))
            return DECLINED;
    }
    fp_finfo_fill(&r->finfo, m, r->filename, r->pool);
    *q_r = q;
    return OK;
}

static int refuse_link(request_rec *r)
{
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r,
                  "FP0105: Symbolic link not allowed: a link "
                  "on the way to %s and its target have different owners",
                  r->filename);
    return HTTP_FORBIDDEN;
}

/*
 * Core did not know the file when it looked at the links on the way (MultiViews), so it did not show which ones
 * are restricted. It shows that where it walks to the file's own name, whose answer must be about the same file.
 * DECLINED: all links are allowed. Otherwise the handler's result.
 */
static int check_links(request_rec *r)
{
    void **walk = ap_get_request_note(r, AP_NOTE_DIRECTORY_WALK), *known = *walk;
    const struct fp_request *q;
    request_rec *named;
    int status;

    *walk = NULL;
    named = ap_sub_req_lookup_file(r->filename, r, NULL);
    *walk = known;
    q = fp_request_of(named);
    if (named->status != HTTP_OK)
        status = named->status;
    else if (q == NULL || !fp_agreement_is_same(r, q))
        status = fp_again_serve(r);
    else
        status = fp_walk_restricted(named, q, true) ? refuse_link(r) : DECLINED;
    ap_destroy_sub_req(named);
    return status;
}

int fp_respond(request_rec *r)
{
    const struct fp_request *q;
    bool plain;
    int status;

    status = fp_reply_begin(r, log_denied);
    if (status != OK)
        return status;
    plain = is_plain(r);
    q = fp_request_find(r, r->filename);
    if (q == NULL && plain && has_path_info(r)) {
        status = take_file(r, &q);
        if (q == NULL)
            return status;
    }
    if (!fp_reply_may_serve(r, &q, plain, log_denied, &status))
        return status;
    if (fp_walk_restricted(r, q, true))
        return refuse_link(r);
    status = fp_walk_restricted(r, q, false) ? check_links(r) : DECLINED;
    if (status != DECLINED)
        return status;
    status = fp_reply_take_body(r);
    if (status != OK)
        return status;
    fp_reply_set_headers(r);
    return send_file(r, q);
}
