/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/cache.h"

#include <stdlib.h>

#include "cache/cache_entry.h"
#include "cache/dependency.h"
#include "shared/lease_table.h"
#include "wire/answer.h"
#include "wire/walk_result.h"

static const struct fp_names no_names;

#define WANTED_AGAIN_MS 600000u /* until another attempt to read a larger file's content */

void fp_cache_set_limits(struct fp_cache *c, const struct fp_cache_limits *limits)
{
    c->sieves[FP_KIND_FILE].limit = limits->files;
    c->sieves[FP_KIND_DIRECTORY].limit = limits->directories;
    c->sieves[FP_KIND_NEGATIVE].limit = limits->negatives;
    c->max_open_dirs = limits->open_dirs;
    c->max_bytes = limits->bytes;
    c->watched_ttl_ms = limits->watched_ttl_ms;
    fp_entry_trim(c);
    fp_entry_trim_open_dirs(c);
    fp_cache_verify(c);
}

void fp_cache_set_content(struct fp_cache *c, const struct fp_cache_content *content)
{
    c->content = *content;
}

struct fp_cache *fp_cache_create(const struct fp_cache_limits *limits, const struct fp_cache_deps *deps)
{
    struct fp_cache *c = calloc(1, sizeof(*c));
    const struct fp_dependencies_deps on = { deps->forget, deps->ctx, fp_entry_lose, c, deps->now_ms };

    if (c != NULL)
        c->dependencies = fp_dependencies_create(&on);
    if (c == NULL || c->dependencies == NULL) {
        free(c);
        return NULL;
    }
    c->lease_table = deps->lease_table;
    c->names = &no_names;
    c->verify = deps->verify;
    fp_timer_wheel_init(&c->wheel, deps->now_ms());
    for (int k = 0; k < FP_KINDS; k++)
        TAILQ_INIT(&c->sieves[k].queue);
    TAILQ_INIT(&c->open_dirs);
    TAILQ_INIT(&c->asked);
    TAILQ_INIT(&c->purging);
    fp_cache_set_limits(c, limits);
    return c;
}

void fp_cache_clear(struct fp_cache *c)
{
    while (fp_entry_evict_for(c, FP_KIND_FILE))
        ;
    fp_cache_verify(c);
}

void fp_cache_destroy(struct fp_cache **c)
{
    if (*c == NULL)
        return;
    fp_cache_clear(*c);
    fp_dependencies_destroy(&(*c)->dependencies);
    free(*c);
    *c = NULL;
}

void fp_cache_set_names(struct fp_cache *c, const struct fp_names *names)
{
    c->names = names;
}

/* ---- looking up ---- */

/* True if the entry is valid below its parent. */
static bool is_valid(const struct fp_entry *e, enum fp_ask ask, uint64_t now_ms)
{
    const uint32_t stale_ms = e->validity.stale_ms;

    return e->generation != 0 && e->expires_ms != 0
           && (fp_entry_is_watched(e)
               || (ask != FP_ASK_FRESH && (ask != FP_ASK_STALE_FRESH || stale_ms > 0)))
           && now_ms < e->expires_ms + (ask >= FP_ASK_STALE ? stale_ms : 0)
           && (e->parent == NULL || e->parent_generation == e->parent->generation);
}

/* The deepest entry, e or one above it, to which every step from "/" on is valid; NULL if there is none.
 * *n_r: the number of these steps. */
static struct fp_entry *find_valid(struct fp_entry *e, enum fp_ask ask, uint64_t now_ms, unsigned *n_r)
{
    unsigned n = 0;

    for (struct fp_entry *step = e; step != NULL; step = step->parent) {
        n++;
        if (is_valid(step, ask, now_ms))
            continue;
        e = step->parent;
        n = 0;
    }
    *n_r = n;
    return n <= FP_MAX_STEPS ? e : NULL;
}

