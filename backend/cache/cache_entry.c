/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/cache_entry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cache/dependency.h"
#include "privsep/closer.h"
#include "shared/lease_table.h"
#include "wire/packet.h"
#include "wire/server_clock.h"

#define SOON(ttl_ms)   ((ttl_ms) / 16) /* so long after a question the next one may be of the same page */
#define MOST_IN_VAIN   8               /* looks ahead that are counted */

struct fp_entry *fp_entry_find(const struct fp_cache *c, const char *path, size_t len)
{
    const unsigned hash = fp_keyed_hash(path, len);

    for (struct fp_indexed *i = fp_index_chain(&c->entries, hash); i != NULL; i = i->next) {
        struct fp_entry *e = (struct fp_entry *)i;

        if (i->hash == hash && e->len == len && memcmp(e->path, path, len) == 0)
            return e;
    }
    return NULL;
}

struct fp_entry *fp_entry_find_nearest(const struct fp_cache *c, const char *path, size_t len)
{
    struct fp_entry *e = fp_entry_find(c, path, len), *next;

    if (e != NULL)
        return e;
    for (size_t n = 1; n < len && (next = fp_entry_find(c, path, n)) != NULL;
         n = fp_path_child_len(path, len, n))
        e = next;
    return e;
}

void fp_entry_enqueue(struct fp_cache *c, struct fp_entry *e)
{
    TAILQ_INSERT_HEAD(&c->sieves[e->kind].queue, e, link);
}

void fp_entry_dequeue(struct fp_cache *c, struct fp_entry *e)
{
    struct fp_sieve *s = &c->sieves[e->kind];

    if (s->hand == e)
        s->hand = TAILQ_PREV(e, fp_entry_queue, link);
    TAILQ_REMOVE(&s->queue, e, link);
}

void fp_entry_set_kind(struct fp_cache *c, struct fp_entry *e, enum fp_kind kind)
{
    if (e->kind == kind)
        return;
    if (LIST_EMPTY(&e->children))
        fp_entry_dequeue(c, e);
    c->sieves[e->kind].count--;
    e->kind = kind;
    c->sieves[kind].count++;
    if (LIST_EMPTY(&e->children))
        fp_entry_enqueue(c, e);
}

const struct fp_meta *fp_entry_target(const struct fp_entry *e)
{
    return e->target != NULL ? e->target : &e->self;
}

bool fp_entry_is_watched(const struct fp_entry *e)
{
    return fp_verdict_is_reported(e->verdict);
}

bool fp_entry_is_dir(const struct fp_entry *e)
{
    return e->status == FP_OK && e->target_status == FP_OK && S_ISDIR(fp_entry_target(e)->mode);
}

bool fp_entry_is_file(const struct fp_entry *e)
{
    return e->status == FP_OK && e->target_status == FP_OK && S_ISREG(fp_entry_target(e)->mode);
}

bool fp_entry_is_lent(const struct fp_entry *e)
{
    return e->validity.traits.remote && fp_entry_is_file(e);
}

/* ---- in the tree ---- */

bool fp_entry_is_purged(const struct fp_cache *c, const struct fp_entry *e)
{
    if (TAILQ_EMPTY(&c->purging))
        return false;
    for (const struct fp_entry *p = e->parent; p != NULL; p = p->parent) {
        if (p->purged_below > e->purge)
            return true;
    }
    return false;
}

void fp_entry_count(struct fp_entry *e, long more)
{
    for (struct fp_entry *p = e->parent; p != NULL; p = p->parent)
        p->below += (size_t)more;
}

/* ---- descriptors ---- */

void fp_entry_drop_fd(struct fp_cache *c, struct fp_entry *e)
{
    if (e->opened == FP_OPENED_DIR) {
        TAILQ_REMOVE(&c->open_dirs, e, open_dir);
        c->n_open_dirs--;
    }
    if (e->content_at != 0) {
        c->n_contents--;
        c->content_bytes -= e->content_bytes;
        e->content_bytes = 0;
        e->content_at = 0;
    }
    e->opened = FP_OPENED_NOT;
    fp_close_file(&e->fd, e->validity.mount);
}

