/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction: which entry goes, and what is over the limits. */
#include "config.h"
#include "cache/cache_entry.h"

#include <stddef.h>

#include "cache/dependency.h"
#include "privsep/closer.h"

/* The entry where the hand stops, which is to go; NULL: none can. */
static struct fp_entry *move_hand(struct fp_cache *c, enum fp_kind kind)
{
    struct fp_sieve *s = &c->sieves[kind];
    struct fp_entry *e = s->hand;
    size_t visits = FP_SIEVE_VISITS;

    for (;;) {
        if (e == NULL)
            e = TAILQ_LAST(&s->queue, fp_entry_queue);
        if (e == NULL || (e == c->newest && TAILQ_FIRST(&s->queue) == e && TAILQ_NEXT(e, link) == NULL))
            return NULL;
        c->counts.visits++;
        if (e != c->newest && (visits == 0 || !fp_entry_take_use(c, e)))
            break;
        visits -= visits > 0;
        e = TAILQ_PREV(e, fp_entry_queue, link);
    }
    s->hand = e;
    return e;
}

/* Takes the hand off the newest entry, as if that were
 * not there yet: it came before there was room for it. */
static void leave_newest(struct fp_cache *c, enum fp_kind kind)
{
    if (c->sieves[kind].hand == c->newest)
        c->sieves[kind].hand = NULL;
}

/* Evicts the entry where the hand has stopped. */
static void evict_at_hand(struct fp_cache *c, enum fp_kind kind, struct fp_entry *e)
{
    fp_entry_evict(c, e);
    leave_newest(c, kind);
    c->counts.evictions++;
}

/* Evicts an entry of that kind; false: none could go. */
static bool evict_from(struct fp_cache *c, enum fp_kind kind)
{
    struct fp_entry *e = move_hand(c, kind);

    if (e != NULL)
        evict_at_hand(c, kind, e);
    return e != NULL;
}

bool fp_entry_close_file(struct fp_cache *c)
{
    struct fp_entry *e = move_hand(c, FP_KIND_FILE);

    if (e == NULL)
        return false;
    fp_entry_drop_fd(c, e);
    fp_entry_set_kind(c, e, fp_entry_kind(e));
    leave_newest(c, FP_KIND_FILE);
    c->counts.closed++;
    return true;
}

/* Directories above a file cannot go before it: then files have to go. */
bool fp_entry_evict_for(struct fp_cache *c, enum fp_kind kind)
{
    return evict_from(c, kind) || evict_from(c, FP_KIND_NEGATIVE) || evict_from(c, FP_KIND_FILE)
           || evict_from(c, FP_KIND_DIRECTORY);
}

/* Descriptors that wait to be closed take the place of files meanwhile.
 * Else a file system that answers no close would use up all descriptors. */
static size_t limit_now(const struct fp_cache *c, enum fp_kind kind)
{
    const size_t limit = c->sieves[kind].limit, closing = kind == FP_KIND_FILE ? fp_closer_waiting() : 0;
    const size_t most = limit - limit / 4;

    return limit - (closing < most ? closing : most);
}

/* Each kind keeps what is in use, whichever takes the memory.  Of absent names, which strangers invent, a
 * quarter of all entries is enough. */
static enum fp_kind kind_to_evict(const struct fp_cache *c)
{
    const size_t files = c->sieves[FP_KIND_FILE].count, others = c->sieves[FP_KIND_DIRECTORY].count;

    if (c->sieves[FP_KIND_NEGATIVE].count > (files + others) / 3)
        return FP_KIND_NEGATIVE;
    return files > others ? FP_KIND_FILE : FP_KIND_DIRECTORY;
}

bool fp_entry_evict_any(struct fp_cache *c)
{
    return fp_entry_evict_for(c, kind_to_evict(c));
}

/* Where the hand stops: evicts the entry if inotify watches it, else passes it by. */
static bool look_for_watch(struct fp_cache *c, enum fp_kind kind)
{
    struct fp_entry *e = move_hand(c, kind);
    const struct fp_watch_key *own = e != NULL ? fp_entry_own_key(e) : NULL;

    if (own != NULL)
        evict_at_hand(c, kind, e);
    else if (e != NULL)
        c->sieves[kind].hand = TAILQ_PREV(e, fp_entry_queue, link);
    return e != NULL;
}

bool fp_entry_look_for_watch(struct fp_cache *c)
{
    const bool files = c->sieves[FP_KIND_FILE].count > c->sieves[FP_KIND_DIRECTORY].count;

    return look_for_watch(c, files ? FP_KIND_FILE : FP_KIND_DIRECTORY)
           || look_for_watch(c, files ? FP_KIND_DIRECTORY : FP_KIND_FILE);
}

static bool is_over_limits(const struct fp_cache *c)
{
    for (int k = 0; k < FP_KINDS; k++) {
        if (c->sieves[k].count > limit_now(c, (enum fp_kind)k))
            return true;
    }
    return c->bytes > c->max_bytes;
}

void fp_entry_trim(struct fp_cache *c)
{
    size_t evicted;

    /* Purged entries are of no use to anybody: some of them make room first. */
    if (is_over_limits(c))
        fp_entry_evict_purged(c, FP_MAKE_ROOM, &evicted);
    for (int k = 0; k < FP_KINDS; k++) {
        const size_t limit = limit_now(c, (enum fp_kind)k);

        while (k == FP_KIND_FILE && c->sieves[k].count > limit && fp_entry_close_file(c))
            ;
        while (c->sieves[k].count > limit && fp_entry_evict_for(c, (enum fp_kind)k))
            ;
    }
    while (c->bytes > c->max_bytes && fp_entry_evict_any(c))
        ;
}
