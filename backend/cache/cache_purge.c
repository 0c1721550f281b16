/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of entries. A purge of a tree invalidates all entries below one at once, by a number that they do
 * not have. They are evicted later, a few at a time.
 */
#include "config.h"
#include "cache/cache_entry.h"

#include <stddef.h>
#include <stdlib.h>

#include "cache/dependency.h"
#include "shared/lease_table.h"

void fp_entry_revive(struct fp_cache *c, struct fp_entry *e)
{
    fp_entry_wipe(c, e);
    e->seen_ms = 0;
    e->purge = c->n_purges;
    e->below = 0;
    fp_entry_count(e, 1);
}

/* The first to go: the deepest, by the first child of each. */
static struct fp_entry *first_below(struct fp_entry *e)
{
    while (!LIST_EMPTY(&e->children))
        e = LIST_FIRST(&e->children);
    return e;
}

/* The entry after e, in an order in which an entry comes after all that lies below it. */
static struct fp_entry *next_of(struct fp_entry *e)
{
    struct fp_entry *sibling = LIST_NEXT(e, sibling);

    return sibling != NULL ? first_below(sibling) : e->parent;
}

static void end_purge(struct fp_cache *c, struct fp_entry *root)
{
    if (root == TAILQ_FIRST(&c->purging))
        c->purge_next = NULL;
    TAILQ_REMOVE(&c->purging, root, purging);
    root->purging.tqe_prev = NULL;
    c->n_purging--;
}

/* Takes an entry that goes out of the purges that are under way, and out of the counts above it. */
static void leave_purge(struct fp_cache *c, struct fp_entry *e)
{
    if (e->parent != NULL && !fp_entry_is_purged(c, e))
        fp_entry_count(e, -1);
    if (fp_entry_is_purging(e))
        end_purge(c, e);
    if (c->purge_next == e)
        c->purge_next = next_of(e);
}

void fp_entry_evict(struct fp_cache *c, struct fp_entry *e)
{
    fp_entry_dequeue(c, e);
    TAILQ_REMOVE(&c->asked, e, asked);
    c->sieves[e->kind].count--;
    fp_entry_count_place(c, e, -1);
    fp_index_remove(&c->entries, &e->indexed);
    leave_purge(c, e);
    if (e->parent != NULL) {
        LIST_REMOVE(e, sibling);
        if (LIST_EMPTY(&e->parent->children))
            fp_entry_enqueue(c, e->parent);
    }
    fp_entry_drop_fd(c, e);
    c->bytes -= fp_entry_bytes(e);
    fp_dependencies_drop(c->dependencies, &e->dependencies);
    fp_timer_clear(&c->wheel, &e->refresh);
    if (c->lease_table != NULL) {
        fp_lease_table_release(c->lease_table, e->slot);
        fp_lease_table_release(c->lease_table, e->end_slot);
    }
    free(e->target);
    fp_entry_forget_access(e);
    free(e);
}

size_t fp_entry_purge_below(struct fp_cache *c, struct fp_entry *e)
{
    const size_t n = fp_entry_is_purged(c, e) ? 0 : e->below;

    if (LIST_EMPTY(&e->children))
        return 0;
    fp_entry_count(e, -(long)n);
    e->below = 0;
    e->purged_below = ++c->n_purges;
    fp_entry_end_leases(c, e);
    /* The purge under way has passed entries that may be purged again. */
    if (fp_entry_is_purging(e))
        end_purge(c, e);
    TAILQ_INSERT_TAIL(&c->purging, e, purging);
    c->n_purging++;
    return n;
}

bool fp_entry_evict_purged(struct fp_cache *c, size_t visits, size_t *evicted_r)
{
    struct fp_entry *root;

    *evicted_r = 0;
    for (; visits > 0 && (root = TAILQ_FIRST(&c->purging)) != NULL; visits--) {
        struct fp_entry *e = c->purge_next != NULL ? c->purge_next : first_below(root);

        c->counts.visits++;
        if (e == root) {
            end_purge(c, root);
            if (root->generation == 0 && root != c->newest && LIST_EMPTY(&root->children))
                fp_entry_evict(c, root);
            continue;
        }
        c->purge_next = next_of(e);
        if (e == c->newest || !LIST_EMPTY(&e->children) || !fp_entry_is_purged(c, e))
            continue;
        fp_entry_evict(c, e);
        ++*evicted_r;
    }
    return !TAILQ_EMPTY(&c->purging);
}
