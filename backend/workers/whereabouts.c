/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/whereabouts.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/memory.h"

#define PLACES 32768 /* Linux' default for its highest process id; workers have memory for theirs alone */

/* Both numbers are in one word: the process id << 32 | mount. */
struct fp_whereabouts {
    _Atomic uint64_t places[PLACES];
};

struct fp_whereabouts *fp_whereabouts_create(void)
{
    return fp_memory_share(sizeof(struct fp_whereabouts));
}

void fp_whereabouts_set(struct fp_whereabouts *w, pid_t pid, uint32_t mount)
{
    if (w != NULL)
        atomic_store_explicit(&w->places[(size_t)pid % PLACES], (uint64_t)pid << 32 | mount,
                              memory_order_relaxed);
}

uint32_t fp_whereabouts_of(const struct fp_whereabouts *w, pid_t pid)
{
    const uint64_t place = w != NULL ? atomic_load(&w->places[(size_t)pid % PLACES]) : 0;

    return place >> 32 == (uint64_t)pid ? (uint32_t)place : 0;
}