void fp_entry_use_open_dir(struct fp_cache *c, struct fp_entry *e, uint64_t now_ms)
{
    e->begun_ms = now_ms;
    TAILQ_REMOVE(&c->open_dirs, e, open_dir);
    TAILQ_INSERT_HEAD(&c->open_dirs, e, open_dir);
}

void fp_entry_trim_open_dirs(struct fp_cache *c)
{
    while (c->n_open_dirs > c->max_open_dirs)
        fp_entry_drop_fd(c, TAILQ_LAST(&c->open_dirs, fp_entry_queue));
}

void fp_entry_set_fd(struct fp_cache *c, struct fp_entry *e, int fd)
{
    fp_entry_drop_fd(c, e);
    e->fd = fd;
    e->opened = fd != -1 ? FP_OPENED_KEPT : FP_OPENED_DENIED;
    if (fd == -1 || !fp_entry_is_dir(e))
        return;
    e->opened = FP_OPENED_DIR;
    e->begun_ms = e->seen_ms;
    TAILQ_INSERT_HEAD(&c->open_dirs, e, open_dir);
    c->n_open_dirs++;
    fp_entry_trim_open_dirs(c);
}

void fp_entry_set_content(struct fp_cache *c, struct fp_entry *e, uint64_t at)
{
    fp_entry_drop_fd(c, e);
    e->content_at = at;
    e->opened = FP_OPENED_KEPT;
    e->content_bytes = (size_t)fp_entry_target(e)->size;
    c->n_contents++;
    c->content_bytes += e->content_bytes;
}

/* ---- leases ---- */

static uint32_t take_slot(const struct fp_cache *c, const struct fp_entry *e)
{
    uint32_t slot = c->lease_table != NULL ? fp_lease_table_take(c->lease_table) : FP_NO_SLOT;

    if (slot != FP_NO_SLOT)
        fp_lease_table_set_expiry(c->lease_table, slot, e->expires_ms);
    return slot;
}

uint32_t fp_entry_end_slot(struct fp_cache *c, struct fp_entry *e)
{
    if (e->end_slot == FP_NO_SLOT)
        e->end_slot = take_slot(c, e);
    return e->end_slot;
}

static void end_leases_on(struct fp_cache *c, const struct fp_entry *e, uint32_t *slot)
{
    if (c->lease_table == NULL)
        return;
    fp_lease_table_invalidate(c->lease_table, *slot);
    if (!fp_lease_table_is_exhausted(c->lease_table, *slot))
        return;
    fp_lease_table_release(c->lease_table, *slot);
    *slot = take_slot(c, e);
}

void fp_entry_end_leases_at(struct fp_cache *c, struct fp_entry *e)
{
    end_leases_on(c, e, &e->end_slot);
}

void fp_entry_end_leases(struct fp_cache *c, struct fp_entry *e)
{
    end_leases_on(c, e, &e->slot);
    fp_entry_end_leases_at(c, e);
}

/* Sets when the entry is next looked at for use: after half of its TTL or earlier, and then a few times more
 * before it expires. */
static void set_refresh(struct fp_cache *c, struct fp_entry *e, uint64_t at_ms)
{
    if (at_ms < e->expires_ms)
        fp_timer_set(&c->wheel, &e->refresh, at_ms);
    else
        fp_timer_clear(&c->wheel, &e->refresh);
}

static uint64_t half_ms(const struct fp_entry *e)
{
    return e->seen_ms + e->ttl_ms / 2;
}

/* When the entry is looked at again if it is in use, and from when on its use counts. If looks cost the file
 * server operations, the time is late, and only a use just before it counts. A path that is requested once a
 * second costs less without that look. */
static uint64_t due_ms(const struct fp_entry *e)
{
    return e->validity.traits.by_directory ? e->seen_ms + e->ttl_ms / 8 * 7 : half_ms(e);
}

