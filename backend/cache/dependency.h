/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who depends on what is watched: from the key of a directory or file, and a
 * name in it, to the owners (entries of the cache) that a change there
 * concerns.  And, for walks that are under way, what has happened lately.
 */
#ifndef FP_WATCHED_H
#define FP_WATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/walk_result.h"

struct fp_watched;

/* One dependence: of an owner on a place, or on a name in it. */
struct fp_stake;

/* forget is called when nobody depends on a key any more; now_ms is a clock. */
struct fp_watched *fp_watched_create(void (*forget)(void *ctx, const struct fp_watch_key *key),
                                     void *ctx, uint64_t (*now_ms)(void));
/* When no stake is left. */
void fp_watched_destroy(struct fp_watched **w);

/*
 * Puts a stake of the owner's in front of *stakes: on the name, or with NULL
 * on the place itself.  NULL when out of memory.
 */
struct fp_stake *fp_watched_add(struct fp_watched *w, struct fp_stake **stakes, void *owner,
                                const struct fp_watch_key *key, const char *name, size_t len);
/* Drops all of them and leaves NULL. */
void fp_watched_drop(struct fp_watched *w, struct fp_stake **stakes);

/* The key, NULL once nothing more is told of it. */
const struct fp_watch_key *fp_stake_key(const struct fp_stake *s);

/* About how much memory a list of stakes takes. */
size_t fp_stakes_bytes(const struct fp_stake *stakes);

typedef void fp_watched_each(void *ctx, void *owner);

/*
 * Something happened to the name (empty: to the place itself): remembers that
 * and calls place for everybody with a stake in the place, and name for
 * everybody with one in the name.  They must not add or drop stakes.
 */
void fp_watched_changed(struct fp_watched *w, const struct fp_watch_key *key, const char *name,
                        size_t len, fp_watched_each *place, fp_watched_each *named, void *ctx);

/* No more is told of the key: calls each for everybody with a stake there. */
void fp_watched_gone(struct fp_watched *w, const struct fp_watch_key *key, fp_watched_each *place,
                     fp_watched_each *named, void *ctx);

/* Events were lost: everything may have happened. */
void fp_watched_lost(struct fp_watched *w);
bool fp_watched_was_lost(const struct fp_watched *w, uint64_t since_ms);

/*
 * May something have happened to the name (empty: to the place itself) since
 * then?  True also for some to which nothing did.
 */
bool fp_watched_happened(const struct fp_watched *w, const struct fp_watch_key *key,
                         const char *name, size_t len, uint64_t since_ms);
/* And to any name in it? */
bool fp_watched_any_happened(const struct fp_watched *w, const struct fp_watch_key *key,
                             uint64_t since_ms);

/* How many keys. */
size_t fp_watched_count(const struct fp_watched *w);

#endif
