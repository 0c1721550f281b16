/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes on the reports of watches and of the table of mounts, and says in the shared
 * table that it has (lease_table.h).  Knows no cache: struct fp_change_ops stands for
 * it.  All functions run on the loop.
 */
#ifndef FP_COHERENCE_H
#define FP_COHERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mount_table.h"

struct ev_loop;
struct fp_coherence;
struct fp_mounts;
struct fp_noise_list;
struct fp_lease_table;
struct fp_walk_result;
struct fp_watch;
struct fp_watch_key;

/* The object that is watched under a key. */
struct fp_watched {
    uint64_t dev, ino; /* 0: unknown */
    uint32_t uid;
    const char *path;  /* of an entry that depends on it, good until the next call; */
    size_t len;
    bool itself; /* the path is that of the directory or file itself */
};

/* A mount that came or went. */
struct fp_remount {
    const char *point; /* "/" if it is not known where */
    uint32_t mount;    /* its id: files that are open there are closed; 0: unknown */
};

/* The effects of a change. */
struct fp_change_ops {
    /* As struct fp_watch_ops says (watch.h).  Returns how many entries it had to look at: that is what it costs. */
    size_t (*changed)(void *ctx, const struct fp_watch_key *key, const char *name, size_t len, bool replaced);
    /* Too many entries are concerned for so many changes: those of which there may be many are to lose the key. */
    void (*crowded)(void *ctx, const struct fp_watch_key *key);
    void (*unwatched)(void *ctx, const struct fp_watch_key *key);
    void (*lost)(void *ctx);
    /* Something was mounted or unmounted at these points. 0: something was mounted, and is gone again.  Returns
     * how many entries it invalidated. */
    size_t (*remounted)(void *ctx, const struct fp_remount *list, size_t n);
    bool (*is_needed)(void *ctx, const struct fp_watch_key *key);
    /* False: nothing depends on the key. */
    bool (*find)(void *ctx, const struct fp_watch_key *key, struct fp_watched *watched_r);
};

/* How long entries on a mount are valid. */
struct fp_validity {
    uint32_t mount;
    struct fp_mount_traits traits;
    uint64_t mounted_ms; /* when it came, or went, as far as it was noticed */
    uint32_t ttl_ms;
    uint32_t negative_ms; /* for absent names, if it is less; 0: as for others */
    uint32_t stale_ms;    /* so much longer if the file system does not answer */
};

/* All of them are the caller's, and outlive it. */
struct fp_coherence_deps {
    const struct fp_change_ops *ops;
    void *ctx; /* of the ops */
    struct fp_mounts *mounts;
    const struct fp_watch *watch;
    struct fp_lease_table *lease_table;
    struct fp_noise_list *noise; /* that workers look at; NULL: nothing is left out */
};

struct fp_coherence_counts {
    uint64_t events, losses; /* losses: events that were lost, changes of mounts */
    /* Watches that were left out as too noisy, and how many objects are left out now. */
    uint64_t left_out, noisy;
    uint64_t watches_refused; /* the system's limit on watches was reached */
};

/* NULL: no memory. */
struct fp_coherence *fp_coherence_create(struct ev_loop *loop, const struct fp_coherence_deps *deps);
void fp_coherence_destroy(struct fp_coherence **f);

/*
 * Takes in the events that are there; for a while leases are kept in force.  To be called before a
 * question is answered, and before the result of a walk is kept.
 */
void fp_coherence_catch_up(struct fp_coherence *f);

/* How long the targets of the n steps are valid. */
void fp_coherence_validity(struct fp_coherence *f, const struct fp_walk_result *result, size_t n,
                           struct fp_validity *validity);

/* Sets a function to be called at each heartbeat, after the events that are there were taken in.  That is
 * some 60 times a second while answers are in use.  The function returns true if a client waits for an
 * answer: then the beat goes on as well. */
void fp_coherence_set_beat(struct fp_coherence *f, bool (*on_beat_done)(void *ctx), void *ctx);

struct fp_coherence_counts fp_coherence_counts(const struct fp_coherence *f);

#endif
