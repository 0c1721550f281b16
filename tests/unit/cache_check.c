/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache_check.h"
#include "dependency_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/cache_entry.h"
#include "shared/lease_table.h"

/* Counts over the hash table, to be compared with those that the cache keeps. */
struct tally {
    size_t entries, kinds[FP_KINDS], queued[FP_KINDS];
    size_t open_dirs, contents, content_bytes, bytes, timers, dependencies;
    size_t children, purging, linked, on_mount[FP_MOUNT_BUCKETS];
    uint32_t *slots; /* all slots that entries have */
    size_t n_slots;
};

static const char *check_place(const struct fp_cache *c, const struct fp_entry *e)
{
    const struct fp_entry *p = e->parent;

    if (e->path[e->len] != '\0' || fp_entry_find(c, e->path, e->len) != e)
        return "an entry is not found by its path";
    if ((p == NULL) != (e->len == 1))
        return "an entry other than / has no parent";
    if (p != NULL
        && (p->len != fp_path_parent_len(e->path, e->len) || memcmp(p->path, e->path, p->len) != 0
            || fp_entry_find(c, p->path, p->len) != p))
        return "an entry's parent is not the entry of its directory";
    if (e->generation > c->last_generation || e->parent_generation > c->last_generation)
        return "a generation comes from the future";
    return NULL;
}

static const char *check_content(const struct fp_cache *c, const struct fp_entry *e)
{
    if (e->kind != fp_entry_kind(e))
        return "an entry's kind is not that of its status and descriptor";
    if (e->opened == FP_OPENED_DIR && (e->fd == -1 || !fp_entry_is_dir(e)))
        return "an open directory has no descriptor, or is none";
    if (e->content_at == 0 && e->content_bytes > 0)
        return "a content has no place";
    if (e->content_at != 0 && (e->fd != -1 || !fp_entry_is_file(e)))
        return "what has a content has a descriptor, or is no file";
    if (e->target != NULL && (e->status != FP_OK || !S_ISLNK(e->self.mode)))
        return "an entry that is no link has a target";
    if ((e->access != NULL) != (e->n_access > 0))
        return "an entry's access files are not as many as it says";
    if (e->n_access > 0 && e->n_access != c->names->n && !fp_entry_is_purged(c, e))
        return "an entry's access files are not those of the names";
    if (e->expires_ms != 0 && e->expires_ms != e->seen_ms + e->ttl_ms)
        return "an entry is valid for another time than its TTL";
    if (c->lease_table == NULL && (e->slot != FP_NO_SLOT || e->end_slot != FP_NO_SLOT))
        return "an entry has a slot of no table";
    return fp_dependency_list_check(c->dependencies, e->dependencies, e, e->own);
}

/* Counts the entry's children. */
static const char *check_children(const struct fp_cache *c, const struct fp_entry *e, size_t *n_r)
{
    const bool purged = fp_entry_is_purged(c, e);
    const struct fp_entry *child;
    size_t below = 0;

    LIST_FOREACH(child, &e->children, sibling) {
        if (child->parent != e)
            return "an entry stands among another one's children";
        ++*n_r;
        if (fp_entry_is_purged(c, child))
            continue;
        if (purged)
            return "an entry below a purged one is not purged";
        below += 1 + child->below;
    }
    return purged || below == e->below ? NULL : "the entries below an entry are not as many as it says";
}

static void tally_entry(struct tally *t, const struct fp_entry *e)
{
    t->kinds[e->kind]++;
    t->queued[e->kind] += LIST_EMPTY(&e->children);
    t->open_dirs += e->opened == FP_OPENED_DIR;
    t->contents += e->content_at != 0;
    t->content_bytes += e->content_bytes;
    t->bytes += fp_entry_bytes(e);
    t->timers += e->refresh.tick != 0;
    t->dependencies += fp_dependency_list_live(e->dependencies);
    t->purging += fp_entry_is_purging(e);
    t->linked += e->linked;
    t->on_mount[e->validity.mount % FP_MOUNT_BUCKETS]++;
    if (e->slot != FP_NO_SLOT)
        t->slots[t->n_slots++] = e->slot;
    if (e->end_slot != FP_NO_SLOT)
        t->slots[t->n_slots++] = e->end_slot;
}

