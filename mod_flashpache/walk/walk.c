/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/walk.h"

#include <sys/stat.h>

#include "question/finfo.h"
#include "question/held.h"
#include "question/request.h"

apr_status_t fp_walk_answer_stat(apr_finfo_t *finfo, const request_rec *r, struct fp_request *q,
                                 apr_int32_t wanted)
{
    apr_size_t len = fp_path_len(r->filename);
    int below;
    const struct fp_step *s = fp_request_find_step(q, r->filename, len, &below);

    if (s == NULL)
        return AP_DECLINED;
    /* Core has looked at a dangling link's target itself, and found a directory there by now. */
    if (below && (q->links_asked[0] & fp_request_bit(q, s)) != 0 && S_ISLNK(s->self.mode))
        return AP_DECLINED;
    /* Knowing the file, core asks for this only where links are restricted (fp_walk_restricted). */
    if ((wanted & APR_FINFO_LINK) && r->filename[len] != '/' && !below && s->status == FP_OK)
        q->links_asked[r->finfo.filetype != APR_NOFILE] |= fp_request_bit(q, s);
    return fp_finfo_of_step(finfo, s, below, wanted, r->filename, r->pool);
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
