/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/mount_list.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "shared/area.h"

#define VIEW_MOUNTS 4096 /* 32 KB; a container host has hundreds */

/* A slot holds all of a mount in one word, so that no half of one can be seen. */
struct fp_mount_list {
    _Atomic uint32_t n;
    _Atomic uint64_t slots[VIEW_MOUNTS]; /* ascending: id << 32 | traits */
};
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "a lock would not work between processes");

struct fp_mount_list *fp_mount_list_create(void)
{
    return fp_area_publish("flashpache-mounts", sizeof(struct fp_mount_list));
}

int fp_mount_list_protect(struct fp_mount_list *v)
{
    return fp_area_end_writing(v, sizeof(*v));
}

void fp_mount_list_publish(struct fp_mount_list *v, const struct fp_mount_table *t)
{
    const size_t n = t->n < VIEW_MOUNTS ? t->n : VIEW_MOUNTS;

    for (size_t i = 0; i < n; i++) {
        const struct fp_mount *m = &t->by_id[i].mount;
        uint32_t traits;

        memcpy(&traits, &m->traits, sizeof(traits));
        atomic_store(&v->slots[i], (uint64_t)m->id << 32 | traits);
    }
    atomic_store(&v->n, (uint32_t)n);
}

struct fp_mount_traits fp_mount_list_find(const struct fp_mount_list *v, uint32_t mnt_id)
{
    struct fp_mount_traits traits = { .verdict = FP_TTL_UNWATCHED };
    size_t low = 0, high = atomic_load(&v->n);

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const uint64_t slot = atomic_load(&v->slots[mid]);

        if (slot >> 32 == mnt_id) {
            memcpy(&traits, &(uint32_t){ (uint32_t)slot }, sizeof(traits));
            break;
        }
        if (slot >> 32 < mnt_id)
            low = mid + 1;
        else
            high = mid;
    }
    return traits;
}
