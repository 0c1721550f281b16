/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/mounts_view.h"

#include <stdatomic.h>
#include <stddef.h>

#include "common/area.h"
#include "common/mount_table.h"

#define VIEW_MOUNTS 4096 /* 32 KB; a container host has hundreds */

/* The traits' bits. */
enum {
    LOCAL = 1,
    BY_DIRECTORY = 2,
    NOSYMFOLLOW = 4,
    FOLDS = 8,
    AUTOMOUNT = 16,
    NAMES_ARE_MOUNTED = 32,
    PROCESSES = 64,
    REMOTE = 128
};
#define VERDICT 8 /* the first bit of it */

/* A slot holds all of a mount in one word, so that no half of one can be seen. */
struct fp_mounts_view {
    _Atomic uint32_t n;
    _Atomic uint64_t slots[VIEW_MOUNTS]; /* ascending: id << 32 | verdict << VERDICT | traits */
};
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "a lock would not work between processes");

struct fp_mounts_view *fp_mounts_view_create(void)
{
    return fp_area_publish("flashpache-mounts", sizeof(struct fp_mounts_view));
}

int fp_mounts_view_protect(struct fp_mounts_view *v)
{
    return fp_area_end_writing(v, sizeof(*v));
}

void fp_mounts_view_publish(struct fp_mounts_view *v, const struct fp_mount_table *t)
{
    const size_t n = t->n < VIEW_MOUNTS ? t->n : VIEW_MOUNTS;

    for (size_t i = 0; i < n; i++) {
        const struct fp_mount *m = &t->by_id[i].mount;

        atomic_store(&v->slots[i],
                     (uint64_t)m->id << 32 | (uint64_t)m->verdict << VERDICT | (m->local ? LOCAL : 0u)
                         | (m->by_directory ? BY_DIRECTORY : 0u) | (m->nosymfollow ? NOSYMFOLLOW : 0u)
                         | (m->folds ? FOLDS : 0u) | (m->automount ? AUTOMOUNT : 0u)
                         | (m->names_are_mounted ? NAMES_ARE_MOUNTED : 0u) | (m->processes ? PROCESSES : 0u)
                         | (m->remote ? REMOTE : 0u));
    }
    atomic_store(&v->n, (uint32_t)n);
}

struct fp_mount_traits fp_mounts_view_find(const struct fp_mounts_view *v, uint32_t mnt_id)
{
    size_t low = 0, high = atomic_load(&v->n);

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const uint64_t slot = atomic_load(&v->slots[mid]);

        if (slot >> 32 == mnt_id)
            return (struct fp_mount_traits){ .known = true,
                                             .verdict = (enum fp_verdict)((slot & UINT32_MAX) >> VERDICT),
                                             .automount = (slot & AUTOMOUNT) != 0,
                                             .names_are_mounted = (slot & NAMES_ARE_MOUNTED) != 0,
                                             .local = (slot & LOCAL) != 0,
                                             .nosymfollow = (slot & NOSYMFOLLOW) != 0,
                                             .folds = (slot & FOLDS) != 0,
                                             .processes = (slot & PROCESSES) != 0,
                                             .by_directory = (slot & BY_DIRECTORY) != 0,
                                             .remote = (slot & REMOTE) != 0 };
        if (slot >> 32 < mnt_id)
            low = mid + 1;
        else
            high = mid;
    }
    return (struct fp_mount_traits){ .verdict = FP_TTL_UNWATCHED };
}