static const char *check_entries(const struct fp_cache *c, struct tally *t)
{
    struct fp_entry *e;

    FP_ENTRIES_FOREACH(e, c)
    {
        const char *wrong = check_place(c, e);

        if (wrong == NULL)
            wrong = check_content(c, e);
        if (wrong != NULL)
            return wrong;
        tally_entry(t, e);
    }
    FP_ENTRIES_FOREACH(e, c)
    {
        const char *wrong = check_children(c, e, &t->children);

        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}

static int compare_slots(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static const char *check_slots(struct tally *t)
{
    qsort(t->slots, t->n_slots, sizeof(t->slots[0]), compare_slots);
    for (size_t i = 1; i < t->n_slots; i++) {
        if (t->slots[i] == t->slots[i - 1])
            return "two entries share a slot of the lease table";
    }
    return NULL;
}

static const char *check_sieve(const struct fp_sieve *s, enum fp_kind kind, const struct tally *t)
{
    const struct fp_entry *e;
    size_t n = 0;
    bool hand = s->hand == NULL;

    if (s->count != t->kinds[kind])
        return "a kind's entries are not as many as its sieve says";
    TAILQ_FOREACH(e, &s->queue, link) {
        if (e->kind != kind || !LIST_EMPTY(&e->children))
            return "an entry stands in another kind's queue, or has children";
        hand = hand || s->hand == e;
        n++;
    }
    if (!hand)
        return "a sieve's hand points at nothing in its queue";
    return n == t->queued[kind] ? NULL : "an entry without children stands in no queue";
}

static const char *check_asked(const struct fp_cache *c, const struct tally *t)
{
    const struct fp_entry *e;
    size_t n = 0;

    TAILQ_FOREACH(e, &c->asked, asked)
        n++;
    return n == t->entries ? NULL : "the entries are not as many as were asked for";
}

static const char *check_open_dirs(const struct fp_cache *c, const struct tally *t)
{
    const struct fp_entry *e;
    size_t n = 0;

    TAILQ_FOREACH(e, &c->open_dirs, open_dir) {
        if (e->opened != FP_OPENED_DIR)
            return "a directory that is not open stands in the list of those";
        n++;
    }
    return n == t->open_dirs && n == c->n_open_dirs && n <= c->max_open_dirs
               ? NULL
               : "the open directories are not as many as the cache says, or too many";
}

static const char *check_purges(const struct fp_cache *c, const struct tally *t)
{
    const struct fp_entry *e, *p = c->purge_next;
    size_t n = 0;

    TAILQ_FOREACH(e, &c->purging, purging)
        n++;
    while (p != NULL && p != TAILQ_FIRST(&c->purging))
        p = p->parent;
    if (c->purge_next != NULL && p == NULL)
        return "a purge goes on outside of its tree";
    return n == t->purging && n == c->n_purging ? NULL : "the purges are not as many as the entries say";
}

static const char *check_sums(const struct fp_cache *c, const struct tally *t)
{
    if (t->bytes != c->bytes)
        return "the entries take other memory than the cache says";
    if (t->contents != c->n_contents || t->content_bytes != c->content_bytes)
        return "the contents are not what the cache says";
    if (t->linked != c->n_linked || memcmp(t->on_mount, c->n_on_mount, sizeof(t->on_mount)) != 0)
        return "the entries lie elsewhere than the cache says";
    return c->newest == NULL ? NULL : "an entry is being inserted";
}

/* Each of the n timers that are set stands in the bucket of its tick. */
static const char *check_wheel(const struct fp_timer_wheel *w, size_t n)
{
    const struct fp_timer *d;
    size_t found = 0;

    for (unsigned i = 0; i < FP_TIMER_BUCKETS; i++) {
        TAILQ_FOREACH(d, &w->buckets[i], link) {
            if (d->tick % FP_TIMER_BUCKETS != i)
                return "a timer stands in another bucket than that of its tick";
            found++;
        }
    }
    return found == n ? NULL : "the wheel's timers are not those that are set";
}

static const char *check_all(const struct fp_cache *c, struct tally *t)
{
    const char *wrong = check_entries(c, t);

    for (int k = 0; wrong == NULL && k < FP_KINDS; k++)
        wrong = check_sieve(&c->sieves[k], (enum fp_kind)k, t);
    if (wrong == NULL && t->entries > 0 && t->children != t->entries - 1)
        wrong = "an entry stands not among its parent's children";
    if (wrong == NULL)
        wrong = check_purges(c, t);
    if (wrong == NULL)
        wrong = check_slots(t);
    if (wrong == NULL)
        wrong = check_asked(c, t);
    if (wrong == NULL)
        wrong = check_open_dirs(c, t);
    if (wrong == NULL)
        wrong = check_sums(c, t);
    if (wrong == NULL)
        wrong = check_wheel(&c->wheel, t->timers);
    if (wrong == NULL)
        wrong = fp_dependencies_check(c->dependencies, t->dependencies);
    return wrong;
}

const char *cache_check(const struct fp_cache *c)
{
    struct tally t = { .entries = c->entries.n };
    const char *wrong;

    t.slots = calloc(2 * t.entries + 1, sizeof(t.slots[0]));
    wrong = t.slots != NULL ? check_all(c, &t) : "no memory to check";
    free(t.slots);
    return wrong;
}

void cache_verify(const struct fp_cache *c)
{
    const char *wrong = cache_check(c);

    if (wrong == NULL)
        return;
    fprintf(stderr, "the cache contradicts itself: %s\n", wrong);
    abort();
}
