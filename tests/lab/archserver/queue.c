/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "queue.h"

void queue_init(struct queue *q)
{
    (void)pthread_mutex_init(&q->lock, NULL);
    (void)pthread_cond_init(&q->filled, NULL);
    q->first = q->last = NULL;
}

void queue_put(struct queue *q, struct conn *c)
{
    c->next = NULL;
    (void)pthread_mutex_lock(&q->lock);
    *(q->first != NULL ? &q->last->next : &q->first) = c;
    q->last = c;
    (void)pthread_cond_signal(&q->filled);
    (void)pthread_mutex_unlock(&q->lock);
}

struct conn *queue_take(struct queue *q)
{
    struct conn *c;

    (void)pthread_mutex_lock(&q->lock);
    while (q->first == NULL)
        (void)pthread_cond_wait(&q->filled, &q->lock);
    c = q->first;
    q->first = c->next;
    (void)pthread_mutex_unlock(&q->lock);
    return c;
}
