/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/names_registry.h"

#define FORGOTTEN_AT_ONCE 256 /* entries, in one call */

unsigned fp_names_registry_find(const struct fp_names_registry *r, const struct fp_names *names)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (fp_names_equal(&r->lists[i].names, names))
            return i + 1;
    }
    return 0;
}

/* The number of the list that was not used for longest, of those that may go; 0: none may. */
static unsigned find_idle(const struct fp_names_registry *r, uint64_t now_ms)
{
    unsigned idle = 0;

    for (unsigned i = 0; i < r->n; i++) {
        if (r->lists[i].holders == 0 && now_ms - r->lists[i].used_ms >= FP_LIST_IDLE_MS
            && (idle == 0 || r->lists[i].used_ms < r->lists[idle - 1].used_ms))
            idle = i + 1;
    }
    return idle;
}

/* The number of a place that no entry refers to; 0: there is none.  A list with many entries goes in
 * several calls. */
static unsigned find_place(struct fp_names_registry *r, uint64_t now_ms)
{
    unsigned idle;

    if (r->n < FP_MAX_LISTS)
        return ++r->n;
    idle = find_idle(r, now_ms);
    return idle != 0 && fp_cache_forget_names(r->cache, idle, FORGOTTEN_AT_ONCE) ? idle : 0;
}

static unsigned add(struct fp_names_registry *r, const struct fp_names *names, uint64_t now_ms)
{
    const unsigned place = find_place(r, now_ms);

    if (place == 0)
        return 0;
    fp_names_copy(&r->lists[place - 1].names, r->lists[place - 1].text, names);
    fp_cache_set_names(r->cache, place, &r->lists[place - 1].names);
    return place;
}

unsigned fp_names_registry_add(struct fp_names_registry *r, const struct fp_names *names, uint64_t now_ms)
{
    unsigned names_id = fp_names_registry_find(r, names);

    if (names_id == 0 && names->n > 0)
        names_id = add(r, names, now_ms);
    if (names_id != 0)
        r->lists[names_id - 1].used_ms = now_ms;
    return names_id;
}

void fp_names_registry_hold(struct fp_names_registry *r, unsigned names_id, uint64_t now_ms)
{
    if (names_id == 0)
        return;
    r->lists[names_id - 1].holders++;
    r->lists[names_id - 1].used_ms = now_ms;
}

void fp_names_registry_release(struct fp_names_registry *r, unsigned names_id)
{
    if (names_id != 0)
        r->lists[names_id - 1].holders--;
}
