/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of mounts that workers look at: shared memory that is made before they are forked and that
 * only the daemon writes.  It holds up to 4096 mounts, those with the lowest ids.
 */
#ifndef FP_MOUNT_LIST_H
#define FP_MOUNT_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mount_table.h"

struct fp_mount_list;

/* Returns NULL with errno.  The list lasts as long as the process. */
struct fp_mount_list *fp_mount_list_create(void);

/* In the daemon: shows these mounts from now on. */
void fp_mount_list_publish(struct fp_mount_list *l, const struct fp_mount_table *t);

/* In a worker: makes the list read-only for good.  0, or -1 with errno. */
int fp_mount_list_protect(struct fp_mount_list *l);

/*
 * The mount's traits.  One that is not there has none, and FP_TTL_UNWATCHED.
 *
 * A reader may run while the daemon writes.  It then sees the old state, the new state, or
 * lacks a mount that is in both; one mount's values always belong together.  That is
 * harmless to one who asks the kernel about a mount that is not known.  After every change
 * of the table the daemon invalidates everything that was seen before, and the results of
 * walks that are under way.
 */
struct fp_mount_traits fp_mount_list_find(const struct fp_mount_list *l, uint32_t mnt_id);

#endif
