/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache: knowledge of paths, with open descriptors.
 *
 * One entry for each path, its parent's entry above it up to "/": a directory
 * is kept once for all that lies in it.  An entry remembers the generation
 * under which it saw its parent.  A walk may find that the parent is another object
 * than before, or that the right to pass it may have changed.  Then the parent's generation
 * changes, and all below is detached at once without being visited.
 *
 * An entry is valid for its TTL, which is much longer where all changes are reported
 * (watch.h): a report invalidates the entry.  Each entry has a slot in shared memory
 * (lease_table.h); all leases on the entry end when it changes or goes.
 *
 * The cache knows no sockets and no file system: callers say what time it is, in
 * milliseconds of a monotonic clock.
 *
 * Not promised: an entry that is not watched may be up to its TTL older than
 * the file system.  Within one answer the last step's metadata and its
 * descriptor come from one walk.  A step above may have been seen again later,
 * as the same thing.  That is: same inode, mode and owner, reached by as many links; for a
 * link also the same change time and target.
 */
#ifndef FP_CACHE_H
#define FP_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/verdict.h"
#include "cache/cache_types.h"

struct fp_answer;
struct fp_cache;
struct fp_change_ops;
struct fp_meta;
struct fp_names;
struct fp_lease_table;
struct fp_walk_result;
struct fp_validity;
struct fp_watch_key;

/* Each is at least 1. */
struct fp_cache_limits {
    size_t files;            /* open files */
    size_t open_dirs;        /* directories kept open, to begin walks at */
    size_t directories;      /* directories, links and what cannot be opened */
    size_t negatives;        /* names known to be absent or unreadable */
    size_t bytes;            /* of memory for entries, about */
    uint32_t watched_ttl_ms; /* of an entry of which all changes are reported */
};

/* The parts that a cache uses.  The caller owns them, and they outlive the cache. */
struct fp_cache_deps {
    struct fp_lease_table *lease_table; /* NULL: there are no leases */
    uint64_t (*now_ms)(void);
    /* Called when no entry depends on changes there any more; may be NULL. */
    void (*forget)(void *ctx, const struct fp_watch_key *key);
    void *ctx;
    void (*verify)(const struct fp_cache *c); /* for tests: called after each operation; may be NULL */
};

/* Returns NULL when out of memory.  To be called after fp_keyed_hash_init(). */
struct fp_cache *fp_cache_create(const struct fp_cache_limits *limits, const struct fp_cache_deps *deps);
/* Closes every descriptor. */
void fp_cache_destroy(struct fp_cache **c);

/* New limits hold at once: entries above them are evicted. */
void fp_cache_set_limits(struct fp_cache *c, const struct fp_cache_limits *limits);

/* Without a call no content is kept.  A kept content stays until the next walk to it. */
void fp_cache_set_content(struct fp_cache *c, const struct fp_cache_content *content);

/* True if the content at that place is the file's, was
 * used since the last call, and may go on taking room. */
bool fp_cache_content_is_used(struct fp_cache *c, const char *path, size_t len, uint64_t at, uint64_t now_ms);
/* Sets another place for the file's content.  False: the content is not the file's any more. */
bool fp_cache_move_content(struct fp_cache *c, const char *path, size_t len, uint64_t from, uint64_t to);
/* The file has no content any more: the next question about it needs a walk; leases go on. */
void fp_cache_drop_content(struct fp_cache *c, const char *path, size_t len, uint64_t at);

/* Sets the names of the access files that entries of directories have; without a call they have none.  The
 * list stays the caller's.  Names may be appended to it if everything is forgotten then. */
void fp_cache_set_names(struct fp_cache *c, const struct fp_names *names);

/* Which answers of the cache a caller accepts. */
enum fp_ask {
    FP_ASK_ANY,
    FP_ASK_FRESH,    /* only of entries of which all changes are reported */
    FP_ASK_INSERTED, /* for a client that waited for a walk just inserted: this is no use of the entry yet */
    /* While the file system does not answer: of entries that have expired without a reported change as well, for as
     * long after that as their mount allows. */
    FP_ASK_STALE,
    FP_ASK_STALE_FRESH /* as FP_ASK_STALE, but only entries neither watched nor on such a mount */
};

/*
 * Fills *a and returns true if the path is known at now_ms.  a->fd is lent: it stays the cache's and is good
 * until the next call with this cache.
 */
