/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache: what is known of paths, with open descriptors.
 *
 * One entry for each path, its parent's entry above it up to "/": a directory
 * is kept once for all that lies in it.  An entry remembers the generation
 * under which it saw its parent; when a walk finds the parent to be another
 * thing than before, the parent's generation changes and all below is dead at
 * once, without being visited.
 *
 * An entry is believed for some time, and where changes are told (watch.h) for
 * much longer: until one is.  Each has a slot in shared memory (lease_table.h) that
 * ends all leases on it when what is told of it changes, or when it goes.
 *
 * Knows no sockets and no file system: callers say what time it is, in
 * milliseconds of a monotonic clock.
 *
 * Not promised: what is not watched may be up to its time to live older than
 * the file system.  Within one answer the last step's metadata and its
 * descriptor come from one walk; a step above may have been seen again later,
 * as the same thing (same inode, mode and owner; for a link also the same
 * change time and target).
 */
#ifndef FP_CACHE_H
#define FP_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Each at least 1. */
struct fp_cache_limits {
    size_t files;        /* open files */
    size_t open_dirs;       /* directories kept open, to begin walks at */
    size_t directories;  /* directories, links and what cannot be opened */
    size_t negatives;       /* names known to be absent or unreadable */
    size_t bytes;        /* of memory for entries, about */
    uint32_t ttl_ms;     /* how long an entry is believed where nothing else is said, */
    uint32_t watched_ttl_ms;   /* and where all changes are told */
};

/* What a cache uses; all of it the caller's and outlives it. */
struct fp_cache_deps {
    struct fp_lease_table *lease_table;        /* NULL: there are no leases */
    uint64_t (*now_ms)(void);
    /* Nobody wants to know of changes there any more; may be NULL. */
    void (*forget)(void *ctx, const struct fp_watch_key *key);
    void *ctx;
};

/* NULL when out of memory.  After fp_keyed_hash_init(). */
struct fp_cache *fp_cache_create(const struct fp_cache_limits *limits,
                                 const struct fp_cache_deps *deps);
/* Closes every descriptor. */
void fp_cache_destroy(struct fp_cache **c);

/* New limits hold at once; what is over them is evicted. */
void fp_cache_set_limits(struct fp_cache *c,
                         const struct fp_cache_limits *limits);

/* None before it is called.  What is kept stays until it is looked at again. */
void fp_cache_set_content(struct fp_cache *c, const struct fp_cache_content *content);

/* Whoever numbers lists of names says what they are: for a number from 1 to
 * FP_MAX_LISTS, once; the list stays the caller's. */
void fp_cache_set_names(struct fp_cache *c, unsigned number, const struct fp_names *names);

/*
 * Fills *a and returns true if the path is known at now_ms, and with it, in
 * each directory on the way, the access files of the list of names that the
 * caller numbers names (0: none are asked about).  a->fd is lent: it stays
 * the cache's and is good until the next call with this cache.
 */
bool fp_cache_lookup(struct fp_cache *c, const char *path, size_t len,
                     unsigned names, uint64_t now_ms, struct fp_answer *a);

/* The same for who waited for a walk that was just inserted: that is no use of it yet. */
bool fp_cache_lookup_inserted(struct fp_cache *c, const char *path, size_t len, unsigned names,
                   uint64_t now_ms, struct fp_answer *a);

/*
 * The same of what is believed no longer, but was not changed as far as anybody
 * knows, for as long after that as its mount allows: for when the file system
 * does not answer.
 */
bool fp_cache_lookup_stale(struct fp_cache *c, const char *path, size_t len, unsigned names,
                           uint64_t now_ms, struct fp_answer *a);

/* What was in use since it was seen and should be looked at again. */
struct fp_cache_refresh {
    const char *path;    /* good until the next call with this cache */
    size_t len;
    unsigned names;
};

/*
 * The next of those at now_ms: entries of which half the life is over, so that what
 * is in use, be it by leases only, never becomes a miss; and what lies above others,
 * where it would be over before it is seen whether they are.  Told again after an
 * eighth of its life if nobody has looked by then.  False: there is none, or so
 * many entries (FP_CACHE_LOOKS) are due that the rest may wait a moment.
 */
bool fp_cache_take_refresh(struct fp_cache *c, uint64_t now_ms, struct fp_cache_refresh *refresh_r);

/* Another table of leases, in place of the one that was given up. */
void fp_cache_set_lease_table(struct fp_cache *c, struct fp_lease_table *t);

