/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd22/prefill.h"

#include <apr_strings.h>
#include <http_request.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "httpd22/access.h"
#include "httpd22/plan.h"
#include "httpd22/rules.h"
#include "question/finfo.h"
#include "question/fresh.h"
#include "question/held.h"
#include "question/lookup.h"
#include "question/request.h"
#include "setup/settings.h"

/* ---- links ---- */

static bool has_link(const struct fp_request *q)
{
    for (unsigned i = 0; i < q->held->answer->n_steps; i++) {
        const struct fp_step *s = &q->held->answer->steps[i];

        if (s->status == FP_OK && S_ISLNK(s->self.mode))
            return true;
    }
    return false;
}

/* True unless the answer shows that no directory has an access file. */
static bool may_have_access_file(const struct fp_request *q)
{
    for (unsigned i = 0; i < q->held->answer->n_steps; i++) {
        const struct fp_step *s = &q->held->answer->steps[i];

        for (unsigned k = 0; fp_step_is_dir(s) && k < q->held->answer->n_names; k++) {
            if (s->access[k].status != FP_ABSENT)
                return true;
        }
    }
    return q->held->answer->n_names == 0;
}

static struct fp_plan_links links_of(const struct fp_request *q, const struct fp_rules *rules)
{
    return (struct fp_plan_links){
        .restricted = rules->restricts_links || (rules->access_files_may && may_have_access_file(q)),
        .any = has_link(q),
    };
}

/* ---- the walk ---- */

/* The result of core's walk, which it is to leave in the request. */
struct prefilled {
    enum fp_plan plan;
    const char *name; /* r->filename up to the last step */
    const char *rest; /* of it, with a slash before it; "" */
};

/* Core's walk leaves the last directory's metadata with an absent name. */
static void fill_absent(request_rec *r, const struct fp_request *q)
{
    const unsigned n = q->held->answer->n_steps;
    const struct fp_meta *m = n > 1 ? fp_step_target(&q->held->answer->steps[n - 2]) : NULL;

    if (m != NULL)
        fp_finfo_fill(&r->finfo, m, r->filename, r->pool);
    r->finfo.filetype = APR_NOFILE;
}

static void begin(request_rec *r, const struct fp_request *q, const struct prefilled *p)
{
    if (p->plan == FP_PLAN_ABSENT)
        r->finfo.filetype = APR_REG; /* so that core asks for no component */
    else
        fp_finfo_fill(&r->finfo, fp_step_target(fp_held_last(q->held)), p->name, r->pool);
    if (p->plan == FP_PLAN_WHOLE)
        return;
    r->filename = (char *)p->name;
    r->path_info = r->path_info != NULL && r->path_info[0] != '\0'
                       ? ap_make_full_path(r->pool, p->rest, r->path_info)
                       : (char *)p->rest;
}

static int walk(request_rec *r, struct fp_request *q, const struct prefilled *p)
{
    int status;

    begin(r, q, p);
    fp_access_give(r, q, q->held->answer->n_steps);
    status = ap_directory_walk(r);
    fp_access_keep(r, q);
    if (p->plan == FP_PLAN_ABSENT)
        fill_absent(r, q);
    return status != OK ? status : ap_file_walk(r);
}

/* DECLINED: core is to look itself. */
static int prefill(request_rec *r, struct fp_request *q, const char *path)
{
    const struct fp_rules *rules = fp_settings_of(r->server)->rules;
    const struct fp_step *last = fp_held_last(q->held);
    const struct fp_plan_links links = links_of(q, rules);
    const apr_size_t end = last->end;
    struct prefilled p = { .name = apr_pstrmemdup(r->pool, path, end), .rest = path + (end == 1 ? 0 : end) };

    p.plan = fp_plan_of(last, q->held->path_len, path[q->held->path_len] == '/', &links,
                        fp_rules_name(r->server, p.name));
    return p.plan != FP_PLAN_LEAVE ? walk(r, q, &p) : DECLINED;
}

int fp_prefill(request_rec *r)
{
    struct fp_request *q;
    char *path;
    int status = fp_lookup_begin(r);

    fp_fresh_note_method(r);
    q = fp_request_of(r);
    if (q == NULL || status != DECLINED)
        return status;
    /* The form in which core walks it, and of which the answer is. */
    if (apr_filepath_merge(&path, NULL, r->filename, APR_FILEPATH_NOTRELATIVE, r->pool) == APR_SUCCESS)
        status = prefill(r, q, path);
    if (status == DECLINED)
        fp_request_forget(r);
    return status;
}
