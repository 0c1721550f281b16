/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "setup/overrides.h"

#include <http_config.h>
#include <http_core.h>
#include <string.h>

struct overrides {
    bool some;        /* a section that allows something */
    bool lists;       /* an AllowOverrideList somewhere */
    bool none_at_top; /* <Directory /> with AllowOverride None */
};

static void add_section(struct overrides *o, const core_dir_config *d)
{
    if (d->override_list != NULL && !apr_is_empty_table(d->override_list))
        o->some = o->lists = true;
    if (d->override & OR_UNSET)
        return;
    if (d->override != OR_NONE)
        o->some = true;
    else if (d->d != NULL && strcmp(d->d, "/") == 0)
        o->none_at_top = true;
}

bool fp_overrides_allow(const server_rec *s, bool *lists_r)
{
    const core_server_config *core = ap_get_core_module_config(s->module_config);
    struct overrides o = { false, false, false };

    add_section(&o, ap_get_core_module_config(s->lookup_defaults));
    for (int i = 0; i < core->sec_dir->nelts; i++)
        add_section(&o, ap_get_core_module_config(APR_ARRAY_IDX(core->sec_dir, i, ap_conf_vector_t *)));
    *lists_r = o.lists;
    /* Without a section for "/" core looks for .htaccess files down to the first that forbids them. */
    return o.some || !o.none_at_top;
}
