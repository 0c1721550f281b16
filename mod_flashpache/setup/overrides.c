/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "setup/overrides.h"

#include <http_config.h>
#include <http_core.h>
#include <string.h>

bool fp_overrides_allow(const server_rec *s, bool *lists_r)
{
    const core_server_config *core = ap_get_core_module_config(s->module_config);
    bool some = false, none_at_top = false;

    *lists_r = false;
    for (int i = 0; i < core->sec_dir->nelts; i++) {
        const core_dir_config *d =
            ap_get_core_module_config(APR_ARRAY_IDX(core->sec_dir, i, ap_conf_vector_t *));

#if AP_MODULE_MAGIC_AT_LEAST(20120211, 0)
        if (d->override_list != NULL && !apr_is_empty_table(d->override_list))
            some = *lists_r = true;
#endif
        if (d->override & OR_UNSET)
            continue;
        if (d->override != OR_NONE)
            some = true;
        else if (d->d != NULL && strcmp(d->d, "/") == 0)
            none_at_top = true;
    }
    /* Without a section for "/" core looks for access files down to the first that forbids them. */
    return some || !none_at_top;
}
