/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd22/rules.h"

#include <apr_fnmatch.h>
#include <apr_strings.h>

#include "setup/overrides.h"
#include "setup/settings.h"

#if APR_MAJOR_VERSION == 0 && !defined(APR_FNM_PATHNAME)
#define APR_FNM_PATHNAME FNM_PATHNAME
#endif

static const core_dir_config *section_core(const apr_array_header_t *sections, int i)
{
    return ap_get_core_module_config(((ap_conf_vector_t **)sections->elts)[i]);
}

/* ---- AllowOverride ---- */

static void add_override(struct fp_rules *rules, int override)
{
    for (unsigned i = 0; i < rules->n_overrides; i++) {
        if (rules->overrides[i] == override)
            return;
    }
    if (rules->n_overrides < FP_MAX_OVERRIDES)
        rules->overrides[rules->n_overrides++] = override;
}

/* Core looks for no access file where the override is 0, but 2.4's lists of directives. */
static void take_override(struct fp_rules *rules, const core_dir_config *d, bool is_default)
{
    if (!is_default && (d->override & OR_UNSET))
        return;
    if (d->override != 0 || FP_HTTPD_24)
        add_override(rules, (int)d->override);
    if (d->override & OR_OPTIONS)
        rules->access_files_may = true;
}

/* ---- links ---- */

static bool restricts_links(const core_dir_config *d)
{
    if (d->opts & OPT_UNSET)
        return (d->opts_add & OPT_SYM_OWNER) || (d->opts_remove & OPT_SYM_LINKS);
    return (d->opts & (OPT_SYM_OWNER | OPT_SYM_LINKS)) != OPT_SYM_LINKS;
}

static bool any_restricts_links(const apr_array_header_t *sections)
{
    for (int i = 0; i < sections->nelts; i++) {
        if (restricts_links(section_core(sections, i)))
            return true;
    }
    return false;
}

/* ---- all ---- */

static unsigned count_words(apr_pool_t *p, const char *text)
{
    unsigned n = 0;

    for (; text[0] != '\0'; n++)
        ap_getword_conf(p, &text);
    return n;
}

void fp_rules_take(apr_pool_t *p, const server_rec *s, struct fp_settings *n)
{
    const core_server_config *core = ap_get_core_module_config(s->module_config);
    const core_dir_config *top = ap_get_core_module_config(s->lookup_defaults);
    struct fp_rules *rules = apr_pcalloc(p, sizeof(*rules));
    bool lists;

    rules->n_names = count_words(p, core->access_name);
    rules->restricts_links = (top->opts & (OPT_SYM_OWNER | OPT_SYM_LINKS)) != OPT_SYM_LINKS
                             || any_restricts_links(core->sec_dir) || any_restricts_links(core->sec_url);
    take_override(rules, top, true);
    for (int i = 0; i < core->sec_dir->nelts; i++)
        take_override(rules, section_core(core->sec_dir, i), false);
    /* The default counts only where no section for "/" says otherwise. */
    rules->access_files_may = rules->access_files_may && fp_overrides_allow(s, &lists);
    n->rules = rules;
}

static bool matches(const core_dir_config *d, const char *directory)
{
    return d->d_is_fnmatch ? apr_fnmatch(d->d, directory, APR_FNM_PATHNAME) == APR_SUCCESS
                           : strcmp(directory, d->d) == 0;
}

bool fp_rules_name(const server_rec *s, const char *name)
{
    const core_server_config *core = ap_get_core_module_config(s->module_config);
    char directory[FP_MAX_PATH + 2];

    apr_snprintf(directory, sizeof(directory), "%s/", name);
    for (int i = 0; i < core->sec_dir->nelts; i++) {
        const core_dir_config *d = section_core(core->sec_dir, i);

        if (d->r == NULL && d->d != NULL && matches(d, directory))
            return true;
    }
    return false;
}
