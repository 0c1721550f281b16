/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's connection: framing, the HELLO, one question at a time.  A
 * peer that breaks the protocol or does not read is cut off.  All functions
 * run on the loop.
 */
#ifndef FP_CONNECTION_H
#define FP_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/errors.h"

struct ev_loop;
struct fp_answer;
struct fp_connection;
struct fp_names;
struct fp_reply;
struct fp_frame;
struct fp_sight;
struct fp_tables;
struct fp_watch;

/* Calls to a connection's owner; ctx is the owner's. */
struct fp_connection_ops {
    /*
     * A question arrived; the connection waits until it is answered with
     * fp_connection_answer(), _refuse() or _reply(), at once or later.
     * Anything but FP_OK ends the connection with that reason.
     */
    fp_status (*question)(void *ctx, struct fp_connection *conn, const struct fp_frame *frame);
    /* A client brought these names of access files.  Returns those that the daemon looks for. */
    const struct fp_names *(*names)(void *ctx, const struct fp_names *brought);
    /* The connection is about to be freed: forget it. */
    void (*closed)(void *ctx, struct fp_connection *conn);
};

/* What a daemon's connections share; the caller's. */
struct fp_connection_deps {
    const struct fp_connection_ops *ops;
    void *ctx;
    const struct fp_tables *tables; /* what a peer gets to see, */
    const struct fp_watch *watch;   /* with the events, */
    const struct fp_sight *sees;    /* and our sight, which the greeting has */
};

/* The connections, the one that asked last in front. */
struct fp_connections {
    TAILQ_HEAD(fp_connection_list, fp_connection) list;
    size_t n;
};
void fp_connections_init(struct fp_connections *all);
/* Ends the one that was idle longest; one of root's only for root.  False: none is idle. */
bool fp_connections_displace(struct fp_connections *all, bool root);
void fp_connections_end(struct fp_connections *all);

/* Takes the socket.  root: the peer is root.  NULL when out of memory, the socket is closed then. */
struct fp_connection *fp_connection_create(struct ev_loop *loop, int sock, bool root,
                                           const struct fp_connection_deps *deps, struct fp_connections *all);

/* Calls closed(), then frees. */
void fp_connection_destroy(struct fp_connection **conn);

/*
 * Answers the question that the connection waits on.  a->fd is only sent, and stays the
 * caller's.  Afterwards the connection may be gone.
 */
void fp_connection_answer(struct fp_connection *conn, uint64_t id, const struct fp_answer *a);

/* Tells the connection that its question has no answer, and why. */
void fp_connection_refuse(struct fp_connection *conn, uint64_t id, fp_status why);

/* The question that the connection waits on gets no answer: the next one may come. */
void fp_connection_pass(struct fp_connection *conn);

/* Answers the CONTROL that the connection waits on; the text stays the caller's.  Afterwards the
 * connection may be gone. */
void fp_connection_reply(struct fp_connection *conn, uint64_t id, const struct fp_reply *reply);

/* A place for the owner's data about this connection, NULL at first. */
void **fp_connection_slot(struct fp_connection *conn);

#endif