bool fp_cache_lookup(struct fp_cache *c, const char *path, size_t len, enum fp_ask ask, uint64_t now_ms,
                     struct fp_answer *a);

/* The path was in use in a daemon before this one: when its entry has expired, a question about another one of that time
 * has it looked at again as well. */
void fp_cache_note_in_use(struct fp_cache *c, const char *path, size_t len);

/* An entry that was used since it was seen; a walk is to look at it again. */
struct fp_cache_refresh {
    const char *path; /* good until the next call with this cache */
    size_t len;
    bool lent; /* its file may not be held open: if it has changed, only a question opens it */
};

/*
 * Takes the next entry to refresh at now_ms.  One kind has half its TTL behind it: so an entry
 * in use, if only by leases, never becomes a miss.  The other kind is above entries, and would expire
 * before it is seen whether those are in use.  The same entry is returned again after an eighth
 * of its TTL unless a walk came first.  An entry that has expired is returned as well if fp_cache_lookup() missed one
 * that is asked for before it, and it was in use.  One whose mount has no room (NULL: each has) keeps its turn, and comes
 * again soon.  *looks: how many timers that have run out may still be looked at, FP_CACHE_LOOKS at first.  False: there
 * is none, or the rest has to wait a moment.
 */
bool fp_cache_take_refresh(struct fp_cache *c, uint64_t now_ms, unsigned *looks, fp_cache_room *room, const void *ctx,
                           struct fp_cache_refresh *refresh_r);

/* A directory where a walk may begin. */
struct fp_cache_base {
    int fd;              /* opened O_PATH; lent, as by fp_cache_lookup() */
    size_t len;          /* of its path */
    uint64_t generation; /* for fp_cache_insert() */
    uint8_t links;       /* followed to reach it */
    uint32_t mount;      /* that it lies on; 0: unknown */
    uint64_t asked_ms;   /* the walk may rely on the directory's last look at its names, which began then.
                            0: the walk has to ask */
};

/* The nearest directory above the path that is known and
 * open, and whose own path has at least min_len bytes. */
bool fp_cache_find_base(struct fp_cache *c, const char *path, size_t len, size_t min_len,
                        uint64_t now_ms, struct fp_cache_base *base);

/* Closes at most so many of the directories where no walk began for FP_DIR_IDLE_MS, so that what nobody asks for can be
 * unmounted.  False: none is open. */
#define FP_DIR_IDLE_MS 5000u
bool fp_cache_close_idle_dirs(struct fp_cache *c, size_t most, uint64_t now_ms);

/* The device where the path lies, as far as it is known: its own, or that of what is known above it; 0: nothing is. */
uint64_t fp_cache_device(const struct fp_cache *c, const char *path, size_t len);

/* The metadata of a file that was reached without a link at its end. While they stay the same, the file need
 * not be opened again: it is open, or (to_send false) nobody waits for it. False for files that may have
 * changed although their metadata have not. */
bool fp_cache_find_known(const struct fp_cache *c, const char *path, size_t len, bool to_send,
                         struct fp_meta *m);

/* True if what the last walk found there was good for its own question alone. */
bool fp_cache_is_transient(const struct fp_cache *c, const char *path, size_t len);

/* How large a file at the path may be for its content to be kept, at now_ms. 0: no content is kept there, or
 * the kept one need not be read again unless the file has changed. known: the walk will see whether it has. A
 * larger one that may not be held open is wanted at its second walk, and then once in ten minutes. So a file
 * that is never read in time costs little. */
uint32_t fp_cache_content_max(struct fp_cache *c, const char *path, size_t len, bool known, uint64_t now_ms);

/* False: a content of that size is larger than a question
 * brings, and all would take more than there is for such. */
bool fp_cache_has_content_room(const struct fp_cache *c, uint64_t size);

/* The results of a walk beside its answer. */
struct fp_walk_meta {
    const struct fp_walk_result *result;
    const struct fp_validity *validity; /* of each step's target; mount 0: unknown, or none */
};

/*
 * Takes the result of a walk of path, and its descriptor, or with a->content the place of its content.
 * Afterwards a->fd is -1, unless the file may not be held open: then the descriptor stays the caller's. Only
 * complete answers (status FP_OK) with all access files are kept.
 *
 * now_ms: when the walk began.  An entry that changed since then is invalid at once.
 * base: where the walk began, NULL for "/".  If that directory has become another one meanwhile,
 * nothing is kept.
 */
