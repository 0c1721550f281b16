/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of the cache: their members, their place in the tree, and their end.
 * Private to cache.c (lookups), cache_insert.c (results of walks), cache_change.c
 * (changes, forgetting) and tests.  Beneath them cache_evict.c (eviction) stands
 * on cache_purge.c (purges of trees, the end of an entry), and that on cache_entry.c.
 */
#ifndef FP_CACHE_ENTRY_H
#define FP_CACHE_ENTRY_H

#include <sys/queue.h>

#include "base/keyed_hash.h"
#include "cache/cache_types.h"
#include "cache/index.h"
#include "cache/timer_wheel.h"
#include "changes/coherence.h"
#include "wire/answer.h"
#include "wire/wire.h"

struct fp_dependency;
struct fp_dependencies;

#define FP_MOUNT_BUCKETS 256u /* of mounts, by their ids */

enum fp_kind { FP_KIND_FILE, FP_KIND_DIRECTORY, FP_KIND_NEGATIVE, FP_KINDS };

/* The result of a walk that opened an entry's file. */
enum fp_opened {
    FP_OPENED_NOT,    /* none has, or its descriptor was given up: a question needs another walk */
    FP_OPENED_DENIED, /* it cannot be read */
    FP_OPENED_KEPT,   /* by fd or content */
    FP_OPENED_DIR,    /* by fd: walks begin there */
    FP_OPENED_LENT    /* for those that had asked, as it may not be held open: each question needs a walk */
};

/* The readers of an entry's use. Each hears of it by itself (as those of lease_table.h do). */
enum fp_use_reader { FP_USE_EVICTION = 1, FP_USE_REFRESH = 2, FP_USE_AHEAD = 4, FP_USE_ALL = 7 };

/* Whether an entry that has expired is looked at before somebody asks for it. */
enum fp_ahead {
    FP_AHEAD_NOT,    /* it takes more questions */
    FP_AHEAD_ASKED,  /* the last of them: its walk is under way */
    FP_AHEAD_EARNED, /* yes, once */
    FP_AHEAD_DUE,    /* the look is to begin */
    FP_AHEAD_USED    /* yes, if it was used since: at first, and after each look ahead */
};

struct fp_entry {
    struct fp_indexed indexed;      /* by the path */
    TAILQ_ENTRY(fp_entry) link;     /* in its kind's queue while it has no children */
    TAILQ_ENTRY(fp_entry) open_dir; /* while it is a directory with a descriptor */
    TAILQ_ENTRY(fp_entry) asked;    /* in the order in which they were made, or asked for after they had expired */
    struct fp_entry *parent;        /* NULL for "/" */
    LIST_HEAD(, fp_entry) children; /* entries whose parent this is, detached ones too */
    LIST_ENTRY(fp_entry) sibling;   /* with "/": none */
    size_t below;                   /* how many entries below it are not purged */
    uint64_t purge;                 /* the last tree purge before it was made */
    uint64_t purged_below;          /* the last tree purge of it: older entries below are purged */
    TAILQ_ENTRY(fp_entry) purging;  /* while something below it may be purged and still there */
    uint64_t generation;                /* changes when this becomes another object;
                                     0: nothing is known */
    uint64_t parent_generation;         /* the parent's, when this was seen */
    uint64_t seen_ms;                   /* when the walk that saw it began */
    uint64_t expires_ms;                /* 0: it has changed */
    uint32_t ttl_ms;                    /* from seen_ms to expires_ms */
    enum fp_verdict verdict;            /* on how its changes are noticed: its step's, in its directory */
    uint8_t links;                      /* followed to reach its end, from "/" on */
    bool linked;                        /* it, or something above, is a link */
    bool inside_changed;                /* a directory's own size, times, number of links */
    struct fp_validity validity;        /* of what it leads to */
    struct fp_timer refresh;            /* when to see whether it is in use, and to walk again */
    uint8_t owed;                       /* readers that have not heard yet that a question or a lease used it */
    enum fp_ahead ahead;
    uint8_t questions; /* that the next look ahead takes */
    uint8_t in_vain;   /* looks ahead since the last that was followed by a use */
    uint64_t needed_ms;                 /* when it is seen whether what lies below is in use */
    uint32_t slot;                      /* ends leases that pass it or end in it, */
    uint32_t end_slot;                  /* those that end in it, a directory (once there are any) */
    struct fp_dependency *dependencies; /* on the watched objects that concern it */
    struct fp_dependency *own;          /* that of them on what it leads to */
    enum fp_kind kind;
    enum fp_opened opened;
    bool reopen;      /* the kernel's pages may be older than the file: the next walk opens it anew */
    int fd;
    uint64_t begun_ms;    /* when a walk last began at the open directory */
    uint64_t wanted_ms;   /* when a refresh was to bring the content of the larger file that fd is; 0: never */
    uint64_t content_at;  /* where the file's content is kept, not its descriptor; else 0 */
    size_t content_bytes; /* of that */
    fp_status status, target_status;
    struct fp_meta self;
    struct fp_meta *target;   /* only a link has one */
    struct fp_access *access; /* n_access of them: a directory's, one for each of the cache's names */
    unsigned n_access;
    uint16_t len;
    char path[];
};