uint64_t fp_entry_counts_ms(const struct fp_entry *e)
{
    return e->validity.traits.by_directory ? e->seen_ms + e->ttl_ms / 4 * 3 : half_ms(e);
}

/* When its timer is to come again: it was not in use, or its look, or one at a directory above, is under way. */
static uint64_t again_ms(const struct fp_entry *e, uint64_t now_ms)
{
    return now_ms + e->ttl_ms / (e->validity.traits.by_directory ? 32 : 8) + 1;
}

bool fp_entry_had_settled(const struct fp_entry *e, const struct fp_meta *m, uint64_t at_ms)
{
    return fp_meta_had_settled(m, at_ms)
           && (e->validity.traits.local || fp_server_clock_has_settled(m->dev, &m->ctime));
}

/* A small file that changed just before it was seen could not be read yet. If it is in use, a walk reads its
 * content as soon as possible. */
static uint64_t first_refresh_ms(const struct fp_cache *c, const struct fp_entry *e)
{
    const uint64_t settled_ms = e->seen_ms + FP_SETTLED_MS;
    const struct fp_meta *m = fp_entry_target(e);

    if (settled_ms < fp_entry_counts_ms(e) && fp_entry_is_file(e) && m->size > 0 && m->size <= c->content.file_max
        && !fp_entry_had_settled(e, m, e->seen_ms) && fp_meta_had_settled(m, settled_ms))
        return settled_ms;
    return fp_entry_counts_ms(e);
}

void fp_entry_validate(struct fp_cache *c, struct fp_entry *e)
{
    e->expires_ms = e->seen_ms + e->ttl_ms;
    e->owed &= (uint8_t)~FP_USE_REFRESH;
    if (e->ahead == FP_AHEAD_ASKED)
        e->ahead = FP_AHEAD_EARNED;
    set_refresh(c, e, first_refresh_ms(c, e));
    for (struct fp_entry *p = e->parent; p != NULL; p = p->parent) {
        if (p->needed_ms < half_ms(e))
            p->needed_ms = half_ms(e);
    }
    if (c->lease_table == NULL)
        return;
    fp_lease_table_set_expiry(c->lease_table, e->slot, e->expires_ms);
    fp_lease_table_set_expiry(c->lease_table, e->end_slot, e->expires_ms);
}

static void take_referenced(struct fp_cache *c, struct fp_entry *e)
{
    if (c->lease_table != NULL
        && (fp_lease_table_take_referenced(c->lease_table, e->slot)
            | fp_lease_table_take_referenced(c->lease_table, e->end_slot)))
        e->owed = FP_USE_ALL;
}

bool fp_entry_take_use(struct fp_cache *c, struct fp_entry *e)
{
    bool used;

    take_referenced(c, e);
    used = (e->owed & FP_USE_EVICTION) != 0;
    e->owed &= (uint8_t)~FP_USE_EVICTION;
    return used;
}

bool fp_entry_is_used(struct fp_cache *c, struct fp_entry *e)
{
    take_referenced(c, e);
    return (e->owed & FP_USE_REFRESH) != 0;
}

/* True if the entry is in use.  Then all above it is in use too, and may be past half of its TTL already (fp_cache_find_base()
 * knows where it waits longer). */
static bool is_used(struct fp_cache *c, struct fp_entry *e, uint64_t now_ms)
{
    if (!fp_entry_is_used(c, e))
        return false;
    for (struct fp_entry *p = e->parent; p != NULL; p = p->parent) {
        if ((p->owed & FP_USE_REFRESH) == 0 && !p->validity.traits.by_directory && half_ms(p) <= now_ms)
            set_refresh(c, p, now_ms);
        p->owed |= FP_USE_REFRESH;
    }
    return true;
}

/* True if the entry would expire before, or just when, the entries below it are looked at for use. */
static bool is_needed(const struct fp_entry *e, uint64_t now_ms)
{
    return !e->validity.traits.by_directory && e->needed_ms > now_ms && e->needed_ms + e->ttl_ms / 8 > e->expires_ms;
}

