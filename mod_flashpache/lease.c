/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lease.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "fdio.h"
#include "file.h"
#include "wire.h"

#define DESCRIPTORS_SHARE 4    /* one in so many descriptors may be a lease's */

static struct fp_table *leases;

void fp_lease_init(apr_pool_t *p, int limit)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0
        && rl.rlim_cur / DESCRIPTORS_SHARE < (rlim_t)limit)
        limit = (int)(rl.rlim_cur / DESCRIPTORS_SHARE);
    leases = fp_table_create(p, limit);
}

static void destroy(struct fp_item *item)
{
    struct fp_lease *lease = (struct fp_lease *)item;

    fp_file_release(&lease->file);
    free(lease);
}

static apr_size_t make_key(char *key, const void *owner, const char *path, apr_size_t len)
{
    memcpy(key, &owner, sizeof(owner));
    memcpy(key + sizeof(owner), path, len);
    return sizeof(owner) + len;
}

struct fp_lease *fp_lease_find(const void *owner, const char *path, apr_size_t len)
{
    char key[sizeof(owner) + FP_MAX_PATH];
    struct fp_lease *lease;

    lease = (struct fp_lease *)fp_table_get(leases, key, make_key(key, owner, path, len));
    if (lease == NULL || fp_now_ms() < lease->until_ms)
        return lease;
    fp_table_drop(leases, &lease->item);
    fp_item_release(&lease->item);
    return NULL;
}

struct fp_lease *fp_lease_create(const void *owner, const char *path, apr_size_t len,
                                 struct fp_answer *a)
{
    apr_size_t steps = a->n_steps * sizeof(a->steps[0]);
    struct fp_lease *lease = malloc(sizeof(*lease) + steps + sizeof(owner) + len);
    char *key;

    if (lease == NULL) {
        fp_close(&a->fd);
        return NULL;
    }
    key = (char *)lease->steps + steps;
    fp_item_init(&lease->item, key, make_key(key, owner, path, len), destroy);
    lease->until_ms = fp_now_ms() + a->good_for_ms;
    lease->path = key + sizeof(owner);
    lease->path_len = len;
    lease->n_steps = a->n_steps;
    lease->n_names = a->n_names;
    memcpy(lease->steps, a->steps, steps);
    lease->file = a->fd != -1 ? fp_file_create(a->fd, a->local) : NULL;
    a->fd = -1;
    if (a->good_for_ms > 0)
        fp_table_put(leases, &lease->item);
    return lease;
}
