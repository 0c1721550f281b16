/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listening socket: who may hold it, who may connect, how many.
 * All functions run on the loop.
 */
#ifndef FP_LISTENER_H
#define FP_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/connection.h"

struct ev_loop;
struct fp_listener;
struct fp_monitor;

struct fp_listener_settings {
    const char *path; /* of the socket; must outlive the listener */
    int sock, lock;   /* listening there, non-blocking; and the lock beside it, or -1: ours then */
    bool own;         /* this user made it: makes it again where it was removed, and removes it */
    uid_t uid;        /* of clients, beside root */
    gid_t gid;
    size_t max_connections; /* a new one replaces the longest-idle, or is refused; root has two more */
    struct fp_connection_deps clients;
    void (*out_of_descriptors)(void *); /* none is left for a new connection: give some back; with clients.ctx */
    const struct fp_monitor *monitor;   /* makes the socket again if it was
                                         * removed, and removes it at the end */
};

struct fp_listener_counts {
    uint64_t accepted, refused, displaced;
    size_t open;
};

/* Returns NULL after logging the problem and the way out; socket and lock are closed then. */
struct fp_listener *fp_listener_create(struct ev_loop *loop, const struct fp_listener_settings *settings);

/* Closes all connections; removes the socket if it is our own. */
void fp_listener_destroy(struct fp_listener **l);

struct fp_listener_counts fp_listener_counts(const struct fp_listener *l);

#endif