const struct fp_entry *fp_entry_on_mount(const struct fp_entry *e)
{
    while (e != NULL && e->validity.mount == 0)
        e = e->parent;
    return e;
}

/* True if its look may begin now. Otherwise it comes again in a moment, as it is. */
static bool begins(struct fp_cache *c, struct fp_entry *e, uint64_t now_ms, fp_cache_room *room, const void *ctx)
{
    const struct fp_entry *on = fp_entry_on_mount(e);

    if (room != NULL && !room(ctx, on != NULL ? on->validity.mount : 0)) {
        fp_timer_set(&c->wheel, &e->refresh, now_ms + FP_TIMER_TICK_MS);
        return false;
    }
    if (e->ahead == FP_AHEAD_DUE)
        e->ahead = FP_AHEAD_USED;
    return true;
}

struct fp_entry *fp_entry_take_refresh(struct fp_cache *c, uint64_t now_ms, unsigned *looks, fp_cache_room *room,
                                       const void *ctx)
{
    for (; *looks > 0; --*looks) {
        struct fp_timer *d = fp_timer_take(&c->wheel, now_ms);
        struct fp_entry *e;

        if (d == NULL)
            return NULL;
        e = (struct fp_entry *)((char *)d - offsetof(struct fp_entry, refresh));
        if (now_ms < due_ms(e) && fp_entry_counts_ms(e) <= now_ms) {
            take_referenced(c, e);
            e->owed &= (uint8_t)~FP_USE_REFRESH;
            set_refresh(c, e, due_ms(e));
            continue;
        }
        set_refresh(c, e, again_ms(e, now_ms));
        if (e->generation != 0 && !fp_entry_is_purged(c, e)
            && (e->ahead == FP_AHEAD_DUE
                || (e->expires_ms > now_ms && (is_used(c, e, now_ms) || is_needed(e, now_ms))))
            && begins(c, e, now_ms, room, ctx)) {
            --*looks;
            return e;
        }
    }
    return NULL;
}

bool fp_entry_has_expired(const struct fp_entry *e, uint64_t now_ms)
{
    return e->generation != 0 && e->expires_ms != 0 && now_ms >= e->expires_ms;
}

/* ---- looks ahead ---- */

/* How many questions the next look ahead takes. A page that takes longer than the TTL makes one or two in vain. */
static uint8_t price(const struct fp_entry *e)
{
    return e->in_vain <= 2 ? 1 : (uint8_t)(1u << (e->in_vain - 2));
}

/* A look ahead was in vain if no use followed. */
static void end_look(struct fp_cache *c, struct fp_entry *e)
{
    take_referenced(c, e);
    if ((e->owed & FP_USE_AHEAD) != 0) {
        e->in_vain = 0;
        e->ahead = FP_AHEAD_EARNED;
        return;
    }
    if (e->in_vain < MOST_IN_VAIN)
        e->in_vain++;
    e->questions = price(e);
    e->ahead = FP_AHEAD_NOT;
}

static bool look_ahead_at(struct fp_cache *c, struct fp_entry *e, uint64_t now_ms)
{
    if (!fp_entry_has_expired(e, now_ms))
        return false;
    if (e->ahead == FP_AHEAD_USED)
        end_look(c, e);
    if (e->ahead != FP_AHEAD_EARNED)
        return false;
    e->owed &= (uint8_t)~FP_USE_AHEAD;
    e->ahead = FP_AHEAD_DUE;
    fp_timer_set(&c->wheel, &e->refresh, now_ms);
    return true;
}

/* A question found the entry expired. Only one that came soon after another counts. */
static void count_question(struct fp_cache *c, struct fp_entry *e, bool soon)
{
    if (e->ahead == FP_AHEAD_USED)
        end_look(c, e);
    if (!soon)
        e->questions = price(e);
    else if (e->questions > 0)
        e->questions--;
    e->ahead = e->questions == 0 ? FP_AHEAD_ASKED : FP_AHEAD_NOT;
}

static void stand_last(struct fp_cache *c, struct fp_entry *e)
{
    TAILQ_REMOVE(&c->asked, e, asked);
    TAILQ_INSERT_TAIL(&c->asked, e, asked);
}

