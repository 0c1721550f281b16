/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to a fleet that Redis has not stored yet, in order, each once.
 * When the queue is full, one "everything" replaces all waiting messages, since it
 * includes them.
 */
#ifndef FP_FLEET_QUEUE_H
#define FP_FLEET_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "fleet/fleet_message.h"

struct fp_fleet_queue;

/* max: how many may wait, at least 1.  NULL: no memory. */
struct fp_fleet_queue *fp_fleet_queue_create(size_t max);
void fp_fleet_queue_destroy(struct fp_fleet_queue **q);

/* Adds a message unless a waiting one includes it. */
void fp_fleet_queue_add(struct fp_fleet_queue *q, enum fp_fleet_op op, const char *path, size_t len);

/* Takes the next waiting message, which counts as sent from now on; its sender is not set.  Valid until
 * it is stored.  False if there is none. */
bool fp_fleet_queue_send(struct fp_fleet_queue *q, struct fp_fleet_message *m);
/* To be called when Redis has stored the oldest sent message. */
void fp_fleet_queue_stored(struct fp_fleet_queue *q);
/* To be called when sent messages may be lost: they wait again. */
void fp_fleet_queue_resend(struct fp_fleet_queue *q);

/* How many messages wait to be sent, and how many to be stored. */
size_t fp_fleet_queue_waiting(const struct fp_fleet_queue *q);
size_t fp_fleet_queue_sent(const struct fp_fleet_queue *q);

#endif
