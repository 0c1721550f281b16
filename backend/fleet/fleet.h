/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several daemons over one tree: what one is told to forget, all forget.
 *
 * A Redis stream is the record of that, and reading it on from the last entry
 * seen is the subscription.  Each look at it begins with that entry: where it is
 * gone (the stream was trimmed, emptied, replaced) nobody knows what was missed,
 * and everything in the fleet's roots is forgotten.
 *
 * What is read is not trusted.  It can only let paths in the roots be
 * forgotten, at a bounded rate.  Without Redis what is known ends with its TTL.
 * All functions run on the loop, and do not wait.
 */
#ifndef FP_FLEET_H
#define FP_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ev_loop;
struct fp_fleet;
struct fp_fleet_settings;   /* conf/conf_fleet.h */
struct fp_monitor;

struct fp_fleet_counts {
    uint32_t connected;      /* 1: it reads the stream */
    uint64_t published;      /* messages that were stored */
    uint64_t received;       /* of others */
    uint64_t obeyed;         /* of these: something was forgotten, or soon will be */
    uint64_t dropped;        /* entries that are no message, or about other paths */
    uint64_t lost;           /* how often nobody knew what was missed */
};

/* Forgets, as fp_dispatch_forget() does. */
typedef void fp_fleet_forget(void *ctx, const char *path, size_t len, bool tree);

/* Settings and monitor stay the caller's.  NULL: no memory, or no random numbers. */
struct fp_fleet *fp_fleet_create(struct ev_loop *loop, const struct fp_fleet_settings *settings,
                                 const struct fp_monitor *monitor, fp_fleet_forget *forget,
                                 void *ctx);
void fp_fleet_destroy(struct fp_fleet **f);

/* To all others: the path, and with tree all below it, is to be forgotten.  What is not
 * in the roots is not told.  f may be NULL. */
void fp_fleet_publish(struct fp_fleet *f, const char *path, size_t len, bool tree);

/* All zero for NULL. */
struct fp_fleet_counts fp_fleet_counts(const struct fp_fleet *f);

#endif
