/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to Redis, made again whenever it ends, after pauses that grow.
 * Nothing here waits: hiredis encodes, decodes and does the socket's calls, the
 * loop says when.  What comes is bounded, and an answer to no question ends the
 * connection; hiredis' own asynchronous interface would end the process there.
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
    void (*ready)(void *ctx);    /* connected and let in: commands may be asked */
    /* The answer to the oldest command; never an error.  False: not as it has to be, the
     * connection is made anew. */
    bool (*answer)(void *ctx, const struct redisReply *reply);
    void (*lost)(void *ctx, const char *why);   /* a connection, or an attempt at one */
};

/* One argument of a command. */
struct fp_fleet_word { const char *text; size_t len; };

/* Settings, monitor, ops and ctx stay the caller's.  It connects when the loop runs.  NULL: no
 * memory. */
struct fp_fleet_link *fp_fleet_link_create(struct ev_loop *loop,
                                           const struct fp_fleet_settings *settings,
                                           const struct fp_monitor *monitor,
                                           const struct fp_fleet_link_ops *ops, void *ctx);
/* lost is not called. */
void fp_fleet_link_destroy(struct fp_fleet_link **l);

bool fp_fleet_link_is_ready(const struct fp_fleet_link *l);

/* Asks, if it is ready; there is an answer, or the connection is lost. */
void fp_fleet_link_ask(struct fp_fleet_link *l, const struct fp_fleet_word *words, size_t n);

#endif
