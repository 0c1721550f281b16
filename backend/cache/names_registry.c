/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/names_registry.h"

#include <string.h>

unsigned fp_names_registry_find(const struct fp_names_registry *r, const struct fp_names *names)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (fp_names_equal(&r->lists[i].names, names))
            return i + 1;
    }
    return 0;
}

unsigned fp_names_registry_add(struct fp_names_registry *r, const struct fp_names *names)
{
    unsigned known = fp_names_registry_find(r, names);
    struct fp_names *copy;
    char *to;

    if (known != 0 || names->n == 0 || r->n == FP_MAX_LISTS)
        return known;
    copy = &r->lists[r->n].names;
    to = r->lists[r->n++].text;
    *copy = *names;
    for (unsigned i = 0; i < names->n; i++) {
        copy->list[i].name = memcpy(to, names->list[i].name, names->list[i].len);
        to += names->list[i].len;
    }
    fp_cache_set_names(r->cache, r->n, copy);
    return r->n;
}
