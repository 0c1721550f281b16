/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shadow.h"

#include <apr_atomic.h>
#include <apr_strings.h>
#include <http_log.h>
#include <http_request.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "access/htaccess.h"
#include "question/file.h"
#include "question/held.h"
#include "question/lookup.h"
#include "question/request.h"
#include "setup/settings.h"
#include "status/counters.h"
#include "walk/walk.h"

APLOG_USE_MODULE(flashpache);

#define LOOKS_AGAIN   3
#define PAUSE         apr_time_from_msec(10) /* after this the daemon has processed the event of a change */
#define MOST_A_SECOND 5u /* lines in the log of one child */

/* The result of one look at a name. */
struct sight {
    apr_status_t status;
    apr_finfo_t finfo; /* valid where the name exists */
};

/* A name that core asks about. */
struct point {
    request_rec *r;
    struct fp_request *q;
    const char *path;
    apr_int32_t wanted;     /* members that a stat asks for */
    const char *dir, *name; /* of an access file; NULL: the point is a stat */
};

/* ---- both results ---- */

static void stock_sight(const struct point *p, struct sight *s)
{
    s->status = apr_stat(&s->finfo, p->path, p->name != NULL ? APR_FINFO_MIN : p->wanted, p->r->pool);
}

static void our_access(const struct point *p, struct sight *s)
{
    const struct fp_access *x;
    fp_status st = fp_htaccess_find(p->r, p->q, p->dir, p->name, &x);

    if (st != FP_OK) {
        s->status = st == FP_ABSENT || st == FP_NOTDIR ? fp_status_to_errno(st) : AP_DECLINED;
        return;
    }
    s->status = APR_SUCCESS;
    s->finfo.valid = APR_FINFO_MIN;
    s->finfo.filetype = S_ISREG(x->mode) ? APR_REG : APR_UNKFILE;
    s->finfo.device = x->dev;
    s->finfo.inode = x->ino;
    s->finfo.size = (apr_off_t)x->size;
    s->finfo.mtime = fp_file_time(x->mtime.sec, x->mtime.nsec);
}

/* Status AP_DECLINED: Flashpache would have left this name to httpd. */
static void our_sight(const struct point *p, struct sight *s)
{
    s->finfo.valid = 0;
    if (p->name != NULL)
        our_access(p, s);
    else
        s->status = fp_walk_answer_stat(&s->finfo, p->r, p->q, p->wanted);
}

/* ---- comparing ---- */

static bool is_there(const struct sight *s)
{
    return s->status == APR_SUCCESS || s->status == APR_INCOMPLETE;
}

/* A directory's size and time change with its entries, and no response depends on them. */
static bool same_file(const apr_finfo_t *a, const apr_finfo_t *b)
{
    if (a->filetype != b->filetype || a->inode != b->inode || a->device != b->device)
        return false;
    return a->filetype == APR_DIR || (a->size == b->size && a->mtime == b->mtime);
}

/* True if the open descriptor for the response is that of httpd's file. */
static bool same_descriptor(const struct point *p, const apr_finfo_t *stock)
{
    int fd = p->q->held->file != NULL ? fp_file_descriptor(p->q->held->file) : -1;
    struct stat st;

    if (fd == -1 || p->name != NULL || stock->filetype != APR_REG
        || fp_path_len(p->path) != p->q->held->path_len || fstat(fd, &st) == -1)
        return true;
    return st.st_ino == stock->inode && st.st_dev == stock->device;
}

static bool same_sight(const struct sight *x, const struct sight *y)
{
    const apr_int32_t rights = APR_FINFO_PROT | APR_FINFO_OWNER;
    const apr_finfo_t *a = &x->finfo, *b = &y->finfo;

    if (!is_there(x) || !is_there(y))
        return x->status == y->status;
    return same_file(a, b)
           && ((a->valid & b->valid & rights) != rights
               || (a->protection == b->protection && a->user == b->user && a->group == b->group));
}

static bool agree(const struct point *p, const struct sight *stock, const struct sight *ours)
{
    if (ours->status == AP_DECLINED)
        return true;
    /* Core itself tries to open a file that the daemon could not open. */
    if (p->name != NULL && is_there(ours) && !is_there(stock))
        return !APR_STATUS_IS_ENOENT(stock->status) && !APR_STATUS_IS_ENOTDIR(stock->status);
    return same_sight(stock, ours) && (!is_there(stock) || same_descriptor(p, &stock->finfo));
}

/* True if a second look finds no difference; else stock and ours have the second look's results. */
static bool was_a_change(const struct point *p, struct sight *stock, struct sight *ours)
{
    for (int i = 0; i < LOOKS_AGAIN; i++) {
        const struct sight before = *stock;

        apr_sleep(PAUSE);
        if (!fp_lookup_renew(p->r, p->q))
            return true; /* without an answer httpd would serve its own result */
        our_sight(p, ours);
        stock_sight(p, stock);
        if (agree(p, stock, ours))
            return true;
        if (same_sight(&before, stock))
            return false; /* nothing has changed that the daemon could know by now */
    }
    return false;
}

