/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections between two stages, first in, first out. One is in at most one
 * queue at a time, so a queue is never longer than there are connections.
 */
#ifndef ARCHSERVER_QUEUE_H
#define ARCHSERVER_QUEUE_H

#include <pthread.h>

#include "conn.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct conn *first, *last;
};

void queue_init(struct queue *queue);
void queue_put(struct queue *queue, struct conn *c);

/* Waits for one. */
struct conn *queue_take(struct queue *queue);

#endif
