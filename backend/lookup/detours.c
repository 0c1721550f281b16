/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/detours.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "lookup/mount_health.h"

static void forget(struct fp_detour *each)
{
    free(each->path);
    *each = (struct fp_detour){ .mount = 0 };
}

void fp_detours_note(struct fp_detours *d, uint32_t mount, const char *path, size_t len, uint64_t now_ms)
{
    struct fp_detour *each = &d->list[d->next];

    forget(each);
    each->path = fp_memory_take(len + 1);
    if (each->path == NULL)
        return;
    memcpy(each->path, path, len);
    each->path[len] = '\0';
    each->mount = mount;
    each->expires_ms = now_ms + FP_DETOUR_MS;
    d->next = (d->next + 1) % FP_MAX_DETOURS;
}

uint32_t fp_detours_find(const struct fp_detours *d, struct fp_mount_health *health, const char *path,
                         size_t len, uint64_t now_ms, size_t *from_r)
{
    for (unsigned i = 0; i < FP_MAX_DETOURS; i++) {
        const struct fp_detour *each = &d->list[i];

        if (each->mount != 0 && fp_path_is_below(path, len, each->path) && now_ms < each->expires_ms
            && fp_mount_health_is_out(health, each->mount)) {
            *from_r = strlen(each->path);
            return each->mount;
        }
    }
    return 0;
}

void fp_detours_forget(struct fp_detours *d, const char *path, size_t len)
{
    for (unsigned i = 0; i < FP_MAX_DETOURS; i++) {
        struct fp_detour *each = &d->list[i];

        if (each->mount != 0 && fp_path_common_len(each->path, strlen(each->path), path, len) == len)
            forget(each);
    }
}

void fp_detours_clear(struct fp_detours *d)
{
    for (unsigned i = 0; i < FP_MAX_DETOURS; i++)
        forget(&d->list[i]);
}