/* ---- reporting ---- */

/* False above MOST_A_SECOND; *left_out_r: the number left out since the last line. */
static bool may_log(apr_uint32_t *left_out_r)
{
    static apr_uint32_t second, logged, left_out;
    apr_uint32_t now = (apr_uint32_t)apr_time_sec(apr_time_now());
    apr_uint32_t before = apr_atomic_read32(&second);

    if (now != before && apr_atomic_cas32(&second, now, before) == before)
        apr_atomic_set32(&logged, 0);
    if (apr_atomic_inc32(&logged) >= MOST_A_SECOND) {
        apr_atomic_inc32(&left_out);
        return false;
    }
    *left_out_r = apr_atomic_xchg32(&left_out, 0);
    return true;
}

static const char *kind_of(apr_filetype_e type)
{
    switch (type) {
    case APR_REG: return "file";
    case APR_DIR: return "directory";
    case APR_LNK: return "link";
    default: return "special file";
    }
}

static const char *describe(apr_pool_t *p, const struct sight *s)
{
    const apr_finfo_t *f = &s->finfo;
    char buf[128];

    if (!is_there(s))
        return apr_pstrdup(p, apr_strerror(s->status, buf, sizeof(buf)));
    return apr_psprintf(p,
                        "%s of %" APR_OFF_T_FMT " bytes, modified %" APR_TIME_T_FMT ".%06d, "
                        "device %" APR_UINT64_T_FMT ", inode %" APR_UINT64_T_FMT "%s",
                        kind_of(f->filetype), f->size, apr_time_sec(f->mtime), (int)apr_time_usec(f->mtime),
                        (apr_uint64_t)f->device, (apr_uint64_t)f->inode,
                        (f->valid & APR_FINFO_PROT) == 0
                            ? ""
                            : apr_psprintf(p, ", protection %x, owner %u:%u", (unsigned)f->protection,
                                           (unsigned)f->user, (unsigned)f->group));
}

static void log_difference(const struct point *p, const struct sight *stock, const struct sight *ours,
                           apr_uint32_t left_out)
{
    apr_pool_t *pool = p->r->pool;
    const char *more = left_out == 0 ? "" : apr_psprintf(pool, " (%u more since the last line)", left_out);

    ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, p->r,
                  "FP0120: shadow: %s: %s: httpd found: %s; "
                  "Flashpache would have said: %s%s%s",
                  p->r->uri, p->path, describe(pool, stock), describe(pool, ours),
                  is_there(stock) && !same_descriptor(p, &stock->finfo) ? ", and sent another file" : "",
                  more);
}

static void compare(const struct point *p, struct sight *stock)
{
    const unsigned host = fp_settings_of(p->r->server)->host;
    struct sight ours;
    apr_uint32_t left_out = 0;

    our_sight(p, &ours);
    if (ours.status == AP_DECLINED)
        return;
    if (!p->q->compared) {
        p->q->compared = true;
        fp_count(host, FP_COUNT_COMPARED);
        apr_table_setn(p->r->notes, "flashpache-shadow", "same");
    }
    if (agree(p, stock, &ours) || was_a_change(p, stock, &ours))
        return;
    if (!p->q->different)
        fp_count(host, FP_COUNT_DIFFERENT);
    p->q->different = true;
    apr_table_setn(p->r->notes, "flashpache-shadow", "different");
    if (may_log(&left_out))
        log_difference(p, stock, &ours, left_out);
}

/* ---- the hooks ---- */

apr_status_t fp_shadow_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted)
{
    struct point p = { .r = r, .q = fp_request_shadow(r), .path = r->filename, .wanted = wanted };
    struct sight stock;
    apr_status_t found;

    if (p.q == NULL)
        return AP_DECLINED;
    found = stock.status = apr_stat(finfo, r->filename, wanted, r->pool);
    stock.finfo = *finfo;
    compare(&p, &stock);
    return found;
}

apr_status_t fp_shadow_htaccess(request_rec *r, const char *dir, const char *name, ap_configfile_t **file,
                                const char **full_name)
{
    struct point p = { .r = r, .q = fp_request_shadow(r), .dir = dir, .name = name };
    struct sight stock;
    apr_status_t opened;

    if (p.q == NULL)
        return AP_DECLINED;
    *full_name = p.path = ap_make_full_path(r->pool, dir, name);
    opened = ap_pcfg_openfile(file, r->pool, *full_name);
    stock.status = opened;
    if (opened == APR_SUCCESS)
        stock_sight(&p, &stock);
    compare(&p, &stock);
    return opened;
}