/* The answer that ends in that entry, n steps below "/". */
static void fill_answer(struct fp_cache *c, struct fp_entry *end, unsigned n, struct fp_answer *a)
{
    a->leasable = a->above_watched = true;
    a->n_steps = n;
    a->n_names = c->names->n;
    for (struct fp_entry *e = end; e != NULL; e = e->parent) {
        struct fp_step *s = &a->steps[--n];

        s->end = e->len;
        s->status = e->status;
        s->self = e->self;
        s->target_status = e->target_status;
        if (e->target != NULL)
            s->target = *e->target;
        for (unsigned i = 0; i < e->n_access; i++)
            s->access[i] = e->access[i];
        s->slot = e == end && fp_entry_is_dir(e) ? fp_entry_end_slot(c, e) : e->slot;
        s->generation = s->slot != FP_NO_SLOT ? fp_lease_table_generation(c->lease_table, s->slot) : 0;
        a->leasable = a->leasable && s->slot != FP_NO_SLOT;
        if (e != end)
            a->above_watched = a->above_watched && fp_entry_is_watched(e);
    }
    a->watched = a->above_watched && fp_entry_is_watched(end) && a->leasable;
    /* A client that looks itself has no stale answer while the file system hangs. */
    a->may_look = end->parent != NULL && end->parent->validity.traits.local && end->parent->validity.stale_ms == 0;
}

/* True if a question about the file needs a walk that opens it. The walk's own result has what it opened. While the
 * file system does not answer, nothing can be opened. */
static bool is_to_be_opened(const struct fp_entry *e, enum fp_ask ask)
{
    return fp_entry_is_file(e)
           && (e->opened == FP_OPENED_NOT || (e->opened == FP_OPENED_LENT && ask < FP_ASK_INSERTED));
}

/* The answer ends at the path's entry, or at one above that is no directory. */
static bool lookup(struct fp_cache *c, const char *path, size_t len, enum fp_ask ask, uint64_t now_ms,
                   struct fp_answer *a)
{
    unsigned n;
    struct fp_entry *end = find_valid(fp_entry_find_nearest(c, path, len), ask, now_ms, &n);

    if (end == NULL || (end->len != len && fp_entry_is_dir(end)))
        return false;
    if (end->len == len && (end->inside_changed || is_to_be_opened(end, ask)))
        return false;
    if (ask != FP_ASK_INSERTED)
        end->owed = FP_USE_ALL;
    a->source = FP_SOURCE_CACHE;
    if (end->len == len && fp_entry_is_file(end) && end->opened != FP_OPENED_DENIED) {
        a->readable = true;
        a->fd = end->fd;
        a->content = end->content_at != 0;
        a->local = a->content || end->validity.traits.local;
        a->content_at = end->content_at;
    }
    fill_answer(c, end, n, a);
    return true;
}

/* Notes that a question was not answered. */
static void note_miss(struct fp_cache *c, const char *path, size_t len, uint64_t now_ms)
{
    struct fp_entry *e = fp_entry_find(c, path, len);

    if (e != NULL && fp_entry_has_expired(e, now_ms)) {
        c->counts.expired++;
        fp_entry_look_ahead(c, e, now_ms);
    }
}

bool fp_cache_lookup(struct fp_cache *c, const char *path, size_t len, enum fp_ask ask, uint64_t now_ms,
                     struct fp_answer *a)
{
    bool known;

    fp_answer_init(a, FP_OK);
    known = lookup(c, path, len, ask, now_ms, a);
    if (!known && ask <= FP_ASK_FRESH)
        note_miss(c, path, len, now_ms);
    if (known && ask >= FP_ASK_STALE) {
        a->source = FP_SOURCE_STALE;
        a->leasable = a->watched = false;
    }
    fp_cache_verify(c);
    return known;
}

void fp_cache_note_in_use(struct fp_cache *c, const char *path, size_t len)
{
    struct fp_entry *e = fp_entry_find(c, path, len);

    if (e != NULL)
        e->owed |= FP_USE_AHEAD;
}

bool fp_cache_take_refresh(struct fp_cache *c, uint64_t now_ms, unsigned *looks, fp_cache_room *room, const void *ctx,
                           struct fp_cache_refresh *refresh_r)
{
    const struct fp_entry *e = fp_entry_take_refresh(c, now_ms, looks, room, ctx);

