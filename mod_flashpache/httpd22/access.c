/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd22/access.h"

#include <apr_strings.h>
#include <stdbool.h>

#include "access/access_file.h"
#include "access/parsed.h"
#include "body/agreement.h"
#include "httpd22/rules.h"
#include "question/held.h"
#include "question/request.h"
#include "setup/settings.h"

/* ---- before the walk ---- */

static void give(request_rec *r, const char *dir, int override, int override_opts, ap_conf_vector_t *conf)
{
    struct htaccess_result *h = apr_pcalloc(r->pool, sizeof(*h));

    (void)override_opts;
    h->dir = (char *)dir;
    h->override = override;
#if FP_HAS_OVERRIDE_OPTS
    h->override_opts = override_opts;
#endif
    h->htaccess = conf;
    h->next = r->htaccess;
    r->htaccess = h;
}

/* True if the answer says that the directory has none of the access files, whatever core looks for. A
 * name below a file is none, too. */
static bool has_none(const struct fp_settings *settings, const struct fp_request *q, const struct fp_step *s)
{
    const struct fp_rules *rules = settings->rules;

    if (!fp_step_is_dir(s))
        return true;
    if (rules->n_names != settings->own.n || q->held->answer->n_names == 0)
        return false;
    for (unsigned i = 0; i < settings->own.n; i++) {
        if (s->access[settings->own.at[i]].status != FP_ABSENT)
            return false;
    }
    return true;
}

static void give_parsed(request_rec *r, const struct fp_request *q, const struct fp_step *s)
{
    const int name = fp_access_file_of(r, q, s);
    struct fp_parsed *p = name != -1 && fp_parsed_is_for(r) ? fp_parsed_find(r, q, s, (unsigned)name) : NULL;

    if (p != NULL && p->parse.conf != NULL) {
        give(r, p->dir, p->override, p->parse.override_opts, p->parse.conf);
        fp_parsed_hold(r, p);
    } else if (p != NULL) {
        fp_item_release(&p->item);
    }
}

void fp_access_give(request_rec *r, struct fp_request *q, unsigned n_dirs)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    const struct fp_rules *rules = settings->rules;
    const struct htaccess_result *before = r->htaccess;

    for (unsigned i = 0; i < n_dirs && rules->n_overrides > 0; i++) {
        const struct fp_step *s = &q->held->answer->steps[i];
        const char *dir =
            s->end == 1 ? "/"
                        : apr_pstrcat(r->pool, apr_pstrmemdup(r->pool, q->held->path, s->end), "/", NULL);

        if (fp_access_file_is_known(before, dir))
            continue;
        if (!has_none(settings, q, s))
            give_parsed(r, q, s);
        else
            for (unsigned k = 0; k < rules->n_overrides; k++)
                give(r, dir, rules->overrides[k], 0, NULL);
    }
    q->injected = r->htaccess;
}

/* ---- after the walk ---- */

/* Core's own parser takes files alone. All that the result points to is in the pool. */
static ap_conf_vector_t *parse(const request_rec *r, apr_pool_t *pool, const struct htaccess_result *h,
                               const char *path, struct fp_access_text *text)
{
    ap_conf_vector_t *conf = ap_create_per_dir_config(pool);
    ap_directive_t *tree = NULL;
    cmd_parms parms;
    const char *wrong;

    memset(&parms, 0, sizeof(parms));
    parms.override = h->override;
#if FP_HAS_OVERRIDE_OPTS
    parms.override_opts = h->override_opts;
#endif
    parms.limited = -1; /* no <Limit> is open */
    parms.pool = pool;
    parms.temp_pool = r->pool;
    parms.server = r->server;
    parms.path = apr_pstrdup(pool, h->dir);
    parms.config_file = fp_access_file_open(r->pool, path, text);
    wrong = ap_build_config(&parms, pool, r->pool, &tree);
    if (wrong == NULL)
        wrong = ap_walk_config(tree, &parms, conf);
    return wrong == NULL ? conf : NULL;
}

/* Keeps the result of parsing the file that the answer shows; or, where it may not be used again, only
 * that fact. */
static void keep_one(request_rec *r, const struct fp_request *q, const struct fp_step *s, unsigned name,
                     const struct htaccess_result *h)
{
    const char *path = fp_access_file_path(r, h->dir, name);
    struct fp_access_text *text = fp_access_file_fetch(r, path, &s->access[name]);
    const bool pure = text != NULL && fp_access_file_is_pure(r, path, text);
    struct fp_parse made = { .override_opts = FP_OVERRIDE_OPTS(h), .before = fp_parsed_memory() };

    if (text == NULL || fp_compat_unmanaged_pool(&made.pool) != APR_SUCCESS)
        return;
    if (pure) {
        made.text = apr_pmemdup(made.pool, text->pos, (apr_size_t)(text->end - text->pos));
        made.conf = parse(r, made.pool, h, path, text);
    }
    if (pure && made.conf == NULL)
        apr_pool_destroy(made.pool);
    else
        fp_parsed_keep(r, q, s, name, h, &made);
}

void fp_access_keep(request_rec *r, struct fp_request *q)
{
    const bool may_keep = fp_parsed_is_for(r);

    /* Core puts its own results before those that it was given.  It opened the files by name. */
    if (r->htaccess != q->injected && !fp_agreement_is_unchanged(r))
        q->rules = FP_RULES_OTHER;
    for (const struct htaccess_result *h = r->htaccess; h != NULL && h != q->injected; h = h->next) {
        const struct fp_step *s;
        const int name = may_keep && h->htaccess != NULL ? fp_parsed_missing(r, q, h, &s) : -1;

        if (name != -1)
            keep_one(r, q, s, (unsigned)name, h);
    }
}
