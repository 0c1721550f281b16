/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/whereabouts.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/memory.h"

#define PLACES 1024 /* 8 KB; settings allow 256 workers, and killed ones leave theirs at once */

struct fp_place {
    _Atomic uint32_t pid; /* 0: free */
    _Atomic uint32_t mount;
};

struct fp_whereabouts {
    struct fp_place places[PLACES];
};

struct fp_whereabouts *fp_whereabouts_create(void)
{
    return fp_memory_share(sizeof(struct fp_whereabouts));
}

void fp_whereabouts_leave(struct fp_whereabouts *w, pid_t pid)
{
    for (size_t i = 0; w != NULL && i < PLACES; i++) {
        uint32_t mine = (uint32_t)pid;

        if (atomic_compare_exchange_strong(&w->places[i].pid, &mine, 0))
            return;
    }
}

struct fp_place *fp_whereabouts_enter(struct fp_whereabouts *w, pid_t pid)
{
    /* A worker of the same number may have ended unseen. */
    fp_whereabouts_leave(w, pid);
    for (size_t i = 0; w != NULL && i < PLACES; i++) {
        uint32_t nobody = 0;

        if (atomic_compare_exchange_strong(&w->places[i].pid, &nobody, (uint32_t)pid)) {
            atomic_store(&w->places[i].mount, 0);
            return &w->places[i];
        }
    }
    return NULL;
}

void fp_whereabouts_set(struct fp_place *place, uint32_t mount)
{
    if (place != NULL)
        atomic_store_explicit(&place->mount, mount, memory_order_relaxed);
}

uint32_t fp_whereabouts_of(const struct fp_whereabouts *w, pid_t pid)
{
    for (size_t i = 0; w != NULL && i < PLACES; i++) {
        if (atomic_load(&w->places[i].pid) == (uint32_t)pid)
            return atomic_load(&w->places[i].mount);
    }
    return 0;
}
