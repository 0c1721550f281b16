/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be told to a fleet and was not stored yet, in order, each once.
 * When there is no room for more, one "everything" takes the place of all that
 * waits: that says less exactly the same.
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

/* What is said anyhow by what waits is not added. */
void fp_fleet_queue_add(struct fp_fleet_queue *q, enum fp_fleet_op op, const char *path,
                        size_t len);

/* The next one that was not sent, which it is now; its sender is not set.  Good until
 * it was stored.  False: there is none. */
bool fp_fleet_queue_send(struct fp_fleet_queue *q, struct fp_fleet_message *m);
/* The oldest one that was sent has been stored. */
void fp_fleet_queue_stored(struct fp_fleet_queue *q);
/* Nobody knows what became of those that were sent: they are sent again. */
void fp_fleet_queue_resend(struct fp_fleet_queue *q);

/* How many wait to be sent, and how many for their being stored. */
size_t fp_fleet_queue_waiting(const struct fp_fleet_queue *q);
size_t fp_fleet_queue_sent(const struct fp_fleet_queue *q);

#endif
