/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection, and the code of a request: the same in every architecture.
 *
 * conn_advance goes as far as it can and returns what it waits for; an
 * architecture is who waits for that, and where.  Where the architecture has
 * others for what blocks, conn_advance never waits for the file system.
 */
#ifndef ARCHSERVER_CONN_H
#define ARCHSERVER_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cache.h"
#include "file.h"
#include "http.h"
#include "options.h"

struct server {
    struct options options;
    int root_fd, listen_fd;
    struct cache *cache;   /* NULL: none */
    struct turns *turns;   /* NULL: not counted */
    bool has_offload;      /* what would wait for the file system is somebody else's */
    bool sockets_block;    /* recv waits too: for a thread or process of its own */
    bool is_told_of_input; /* by events: no recv without one */
};

enum conn_want {
    CONN_GO_ON,  /* inside of conn.c alone */
    CONN_INPUT,  /* the socket has to be readable */
    CONN_OUTPUT, /* the socket has to be writable */
    CONN_FILE,   /* request.path has to be opened: conn_open, or conn_give_file */
    CONN_DATA,   /* data_from, data_length of the file have to be in memory: conn_read_in, conn_has_data */
    CONN_CLOSE
};

enum conn_step { STEP_READ, STEP_FIND, STEP_PREPARE, STEP_SEND };

struct conn {
    int fd;
    unsigned slot, generation; /* in its owner's table; its owner changes the generation with each use */
    enum conn_step step;
    bool has_input; /* recv is worth a try; only where is_told_of_input */
    bool hung_up;   /* the client sent its last byte: no event will tell of input again */
    bool is_offloaded;
    bool is_last;     /* no request follows */
    bool was_opened;  /* by another, so that opening again does not wait */
    time_t active_at; /* of the monotonic clock: when something moved */
    size_t in_used, head_used, head_sent;
    int status;
    uint64_t sent, end;              /* of the body */
    uint64_t assured;                /* before it, data was in memory a moment ago */
    uint64_t data_from, data_length; /* of CONN_DATA */
    struct conn *next;               /* of its owner's list */
    struct file file;
    struct http_request request;
    char head[HTTP_REPLY_MAX];
    char in[HTTP_HEAD_MAX];
};

/* A new connection on an accepted socket, which is its own from now on. Keeps slot and generation. */
void conn_begin(struct conn *c, int fd);

/* Ends what conn_begin began. */
void conn_end(const struct server *s, struct conn *c);

enum conn_want conn_advance(const struct server *s, struct conn *c);

/* The work that CONN_FILE asks for, here and now. */
void conn_open(const struct server *s, struct conn *c);

/* The same with what another found: status 0 and a file, or an error's status. */
void conn_give_file(struct conn *c, int status, const struct file *file);

/* The work that CONN_DATA asks for, here and now. */
void conn_read_in(struct conn *c);

/* The same when another has done it. */
void conn_has_data(struct conn *c);

/* Accepts for any architecture: a socket, or -1 with errno. */
int conn_accept(const struct server *s);

/* True if nothing moved for longer than --idle. */
bool conn_is_idle(const struct server *s, const struct conn *c, time_t now);

/* Seconds of the monotonic clock. */
time_t conn_now(void);

#endif