void fp_cache_insert(struct fp_cache *c, const char *path, size_t len,
                     const struct fp_cache_base *base, uint64_t now_ms, const struct fp_walk_meta *meta,
                     struct fp_answer *a);

/* Gives up the watches of a result that no entry took, because it was no answer or is of before. */
void fp_cache_release_watches(struct fp_cache *c, const struct fp_walk_result *result);

/* The effects of a change on a cache (coherence.h); ctx is the cache.  A change invalidates the entries
 * concerned; lost events invalidate all that are watched. */
extern const struct fp_change_ops fp_cache_change_ops;
void fp_cache_set_report_changed(struct fp_cache *c, fp_cache_report_changed *report, void *ctx);
/*
 * Invalidates the entries at that path (terminated, in normal form) and below
 * it.  With them go the directory's whose access file it is, and all that are
 * reached through links.  NULL: all watched entries.
 */
void fp_cache_invalidate(struct fp_cache *c, const char *at);

/* The mount that the path lies on.  *known_r: how much of the path was known for that, valid or expired;
 * 0: nothing. */
uint32_t fp_cache_mount(const struct fp_cache *c, const char *path, size_t len, size_t *known_r);

#define FP_EVICT_FILES 64 /* at a time, when the process has no descriptor left */

/* Gives up to n descriptors back to the process; returns their number. */
size_t fp_cache_evict_files(struct fp_cache *c, size_t n);

/* Evicts up to n entries of any kind; returns their number. */
size_t fp_cache_evict(struct fp_cache *c, size_t n);
/* The system's limit on watches is reached: evicts what is not in use until there are n watches less, or as few
 * as can be. */
void fp_cache_evict_watched(struct fp_cache *c, size_t n);

/*
 * Forgets the path, or with tree the path and everything below it, so that the next
 * question about it needs a walk.  The directory whose access file it is goes too, and
 * every name above the path at which a walk would end.  Returns how many entries of the
 * path, and below it, there were.  The call takes no time for the entries below: no answer uses
 * them any more, and fp_cache_evict_purged() evicts them with their descriptors.
 */
size_t fp_cache_forget(struct fp_cache *c, const char *path, size_t len, bool tree);

/* Evicts forgotten entries, in at most so many visits.  False: none are left. */
bool fp_cache_evict_purged(struct fp_cache *c, size_t visits);

/* Forgets everything. */
void fp_cache_clear(struct fp_cache *c);

/* The state of one entry, for operators. */
enum fp_cache_state {
    FP_CACHE_UNKNOWN,  /* nothing is known */
    FP_CACHE_DETACHED, /* it was seen below another object than is there now */
    FP_CACHE_CHANGED,  /* a change was reported */
    FP_CACHE_EXPIRED,  /* its TTL is over */
    FP_CACHE_KNOWN
};
struct fp_cache_snapshot {
    enum fp_cache_state state;
    enum fp_verdict verdict; /* on how changes are noticed */
    uint64_t expires_ms; /* 0: it has changed */
    uint32_t mount;
    bool open, content; /* it is kept open, or by its content */
    bool leased;        /* leases may be given on it */
};
/* The state of the path's own entry.  To look is no use of the entry. */
struct fp_cache_snapshot fp_cache_snapshot(const struct fp_cache *c, const char *path, size_t len, uint64_t now_ms);

/* False: the list is to end. */
typedef bool fp_cache_list_path(void *ctx, const char *path, size_t len);
/* Where a list goes on.  All zero: at its beginning. */
struct fp_cache_cursor {
    bool unused; /* those in use are listed */
    size_t bucket;
};
/*
 * Calls list for the ends of paths: first those in use, then the others. It leaves out what is unknown at
 * now_ms. Looks at a few hundred entries and returns true, or false: that was all. An entry that comes or
 * goes between two calls may be left out, or listed twice.
 */
bool fp_cache_list_some(struct fp_cache *c, struct fp_cache_cursor *at, uint64_t now_ms,
                        fp_cache_list_path *list, void *ctx);

struct fp_cache_counts fp_cache_counts(const struct fp_cache *c);

#endif
