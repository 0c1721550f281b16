/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many events are ready each time that the loop wakes up: near one where work
 * comes evenly, many where it comes in bursts.
 */
#ifndef FP_WAKEUPS_H
#define FP_WAKEUPS_H

#include <ev.h>
#include <stdint.h>

struct fp_wakeups {
    ev_check check;
    uint64_t wakeups, ready;
};

/* From now on, and as long as the loop runs; w must live as long. */
void fp_wakeups_count(struct fp_wakeups *w, struct ev_loop *loop);

#endif
