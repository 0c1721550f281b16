/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "body/agreement.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "question/file.h"
#include "question/finfo.h"
#include "question/held.h"
#include "question/request.h"
#include "shared/lease_table.h"

/* True if the file is as the walk approved it. */
static bool is_approved(const request_rec *r, const apr_finfo_t *f)
{
    return f->inode == r->finfo.inode && f->device == r->finfo.device && f->size == r->finfo.size
           && f->mtime == r->finfo.mtime;
}

bool fp_agreement_is_approved(const request_rec *r, const struct stat *st)
{
    const apr_finfo_t f = { .inode = st->st_ino,
                            .device = st->st_dev,
                            .size = st->st_size,
                            .mtime = fp_file_time(st->st_mtim.tv_sec, (apr_uint32_t)st->st_mtim.tv_nsec) };

    return is_approved(r, &f);
}

bool fp_agreement_is_same(const request_rec *r, const struct fp_request *q)
{
    const struct fp_meta *m = fp_step_target(fp_held_last(q->held));
    apr_finfo_t f;

    if (m == NULL)
        return false;
    fp_finfo_fill(&f, m, r->filename, r->pool);
    return is_approved(r, &f);
}

/* True if both lead to the same directory, or both to a regular file. The files may differ, as one
 * may have replaced the other. */
static bool is_same_step(const struct fp_step *a, const struct fp_step *b)
{
    const struct fp_meta *x = fp_step_target(a), *y = fp_step_target(b);

    if (x == NULL || y == NULL || S_ISLNK(a->self.mode) != S_ISLNK(b->self.mode))
        return false;
    if (S_ISREG(a->self.mode) && S_ISREG(b->self.mode))
        return true;
    return a->self.ino == b->self.ino && a->self.dev == b->self.dev && a->self.uid == b->self.uid
           && x->ino == y->ino && x->dev == y->dev && x->uid == y->uid;
}

bool fp_agreement_went_elsewhere(const struct fp_request *other, const void *ctx)
{
    const struct fp_request *q = ctx;

    for (unsigned i = 0; other != q && i < other->held->answer->n_steps && i < q->held->answer->n_steps; i++) {
        const struct fp_step *a = &other->held->answer->steps[i], *b = &q->held->answer->steps[i];

        if (a->end != b->end || memcmp(other->held->path, q->held->path, b->end) != 0)
            return false;
        if (a->slot != FP_NO_SLOT && a->slot == b->slot && a->generation == b->generation
            && other->held->view == q->held->view)
            continue;
        if (!is_same_step(a, b))
            return true;
    }
    return false;
}

static bool looks_approved(request_rec *r, apr_finfo_t *now)
{
    return apr_stat(now, r->filename, APR_FINFO_MIN, r->pool) == APR_SUCCESS && is_approved(r, now);
}

bool fp_agreement_is_unchanged(request_rec *r)
{
    apr_finfo_t now;

    return looks_approved(r, &now);
}

/* True if a look at it waits for no other machine. */
static bool is_local(const struct fp_held *h)
{
    const struct fp_meta *m = fp_step_target(fp_held_last(h));

    return h->answer->may_look || (m != NULL && major(m->dev) != 0);
}

/* A file that is written in place can get its former time back, but not its former time of change. */
bool fp_agreement_still_holds(request_rec *r, const struct fp_request *q)
{
    apr_finfo_t now;

    return fp_held_is_unchanged(q->held)
           || (is_local(q->held) && looks_approved(r, &now) && now.ctime == r->finfo.ctime);
}

bool fp_agreement_is_same_way(const struct fp_request *a, const struct fp_request *b)
{
    const struct fp_answer *x = a->held->answer, *y = b->held->answer;

    if (x->n_steps != y->n_steps || x->n_names != y->n_names || fp_agreement_went_elsewhere(a, b))
        return false;
    for (unsigned i = 0; i < x->n_steps; i++) {
        for (unsigned j = 0; j < x->n_names && fp_step_is_dir(&x->steps[i]); j++) {
            if (!fp_access_equal(&x->steps[i].access[j], &y->steps[i].access[j]))
                return false;
        }
    }
    return true;
}

static bool has_rules(const struct fp_request *q, const void *ctx)
{
    return q->rules == *(const enum fp_rules_are *)ctx;
}

bool fp_agreement_has_rules(const request_rec *r, enum fp_rules_are rules)
{
    return fp_request_any(r, has_rules, &rules);
}
