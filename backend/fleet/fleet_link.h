/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to Redis, made again after each end, after pauses that grow until a connection holds.
 * Nothing here waits: hiredis encodes, decodes and makes the socket's calls when the
 * loop says so.  An answer that is too long, or without a command, ends the connection; hiredis' own
 * asynchronous interface would end the process.
 * All functions run on the loop.
 */
#ifndef FP_FLEET_LINK_H
#define FP_FLEET_LINK_H

#include <stdbool.h>
#include <stddef.h>

struct ev_loop;
struct fp_fleet_link;
struct fp_fleet_settings;
struct fp_monitor;
struct redisReply;

/* In the monitor: a non-blocking socket to Redis, perhaps still connecting.  -1 with errno. */
int fp_fleet_connect(const struct fp_fleet_settings *settings);

struct fp_fleet_link_ops {
    void (*ready)(void *ctx); /* connected and authenticated: commands may be sent */
    /* The answer to the oldest command; never an error.  False: it is wrong, and the connection
     * is made again. */
    bool (*answer)(void *ctx, const struct redisReply *reply);
    /* The connection, or an attempt at one, is lost; refused: by an error that Redis answered with. */
    void (*lost)(void *ctx, const char *why, bool refused);
};

/* One argument of a command. */
struct fp_fleet_word {
    const char *text;
    size_t len;
};

/* Settings, monitor, ops and ctx stay the caller's.  The link connects when the loop runs.  NULL: no
 * memory. */
struct fp_fleet_link *fp_fleet_link_create(struct ev_loop *loop, const struct fp_fleet_settings *settings,
                                           const struct fp_monitor *monitor,
                                           const struct fp_fleet_link_ops *ops, void *ctx);
/* Ends the link; lost is not called. */
void fp_fleet_link_destroy(struct fp_fleet_link **l);

/* True while commands may be sent: connected, and past the greeting. */
bool fp_fleet_link_is_ready(const struct fp_fleet_link *l);

/* Sends a command if the link is ready; either an answer follows, or the connection is lost. */
void fp_fleet_link_ask(struct fp_fleet_link *l, const struct fp_fleet_word *words, size_t n);

#endif