    fp_cache_verify(c);
    if (e == NULL)
        return false;
    *refresh_r = (struct fp_cache_refresh){ e->path, e->len, fp_entry_is_lent(e) };
    return true;
}

uint32_t fp_cache_mount(const struct fp_cache *c, const char *path, size_t len, size_t *known_r)
{
    const struct fp_entry *e = fp_entry_on_mount(fp_entry_find_nearest(c, path, len));

    *known_r = e != NULL ? e->len : 0;
    return e != NULL ? e->validity.mount : 0;
}

/* True where a walk looks at the directory first, as that is soon due anyway: on NFS one look at a directory does for all
 * that lies in it, and costs the server an operation. */
static bool is_old(const struct fp_entry *dir, uint64_t now_ms)
{
    return dir->validity.traits.by_directory && now_ms >= fp_entry_counts_ms(dir);
}

/*
 * The moment from which on the names in the directory are known well enough for a walk to that path, or 0. On NFS a
 * walk asks for the times of the directory where it begins, unless they are known. The result of a walk counts from
 * that moment on, so that all changes show in time.
 */
static uint64_t asked_ms(const struct fp_cache *c, const struct fp_entry *dir, const char *path, size_t len)
{
    const struct fp_entry *e = fp_entry_find(c, path, len);
    const struct fp_watch_key *own = fp_entry_own_key(dir);

    if (!dir->validity.traits.by_directory || (e != NULL && e->seen_ms >= dir->seen_ms) || own == NULL
        || fp_dependencies_any_happened(c->dependencies, own, dir->seen_ms)
        || fp_dependencies_happened(c->dependencies, own, "", 0, dir->seen_ms))
        return 0;
    return dir->seen_ms;
}

bool fp_cache_find_base(struct fp_cache *c, const char *path, size_t len, size_t min_len,
                        uint64_t now_ms, struct fp_cache_base *base)
{
    struct fp_entry *e = len > 1 ? fp_entry_find_nearest(c, path, fp_path_parent_len(path, len)) : NULL;
    unsigned n;

    e = find_valid(e, FP_ASK_ANY, now_ms, &n);
    for (struct fp_entry *dir = e; dir != NULL; dir = dir->parent) {
        if (is_old(dir, now_ms))
            e = dir->parent;
    }
    while (e != NULL && e->opened != FP_OPENED_DIR)
        e = e->parent;
    if (e == NULL || e->len < min_len)
        return false;
    fp_entry_use_open_dir(c, e, now_ms);
    base->fd = e->fd;
    base->len = e->len;
    base->generation = e->generation;
    base->links = e->links;
    base->mount = e->validity.mount;
    base->asked_ms = asked_ms(c, e, path, len);
    fp_cache_verify(c);
    return true;
}

uint64_t fp_cache_device(const struct fp_cache *c, const char *path, size_t len)
{
    const struct fp_entry *e = fp_entry_find_nearest(c, path, len);

    while (e != NULL && (e->status != FP_OK || e->target_status != FP_OK))
        e = e->parent;
    return e != NULL ? fp_entry_target(e)->dev : 0;
}

bool fp_cache_find_known(const struct fp_cache *c, const char *path, size_t len, bool to_send,
                         struct fp_meta *m)
{
    const struct fp_entry *e = fp_entry_find(c, path, len);

    if (e == NULL || !fp_entry_is_file(e)
        || (e->opened != FP_OPENED_KEPT && (to_send || e->opened != FP_OPENED_LENT))
        || e->target != NULL || e->reopen || fp_entry_is_purged(c, e))
        return false;
    /* A reported change need not change the metadata.  The end of a mapping does not.  Before Linux 6.13
     * neither does a second change within a tick of the
     * kernel's clock, and that may have revoked the rights. */
    if (e->expires_ms == 0 || e->ttl_ms == 0 || (e->content_at != 0 && c->content.file_max == 0))
        return false;
    *m = e->self;
    return true;
}

bool fp_cache_is_transient(const struct fp_cache *c, const char *path, size_t len)
{
    const struct fp_entry *e = fp_entry_find(c, path, len);

    return e != NULL && e->seen_ms != 0 && e->ttl_ms == 0;
}

