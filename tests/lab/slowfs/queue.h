/* SPDX-License-Identifier: Apache-2.0
 *
 * The waiting room of slowfs: calls lie here until their delay is over, then one of a few
 * threads runs them. No thread sleeps for a call, so any number of delays overlap.
 *
 * A waiting call ends early, with EINTR, when its caller has been killed, as on an NFS
 * mount: FUSE itself would leave the caller unkillable until the answer comes.
 */
#ifndef SLOWFS_QUEUE_H
#define SLOWFS_QUEUE_H

#include "behaviour.h"

#include "fuse_api.h"

struct slowfs_queue;

/* Embed as first member; the queue frees the call with free() after run or cancel. */
struct slowfs_call {
    fuse_req_t req;
    enum slowfs_delayed kind;
    void (*run)(struct slowfs_call *call);
    /* set by the queue, CLOCK_MONOTONIC nanoseconds */
    uint64_t arrived;
    uint64_t due;
};

/* NULL with errno on failure. Starts the threads. */
struct slowfs_queue *slowfs_queue_create(const struct slowfs_behaviour *behaviour);

/* Takes the call over. Runs it at once where there is no delay. */
void slowfs_queue_submit(struct slowfs_queue *queue, struct slowfs_call *call);

/* Holds from now on, and for the calls that wait already (their delays stay as they were). */
void slowfs_queue_behave(struct slowfs_queue *queue, const struct slowfs_behaviour *behaviour);

struct slowfs_behaviour slowfs_queue_behaviour(struct slowfs_queue *queue);

/* The number of waiting calls. */
size_t slowfs_queue_waiting(struct slowfs_queue *queue);

/* Answers waiting calls with ENOTCONN, and ends the threads. No submit may run meanwhile. */
void slowfs_queue_destroy(struct slowfs_queue **queue);

#endif
