/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several daemons over one tree: all forget a path that one purges.
 *
 * A Redis stream records these paths, and a daemon subscribes by reading on from the
 * last entry that it has seen.  Each read begins with that entry.  If it is gone (the
 * stream was trimmed, emptied, replaced), messages may be lost, and the daemon forgets
 * everything in the fleet's roots.
 *
 * The stream is not trusted.  It can only make the daemon forget paths in the roots,
 * at a bounded rate.  An entry that is far too large for a message ends the connection.  If the next
 * one ends at the same place, the daemon forgets everything in the roots and joins anew.  Without
 * Redis entries expire by their TTL.
 * All functions run on the loop, and do not wait.
 */
#ifndef FP_FLEET_H
#define FP_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ev_loop;
struct fp_fleet;
struct fp_fleet_settings; /* conf/conf_fleet.h */
struct fp_monitor;

struct fp_fleet_counts {
    uint32_t member;    /* 1: the configuration has a fleet */
    uint32_t connected; /* 1: it reads the stream */
    uint32_t sending;   /* 1: Redis takes messages */
    uint64_t published; /* messages that Redis has stored */
    uint64_t received;  /* messages of other daemons */
    uint64_t obeyed;    /* of these: entries were forgotten */
    uint64_t dropped;   /* entries that are no message, cannot be read, or are about other paths */
    uint64_t lost;      /* how often messages may have been lost */
};

/* Forgets, as fp_dispatch_forget() does. */
typedef size_t fp_fleet_forget(void *ctx, const char *path, size_t len, bool tree);

/* Settings and monitor stay the caller's.  NULL: no memory, or no random numbers. */
struct fp_fleet *fp_fleet_create(struct ev_loop *loop, const struct fp_fleet_settings *settings,
                                 const struct fp_monitor *monitor, fp_fleet_forget *forget, void *ctx);
void fp_fleet_destroy(struct fp_fleet **f);

/* Sends the other daemons a purge of the path, and with tree of all below it.  A path outside the roots is
 * not sent.  f may be NULL. */
void fp_fleet_publish(struct fp_fleet *f, const char *path, size_t len, bool tree);

/* Returns all zero for NULL. */
struct fp_fleet_counts fp_fleet_counts(const struct fp_fleet *f);

#endif