void fp_entry_look_ahead(struct fp_cache *c, struct fp_entry *e, uint64_t now_ms)
{
    struct fp_entry *next = TAILQ_NEXT(e, asked);

    count_question(c, e, now_ms - c->question_ms < SOON(e->ttl_ms));
    c->question_ms = now_ms;
    stand_last(c, e);
    for (unsigned n = 0; n < FP_CACHE_AHEAD && next != NULL && next != e; n++) {
        struct fp_entry *candidate = next;

        next = TAILQ_NEXT(next, asked);
        if (look_ahead_at(c, candidate, now_ms))
            stand_last(c, candidate);
    }
}

/* ---- entries ---- */

/* Includes the entry's share of the hash table. */
size_t fp_entry_bytes(const struct fp_entry *e)
{
    return sizeof(*e) + e->len + 1 + (e->target != NULL ? sizeof(*e->target) : 0)
           + e->n_access * sizeof(e->access[0]) + fp_dependency_list_bytes(e->dependencies) + sizeof(void *);
}

void fp_entry_invalidate(struct fp_cache *c, struct fp_entry *e)
{
    if (e->expires_ms == 0)
        return;
    e->expires_ms = 0;
    c->counts.changes++;
    fp_entry_end_leases(c, e);
}

void fp_entry_wipe(struct fp_cache *c, struct fp_entry *e)
{
    const size_t before = fp_entry_bytes(e);

    e->generation = 0;
    fp_entry_drop_fd(c, e);
    fp_entry_forget_access(e);
    c->bytes += fp_entry_bytes(e) - before;
    fp_entry_end_leases(c, e);
    fp_entry_set_kind(c, e, fp_entry_kind(e));
}

void fp_entry_count_place(struct fp_cache *c, const struct fp_entry *e, int more)
{
    c->n_linked += (size_t)(e->linked ? more : 0);
    c->n_on_mount[e->validity.mount % FP_MOUNT_BUCKETS] += (size_t)more;
}

struct fp_entry *fp_entry_create(struct fp_cache *c, const char *path, size_t len, struct fp_entry *parent)
{
    struct fp_entry *e = fp_memory_take_zeroed(1, sizeof(*e) + len + 1);

    if (e == NULL)
        return NULL;
    memcpy(e->path, path, len);
    e->len = (uint16_t)len;
    e->fd = -1;
    e->kind = FP_KIND_NEGATIVE;
    e->status = FP_ABSENT;
    e->verdict = FP_TTL_UNWATCHED;
    e->parent = parent;
    if (!fp_index_add(&c->entries, &e->indexed, fp_keyed_hash(e->path, e->len))) {
        free(e);
        return NULL;
    }
    e->slot = take_slot(c, e);
    c->bytes += fp_entry_bytes(e);
    c->sieves[e->kind].count++;
    fp_entry_count_place(c, e, 1);
    fp_entry_enqueue(c, e);
    TAILQ_INSERT_TAIL(&c->asked, e, asked);
    e->ahead = FP_AHEAD_USED;
    e->purge = c->n_purges;
    if (parent == NULL)
        return e;
    if (LIST_EMPTY(&parent->children))
        fp_entry_dequeue(c, parent);
    LIST_INSERT_HEAD(&parent->children, e, sibling);
    fp_entry_count(e, 1);
    return e;
}

const struct fp_watch_key *fp_entry_own_key(const struct fp_entry *e)
{
    return e != NULL && e->own != NULL ? fp_dependency_key(e->own) : NULL;
}

enum fp_kind fp_entry_kind(const struct fp_entry *e)
{
    if (e->fd != -1 && e->opened != FP_OPENED_DIR)
        return FP_KIND_FILE;
    return e->status == FP_OK ? FP_KIND_DIRECTORY : FP_KIND_NEGATIVE;
}

void fp_entry_forget_access(struct fp_entry *e)
{
    free(e->access);
    e->access = NULL;
    e->n_access = 0;
}