/* A directory where a walk may begin. */
struct fp_cache_base {
    int fd;              /* opened O_PATH; lent, as by fp_cache_lookup() */
    size_t len;          /* of its path */
    uint64_t generation; /* for fp_cache_insert() */
};

/* The directory that the path lies in, if it is known and open. */
bool fp_cache_find_base(struct fp_cache *c, const char *path, size_t len, unsigned names,
                        uint64_t now_ms, struct fp_cache_base *base);

/* The metadata of an open file that was reached without a link at its end.  Not of
 * one whose content is kept and may have changed in spite of what its metadata says. */
bool fp_cache_find_known(const struct fp_cache *c, const char *path, size_t len,
                         struct fp_meta *m);

/* How large a file at the path may be for its content to be kept; 0: it must not be,
 * or it is there and, unless the file has changed (known: that will be seen), need not
 * be read again. */
uint32_t fp_cache_content_max(const struct fp_cache *c, const char *path, size_t len,
                              bool known);

/* What a walk tells beside its answer. */
struct fp_walk_meta {
    const struct fp_walk_result *result;
    const struct fp_validity *validity;   /* of what each step leads to; mount 0: unknown, or nothing */
};

/*
 * Takes what a walk of path found, and its descriptor: a->fd is -1
 * afterwards.  Only complete answers (status FP_OK) are kept.  names numbers
 * the list of names that the walk looked for; now_ms is when it began.  An
 * entry knows one list's access files: those of the last walk.  base: where
 * the walk began, NULL for "/"; if that directory has become another one
 * meanwhile, nothing is kept.  meta NULL: nothing is watched.  What changed
 * since the walk began is not believed.
 */
void fp_cache_insert(struct fp_cache *c, const char *path, size_t len, unsigned names,
                     const struct fp_cache_base *base, uint64_t now_ms,
                     const struct fp_walk_meta *meta, struct fp_answer *a);

/* What a change does to a cache (coherence.h), which is the ctx: it invalidates the entries
 * concerned, when events were lost all that are watched. */
extern const struct fp_change_ops fp_cache_change_ops;
void fp_cache_set_report_changed(struct fp_cache *c, fp_cache_report_changed *tell, void *ctx);
/*
 * Nothing that was seen before and is watched is believed any more: at that
 * path (terminated, in normal form) and below it, and what was reached through
 * links; NULL: at all.  Returns how many entries that are.
 */
size_t fp_cache_invalidate(struct fp_cache *c, const char *at);

/* The mount that the path lies on, and how much of the path was known for that
 * (0: nothing), be it believed or not. */
uint32_t fp_cache_mount(const struct fp_cache *c, const char *path, size_t len, size_t *known_r);

/* Gives up to n descriptors back to the process; returns how many it was. */
size_t fp_cache_shed_files(struct fp_cache *c, size_t n);

/*
 * Forgets the path, or with tree the path and everything below it, so that no
 * question about it is answered before a walk has looked again: what is known of
 * the directory's access files goes too, and every name above the path at which a
 * walk would end.  Returns how many entries of the path, and below it, there
 * were; their descriptors are closed.  Looks at every entry if tree is set.
 */
size_t fp_cache_forget(struct fp_cache *c, const char *path, size_t len, bool tree);

/* Forgets everything. */
void fp_cache_clear(struct fp_cache *c);

/* What an operator may know of one entry. */
enum fp_cache_state {
    FP_VIEW_UNKNOWN,     /* nothing is known */
    FP_VIEW_DETACHED,      /* it was seen below another thing than is there now */
    FP_VIEW_CHANGED,     /* a change was told */
    FP_VIEW_EXPIRED,     /* its time is over */
    FP_VIEW_KNOWN
};
struct fp_cache_view {
    enum fp_cache_state state;
    bool watched;        /* else it is believed for the mount's time only */
    int by;              /* then an enum fp_watch_by (mounts.h), of what tells first */
    uint64_t expires_ms;   /* believed until then; 0: not */
    uint32_t mount;
    bool open, content;  /* it is kept open, or by its content */
    bool leased;         /* leases may be given on it */
    bool names;          /* its access files are known, for that list of names */
};
/* Of the entry of the path itself.  That is no use of it. */
struct fp_cache_view fp_cache_view(const struct fp_cache *c, const char *path, size_t len,
                                   unsigned names, uint64_t now_ms);

struct fp_cache_counts fp_cache_counts(const struct fp_cache *c);

#endif
