/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/finfo.h"

#include <httpd.h>
#include <http_config.h>
#include <sys/stat.h>

#include "question/file.h"
#include "question/request.h"

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

static apr_time_t time_of(const struct fp_time *t)
{
    return fp_file_time(t->sec, t->nsec);
}

void fp_finfo_fill(apr_finfo_t *finfo, const struct fp_meta *m, const char *name, apr_pool_t *pool)
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
    finfo->atime = time_of(&m->atime);
    finfo->mtime = time_of(&m->mtime);
    finfo->ctime = time_of(&m->ctime);
}

/* Core would take an I/O error for another error, so core finds it itself. */
static apr_status_t error_of(fp_status st)
{
    return st == FP_IOERROR ? AP_DECLINED : fp_status_to_errno(st);
}

static apr_status_t fill(apr_finfo_t *finfo, const struct fp_meta *m, apr_int32_t wanted, const char *name,
                         apr_pool_t *pool)
{
    fp_finfo_fill(finfo, m, name, pool);
    wanted &= ~APR_FINFO_LINK;
    return (wanted & ~finfo->valid) ? APR_INCOMPLETE : APR_SUCCESS;
}

apr_status_t fp_finfo_of_step(apr_finfo_t *finfo, const struct fp_step *s, int below, apr_int32_t wanted,
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

apr_status_t fp_finfo_of_name(apr_finfo_t *finfo, const struct fp_request *q, const char *path, apr_size_t len,
                              apr_int32_t wanted, const char *name, apr_pool_t *pool)
{
    int below;
    const struct fp_step *s = fp_request_find_step(q, path, len, &below);

    return s != NULL ? fp_finfo_of_step(finfo, s, below, wanted, name, pool) : AP_DECLINED;
}