bool fp_cache_has_content_room(const struct fp_cache *c, uint64_t size)
{
    return size <= c->content.file_max || c->content_bytes + size <= c->content.remote_room;
}

uint32_t fp_cache_content_max(struct fp_cache *c, const char *path, size_t len, bool known, uint64_t now_ms)
{
    struct fp_entry *e = fp_entry_find(c, path, len);

    if (e == NULL || e->opened != FP_OPENED_LENT || (e->wanted_ms != 0 && now_ms < e->wanted_ms + WANTED_AGAIN_MS)
        || !fp_cache_has_content_room(c, e->self.size) || !fp_entry_had_settled(e, &e->self, now_ms))
        return known && e != NULL && e->content_at != 0 ? 0 : c->content.file_max;
    e->wanted_ms = now_ms;
    return c->content.remote_max;
}

/* ---- contents ---- */

/* NULL: the content at that place belongs to no entry any more. */
static struct fp_entry *find_content(const struct fp_cache *c, const char *path, size_t len, uint64_t at)
{
    struct fp_entry *e = fp_entry_find(c, path, len);

    return e != NULL && at != 0 && e->content_at == at ? e : NULL;
}

/* Where contents take too much, the larger ones give way: the daemon has their descriptors again then. */
static bool may_stay(const struct fp_cache *c, const struct fp_entry *e)
{
    return e->content_bytes <= c->content.file_max || c->content_bytes <= c->content.remote_room;
}

bool fp_cache_content_is_used(struct fp_cache *c, const char *path, size_t len, uint64_t at, uint64_t now_ms)
{
    const struct fp_entry *e = find_content(c, path, len, at);

    return e != NULL && e->generation != 0 && !fp_entry_is_purged(c, e) && now_ms < e->expires_ms
           && may_stay(c, e) && c->lease_table != NULL
           && fp_lease_table_take_recent(c->lease_table, e->slot, FP_READER_CONTENTS);
}

bool fp_cache_move_content(struct fp_cache *c, const char *path, size_t len, uint64_t from, uint64_t to)
{
    struct fp_entry *e = find_content(c, path, len, from);

    if (e == NULL)
        return false;
    e->content_at = to;
    return true;
}

void fp_cache_drop_content(struct fp_cache *c, const char *path, size_t len, uint64_t at)
{
    struct fp_entry *e = find_content(c, path, len, at);

    if (e != NULL)
        fp_entry_drop_fd(c, e);
}

size_t fp_cache_evict_files(struct fp_cache *c, size_t n)
{
    size_t done = 0;

    while (done < n && fp_entry_close_file(c))
        done++;
    /* The entries count now among those without a descriptor. */
    fp_entry_trim(c);
    fp_cache_verify(c);
    return done;
}

bool fp_cache_close_idle_dirs(struct fp_cache *c, size_t most, uint64_t now_ms)
{
    struct fp_entry *e;

    while (most-- > 0 && (e = TAILQ_LAST(&c->open_dirs, fp_entry_queue)) != NULL
           && e->begun_ms + FP_DIR_IDLE_MS <= now_ms)
        fp_entry_drop_fd(c, e);
    fp_cache_verify(c);
    return c->n_open_dirs > 0;
}

size_t fp_cache_evict(struct fp_cache *c, size_t n)
{
    size_t done;

    fp_entry_evict_purged(c, n, &done);
    while (done < n && fp_entry_evict_any(c))
        done++;
    fp_cache_verify(c);
    return done;
}

void fp_cache_evict_watched(struct fp_cache *c, size_t n)
{
    const size_t watches = fp_dependencies_count(c->dependencies);
    const size_t enough = watches > n ? watches - n : 0;
    size_t tries = FP_WATCH_TRIES * n, evicted;

    if (n == 0)
        return;
    /* Purged entries are of no use to anybody. */
    fp_entry_evict_purged(c, n, &evicted);
    while (tries-- > 0 && fp_dependencies_count(c->dependencies) > enough && fp_entry_look_for_watch(c))
        ;
    fp_cache_verify(c);
}

/* ---- for operators ---- */

