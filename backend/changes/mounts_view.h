/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers' view of the mounts: shared memory that is made before they are forked and that
 * only the daemon writes.  It holds up to 4096 mounts, those with the lowest ids.
 */
#ifndef FP_MOUNTS_VIEW_H
#define FP_MOUNTS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mount_table.h"

struct fp_mounts_view;

/* Returns NULL with errno.  The view lasts as long as the process. */
struct fp_mounts_view *fp_mounts_view_create(void);

/* In the daemon: shows these mounts from now on. */
void fp_mounts_view_publish(struct fp_mounts_view *v, const struct fp_mount_table *t);

/* In a worker: makes the view read-only for good.  0, or -1 with errno. */
int fp_mounts_view_protect(struct fp_mounts_view *v);

/*
 * The mount's traits.  One that is not there has none, and FP_TTL_UNWATCHED.
 *
 * A reader may run while the daemon writes.  It then sees the old state, the new state, or
 * lacks a mount that is in both; one mount's values always belong together.  That is
 * harmless to one who asks the kernel about a mount that is not known.  After every change
 * of the table the daemon invalidates everything that was seen before, and the results of
 * walks that are under way.
 */
struct fp_mount_traits fp_mounts_view_find(const struct fp_mounts_view *v, uint32_t mnt_id);

#endif