TAILQ_HEAD(fp_entry_queue, fp_entry);

/*
 * One SIEVE for each kind (Zhang et al., "SIEVE is Simpler than LRU", NSDI
 * 2024).  New entries stand at the head, and a hand moves from tail to head.  It
 * takes the mark of use where it finds one and evicts where it finds none.  The
 * kinds do not compete, so a scan of negatives evicts no file.  An entry
 * with children is in no queue: it cannot go before them.
 */
struct fp_sieve {
    struct fp_entry_queue queue;
    struct fp_entry *hand;
    size_t count; /* entries of this kind, queued or not */
    size_t limit;
};

/*
 * The invariants, which hold between operations (tests/unit/cache_check.h):
 *
 * - Each entry is found by its path.  Each but "/" has the entry of its directory as parent,
 *   and knows how many children it has.
 * - Its kind is that of its status and its descriptor.  It stands in its kind's queue just
 *   while it has no children, and counts for its kind either way.  A hand is in its queue.
 * - All entries stand in asked.
 * - Just the directories with a descriptor stand in open_dirs, at most max_open_dirs.  An entry
 *   with a content has no descriptor.
 * - bytes, n_contents, content_bytes, n_linked and n_on_mount are the sums over the entries.
 * - A slot of the lease table belongs to one entry.
 * - expires_ms is 0, or seen_ms and ttl_ms together.
 * - The wheel holds just the timers that are set, and each in its bucket (timer_wheel.h).
 * - An entry's dependencies are its own, and "own" is one of them (dependency.h).
 * - An entry is purged if it is older than the last tree purge of an entry above it.  No answer
 *   uses it then, and fp_entry_evict_purged() comes by.  All below a purged entry is purged, and above it is
 *   one in purging.  An entry knows how many below it are not purged.
 */
struct fp_cache {
    struct fp_index entries;
    struct fp_sieve sieves[FP_KINDS];
    struct fp_entry_queue open_dirs; /* the most recently used is the first */
    struct fp_entry_queue asked;     /* all entries, as they were asked for */
    uint64_t question_ms;            /* when one that had expired was asked for last */
    size_t n_open_dirs, max_open_dirs, bytes, max_bytes;
    size_t n_linked, n_on_mount[FP_MOUNT_BUCKETS]; /* entries that are linked; and on mounts */
    struct fp_cache_content content;  /* the limits, */
    size_t n_contents, content_bytes; /* and what there is */
    uint32_t watched_ttl_ms;
    uint64_t last_generation;
    const struct fp_entry *newest; /* while it is being inserted: not to be evicted */
    struct fp_entry_queue purging; /* the purge under way is at the first of them, */
    struct fp_entry *purge_next;   /* and next at this entry below it; NULL: not begun */
    size_t n_purging;
    uint64_t n_purges;
    struct fp_lease_table *lease_table;
    struct fp_timer_wheel wheel;
    struct fp_dependencies *dependencies;
    const struct fp_names *names; /* of access files */
    struct fp_cache_counts counts;
    fp_cache_report_changed *report_changed; /* may be NULL */
    void *report_ctx;
    void (*verify)(const struct fp_cache *c); /* as in fp_cache_deps */
};

/* Ends every public operation. */
static inline void fp_cache_verify(const struct fp_cache *c)
{
    if (c->verify != NULL)
        c->verify(c);
}

