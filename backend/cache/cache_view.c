/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/cache.h"

#include "cache/cache_entry.h"
#include "common/lease_table.h"
#include "common/walk_result.h"

static enum fp_cache_state state_of(const struct fp_entry *e, uint64_t now_ms)
{
    if (e->generation == 0)
        return FP_VIEW_UNKNOWN;
    if (e->parent != NULL && e->parent_generation != e->parent->generation)
        return FP_VIEW_DETACHED;
    if (e->expires_ms == 0)
        return FP_VIEW_CHANGED;
    return now_ms < e->expires_ms ? FP_VIEW_KNOWN : FP_VIEW_EXPIRED;
}

/* What is told by the directory that it lies in has no watch of its own. */
static int told_by(const struct fp_entry *e)
{
    const struct fp_watch_key *key = fp_entry_own_key(e);

    if (key == NULL && e->parent != NULL)
        key = fp_entry_own_key(e->parent);
    return key != NULL ? key->bytes[0] : 0;
}

struct fp_cache_view fp_cache_view(const struct fp_cache *c, const char *path, size_t len,
                                   unsigned names, uint64_t now_ms)
{
    const struct fp_entry *e = fp_entry_find(c, path, len);
    struct fp_cache_view v = { .state = FP_VIEW_UNKNOWN };

    if (e == NULL || e->generation == 0)
        return v;
    v.state = state_of(e, now_ms);
    v.watched = e->watched;
    v.by = told_by(e);
    v.expires_ms = e->expires_ms;
    v.mount = e->trust.mount;
    v.content = e->content_bytes > 0;
    v.open = e->fd != -1 && !v.content;
    v.leased = v.state == FP_VIEW_KNOWN && e->slot != FP_NO_SLOT;
    v.names = names != 0 && e->names == names;
    return v;
}
