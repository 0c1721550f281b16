/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk.h"

#include <sys/stat.h>

#include "request.h"

static apr_filetype_e type_of(apr_uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return APR_REG;
    case S_IFDIR: return APR_DIR;
    case S_IFLNK: return APR_LNK;
    case S_IFCHR: return APR_CHR;
    case S_IFBLK: return APR_BLK;
    case S_IFIFO: return APR_PIPE;
    case S_IFSOCK: return APR_SOCK;
    default: return APR_UNKFILE;
    }
}

/* APR keeps each class of three bits in a hexadecimal digit. */
static apr_fileperms_t permissions_of(apr_uint32_t mode)
{
    apr_fileperms_t p = (apr_fileperms_t)((mode & S_IRWXO) | (mode & S_IRWXG) << 1
                                          | (mode & S_IRWXU) << 2);

    if (mode & S_ISUID)
        p |= APR_FPROT_USETID;
    if (mode & S_ISGID)
        p |= APR_FPROT_GSETID;
    if (mode & S_ISVTX)
        p |= APR_FPROT_WSTICKY;
    return p;
}

static apr_time_t time_of(const struct fp_time *t)
{
    return apr_time_from_sec(t->sec) + t->nsec / 1000;
}

void fp_walk_fill(apr_finfo_t *finfo, const struct fp_meta *m, const char *name,
                  apr_pool_t *pool)
{
    finfo->pool = pool;
    finfo->fname = name;
    finfo->valid = APR_FINFO_MIN | APR_FINFO_IDENT | APR_FINFO_NLINK | APR_FINFO_OWNER
        | APR_FINFO_PROT | APR_FINFO_CSIZE;
    finfo->protection = permissions_of(m->mode);
    finfo->filetype = type_of(m->mode);
    finfo->user = m->uid;
    finfo->group = m->gid;
    finfo->inode = m->ino;
    finfo->device = m->dev;
    finfo->nlink = (apr_int32_t)m->nlink;
    finfo->size = (apr_off_t)m->size;
    finfo->csize = (apr_off_t)m->blocks * 512;
    finfo->atime = time_of(&m->atime);
    finfo->mtime = time_of(&m->mtime);
    finfo->ctime = time_of(&m->ctime);
}

/* The step that ends at len bytes of the path; NULL where no step does. */
static const struct fp_step *step_at(const struct fp_request *q, apr_size_t len)
{
    for (unsigned i = 0; i < q->n_steps; i++) {
        if (q->steps[i].end == len)
            return &q->steps[i];
    }
    return NULL;
}

/* What stat() says of a name behind the last step. */
static fp_status beyond(const struct fp_step *last)
{
    if (last->status != FP_OK)
        return last->status;
    return last->target_status != FP_OK ? last->target_status : FP_NOTDIR;
}

/* An error that core would read as something else is left to core to find. */
static apr_status_t error_of(fp_status st)
{
    return st == FP_IOERROR ? AP_DECLINED : fp_status_to_errno(st);
}

static apr_status_t tell(apr_finfo_t *finfo, const request_rec *r,
                         const struct fp_meta *m, apr_int32_t wanted)
{
    fp_walk_fill(finfo, m, r->filename, r->pool);
    wanted &= ~APR_FINFO_LINK;
    return (wanted & ~finfo->valid) ? APR_INCOMPLETE : APR_SUCCESS;
}

apr_status_t fp_walk_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted)
{
    const struct fp_request *q = fp_request_of(r);
    const struct fp_step *s;
    apr_size_t len = strlen(r->filename);
    int slash = 0;

    while (len > 1 && r->filename[len - 1] == '/') {
        slash = 1;
        len--;
    }
    if (q == NULL || len > q->len || memcmp(r->filename, q->path, len) != 0)
        return AP_DECLINED;
    s = step_at(q, len);
    if (s == NULL && len > q->steps[q->n_steps - 1].end)
        return error_of(beyond(&q->steps[q->n_steps - 1]));
    if (s == NULL)
        return AP_DECLINED;
    if (s->status != FP_OK)
        return error_of(s->status);
    /* lstat() of a name with a slash behind it follows the link, too. */
    if ((wanted & APR_FINFO_LINK) && !slash)
        return tell(finfo, r, &s->self, wanted);
    if (fp_step_target(s) == NULL)
        return error_of(s->target_status);
    if (slash && !S_ISDIR(fp_step_target(s)->mode))
        return APR_ENOTDIR;
    return tell(finfo, r, fp_step_target(s), wanted);
}
