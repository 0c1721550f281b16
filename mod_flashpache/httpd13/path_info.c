/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/path_info.h"

#include <string.h>

#include "base/path.h"
#include "question/held.h"

size_t fp_path_info_normalise(const char *name, char *buf)
{
    size_t len = 0;

    for (; *name != '\0'; name++) {
        if (name[0] == '/' && name[1] == '/')
            continue;
        if (len == FP_MAX_PATH)
            return 0;
        buf[len++] = *name;
    }
    buf[len] = '\0';
    len = fp_path_len(buf);
    buf[len] = '\0';
    return fp_path_is_normal(buf, len) ? len : 0;
}

/* The end in the original name of its first n components. */
static size_t end_of(const char *name, unsigned n)
{
    size_t at = 0;

    for (unsigned i = 0; i < n; i++) {
        at += strspn(name + at, "/");
        at += strcspn(name + at, "/");
    }
    return at;
}

/* stat() of each longer name fails with ENOENT or ENOTDIR, at component n. */
static struct fp_path_info absent_at(const struct fp_held *held, const char *name, unsigned n)
{
    /* get_path_info() does not look at "/". */
    if (n == 1)
        return (struct fp_path_info){ FP_FOUND_NOTHING, strlen(name), NULL };
    return (struct fp_path_info){ FP_FOUND_ABSENT, end_of(name, n), fp_step_target(&held->answer->steps[n - 1]) };
}

static bool is_absence(fp_status st)
{
    return st == FP_ABSENT || st == FP_NOTDIR;
}

struct fp_path_info fp_path_info_find(const struct fp_held *held, const char *name)
{
    static const struct fp_path_info unknown = { FP_FOUND_UNKNOWN, 0, NULL };
    const unsigned n = held->answer->n_steps - 1;
    const struct fp_step *last = &held->answer->steps[n];
    const struct fp_meta *m = fp_step_target(last);

    if (n == 0)
        return unknown;
    if (m != NULL && (last->end == held->path_len || !S_ISDIR(m->mode)))
        return (struct fp_path_info){ FP_FOUND_FILE, end_of(name, n), m };
    if (m == NULL && is_absence(last->status == FP_OK ? last->target_status : last->status))
        return absent_at(held, name, n);
    return unknown;
}

static struct timespec time_of(const struct fp_time *t)
{
    return (struct timespec){ .tv_sec = (time_t)t->sec, .tv_nsec = (long)t->nsec };
}

void fp_path_info_fill(struct stat *st, const struct fp_meta *m)
{
    memset(st, 0, sizeof(*st));
    st->st_dev = m->dev;
    st->st_ino = m->ino;
    st->st_mode = m->mode;
    st->st_nlink = (nlink_t)m->nlink;
    st->st_uid = m->uid;
    st->st_gid = m->gid;
    st->st_size = (off_t)m->size;
    st->st_blocks = (blkcnt_t)m->blocks;
    st->st_atim = time_of(&m->atime);
    st->st_mtim = time_of(&m->mtime);
    st->st_ctim = time_of(&m->ctime);
}
