/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk.h"

#include <sys/stat.h>

#include "file.h"
#include "held.h"
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
    apr_fileperms_t p = (apr_fileperms_t)((mode & S_IRWXO) | (mode & S_IRWXG) << 1 | (mode & S_IRWXU) << 2);

    if (mode & S_ISUID)
        p |= APR_FPROT_USETID;
    if (mode & S_ISGID)
        p |= APR_FPROT_GSETID;
    if (mode & S_ISVTX)
        p |= APR_FPROT_WSTICKY;
    return p;
}

apr_time_t fp_walk_time(const struct fp_time *t)
{
    return fp_file_time(t->sec, t->nsec);
}

void fp_walk_fill(apr_finfo_t *finfo, const struct fp_meta *m, const char *name, apr_pool_t *pool)
{
    finfo->pool = pool;
    finfo->fname = name;
    finfo->valid = APR_FINFO_MIN | APR_FINFO_IDENT | APR_FINFO_NLINK | APR_FINFO_OWNER | APR_FINFO_PROT
                   | APR_FINFO_CSIZE;
    finfo->protection = permissions_of(m->mode);
    finfo->filetype = type_of(m->mode);
    finfo->user = m->uid;
    finfo->group = m->gid;
    finfo->inode = m->ino;
    finfo->device = m->dev;
    finfo->nlink = (apr_int32_t)m->nlink;
    finfo->size = (apr_off_t)m->size;
    finfo->csize = (apr_off_t)(m->blocks * 512); /* unsigned: a hostile daemon may tell any number */
    finfo->atime = fp_walk_time(&m->atime);
    finfo->mtime = fp_walk_time(&m->mtime);
    finfo->ctime = fp_walk_time(&m->ctime);
}

/* Core would take an I/O error for another error, so core finds it itself. */
static apr_status_t error_of(fp_status st)
{
    return st == FP_IOERROR ? AP_DECLINED : fp_status_to_errno(st);
}

static apr_status_t fill(apr_finfo_t *finfo, const struct fp_meta *m, apr_int32_t wanted, const char *name,
                         apr_pool_t *pool)
{
    fp_walk_fill(finfo, m, name, pool);
    wanted &= ~APR_FINFO_LINK;
    return (wanted & ~finfo->valid) ? APR_INCOMPLETE : APR_SUCCESS;
}

/* Fills finfo for name, a path with or without slashes behind it. s is its step; with below set, s
 * is the last step and the walk ended above name. */
static apr_status_t stat_step(apr_finfo_t *finfo, const struct fp_step *s, int below, apr_int32_t wanted,
                              const char *name, apr_pool_t *pool)
{
    const bool slash = name[fp_path_len(name)] == '/';

    if (below)
        return error_of(fp_request_error_below(s));
    if (s->status != FP_OK)
        return error_of(s->status);
    /* lstat() of a name with a slash behind it follows the link, too. */
    if ((wanted & APR_FINFO_LINK) && !slash)
        return fill(finfo, &s->self, wanted, name, pool);
    if (fp_step_target(s) == NULL)
        return error_of(s->target_status);
    if (slash && !S_ISDIR(fp_step_target(s)->mode))
        return APR_ENOTDIR;
    return fill(finfo, fp_step_target(s), wanted, name, pool);
}

apr_status_t fp_walk_stat_name(apr_finfo_t *finfo, const struct fp_request *q, const char *path,
                               apr_size_t len, apr_int32_t wanted, const char *name, apr_pool_t *pool)
{
    int below;
    const struct fp_step *s = fp_request_find_step(q, path, len, &below);

    return s != NULL ? stat_step(finfo, s, below, wanted, name, pool) : AP_DECLINED;
}

apr_status_t fp_walk_answer_stat(apr_finfo_t *finfo, const request_rec *r, struct fp_request *q,
                                 apr_int32_t wanted)
{
    apr_size_t len = fp_path_len(r->filename);
    int below;
    const struct fp_step *s = fp_request_find_step(q, r->filename, len, &below);

    if (s == NULL)
        return AP_DECLINED;
    /* Core has looked at a dangling link's target itself, and found a directory there by now. */
    if (below && (q->links_asked[0] >> fp_request_step_number(q, s) & 1) != 0 && S_ISLNK(s->self.mode))
        return AP_DECLINED;
    /* Knowing the file, core asks for this only where links are restricted (fp_walk_restricted). */
    if ((wanted & APR_FINFO_LINK) && r->filename[len] != '/' && !below && s->status == FP_OK)
        q->links_asked[r->finfo.filetype != APR_NOFILE] |= (apr_uint64_t)1 << fp_request_step_number(q, s);
    return stat_step(finfo, s, below, wanted, r->filename, r->pool);
}

apr_status_t fp_walk_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted)
{
    struct fp_request *q = fp_request_of(r);

    return q != NULL ? fp_walk_answer_stat(finfo, r, q, wanted) : AP_DECLINED;
}

/* A step of q's path, and whether core knew the file. */
struct asked_step {
    const struct fp_request *q;
    unsigned i;
    bool known;
};

/* True if core asked for its lstat in a walk of the same path. */
static bool was_asked(const struct fp_request *other, const void *ctx)
{
    const struct asked_step *at = ctx;
    const apr_size_t end = at->q->held->answer->steps[at->i].end;

    return (other->links_asked[at->known] >> at->i & 1) != 0 && other->held->answer->n_steps > at->i
           && other->held->answer->steps[at->i].end == end
           && memcmp(other->held->path, at->q->held->path, end) == 0;
}

bool fp_walk_is_foreign(const struct fp_step *s)
{
    return s->status == FP_OK && S_ISLNK(s->self.mode) && s->self.uid != s->target.uid;
}

bool fp_walk_restricted(const request_rec *r, const struct fp_request *q, bool known)
{
    for (unsigned i = 0; i < q->held->answer->n_steps; i++) {
        const struct asked_step at = { q, i, known };

        if (fp_walk_is_foreign(&q->held->answer->steps[i]) && fp_request_any(r, was_asked, &at))
            return true;
    }
    return false;
}
