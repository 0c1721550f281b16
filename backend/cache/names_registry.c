/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/names_registry.h"

#include <stdlib.h>
#include <string.h>

#include "common/wire.h"

struct fp_name_list {
    struct fp_names names;
    char text[FP_MAX_NAMES * FP_MAX_NAME];
};

static struct fp_name_list *copy_names(const struct fp_names *names)
{
    struct fp_name_list *list = calloc(1, sizeof(*list));
    char *to = list != NULL ? list->text : NULL;

    if (list == NULL)
        return NULL;
    list->names = *names;
    for (unsigned i = 0; i < names->n; i++) {
        memcpy(to, names->list[i].name, names->list[i].len);
        list->names.list[i].name = to;
        to += names->list[i].len;
    }
    return list;
}

unsigned fp_names_registry_find(const struct fp_names_registry *r, const struct fp_names *names)
{
    for (unsigned i = 0; i < FP_MAX_LISTS && r->lists[i] != NULL; i++) {
        if (fp_names_equal(&r->lists[i]->names, names))
            return i + 1;
    }
    return 0;
}

unsigned fp_names_registry_add(struct fp_names_registry *r, const struct fp_names *names)
{
    unsigned known = fp_names_registry_find(r, names), n = 0;

    if (known != 0 || names->n == 0)
        return known;
    while (n < FP_MAX_LISTS && r->lists[n] != NULL)
        n++;
    if (n == FP_MAX_LISTS || (r->lists[n] = copy_names(names)) == NULL)
        return 0;
    fp_cache_set_names(r->cache, n + 1, &r->lists[n]->names);
    return n + 1;
}

const struct fp_names *fp_names_registry_get(const struct fp_names_registry *r, unsigned names_id)
{
    return &r->lists[names_id - 1]->names;
}

void fp_names_registry_clear(struct fp_names_registry *r)
{
    for (unsigned i = 0; i < FP_MAX_LISTS; i++)
        free(r->lists[i]);
}