/* ---- finding ---- */

/* Returns NULL if there is none. */
struct fp_entry *fp_entry_find(const struct fp_cache *c, const char *path, size_t len);
/* Goes through all entries, in no order; none may come or go meanwhile. */
#define FP_ENTRIES_FOREACH(e, c) \
    for ((e) = (struct fp_entry *)fp_index_first(&(c)->entries); (e) != NULL; \
         (e) = (struct fp_entry *)fp_index_next(&(c)->entries, &(e)->indexed))
/* The path's entry, or the deepest above it; NULL if there is none.  Every entry but "/" has a
 * parent, so the search goes from "/" down and stops at the first path that has no entry.
 * So strangers' paths cost only as much as is known of them, FP_MAX_STEPS hashes at most. */
struct fp_entry *fp_entry_find_nearest(const struct fp_cache *c, const char *path, size_t len);

/* The entry's own metadata, or that of its link's target. */
const struct fp_meta *fp_entry_target(const struct fp_entry *e);
/* True if the entry's file is not held open between requests. On NFS it could not be removed from its directory,
 * and on SMB neither replaced nor renamed. */
bool fp_entry_is_lent(const struct fp_entry *e);
/* True if every change that this machine makes is reported. */
bool fp_entry_is_watched(const struct fp_entry *e);
/* True if walks go on below the entry: at anything but a directory every walk ends. */
bool fp_entry_is_dir(const struct fp_entry *e);
bool fp_entry_is_file(const struct fp_entry *e);
enum fp_kind fp_entry_kind(const struct fp_entry *e);
/* The watch on the entry's target; NULL if there is none, or it has ended. */
const struct fp_watch_key *fp_entry_own_key(const struct fp_entry *e);
/* True if the metadata, the entry's own or its target's, had settled at that moment (fp_now_ms()): by this
 * machine's clock, and by that of the file's server. */
bool fp_entry_had_settled(const struct fp_entry *e, const struct fp_meta *m, uint64_t at_ms);
/* About how much memory the entry takes. */
size_t fp_entry_bytes(const struct fp_entry *e);

/* True if the entry stands in the cache's queue purging. */
static inline bool fp_entry_is_purging(const struct fp_entry *e)
{
    return e->purging.tqe_prev != NULL;
}
/* True if the entry was purged and is still there. */
bool fp_entry_is_purged(const struct fp_cache *c, const struct fp_entry *e);

/* ---- changing: cache_entry.c ---- */

/* A new entry, of which nothing is known, below its parent (NULL for "/"); NULL
 * when out of memory. */
struct fp_entry *fp_entry_create(struct fp_cache *c, const char *path, size_t len, struct fp_entry *parent);
/* Puts an entry without children at the head of its kind's queue, or takes it out. */
void fp_entry_enqueue(struct fp_cache *c, struct fp_entry *e);
void fp_entry_dequeue(struct fp_cache *c, struct fp_entry *e);
/* Adds more to the counts of the entries above this one. */
void fp_entry_count(struct fp_entry *e, long more);
/* Counts the entry, 1 or -1, where it lies: n_linked, n_on_mount. */
void fp_entry_count_place(struct fp_cache *c, const struct fp_entry *e, int more);
void fp_entry_set_kind(struct fp_cache *c, struct fp_entry *e, enum fp_kind kind);
/* Takes the descriptor; a directory is then among the open ones. */
void fp_entry_set_fd(struct fp_cache *c, struct fp_entry *e, int fd);
/* Keeps the file by its content, which lies at that place. */
void fp_entry_set_content(struct fp_cache *c, struct fp_entry *e, uint64_t at);
/* Drops the entry's descriptor, or the place of its content: a file is to be opened again. */
void fp_entry_drop_fd(struct fp_cache *c, struct fp_entry *e);
/* Closes the least recently used of the open directories above their limit. */
void fp_entry_trim_open_dirs(struct fp_cache *c);
/* Notes that a walk begins at the open directory. */
void fp_entry_use_open_dir(struct fp_cache *c, struct fp_entry *e, uint64_t now_ms);
/* Frees the list of access files. The caller counts the entry's memory. */
void fp_entry_forget_access(struct fp_entry *e);
/* Forgets everything about the entry, which stays. */
void fp_entry_wipe(struct fp_cache *c, struct fp_entry *e);

