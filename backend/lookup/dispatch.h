/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers a question: from the cache, by joining a walk that is under way, or by giving a walk
 * to a worker.  All functions run on the loop.
 *
 * A path that is expected on a mount out of service (mount_health.h) is not walked.  Its answer
 * is the stale one if that is allowed, or that there is none.  Before the first walk of a path
 * its mount is guessed by the nearest entry of the cache, or by the names of mount points.
 * Behind a symbolic link that was never seen the link's mount is expected, until the
 * path's walk is seen to wait for another one.
 */
#ifndef FP_DISPATCH_H
#define FP_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ev_loop;
struct fp_cache;
struct fp_coherence;
struct fp_connection;
struct fp_dispatch;
struct fp_lookup;
struct fp_mounts;
struct fp_names;
struct fp_observer;
struct fp_tables;
struct fp_cache_cursor;
struct fp_warm_text;
struct fp_worker_pool;

struct fp_dispatch_counts {
    uint64_t hits, misses, joined, refreshed, stale, unanswered;
    uint64_t hinted;        /* walks for hints, */
    uint64_t hints_dropped; /* and hints for which none could begin */
    uint64_t purged;        /* entries that fp_dispatch_forget() removed */
    size_t inflight;
    uint64_t opened; /* how often a mount's breaker did */
    unsigned out;   /* mounts out of service now */
};

struct fp_dispatch_settings {
    size_t max_inflight;       /* walks of different paths; half of them may be of one mount */
    uint32_t mount_timeout_ms; /* without any answer, then a mount is out of service */
    const char *const *roots;  /* as in resolve.h; the caller's */
};

/* All but the settings stay the caller's and must outlive it.  tables NULL: nothing is published.  The
 * observer hears of all walks, and learns of mounts out of service.
 * Returns NULL if there is no memory. */
struct fp_dispatch *fp_dispatch_create(struct ev_loop *loop, struct fp_cache *cache,
                                       struct fp_worker_pool *workers, struct fp_coherence *coherence,
                                       const struct fp_mounts *mounts, const struct fp_tables *tables,
                                       struct fp_observer *observer,
                                       const struct fp_dispatch_settings *settings);
/* New settings hold at once, but for the roots. */
void fp_dispatch_set(struct fp_dispatch *d, const struct fp_dispatch_settings *settings);
/* Looks up these paths in the background.  The text is one that fp_warm_check() found good; it is freed. */
void fp_dispatch_restore(struct fp_dispatch *d, char *text, size_t len);
/* True if all paths of that text have been looked up, or there
 * was none.  A list that is made before knows less than that. */
bool fp_dispatch_is_restored(const struct fp_dispatch *d);
/* Lists the next paths as fp_cache_list_some() does; false: that was all. */
bool fp_dispatch_list_some(struct fp_dispatch *d, struct fp_cache_cursor *at, struct fp_warm_text *text);
/* To be called after the workers and all connections are gone. */
void fp_dispatch_destroy(struct fp_dispatch **d);

/* Answers the connection's question, at once or later,
 * unless fp_question_leave() (questions.h) comes first. */
void fp_dispatch_lookup(struct fp_dispatch *d, struct fp_connection *conn, uint64_t id,
                        const struct fp_lookup *l);

/* Looks up in the background what a client looked at
 * itself.  Does without where workers have enough to do. */
void fp_dispatch_hint(struct fp_dispatch *d, const struct fp_lookup *l);

/*
 * Forgets the path, or with tree the path and everything below it: afterwards no
 * question about it is answered from earlier entries.  Walks under way are
 * detached and their results are not kept; a question that waits for one already
 * gets its answer, good for once.  Returns how many entries there were.
 */
size_t fp_dispatch_forget(struct fp_dispatch *d, const char *path, size_t len, bool tree);

/*
 * A client brought these names of access files. If the daemon's list has room for all that it lacks, they are
 * appended to it. All known directories are then forgotten, and looked at again. Returns the list, the
 * dispatch's. No name leaves it, so a client knows by their number which of its names an answer speaks of.
 */
const struct fp_names *fp_dispatch_add_names(struct fp_dispatch *d, const struct fp_names *brought);

struct fp_dispatch_counts fp_dispatch_counts(const struct fp_dispatch *d);

#endif