static enum fp_cache_state state_of(const struct fp_entry *e, uint64_t now_ms)
{
    if (e->parent != NULL && e->parent_generation != e->parent->generation)
        return FP_CACHE_DETACHED;
    if (e->expires_ms == 0)
        return FP_CACHE_CHANGED;
    return now_ms < e->expires_ms ? FP_CACHE_KNOWN : FP_CACHE_EXPIRED;
}

struct fp_cache_snapshot fp_cache_snapshot(const struct fp_cache *c, const char *path, size_t len, uint64_t now_ms)
{
    const struct fp_entry *e = fp_entry_find(c, path, len);
    struct fp_cache_snapshot s = { .state = FP_CACHE_UNKNOWN, .verdict = FP_TTL_UNWATCHED };

    if (e == NULL || e->generation == 0 || fp_entry_is_purged(c, e))
        return s;
    s.state = state_of(e, now_ms);
    s.verdict = e->verdict;
    s.expires_ms = e->expires_ms;
    s.mount = e->validity.mount;
    s.content = e->content_at != 0;
    s.open = e->fd != -1 && !s.content;
    s.leased = s.state == FP_CACHE_KNOWN && e->slot != FP_NO_SLOT;
    return s;
}

/* True if paths end at the entry.  A directory is on the way to other paths; it ends one if it has leases of
 * its own for that. */
static bool ends_paths(const struct fp_entry *e)
{
    return LIST_EMPTY(&e->children) || e->end_slot != FP_NO_SLOT;
}

/* True if the entry is to be listed.  An entry in use may have changed a moment ago.  A file that has expired
 * may be in use again tomorrow, an absent name rather not. */
static bool is_listed(const struct fp_cache *c, const struct fp_entry *e, uint64_t now_ms, bool used)
{
    enum fp_cache_state state;

    if (e->generation == 0 || fp_entry_is_purged(c, e) || !ends_paths(e))
        return false;
    state = state_of(e, now_ms);
    return state == FP_CACHE_KNOWN || (used && state != FP_CACHE_DETACHED)
           || (state == FP_CACHE_EXPIRED && fp_entry_kind(e) != FP_KIND_NEGATIVE);
}

#define LISTED_BUCKETS 512u /* at once; a bucket has less than one entry, or about one */

/* Lists the entries of one bucket; false: list wants no more. */
static bool list_bucket(struct fp_cache *c, const struct fp_cache_cursor *at, uint64_t now_ms,
                        fp_cache_list_path *list, void *ctx)
{
    for (struct fp_indexed *x = fp_index_bucket(&c->entries, at->bucket); x != NULL; x = x->next) {
        struct fp_entry *e = (struct fp_entry *)x;

        if (fp_entry_is_used(c, e) != at->unused && is_listed(c, e, now_ms, !at->unused)
            && !list(ctx, e->path, e->len))
            return false;
    }
    return true;
}

bool fp_cache_list_some(struct fp_cache *c, struct fp_cache_cursor *at, uint64_t now_ms,
                        fp_cache_list_path *list, void *ctx)
{
    for (unsigned i = 0; i < LISTED_BUCKETS; i++, at->bucket++) {
        if (at->bucket >= c->entries.buckets && at->unused)
            return false;
        if (at->bucket >= c->entries.buckets)
            *at = (struct fp_cache_cursor){ .unused = true };
        if (at->bucket < c->entries.buckets && !list_bucket(c, at, now_ms, list, ctx))
            return false;
    }
    return true;
}

struct fp_cache_counts fp_cache_counts(const struct fp_cache *c)
{
    struct fp_cache_counts counts = c->counts;

    /* The limit on descriptors does not apply to contents. */
    counts.files = c->sieves[FP_KIND_FILE].count + c->n_contents;
    counts.directories = c->sieves[FP_KIND_DIRECTORY].count - c->n_contents;
    counts.negatives = c->sieves[FP_KIND_NEGATIVE].count;
    counts.open_dirs = c->n_open_dirs;
    counts.bytes = c->bytes;
    counts.purging = c->n_purging;
    counts.content_files = c->n_contents;
    counts.content_bytes = c->content_bytes;
    counts.watches = fp_dependencies_count(c->dependencies);
    return counts;
}
