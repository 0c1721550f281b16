/* SPDX-License-Identifier: Apache-2.0 */
#define CORE_PRIVATE
#include "config.h"
#include "httpd13/respond.h"

#include <stdbool.h>

#include <errno.h>
#include <http_config.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <string.h>
#include <unistd.h>

#include "httpd13/lookup13.h"
#include "httpd13/path_info.h"
#include "httpd13/request.h"
#include "httpd13/settings.h"
#include "question/file.h"
#include "question/held.h"
#include "shared/contents.h"
#include "shared/lease_table.h"

#define CHUNK ((size_t)64 * 1024) /* bytes of a file that are read at once */

/* The bytes to send: a content in memory, or a descriptor that is read by its offset in pieces. */
struct body {
    char *text;  /* the whole content, or a buffer for a piece */
    size_t size; /* the content's */
    int fd;      /* -1: text is all */
};

/* True for a file that core's handler would open for GET or HEAD. Content-MD5 is made of the file that
 * core opens. */
static bool is_plain(const request_rec *r)
{
    const core_dir_config *d = ap_get_module_config(r->per_dir_config, &core_module);

    return r->method_number == M_GET && S_ISREG(r->finfo.st_mode)
           && (r->path_info == NULL || r->path_info[0] == '\0') && !(d->content_md5 & 1);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size
           && a->st_mtime == b->st_mtime && a->st_ctime == b->st_ctime;
}

/* True if the answer has the file that core's walk approved. */
static bool has_file_of(const request_rec *r, const struct fp_request *q)
{
    const struct fp_meta *m = fp_held_target(q->held);
    struct stat st;

    if (m == NULL || !fp_held_has_file(q->held) || strcmp(q->filename, r->filename) != 0)
        return false;
    fp_path_info_fill(&st, m);
    return is_same(&st, &r->finfo);
}

static bool has_links(const struct fp_held *held)
{
    for (unsigned i = 0; i < held->answer->n_steps; i++) {
        if (S_ISLNK(held->answer->steps[i].self.mode))
            return true;
    }
    return false;
}

/* True if an access file lies on the way, whose Options may restrict links. */
static bool has_access_files(const struct fp_held *held)
{
    for (unsigned i = 0; i < held->answer->n_steps && fp_step_is_dir(&held->answer->steps[i]); i++) {
        for (unsigned j = 0; j < held->answer->n_names; j++) {
            if (held->answer->steps[i].access[j].status != FP_ABSENT)
                return true;
        }
    }
    return false;
}

static bool checks_links(const request_rec *r, const struct fp_held *held)
{
    return has_links(held) && (fp_settings_of(r->server)->restricts_links || has_access_files(held));
}

/*
 * Core checked links and opened access files by name, after the daemon's look. If a link was switched in
 * between, core applied one release's rules, and the answer has the other's file. So the name must lead to
 * this file once more. So it must after a change, as httpd may have read other files meanwhile.
 */
static bool may_differ_from_rules(const request_rec *r, const struct fp_request *q)
{
    struct stat now;

    if (!q->access_left && !checks_links(r, q->held) && fp_held_is_unchanged(q->held))
        return false;
    return stat(r->filename, &now) == -1 || !is_same(&now, &r->finfo);
}

/* A file that is written in place changes while its answer is used. It is sent at its length of now, but
 * for another machine's file, where looking might wait. */
static void look_again(request_rec *r, const struct fp_held *held)
{
    struct stat now;

    if (held->file == NULL || !fp_file_is_local(held->file)
        || fstat(fp_file_descriptor(held->file), &now) == -1)
        return;
    r->finfo.st_size = now.st_size;
    r->finfo.st_mtime = now.st_mtime;
}

static void give_back(void *data)
{
    const struct body *b = data;

    fp_copy_give_back(b->text, b->size);
}

/* False: the content was overwritten, or memory is out. */
static bool copy_content(request_rec *r, const struct fp_held *held, struct body *b)
{
    b->size = (size_t)r->finfo.st_size;
    b->text = fp_copy_take(b->size);
    ap_register_cleanup(r->pool, b, give_back, ap_null_cleanup);
    return b->text != NULL
           && fp_contents_view_read(fp_lease_view_contents(held->view), held->answer->content_at, b->text, b->size);
}

static bool prepare(request_rec *r, const struct fp_held *held, struct body *b)
{
    const size_t size = (size_t)r->finfo.st_size;

    b->fd = held->file != NULL ? fp_file_descriptor(held->file) : -1;
    if (r->header_only)
        return true;
    if (held->file == NULL)
        return copy_content(r, held, b);
    b->text = ap_palloc(r->pool, (int)(size < CHUNK ? size + 1 : CHUNK));
    return true;
}

/* The client was promised more bytes than the file has now: only the connection's end tells it. */
static void give_up(request_rec *r)
{
    r->connection->keepalive = 0;
}

/* Others have the same descriptor, and with it the same offset: nothing reads by that. */
static void send_part(request_rec *r, const struct body *b, long offset, long length)
{
    if (b->fd == -1) {
        ap_send_mmap(b->text, r, (size_t)offset, (size_t)length);
        return;
    }
    while (length > 0 && !r->connection->aborted) {
        ssize_t n = pread(b->fd, b->text, (size_t)length < CHUNK ? (size_t)length : CHUNK, offset);

        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0) {
            give_up(r);
            return;
        }
        ap_send_mmap(b->text, r, 0, (size_t)n);
        offset += n;
        length -= n;
    }
}

/* As core's handler does. */
static int send_file(request_rec *r, const struct body *b)
{
    long offset, length;
    int status;

    ap_update_mtime(r, r->finfo.st_mtime);
    ap_set_last_modified(r);
    ap_set_etag(r);
    ap_table_setn(r->headers_out, "Accept-Ranges", "bytes");
    status = ap_meets_conditions(r);
    if (status == OK)
        status = ap_set_content_length(r, r->finfo.st_size);
    if (status != OK)
        return status;
    if (!ap_set_byterange(r)) {
        ap_send_http_header(r);
        if (!r->header_only)
            send_part(r, b, 0, r->finfo.st_size);
        return OK;
    }
    ap_send_http_header(r);
    while (!r->header_only && ap_each_byterange(r, &offset, &length))
        send_part(r, b, offset, length);
    return OK;
}

int fp_respond(request_rec *r)
{
    struct fp_request *q = fp_request_of(r);
    struct body *b;
    int status;

    if (q == NULL || q->filename == NULL || !is_plain(r) || !has_file_of(r, q) || may_differ_from_rules(r, q))
        return DECLINED;
    look_again(r, q->held);
    b = ap_pcalloc(r->pool, sizeof(*b));
    if (!prepare(r, q->held, b))
        return DECLINED;
    status = ap_discard_request_body(r);
    if (status != OK)
        return status;
    r->allowed |= (1 << M_GET) | (1 << M_OPTIONS);
    return send_file(r, b);
}