/* The slot of a directory's leases that end in it; FP_NO_SLOT if there is none. */
uint32_t fp_entry_end_slot(struct fp_cache *c, struct fp_entry *e);
/* Makes the entry, and leases on it, valid for ttl_ms from seen_ms. */
void fp_entry_validate(struct fp_cache *c, struct fp_entry *e);
/* To be called when the answer for paths that end in the entry has changed, */
void fp_entry_end_leases_at(struct fp_cache *c, struct fp_entry *e);
/* and also the answer for paths that pass it. */
void fp_entry_end_leases(struct fp_cache *c, struct fp_entry *e);
/* As fp_cache_take_refresh(); NULL if there is none. */
struct fp_entry *fp_entry_take_refresh(struct fp_cache *c, uint64_t now_ms, unsigned *looks, fp_cache_room *room,
                                       const void *ctx);

/* The entry, or the nearest one above it, whose mount is known; NULL if there is none, or e is NULL. */
const struct fp_entry *fp_entry_on_mount(const struct fp_entry *e);
/* From when on, in fp_now_ms(), a use of the entry counts for its refresh. */
uint64_t fp_entry_counts_ms(const struct fp_entry *e);
/* True if its time is over, and no change was reported. */
bool fp_entry_has_expired(const struct fp_entry *e, uint64_t now_ms);
/* The entry was asked for, but had expired.  Has those refreshed that were asked for after it and have expired too, if
 * they are worth it: they will probably be asked for together again.  Visits FP_CACHE_AHEAD entries at most. */
void fp_entry_look_ahead(struct fp_cache *c, struct fp_entry *e, uint64_t now_ms);
/* True if a client asked for the entry, or used a lease on it, since it was seen. */
bool fp_entry_is_used(struct fp_cache *c, struct fp_entry *e);
/* True if a client used it since eviction called this the last time. */
bool fp_entry_take_use(struct fp_cache *c, struct fp_entry *e);
/* To be called when a change was reported. */
void fp_entry_invalidate(struct fp_cache *c, struct fp_entry *e);
/* As fp_dependencies_deps.lose() asks; ctx: the cache, owner: an entry, which the next walk brings back. */
void fp_entry_lose(void *ctx, void *owner, struct fp_dependency *s);

/* ---- purging, and the end of an entry: cache_purge.c ---- */

/* Purges all below the entry and ends the leases there; takes no time for what lies there.
 * Returns how many entries were purged. */
size_t fp_entry_purge_below(struct fp_cache *c, struct fp_entry *e);
/* Visits at most so many entries below purges, and evicts those that are purged.  False:
 * there is nothing left to do.  *evicted_r: how many were evicted. */
bool fp_entry_evict_purged(struct fp_cache *c, size_t visits, size_t *evicted_r);
/* A walk has come to a purged entry: nothing is known of it, and it is purged no more. */
void fp_entry_revive(struct fp_cache *c, struct fp_entry *e);

/* Only for an entry without children. */
void fp_entry_evict(struct fp_cache *c, struct fp_entry *e);

/* ---- eviction: cache_evict.c ---- */

#define FP_MAKE_ROOM    32  /* visits of purged entries, before one is evicted that is not */
#define FP_WATCH_TRIES  16  /* entries that are looked at for a watch */
#define FP_SIEVE_VISITS 128 /* of one eviction: children can set marks as fast as the hand clears them */

/* Closes a file: its metadata stay known, and leases on them go on.  The next question about it needs a walk,
 * but clients open files of this machine by themselves.  False if there is none. */
bool fp_entry_close_file(struct fp_cache *c);
/* Evicts an entry whose end makes room for that kind; false: none could go. */
bool fp_entry_evict_for(struct fp_cache *c, enum fp_kind kind);
/* Evicts an entry for the memory that it takes; false: none could go. */
bool fp_entry_evict_any(struct fp_cache *c);
/* Looks at one entry, and evicts it if inotify watches it and it is not in use; false if there is none. */
bool fp_entry_look_for_watch(struct fp_cache *c);
/* Evicts all that is over the limits. */
void fp_entry_trim(struct fp_cache *c);

#endif
