/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts how many events the turns of the event loops find ready, in a file that others may read meanwhile.
 */
#ifndef ARCHSERVER_TURNS_H
#define ARCHSERVER_TURNS_H

#include <stdatomic.h>
#include <stdint.h>

/* At most so many events are taken in a turn. */
#define TURNS_EVENTS_MOST 1024

/* In the file as it is in memory: by the number of ready events, how many turns found so many. */
struct turns {
    _Atomic uint64_t of_ready[TURNS_EVENTS_MOST + 1];
};

/* Makes the file and maps it; all processes that are forked later share it. Returns NULL with errno. */
struct turns *turns_create(const char *path);

/* turns: may be NULL, where nothing is counted. A turn without events is one that only saw time go by. */
void turns_count(struct turns *turns, int ready);

#endif
